"""Where arrays are computed: compiled executables, one per primitive or program, and the way in and out for NumPy.

Everything that touches a buffer goes through this package.
"""

from funcgrad.runtime.eager import Eager, execute
from funcgrad.runtime.programs import Executable, executable, from_numpy, to_numpy
from funcgrad.runtime.scalars import scalar

__all__ = ["Eager", "Executable", "executable", "execute", "from_numpy", "scalar", "to_numpy"]
