"""The Poisson distribution of mean ``mu``."""

from __future__ import annotations

from typing import Any

from funcgrad import special
from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.numpy.rounding import floor
from funcgrad.scipy.stats.parts import inside


def _given(name: str, k: Any, mu: Any, loc: Any) -> list[Any]:
    k, mu, loc = promoted(*[asoperand(v, name) for v in (k, mu, loc)], floating=True)
    return [n.subtract(k, loc), mu]


@composite
def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The logarithm of the probability of ``k``.

    Args:
        k: a whole number, of any dtype; real, as all arguments are, which broadcast together.
        mu: its mean, from 0 on.
        loc: what is added to the variable.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logpmf(0, 2.0))
        -2.0
    """
    k, mu = _given("poisson.logpmf", k, mu, loc)
    whole = n.logical_and(n.greater_equal(k, 0), n.equal(floor(k), k))
    return inside(whole, n.subtract(n.subtract(special.xlogy(k, mu), mu), special.gammaln(n.add(k, 1))))


@composite
def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of ``k``.

    Args:
        k: a whole number, of any dtype; real, as all arguments are, which broadcast together.
        mu: its mean, from 0 on.
        loc: what is added to the variable.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(pmf(0, 0.0))
        1.0
    """
    return n.exp(logpmf(k, mu, loc))


@composite
def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of at most ``k``.

    Args:
        k: a whole number, of any dtype; real, as all arguments are, which broadcast together.
        mu: its mean, from 0 on.
        loc: what is added to the variable.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(cdf(0, 1.0).round(4))
        0.3679
    """
    k, mu = _given("poisson.cdf", k, mu, loc)
    return inside(n.greater_equal(k, 0), special.gammaincc(n.add(floor(n.maximum(k, 0)), 1), mu), 0.0)


@composite
def sf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """The probability of more than ``k``.

    Args:
        k: a whole number, of any dtype; real, as all arguments are, which broadcast together.
        mu: its mean, from 0 on.
        loc: what is added to the variable.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(sf(0, 1.0).round(4))
        0.6321
    """
    k, mu = _given("poisson.sf", k, mu, loc)
    return inside(n.greater_equal(k, 0), special.gammainc(n.add(floor(n.maximum(k, 0)), 1), mu), 1.0)
