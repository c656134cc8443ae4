"""The uniform distribution, from ``loc`` to ``loc + scale``."""

from __future__ import annotations

from typing import Any

from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.parts import inside, standard


@composite
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logpdf(0.5))
        -0.0
    """
    z, scale = standard("uniform.logpdf", x, loc, scale)
    return inside(n.logical_and(n.greater_equal(z, 0), n.less_equal(z, 1)), n.negative(n.log(scale)))


@composite
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(pdf(0.5))
        1.0
    """
    return n.exp(logpdf(x, loc, scale))


@composite
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be below ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(cdf(0.5))
        0.5
    """
    return n.clip(standard("uniform.cdf", x, loc, scale)[0], 0, 1)


@composite
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be above ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(sf(0.25))
        0.75
    """
    return n.subtract(1, cdf(x, loc, scale))
