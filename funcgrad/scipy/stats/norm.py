"""The normal distribution: ``loc`` is the mean, ``scale`` the standard deviation."""

from __future__ import annotations

import math
from typing import Any

from funcgrad import special
from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.parts import standard


@composite
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logpdf(0.0).round(4))
        -0.9189
    """
    z, scale = standard("norm.logpdf", x, loc, scale)
    return n.subtract(n.multiply(n.square(z), -0.5), n.add(n.log(scale), math.log(2 * math.pi) / 2))


@composite
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(pdf(0.0).round(4))
        0.3989
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
        >>> print(cdf(0.0))
        0.5
    """
    return special.ndtr(standard("norm.cdf", x, loc, scale)[0])


@composite
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of ``cdf``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logcdf(-20.0).round(3))
        -203.917
    """
    return special.log_ndtr(standard("norm.logcdf", x, loc, scale)[0])


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
        >>> print(sf(0.0))
        0.5
    """
    return special.ndtr(n.negative(standard("norm.sf", x, loc, scale)[0]))


@composite
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of ``sf``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logsf(20.0).round(3))
        -203.917
    """
    return special.log_ndtr(n.negative(standard("norm.logsf", x, loc, scale)[0]))


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The inverse of ``cdf``.

    Args:
        q: the probability; real, as all arguments are, which broadcast together.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(ppf(0.5))
        0.0
    """
    return n.add(n.multiply(special.ndtri(q), scale), loc)


@composite
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The inverse of ``sf``.

    Args:
        q: the probability; real, as all arguments are, which broadcast together.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(isf(0.5))
        -0.0
    """
    return n.add(n.multiply(n.negative(special.ndtri(q)), scale), loc)
