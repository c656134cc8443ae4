"""``torch._higher_order_ops``: branches and loops as functions of functions.

Where the values that decide are there, which is nearly always, the Python function that is chosen simply runs, so that
its operations are recorded as ever. Where they are not, as under ``funcgrad.jit``, or differ between batch elements, as
under ``vmap``, one branch or loop of funcgrad's is traced of the functions.
"""

from compat._higher_order_ops.associative_scan import associative_scan
from compat._higher_order_ops.cond import cond
from compat._higher_order_ops.map import map
from compat._higher_order_ops.scan import scan
from compat._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
