"""SciPy's functions: ``integrate``, ``linalg``, ``signal``, ``special`` and ``stats``."""

from funcgrad import special as special
from funcgrad.scipy import integrate as integrate
from funcgrad.scipy import linalg as linalg
from funcgrad.scipy import signal as signal
from funcgrad.scipy import stats as stats
