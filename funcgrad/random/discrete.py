"""Discrete variables, and random choices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.control.scan import scan
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.indexing.getitem import take
from funcgrad.numpy.reductions import cumsum
from funcgrad.numpy.shape import broadcast_to, moveaxis, reshape
from funcgrad.numpy.sorting import searchsorted
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.random import random_binomial, random_poisson
from funcgrad.primitives.shape import slice_
from funcgrad.primitives.sorting import top_k
from funcgrad.random.basic import (
    Shape,
    bernoulli,
    check_key,
    fits,
    floating,
    given,
    gumbel,
    permutation,
    permuted,
    randint,
    shape_of,
    split,
    uniform,
)
from funcgrad.runtime.call_cache import compiled

__all__ = ["choice", "shuffle", "rademacher", "geometric", "poisson", "binomial", "multinomial"]


def _integer(name: str, dtype: Any) -> np.dtype:
    kind = dtypes.canonical(dtype)
    if not dtypes.is_integer(kind):
        raise TypeError(f"{name}: wants an integer dtype, got {kind}")
    return kind


def _real(name: str, what: str, x: Any) -> Any:
    """A parameter as a floating array."""
    found = given(name, what, x)
    if dtypes.is_complex(found.dtype):
        raise TypeError(f"{name}: {what} must be real, got {found}")
    return x if dtypes.is_floating(found.dtype) else e.cast(x, dtype=dtypes.float32)


# ---------------------------------------------------------------- choices


@compiled
def shuffle(key: Any, x: Any, axis: int = 0) -> Any:
    """``permutation`` of an array: its slices along an axis in random order.

    Args:
        key: a key, uint32[2].
        x: an array of any dtype with at least one axis; an integer as for ``permutation``.
        axis: the axis.

    Returns:
        An array of the shape and the dtype of ``x``.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither).
        ValueError: for an axis out of range.

    Example:
        >>> from funcgrad.random import key
        >>> sorted(shuffle(key(0), np.arange(3)).tolist())
        [0, 1, 2]
    """
    return permuted("shuffle", key, x, axis)


@compiled
def choice(key: Any, a: Any, shape: Shape = (), replace: bool = True, p: Any = None, axis: int = 0) -> Any:
    """Random elements of an array, or numbers below ``a``.

    Args:
        key: a key, uint32[2].
        a: an array, whose slices along ``axis`` are drawn, or an integer.
        shape: the number of draws: an int, or several.
        replace: whether to draw with replacement.
        p: a real vector with the probability of each; uniform by default.
        axis: an int; ignored for an integer ``a``.

    Returns:
        int64 numbers for an integer ``a``, else an array of its dtype with the axis replaced by ``shape``.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), a non-integer number ``a``, or a
            complex ``p``.
        ValueError: if ``a`` is empty, or too small without replacement, ``p`` is incompatible, the axis is out of
            range, or a size is negative.

    Example:
        >>> from funcgrad.random import key
        >>> sorted(choice(key(0), 3, (3,), replace=False).tolist())
        [0, 1, 2]
    """
    check_key("choice", key)
    wanted = shape_of("choice", shape)
    found = given("choice", "a", a)
    number = not found.shape
    axis = 0 if number else validate.axis("choice", axis, found.ndim)
    count = validate.integer("choice", "an a without axes", a) if number else found.shape[axis]
    draws = math.prod(wanted)
    if draws and count <= 0:
        raise ValueError(f"choice: there is nothing to choose from, got {a if number else found}")
    if not replace and draws > count:
        raise ValueError(f"choice: cannot take {draws} of {count} without replacement")
    places = _places(key, count, wanted, replace, p)
    if number:
        return places
    taken = take(a, reshape(places, (draws,)), axis=axis)
    return reshape(taken, (*found.shape[:axis], *wanted, *found.shape[axis + 1 :]))


def _places(key: Any, count: int, shape: tuple[int, ...], replace: bool, p: Any) -> Any:
    """The indices drawn from ``count``."""
    draws = math.prod(shape)
    if p is None:
        if replace:
            return randint(key, shape, 0, count)
        order = permutation(key, count)
        return reshape(slice_(order, start=(0,), limit=(draws,), strides=(1,)), shape)
    p = _real("choice", "p", p)
    if type_of(p).shape != (count,):
        raise ValueError(f"choice: p has shape {type_of(p).shape}, wanted one probability for each of {count}")
    kind = type_of(p).dtype
    if replace:
        upto = cumsum(p)
        whole = slice_(upto, start=(count - 1,), limit=(count,), strides=(1,))
        u = e.sub(e.number(1, p), uniform(key, shape, kind))
        return e.cast(searchsorted(upto, e.mul(reshape(whole, ()), u)), dtype=dtypes.int64)
    # The largest logits with Gumbel noise are a draw without replacement.
    noisy = e.add(gumbel(key, (count,), kind), e.log(p))
    return reshape(e.cast(top_k(noisy, k=draws)[1], dtype=dtypes.int64), shape)


# ---------------------------------------------------------------- distributions


@compiled
def rademacher(key: Any, shape: Shape = (), dtype: Any = int) -> Any:
    """1 or -1 with equal probability.

    Args:
        key, shape: a key (uint32[2]), and the shape of the result.
        dtype: signed integer, floating or complex.

    Returns:
        An array of ``shape`` and ``dtype``, int64 by default.

    Raises:
        TypeError: for an argument that is not a key, and for a dtype that is bool or unsigned.
        ValueError: for a negative size.

    Example:
        >>> from funcgrad.random import key
        >>> sorted(set(rademacher(key(0), (50,)).tolist()))
        [-1, 1]
    """
    check_key("rademacher", key)
    kind = dtypes.canonical(dtype)
    if kind.kind in "bu":
        raise TypeError(f"rademacher: dtype must hold -1, got {kind}")
    up = bernoulli(key, np.float64(0.5), shape_of("rademacher", shape))
    return e.select(up, kind.type(1), kind.type(-1))


@compiled
def geometric(key: Any, p: Any, shape: Shape | None = None, dtype: Any = int) -> Any:
    """The number of trials until the first success.

    Args:
        key, dtype: a key (uint32[2]), and the integer dtype of the result.
        p: the probability of success; a number or real array.
        shape: of the result, to which ``p`` broadcasts; by default that of ``p``.

    Returns:
        An array of ``shape`` and ``dtype``, int64 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), a complex parameter, or a dtype that
            is not an integer.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> bool((geometric(key(0), 0.5, (9,)) >= 1).all())
        True
    """
    check_key("geometric", key)
    kind, p = _integer("geometric", dtype), _real("geometric", "p", p)
    wanted = type_of(p).shape if shape is None else shape_of("geometric", shape)
    fits("geometric", "p", type_of(p).shape, wanted)
    u = uniform(key, wanted, type_of(p).dtype)
    u = e.select(e.eq(u, e.number(0, u)), e.number(1, u), u)
    count = e.shift(e.floor(e.div(e.log(u), e.log1p(e.neg(p)))), 1)
    return e.cast(count, dtype=kind)


@compiled
def poisson(key: Any, lam: Any, shape: Shape | None = None, dtype: Any = int) -> Any:
    """The number of events of a Poisson process with mean ``lam``.

    Args:
        key, dtype: a key (uint32[2]), and the integer dtype of the result.
        lam: a number or real array, not negative.
        shape: of the result, to which ``lam`` broadcasts; by default that of ``lam``.

    Returns:
        An array of ``shape`` and ``dtype``, int64 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), a complex parameter, or a dtype that
            is not an integer.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> poisson(key(0), 0.0).item()
        0
    """
    check_key("poisson", key)
    kind, lam = _integer("poisson", dtype), _real("poisson", "lam", lam)
    wanted = type_of(lam).shape if shape is None else shape_of("poisson", shape)
    fits("poisson", "lam", type_of(lam).shape, wanted)
    return random_poisson(key, broadcast_to(e.cast(lam, dtype=dtypes.float32), wanted), dtype=kind)


@compiled
def binomial(key: Any, n: Any, p: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """The number of successes in ``n`` trials, as floating-point numbers.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the result.
        n: the number of trials; a number or real array.
        p: the probability of success; a number or real array.
        shape: of the result, to which the parameters broadcast; by default their broadcast shape.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), a complex parameter, or a dtype that
            is not floating.
        ValueError: for a negative size, or a parameter that does not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> binomial(key(0), 3.0, 1.0).item()
        3.0
    """
    check_key("binomial", key)
    kind, n, p = floating("binomial", dtype), _real("binomial", "n", n), _real("binomial", "p", p)
    together = e.broadcast_shapes("binomial", type_of(n).shape, type_of(p).shape)
    wanted = together if shape is None else shape_of("binomial", shape)
    fits("binomial", "the parameters", together, wanted)
    wide = dtypes.promote(type_of(n).dtype, type_of(p).dtype)
    n, p = (broadcast_to(e.cast(x, dtype=wide), wanted) for x in (n, p))
    return random_binomial(key, n, p, dtype=kind)


@compiled
def multinomial(key: Any, n: Any, p: Any, *, shape: Shape | None = None, dtype: Any = float) -> Any:
    """The number of times that each outcome occurs in ``n`` trials, as floating-point numbers.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the result.
        n: the number of trials, a number or real array; broadcasts to the shape without the last axis.
        p: the probabilities, a real array with at least one element along the last axis.
        shape: of the result; by default that of ``p``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), a complex parameter, or a dtype that
            is not floating.
        ValueError: for a negative size, no outcomes, or parameters that do not broadcast to ``shape``.

    Example:
        >>> from funcgrad.random import key
        >>> multinomial(key(0), 5.0, np.array([0.0, 1.0], "float32")).tolist()
        [0.0, 5.0]
    """
    check_key("multinomial", key)
    n, p = _real("multinomial", "n", n), _real("multinomial", "p", p)
    kind = dtypes.promote(type_of(n).dtype, type_of(p).dtype)
    wanted = type_of(p).shape if shape is None else shape_of("multinomial", shape)
    if not type_of(p).ndim or not type_of(p).shape[-1]:
        raise ValueError(f"multinomial: p must have at least one outcome along its last axis, got {type_of(p)}")
    fits("multinomial", "p", type_of(p).shape, wanted)
    fits("multinomial", "n", type_of(n).shape, wanted[:-1])
    n = broadcast_to(e.cast(n, dtype=kind), wanted[:-1])
    p = moveaxis(broadcast_to(e.cast(p, dtype=kind), wanted), -1, 0)
    # One outcome after another, among the remaining trials, by its conditional probability.
    upto = cumsum(p, axis=0)
    rest = e.add(e.sub(_last(upto), upto), p)
    share = e.div(p, e.select(e.eq(rest, e.number(0, rest)), e.number(1, rest), rest))

    def draw(left: Any, outcome: tuple[Any, Any]) -> tuple[Any, Any]:
        ratio, its_key = outcome
        count = binomial(its_key, left, e.clamp(e.number(0, ratio), ratio, e.number(1, ratio)), dtype=kind)
        return e.sub(left, count), count

    _, counts = scan(draw, n, (share, split(key, type_of(p).shape[0])))
    return e.cast(moveaxis(counts, 0, -1), dtype=floating("multinomial", dtype))


def _last(x: Any) -> Any:
    size = type_of(x).shape
    return slice_(x, start=(size[0] - 1, *[0] * (len(size) - 1)), limit=size, strides=(1,) * len(size))
