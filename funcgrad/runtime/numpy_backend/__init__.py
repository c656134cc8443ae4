"""Programs evaluated by NumPy, for operations that are not compiled yet.

XLA takes some ten milliseconds to compile the smallest program for new shapes, and NumPy some microseconds to run a
small operation. So what is met for the first time, and is small, runs here; what comes again is compiled meanwhile.
Text generated token by token, batches of all lengths, tests and the prompt live on it.

A rule is a function of NumPy arrays and the primitive's parameters, in the table of its family. Where it would not mean
what XLA means (integers divided by zero, numbers too large for an integer dtype) it raises ``NotHere``, and so does a
primitive without a rule: the operation is compiled then. Results agree with XLA's up to rounding.
"""

from funcgrad.runtime.numpy_backend.evaluate import elements, evaluate, fit, function, milliseconds, steps
from funcgrad.runtime.numpy_backend.table import NotHere
from funcgrad.runtime.numpy_backend.threads import quiet

__all__ = ["NotHere", "elements", "evaluate", "fit", "function", "milliseconds", "quiet", "steps"]
