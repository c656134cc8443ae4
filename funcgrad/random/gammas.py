"""Gamma variables, and continuous variables derived from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.random import random_gamma
from funcgrad.random.basic import Shape, fits, normal, row, split
from funcgrad.random.continuous import parameters, signs
from funcgrad.runtime.call_cache import compiled

__all__ = ["gamma", "loggamma", "beta", "chisquare", "f", "t", "generalized_normal"]


def _gamma(name: str, key: Any, a: Any, shape: Shape | None, dtype: Any, log: bool) -> Any:
    kind, wanted, (a,) = parameters(name, key, dtype, shape, a=a)
    wide = kind if kind.itemsize >= 4 else dtypes.float32
    spread = e.add(e.cast(a, dtype=wide), np.zeros(wanted, wide)) if type_of(a).shape != wanted else a
    found = random_gamma(key, e.cast(spread, dtype=wide) if type_of(spread).dtype != wide else spread, log=log)
    return found if kind == wide else e.cast(found, dtype=kind)


@compiled
def gamma(key: Any, a: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Samples from the gamma distribution of scale 1; differentiable in ``a``.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        a: the parameter, which is the mean; a positive number or real array.
        shape: of the sample, to which ``a`` broadcasts; by default that of ``a``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> bool((gamma(key(0), 2.0, (9,)) > 0).all())
        True
    """
    return _gamma("gamma", key, a, shape, dtype, False)


@compiled
def loggamma(key: Any, a: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """The logarithms of gamma variables, accurate for small ``a`` too.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        a: a positive number or real array.
        shape: of the sample, to which ``a`` broadcasts; by default that of ``a``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> loggamma(key(0), 0.01, (2,)).shape
        (2,)
    """
    return _gamma("loggamma", key, a, shape, dtype, True)


@compiled
def beta(key: Any, a: Any, b: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Samples from the beta distribution; differentiable in both parameters.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        a, b: positive numbers or real arrays.
        shape: of the sample, to which the parameters broadcast; by default their broadcast shape.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> x = beta(key(0), 2.0, 3.0, (9,))
        >>> bool(((x > 0) & (x < 1)).all())
        True
    """
    kind, wanted, (a, b) = parameters("beta", key, dtype, shape, a=a, b=b)
    keys = split(key)
    first = loggamma(row(keys, 0), a, wanted, kind)
    second = loggamma(row(keys, 1), b, wanted, kind)
    most = e.stop_gradient(e.maximum(first, second))
    first, second = e.exp(e.sub(first, most)), e.exp(e.sub(second, most))
    return e.div(first, e.add(first, second))


@compiled
def chisquare(key: Any, df: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Sums of squares of ``df`` standard normal variables; differentiable in ``df``.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        df: a positive number or real array.
        shape: of the sample, to which ``df`` broadcasts; by default that of ``df``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> bool((chisquare(key(0), 3.0, (9,)) > 0).all())
        True
    """
    kind, wanted, (df,) = parameters("chisquare", key, dtype, shape, df=df)
    return e.scale(e.exp(loggamma(key, e.scale(df, 0.5), wanted, kind)), 2)


@compiled
def f(key: Any, dfnum: Any, dfden: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Samples from Fisher's F distribution; differentiable in both parameters.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        dfnum, dfden: degrees of freedom of numerator and denominator; positive numbers or real arrays.
        shape: of the sample, to which the parameters broadcast; by default their broadcast shape.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> bool((f(key(0), 3.0, 5.0, (9,)) > 0).all())
        True
    """
    kind, wanted, (above, below) = parameters("f", key, dtype, shape, dfnum=dfnum, dfden=dfden)
    keys = split(key)
    top = e.div(chisquare(row(keys, 1), above, wanted, kind), above)
    return e.div(top, e.div(chisquare(row(keys, 0), below, wanted, kind), below))


@compiled
def t(key: Any, df: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Samples from Student's t distribution; differentiable in ``df``.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        df: degrees of freedom; a positive number or real array.
        shape: of the result, to which ``df`` broadcasts; that of ``df`` if it is ``()``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> t(key(0), 3.0, (2,)).shape
        (2,)
    """
    kind, wanted, (df,) = parameters("t", key, dtype, shape if shape != () else None, df=df)
    keys = split(key)
    half = e.scale(df, 0.5)
    x = normal(row(keys, 0), wanted, kind)
    return e.mul(x, e.sqrt(e.div(half, gamma(row(keys, 1), half, wanted, kind))))


@compiled
def generalized_normal(key: Any, p: float, shape: Shape = (), dtype: Any = float) -> Any:
    """Samples with a density proportional to ``exp(-|x|**p)``.

    Args:
        p: a positive number, or real array of shape ``()``.
        key, shape, dtype: a key (uint32[2]), and the shape and the floating dtype of the sample.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a ``p`` of another shape.

    Example:
        >>> from funcgrad.random import key
        >>> generalized_normal(key(0), 2.0, (2,)).shape
        (2,)
    """
    kind, wanted, (p,) = parameters("generalized_normal", key, dtype, shape, p=p)
    fits("generalized_normal", "p", type_of(p).shape, ())
    keys = split(key)
    inverse = e.div(e.number(1, p), p)
    size = e.power(gamma(row(keys, 0), inverse, wanted, kind), inverse)
    return e.mul(signs(row(keys, 1), wanted, kind), size)
