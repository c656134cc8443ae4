"""The gamma distribution with the parameter ``a``."""

from __future__ import annotations

from typing import Any

from funcgrad import special
from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.parts import inside, standard


@composite
def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logpdf(2.0, 1.0))
        -2.0
    """
    z, scale, a = standard("gamma.logpdf", x, loc, scale, a)
    rest = n.add(n.add(z, special.gammaln(a)), n.log(scale))
    return inside(n.greater_equal(z, 0), n.subtract(special.xlogy(n.subtract(a, 1), z), rest))


@composite
def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(pdf(0.0, 1.0))
        1.0
    """
    return n.exp(logpdf(x, a, loc, scale))


@composite
def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be below ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(cdf(0.0, 1.0))
        0.0
    """
    z, _, a = standard("gamma.cdf", x, loc, scale, a)
    return special.gammainc(a, n.maximum(z, 0))


@composite
def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be above ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(sf(0.0, 1.0))
        1.0
    """
    z, _, a = standard("gamma.sf", x, loc, scale, a)
    return special.gammaincc(a, n.maximum(z, 0))


@composite
def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of ``cdf``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logcdf(1.0, 1.0).round(4))
        -0.4587
    """
    return n.log(cdf(x, a, loc, scale))


@composite
def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of ``sf``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logsf(1.0, 1.0))
        -1.0
    """
    return n.log(sf(x, a, loc, scale))
