"""The NumPy backend: evaluates programs that are not compiled yet.

XLA takes some ten milliseconds to compile the smallest program for new shapes, and NumPy some microseconds to run a
small operation. So small programs run here until they have run often, and are compiled meanwhile. Token-by-token
generation, batches of varying lengths, tests and interactive use benefit.

A rule is a function of NumPy arrays and the primitive's parameters, in the table of its family. If it would differ from
XLA (integer division by zero, numbers too large for an integer dtype) it raises ``NotEquivalent``, as do primitives
without a rule: the operation is then compiled. Results agree with XLA's up to rounding.
"""

from funcgrad.runtime.numpy_backend.evaluate import elements, evaluate, fit, function, milliseconds, steps
from funcgrad.runtime.numpy_backend.table import NotEquivalent
from funcgrad.runtime.numpy_backend.threads import quiet

__all__ = ["NotEquivalent", "elements", "evaluate", "fit", "function", "milliseconds", "quiet", "steps"]
