"""Continuous variables computed from uniform and normal ones."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from funcgrad.primitives import elementwise as e
from funcgrad.primitives.reductions import reduce_sum
from funcgrad.random.basic import (
    Shape,
    check_key,
    floating,
    given,
    normal,
    parameter,
    row,
    shape_of,
    split,
    uniform,
)
from funcgrad.runtime.call_cache import compiled

__all__ = [
    "exponential", "laplace", "logistic", "cauchy", "lognormal", "pareto", "rayleigh", "weibull_min", "triangular",
    "wald", "maxwell", "double_sided_maxwell", "truncated_normal",
]  # fmt: skip


def parameters(name: str, key: Any, dtype: Any, shape: Shape | None, **values: Any) -> tuple[np.dtype, Any, list[Any]]:
    """The dtype, the shape (by default the parameters' broadcast shape) and the parameters in that dtype."""
    check_key(name, key)
    kind = floating(name, dtype)
    together = e.broadcast_shapes(name, (), *[given(name, what, v).shape for what, v in values.items()])
    wanted = together if shape is None else shape_of(name, shape)
    return kind, wanted, [parameter(name, what, v, wanted, kind) for what, v in values.items()]


def _one_minus(x: Any) -> Any:
    return e.sub(e.number(1, x), x)


# ---------------------------------------------------------------- transformed uniform variables


@compiled
def exponential(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Samples from the exponential distribution of mean 1.

    Args:
        key, shape, dtype: a key (uint32[2]), and the shape and the floating dtype of the sample.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for an argument that is not a key, or a dtype that is not floating.
        ValueError: for a negative size.

    Example:
        >>> from funcgrad.random import key
        >>> bool((exponential(key(0), (9,)) >= 0).all())
        True
    """
    kind, wanted, _ = parameters("exponential", key, dtype, shape)
    return e.neg(e.log1p(e.neg(uniform(key, wanted, kind))))


@compiled
def laplace(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Samples from the Laplace distribution of mean 0 and scale 1.

    Args:
        key, shape, dtype: a key (uint32[2]), and the shape and the floating dtype of the sample.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for an argument that is not a key, or a dtype that is not floating.
        ValueError: for a negative size.

    Example:
        >>> from funcgrad.random import key
        >>> laplace(key(0), (2,)).shape
        (2,)
    """
    kind, wanted, _ = parameters("laplace", key, dtype, shape)
    u = uniform(key, wanted, kind, kind.type(-1 + float(ml_dtypes.finfo(kind).epsneg)), kind.type(1))
    return e.mul(e.sign(u), e.log1p(e.neg(e.absolute(u))))


@compiled
def logistic(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Samples from the logistic distribution of mean 0 and scale 1.

    Args:
        key, shape, dtype: a key (uint32[2]), and the shape and the floating dtype of the sample.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for an argument that is not a key, or a dtype that is not floating.
        ValueError: for a negative size.

    Example:
        >>> from funcgrad.random import key
        >>> logistic(key(0), (2,)).shape
        (2,)
    """
    kind, wanted, _ = parameters("logistic", key, dtype, shape)
    u = uniform(key, wanted, kind, kind.type(ml_dtypes.finfo(kind).tiny), kind.type(1))
    return e.sub(e.log(u), e.log1p(e.neg(u)))


@compiled
def cauchy(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Samples from the Cauchy distribution of median 0 and scale 1.

    Args:
        key, shape, dtype: a key (uint32[2]), and the shape and the floating dtype of the sample.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for an argument that is not a key, or a dtype that is not floating.
        ValueError: for a negative size.

    Example:
        >>> from funcgrad.random import key
        >>> cauchy(key(0), (2,)).shape
        (2,)
    """
    kind, wanted, _ = parameters("cauchy", key, dtype, shape)
    u = uniform(key, wanted, kind, kind.type(ml_dtypes.finfo(kind).eps), kind.type(1))
    return e.tan(e.scale(e.shift(u, -0.5), math.pi))


@compiled
def pareto(key: Any, b: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Samples from the Pareto distribution, with values from 1.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        b: the shape parameter; a positive number or real array.
        shape: of the sample, to which ``b`` broadcasts; by default that of ``b``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> bool((pareto(key(0), 2.0, (9,)) >= 1).all())
        True
    """
    kind, wanted, (b,) = parameters("pareto", key, dtype, shape, b=b)
    return e.exp(e.div(exponential(key, wanted, kind), b))


@compiled
def rayleigh(key: Any, scale: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Samples from the Rayleigh distribution: norms of pairs of normal variables.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        scale: the standard deviation of the normal variables; a number or real array.
        shape: of the sample, to which ``scale`` broadcasts; by default that of ``scale``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> rayleigh(key(0), 2.0, (2,)).shape
        (2,)
    """
    kind, wanted, (scale,) = parameters("rayleigh", key, dtype, shape, scale=scale)
    return e.mul(scale, e.sqrt(e.scale(e.log(uniform(key, wanted, kind)), -2)))


@compiled
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Samples from the Weibull distribution.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        scale, concentration: positive numbers or real arrays.
        shape: of the sample, to which the parameters broadcast; by default their broadcast shape.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> bool((weibull_min(key(0), 1.0, 2.0, (9,)) >= 0).all())
        True
    """
    kind, wanted, (scale, power) = parameters(
        "weibull_min", key, dtype, shape, scale=scale, concentration=concentration
    )
    return e.mul(e.power(exponential(key, wanted, kind), e.div(e.number(1, power), power)), scale)


@compiled
def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Samples from a triangular distribution.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        left, mode, right: the lower bound, the mode and the upper bound; numbers or real arrays.
        shape: of the sample, to which the parameters broadcast; by default their broadcast shape.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> x = triangular(key(0), 0.0, 1.0, 3.0, (9,))
        >>> bool(((x >= 0) & (x <= 3)).all())
        True
    """
    kind, wanted, (left, mode, right) = parameters("triangular", key, dtype, shape, left=left, mode=mode, right=right)
    width, rise, fall = e.sub(right, left), e.sub(mode, left), e.sub(right, mode)
    u = uniform(key, wanted, kind)
    low = e.add(left, e.sqrt(e.mul(e.mul(u, width), rise)))
    high = e.sub(right, e.sqrt(e.mul(e.mul(_one_minus(u), width), fall)))
    return e.select(e.lt(u, e.div(rise, width)), low, high)


# ---------------------------------------------------------------- transformed normal variables


@compiled
def lognormal(key: Any, sigma: Any = 1.0, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Exponentials of normal variables.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        sigma: the standard deviation of the normal variables; a number or real array.
        shape: of the sample, to which ``sigma`` broadcasts; by default that of ``sigma``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> bool((lognormal(key(0), 0.5, (9,)) > 0).all())
        True
    """
    kind, wanted, (sigma,) = parameters("lognormal", key, dtype, shape, sigma=sigma)
    return e.exp(e.mul(normal(key, wanted, kind), sigma))


@compiled
def maxwell(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Samples from the Maxwell distribution: norms of triples of standard normal variables.

    Args:
        key, shape, dtype: a key (uint32[2]), and the shape and the floating dtype of the sample.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for an argument that is not a key, or a dtype that is not floating.
        ValueError: for a negative size.

    Example:
        >>> from funcgrad.random import key
        >>> bool((maxwell(key(0), (9,)) > 0).all())
        True
    """
    kind, wanted, _ = parameters("maxwell", key, dtype, shape)
    x = normal(key, (*wanted, 3), kind)
    return e.sqrt(reduce_sum(e.square(x), axes=(len(wanted),)))


@compiled
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Maxwell variables with a random sign, times ``scale``, plus ``loc``.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        loc, scale: numbers or real arrays.
        shape: of the result without the parameters' axes; the parameters' broadcast shape if empty.

    Returns:
        An array of ``dtype``, float32 by default, and of ``shape`` followed by that of the parameters together.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or parameters that do not broadcast together.

    Example:
        >>> from funcgrad.random import key
        >>> double_sided_maxwell(key(0), 0.0, 1.0, (2,)).shape
        (2,)
    """
    name = "double_sided_maxwell"
    together = e.broadcast_shapes(name, given(name, "loc", loc).shape, given(name, "scale", scale).shape)
    # An empty shape means the parameters' shape, which is then appended.
    wanted = (*(shape_of(name, shape) or together), *together)
    kind, wanted, (loc, scale) = parameters(name, key, dtype, wanted, loc=loc, scale=scale)
    keys = split(key)
    signed = e.mul(signs(row(keys, 1), wanted, kind), maxwell(row(keys, 0), wanted, kind))
    return e.add(e.mul(signed, scale), loc)


def signs(key: Any, shape: tuple[int, ...], kind: np.dtype) -> Any:
    """Random signs, 1 or -1."""
    up = e.lt(uniform(key, shape, np.float64), np.float64(0.5))
    return e.select(up, kind.type(1), kind.type(-1))


@compiled
def wald(key: Any, mean: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Samples from Wald's distribution, the inverse Gaussian one, of scale 1.

    Source: Michael, Schucany, Haas, "Generating random variates using transformations with multiple roots", 1976.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        mean: a positive number or real array.
        shape: of the sample, to which ``mean`` broadcasts; by default that of ``mean``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> bool((wald(key(0), 2.0, (9,)) > 0).all())
        True
    """
    kind, wanted, (mean,) = parameters("wald", key, dtype, shape, mean=mean)
    keys = split(key)
    y = e.square(normal(row(keys, 0), wanted, kind))
    u = uniform(row(keys, 1), wanted, kind)
    square = e.square(mean)
    root = e.sqrt(e.add(e.mul(e.scale(mean, 4), y), e.mul(square, e.square(y))))
    x = e.sub(e.add(mean, e.scale(e.mul(square, y), 0.5)), e.mul(e.scale(mean, 0.5), root))
    return e.select(e.le(u, e.div(mean, e.add(mean, x))), x, e.div(square, x))


@compiled
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Standard normal variables truncated to an interval.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        lower, upper: the bounds; numbers or real arrays.
        shape: of the sample, to which the parameters broadcast; by default their broadcast shape.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> x = truncated_normal(key(0), -1.0, 0.5, (100,))
        >>> bool(((x > -1) & (x < 0.5)).all())
        True
    """
    kind, wanted, (lower, upper) = parameters("truncated_normal", key, dtype, shape, lower=lower, upper=upper)
    root = kind.type(math.sqrt(2))
    u = uniform(key, wanted, kind, e.erf(e.div(lower, root)), e.erf(e.div(upper, root)))
    x = e.mul(e.erf_inv(u), root)
    # Rounding may leave the open interval.
    least = e.nextafter(e.stop_gradient(lower), kind.type(np.inf))
    most = e.nextafter(e.stop_gradient(upper), kind.type(-np.inf))
    return e.minimum(e.maximum(x, least), most)
