"""What there is of SciPy, under SciPy's names: ``special``, ``stats`` and ``signal``."""

from funcgrad import special
from funcgrad.scipy import signal, stats
