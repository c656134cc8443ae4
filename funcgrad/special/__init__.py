"""Special functions, with the names and arguments of ``scipy.special``; they work on arrays under every transform.

Example:
    >>> import funcgrad as fg
    >>> from funcgrad import special
    >>> print(fg.grad(special.gammaln)(3.0).round(4), special.digamma(3.0).round(4))
    0.9228 0.9228
"""

from funcgrad.special.bessel import *
from funcgrad.special.convenience import *
from funcgrad.special.distributions import *
from funcgrad.special.errors import *
from funcgrad.special.gamma import *
from funcgrad.special.integrals import *
from funcgrad.special.inverses import *
from funcgrad.special.logistic import *
