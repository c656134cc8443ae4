"""Keys, and samples computed directly from bits: uniform, normal and Gumbel numbers, integers, permutations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import kind
from funcgrad.core import dtypes
from funcgrad.core.errors import explained
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import is_array, type_of
from funcgrad.primitives.elementwise import (
    add,
    bitcast,
    bitwise_and,
    bitwise_or,
    broadcast_shapes,
    cast,
    erf_inv,
    gt,
    log,
    lt,
    make_complex,
    maximum,
    mul,
    neg,
    number,
    rem,
    scale,
    select,
    shift_right_logical,
    sub,
)  # fmt: skip
from funcgrad.primitives.indexing import take
from funcgrad.primitives.random import random_bits
from funcgrad.primitives.reductions import argmax
from funcgrad.primitives.shape import concatenate, expanded, iota, reshape
from funcgrad.primitives.sorting import sort
from funcgrad.runtime import from_numpy
from funcgrad.runtime.call_cache import compiled

__all__ = [
    "PRNGKey", "key", "split", "fold_in", "bits", "uniform", "normal", "randint", "permutation", "bernoulli", "gumbel",
    "categorical",
]  # fmt: skip

Shape = int | Sequence[int]


def key(seed: Any) -> Any:
    """The key of a seed; also ``PRNGKey``.

    Args:
        seed: an integer, of which the low 64 bits are used, or an integer array of shape ``()``.

    Returns:
        uint32[2]: the high and the low word of the seed.

    Raises:
        TypeError: for anything but one integer.

    Example:
        >>> key(2**32 + 5).tolist()
        [1, 5]
    """
    if isinstance(seed, int):
        return from_numpy(np.array([(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32))
    found = given("key", "seed", seed)
    if found.shape or not dtypes.is_integer(found.dtype):
        raise TypeError(f"key: seed must be an integer, got {found}")
    return _words(cast(seed, dtype=dtypes.uint64))


PRNGKey = key


@compiled
def split(key: Any, num: Shape = 2) -> Any:
    """New keys from one, independent of it and of each other.

    Args:
        key: a key, uint32[2].
        num: the number of keys, an int or a shape.

    Returns:
        uint32[num, 2].

    Raises:
        TypeError: for an argument that is not a key, and for numbers that are not integers.
        ValueError: for a negative number.

    Example:
        >>> split(key(0), 3).shape
        (3, 2)
    """
    return _words(_bits("split", key, np.uint64(0), validate.shape("split", "num", num), 64))


@compiled
def fold_in(key: Any, data: Any) -> Any:
    """A new key derived from ``data``, such as a step's number: ``fold_in(key, i)`` equals ``split(key, n)[i]``.

    Args:
        key: a key, uint32[2].
        data: an integer, of which the low 32 bits are used, or an integer array of shape ``()``.

    Returns:
        uint32[2].

    Raises:
        TypeError: for an argument that is not a key, and data that are anything but one integer.

    Example:
        >>> bool((fold_in(key(0), 1) == split(key(0))[1]).all())
        True
    """
    if isinstance(data, int):
        start: Any = np.uint64(data & 0xFFFFFFFF)
    else:
        found = given("fold_in", "data", data)
        if found.shape or not dtypes.is_integer(found.dtype):
            raise TypeError(f"fold_in: data must be an integer, got {found}")
        start = cast(cast(data, dtype=dtypes.uint32), dtype=dtypes.uint64)
    return _words(_bits("fold_in", key, start, (), 64))


@compiled
def bits(key: Any, shape: Shape = (), dtype: Any = "uint32") -> Any:
    """Uniform unsigned integers.

    Args:
        key: a key, uint32[2].
        shape: the shape of the result, an int or several.
        dtype: uint8, uint16, uint32 or uint64.

    Returns:
        An array of ``shape`` and ``dtype``.

    Raises:
        TypeError: for an argument that is not a key, or other dtypes than unsigned integers.
        ValueError: for a negative size.

    Example:
        >>> bits(key(0), (2,)).tolist()
        [4070199207, 4202968722]
    """
    kind = dtypes.canonical(dtype)
    if kind not in dtypes.UNSIGNED:
        raise TypeError(f"bits: dtype must be an unsigned integer, got {kind}")
    return _bits("bits", key, np.uint64(0), shape_of("bits", shape), kind.itemsize * 8)


@compiled
def uniform(key: Any, shape: Shape = (), dtype: Any = float, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Uniform numbers in ``[minval, maxval)``.

    Args:
        key, shape, dtype: a key (uint32[2]), and the shape and the floating dtype of the sample.
        minval, maxval: real numbers, or arrays that broadcast to ``shape``.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: for a negative size, or bounds that do not broadcast to ``shape``.

    Example:
        >>> u = uniform(key(0), (1000,), minval=-1.0)
        >>> bool(((u >= -1) & (u < 1)).all())
        True
    """
    kind, shape = floating("uniform", dtype), shape_of("uniform", shape)
    low, high = (
        parameter("uniform", "minval", minval, shape, kind),
        parameter("uniform", "maxval", maxval, shape, kind),
    )
    # A significand of random bits with exponent 0 is a number in [1, 2).
    digits = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}[kind]
    width = kind.itemsize * 8 if digits > 8 else 8
    unsigned = {16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[kind.itemsize * 8]
    raw = _bits("uniform", key, np.uint64(0), shape, width)
    raw = raw if width == kind.itemsize * 8 else cast(raw, dtype=unsigned)
    one = np.ones((), kind).view(unsigned)[()]
    unit = sub(
        bitcast(bitwise_or(shift_right_logical(raw, number(width - digits, raw)), one), dtype=kind), kind.type(1)
    )
    # Rounding may give a product below minval.
    return maximum(low, add(mul(unit, sub(high, low)), low))


@compiled
def normal(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Standard normal numbers, by the inverse distribution function; complex ones have total variance 1.

    Args:
        key, shape, dtype: a key (uint32[2]), and the shape and the floating or complex dtype of the sample.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for an argument that is not a key, or another dtype.
        ValueError: for a negative size.

    Example:
        >>> x = normal(key(0), (10000,))
        >>> abs(float(x.mean())) < 0.05, abs(float(x.std()) - 1) < 0.05
        (True, True)
    """
    check_key("normal", key)
    kind, shape = dtypes.canonical(dtype), shape_of("normal", shape)
    if dtypes.is_complex(kind):
        part = dtypes.real_of(kind)
        keys = split(key)
        re, im = (scale(normal(row(keys, i), shape, part), math.sqrt(0.5)) for i in range(2))
        return make_complex(re, im)
    kind = floating("normal", kind)
    low = np.nextafter(kind.type(-1), kind.type(0))
    return scale(erf_inv(uniform(key, shape, kind, low, kind.type(1))), math.sqrt(2))


@compiled
def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: Any = int) -> Any:
    """Uniform integers in ``[minval, maxval)``; ``minval`` if the range is empty.

    Args:
        key, shape, dtype: a key (uint32[2]), and the shape and the integer dtype of the sample.
        minval, maxval: integers, or integer arrays that broadcast to ``shape``.

    Returns:
        An array of ``shape`` and ``dtype``, int64 by default.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not an integer.
        ValueError: for a negative size, a bound that the dtype does not hold, or that does not broadcast to
            ``shape``.

    Example:
        >>> sorted(set(randint(key(0), (100,), -1, 2).tolist()))
        [-1, 0, 1]
    """
    check_key("randint", key)
    kind, shape = dtypes.canonical(dtype), shape_of("randint", shape)
    if not dtypes.is_integer(kind):
        raise TypeError(f"randint: dtype must be an integer type, got {kind}")
    if kind.itemsize < 4:
        # Drawn with more bits, so that the remainder below is hardly biased.
        low, (high, above) = parameter("randint", "minval", minval, shape, kind), _upper(maxval, shape, kind)
        wide = dtypes.int32
        high = add(cast(high, dtype=wide), wide.type(above))
        return cast(randint(key, shape, cast(low, dtype=wide), high, wide), dtype=kind)
    low = parameter("randint", "minval", minval, shape, kind)
    high, above = _upper(maxval, shape, kind)
    width = kind.itemsize * 8
    unsigned = dtypes.UNSIGNED[(8, 16, 32, 64).index(width)]
    span = sub(cast(high, dtype=unsigned), cast(low, dtype=unsigned))
    one = unsigned.type(1)
    span = select(gt(high, low), span, one) if not above else add(span, one)
    # A span of 0 means 2**width, which contains every number of that width.
    whole = lt(span, one)
    span_or_one = select(whole, one, span)
    # The remainder of a number with twice as many bits, whose bias is negligible.
    keys = split(key)
    upper, lower = (_bits("randint", row(keys, i), np.uint64(0), shape, width) for i in range(2))
    half = rem(unsigned.type(2 ** (width // 2)), span_or_one)
    weight = rem(mul(half, half), span_or_one)
    offset = add(mul(rem(upper, span_or_one), weight), rem(lower, span_or_one))
    offset = select(whole, lower, rem(offset, span_or_one))
    return add(low, cast(offset, dtype=kind))


@compiled
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """``x`` in random order along an axis, or, for an integer ``x``, the numbers below it in random order.

    Args:
        key: a key, uint32[2].
        x: an array of any dtype with at least one axis, or an int that is not negative.
        axis: an int; ignored for an integer ``x``.
        independent: whether to shuffle each vector along the axis separately, instead of whole slices.

    Returns:
        An array of the shape and the dtype of ``x``; int64[x] for an integer.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither).
        ValueError: for a negative number, or an axis out of range.

    Example:
        >>> sorted(permutation(key(0), 5).tolist())
        [0, 1, 2, 3, 4]
    """
    return permuted("permutation", key, x, axis, independent)


def permuted(name: str, key: Any, x: Any, axis: int, independent: bool = False) -> Any:
    check_key(name, key)
    if isinstance(x, int):
        if x < 0:
            raise ValueError(f"{name}: x must be an array or a number of elements, got {x}")
        return _shuffle(key, iota(shape=(x,), axis=0, dtype=dtypes.int64), 0)
    found = given(name, "x", x)
    axis = validate.axis(name, axis, found.ndim)
    if independent or found.ndim == 1:
        return _shuffle(key, x, axis)
    order = _shuffle(key, iota(shape=(found.shape[axis],), axis=0, dtype=dtypes.int64), 0)
    return take(x, order, axis=axis, mode="promise", unique=True)


@compiled
def bernoulli(key: Any, p: Any = 0.5, shape: Shape | None = None) -> Any:
    """Booleans that are True with probability ``p``.

    Args:
        key: a key, uint32[2].
        p: a float, or a floating array; not an integer.
        shape: by default that of ``p``, which broadcasts to it.

    Returns:
        bool[shape].

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a ``p`` that is not floating.
        ValueError: for a negative size, or a ``p`` that does not broadcast to ``shape``.

    Example:
        >>> 450 < int(bernoulli(key(0), 0.5, (1000,)).sum()) < 550
        True
    """
    check_key("bernoulli", key)
    found = given("bernoulli", "p", p)
    kind = floating("bernoulli", found.dtype)
    wanted = found.shape if shape is None else shape_of("bernoulli", shape)
    return lt(uniform(key, wanted, kind), parameter("bernoulli", "p", p, wanted, kind))


@compiled
def gumbel(key: Any, shape: Shape = (), dtype: Any = float) -> Any:
    """Samples from the standard Gumbel distribution.

    Args:
        key, shape, dtype: a key (uint32[2]), and the shape and the floating dtype of the sample.

    Returns:
        An array of ``shape`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for an argument that is not a key, or a dtype that is not floating.
        ValueError: for a negative size.

    Example:
        >>> gumbel(key(0), (2,)).shape
        (2,)
    """
    check_key("gumbel", key)
    kind, shape = floating("gumbel", dtype), shape_of("gumbel", shape)
    tiny = kind.type(ml_dtypes.finfo(kind).tiny)
    return neg(log(neg(log(uniform(key, shape, kind, tiny, kind.type(1))))))


@compiled
def categorical(key: Any, logits: Any, axis: int = -1, shape: Shape | None = None) -> Any:
    """Classes (int64) drawn with probabilities ``softmax(logits, axis)``.

    By the Gumbel-max trick. Source: Maddison, Tarlow, Minka, "A* sampling", NeurIPS 2014.

    Args:
        key: a key, uint32[2].
        logits: a floating array; one distribution along ``axis`` for each of the other indices.
        axis: an int.
        shape: of the result; ``logits`` without the axis broadcasts to it. By default one draw per distribution.

    Returns:
        int64[shape].

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or logits that are not floating.
        ValueError: for an axis out of range or empty, a negative size, or an incompatible ``shape``.

    Example:
        >>> import numpy as np
        >>> categorical(key(0), np.array([[0.0, -np.inf], [-np.inf, 0.0]])).tolist()
        [0, 1]
    """
    check_key("categorical", key)
    found = given("categorical", "logits", logits)
    kind = floating("categorical", found.dtype)
    axis = validate.axis("categorical", axis, found.ndim)
    if not found.shape[axis]:
        raise ValueError(f"categorical: there is nothing to choose from along axis {axis} of {found}")
    distributions = (*found.shape[:axis], *found.shape[axis + 1 :])
    wanted = distributions if shape is None else shape_of("categorical", shape)
    fits("categorical", "logits without the axis", distributions, wanted)
    prefix = len(wanted) - len(distributions)
    axis += prefix
    noise = gumbel(key, (*wanted[:axis], found.shape[axis - prefix], *wanted[axis:]), kind)
    return argmax(add(noise, logits), axis=axis, dtype=dtypes.int64)


# ---------------------------------------------------------------- helpers


def given(name: str, what: str, x: Any) -> ArrayType:
    """The type of an argument that must be an array or a number."""
    if not is_array(x):
        error = TypeError(f"{name}: {what} must be an array or a number, got {kind(x)}")
        raise explained(error, "random-key") if what == "key" else error
    return type_of(x)


def check_key(name: str, key: Any) -> None:
    found = given(name, "key", key)
    if found.dtype != dtypes.uint32 or found.shape != (2,):
        message = f"{name}: a key is a uint32 array of shape (2,), as random.key gives it, got {found}"
        raise explained(TypeError(message), "random-key")


def _bits(name: str, key: Any, start: Any, shape: tuple[int, ...], width: int) -> Any:
    check_key(name, key)
    return random_bits(key, start, shape=shape, width=width)


def _words(x: Any) -> Any:
    """uint64 numbers as pairs of uint32 words, high word first."""
    axis = type_of(x).ndim
    high = cast(shift_right_logical(x, np.uint64(32)), dtype=dtypes.uint32)
    low = cast(bitwise_and(x, np.uint64(0xFFFFFFFF)), dtype=dtypes.uint32)
    return concatenate(expanded(high, axis), expanded(low, axis), axis=axis)


def row(keys: Any, index: int) -> Any:
    return reshape(take(keys, np.int64(index), axis=0, mode="promise"), shape=(2,))


def shape_of(name: str, shape: Shape) -> tuple[int, ...]:
    return validate.shape(name, "shape", shape)


def floating(name: str, dtype: Any) -> np.dtype:
    kind = dtypes.canonical(dtype)
    if not dtypes.is_floating(kind):
        raise TypeError(f"{name}: wants a floating dtype, got {kind}")
    return kind


def fits(name: str, what: str, given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if given and broadcast_shapes(name, given, shape) != shape:
        raise ValueError(f"{name}: {what}, of shape {given}, does not broadcast to the shape {shape}")


def parameter(name: str, what: str, value: Any, shape: tuple[int, ...], kind: np.dtype) -> Any:
    """A distribution's parameter in the dtype of the samples."""
    if isinstance(value, (bool, int, float)):
        if dtypes.is_integer(kind) and not np.iinfo(kind).min <= value <= np.iinfo(kind).max:
            raise ValueError(f"{name}: {what} {value} is no {kind}")
        return kind.type(value)
    found = given(name, what, value)
    fits(name, what, found.shape, shape)
    return value if found.dtype == kind else cast(value, dtype=kind)


def _upper(maxval: Any, shape: tuple[int, ...], kind: np.dtype) -> tuple[Any, bool]:
    """The upper bound; or the largest integer and True if the bound is one above it, which the dtype cannot hold."""
    if isinstance(maxval, int) and maxval == np.iinfo(kind).max + 1:
        return kind.type(np.iinfo(kind).max), True
    return parameter("randint", "maxval", maxval, shape, kind), False


def _shuffle(key: Any, x: Any, axis: int) -> Any:
    """Sorts by random numbers, repeatedly, so that collisions cause no bias: with three times the bits of the size."""
    shape = type_of(x).shape
    for _ in range(math.ceil(3 * math.log(max(1, math.prod(shape))) / math.log(2**32 - 1))):
        keys = split(key)
        key = row(keys, 0)
        _, x = sort(_bits("permutation", row(keys, 1), np.uint64(0), shape, 32), x, axis=axis, keys=1, stable=True)
    return x
