"""The beta distribution with the parameters ``a`` and ``b``."""

from __future__ import annotations

from typing import Any

from funcgrad import special
from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.parts import inside, standard


@composite
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a, b: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logpdf(0.5, 1.0, 1.0))
        0.0
    """
    z, scale, a, b = standard("beta.logpdf", x, loc, scale, a, b)
    logs = n.add(special.xlogy(n.subtract(a, 1), z), special.xlog1py(n.subtract(b, 1), n.negative(z)))
    found = n.subtract(n.subtract(logs, special.betaln(a, b)), n.log(scale))
    return inside(n.logical_and(n.greater_equal(z, 0), n.less_equal(z, 1)), found)


@composite
def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a, b: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(pdf(0.5, 1.0, 1.0))
        1.0
    """
    return n.exp(logpdf(x, a, b, loc, scale))


@composite
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be below ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a, b: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(cdf(0.25, 1.0, 1.0))
        0.25
    """
    z, _, a, b = standard("beta.cdf", x, loc, scale, a, b)
    return special.betainc(a, b, n.clip(z, 0, 1))


@composite
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be above ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        a, b: its shape, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(sf(0.25, 1.0, 1.0))
        0.75
    """
    z, _, a, b = standard("beta.sf", x, loc, scale, a, b)
    return special.betaincc(a, b, n.clip(z, 0, 1))
