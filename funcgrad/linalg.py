"""Linear algebra: the functions of ``funcgrad.numpy.linalg``."""

from funcgrad.numpy.linalg import *  # noqa: F403  # the same names, listed there
from funcgrad.numpy.linalg import __all__  # noqa: F401
