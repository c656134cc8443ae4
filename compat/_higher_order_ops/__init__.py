"""``torch._higher_order_ops``: branches and loops as functions of functions.

If the deciding values are concrete, as they nearly always are, the chosen Python function runs and its operations are
recorded. Otherwise, as under ``funcgrad.jit``, or if they differ between batch elements under ``vmap``, the functions
are traced to a branch or loop of funcgrad.
"""

from compat._higher_order_ops.associative_scan import associative_scan
from compat._higher_order_ops.cond import cond
from compat._higher_order_ops.map import map
from compat._higher_order_ops.scan import scan
from compat._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
