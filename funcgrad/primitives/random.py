"""Random bits from a key and a counter, by Threefry-2x32 with 20 rounds; and samples by rejection.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the rotations are those of
its reference implementation, Random123. Element ``i`` of an array is the cipher of the 64-bit counter ``start + i``, so
it does not depend on the shape or on how the array is split over devices, and the numbers are those of
``jax.random.bits``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import div, exp, maximum, mul, number
from funcgrad.primitives.shape import Dims, broadcast, moved
from funcgrad.primitives.special.functions import gamma_sample_slope

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WIDTHS = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}


def _infer(key: ArrayType, start: ArrayType, *, shape: Dims, width: int) -> ArrayType:
    if key.dtype != dtypes.uint32 or key.ndim == 0 or key.shape[-1] != 2:
        raise TypeError(f"random_bits: a key is a uint32 array of shape (2,), got {key}")
    if start.dtype != dtypes.uint64 or start.shape != key.shape[:-1]:
        raise TypeError(f"random_bits: wants a uint64 counter for each key, got {start} for the key {key}")
    if width not in _WIDTHS:
        raise ValueError(f"random_bits: width {width} is none of {', '.join(map(str, _WIDTHS))}")
    if any(n < 0 for n in shape):
        raise ValueError(f"random_bits: shape {shape} has a negative size")
    return ArrayType((*key.shape[:-1], *shape), _WIDTHS[width])


def _threefry(keys: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """The cipher of counters (high and low words) under keys of the same shape."""

    def constant(n: int) -> Any:
        return lax.full_like(counter[0], np.uint32(n))

    schedule = (*keys, lax.bitwise_xor(lax.bitwise_xor(*keys), constant(_PARITY)))
    x, y = (lax.add(c, k) for c, k in zip(counter, keys, strict=True))
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x = lax.add(x, y)
            rotated = lax.bitwise_or(lax.shift_left(y, constant(r)), lax.shift_right_logical(y, constant(32 - r)))
            y = lax.bitwise_xor(x, rotated)
        x = lax.add(x, schedule[(group + 1) % 3])
        y = lax.add(y, lax.add(schedule[(group + 2) % 3], constant(group + 1)))
    return x, y


def _lower(key: Any, start: Any, *, shape: Dims, width: int) -> Any:
    lead = key.shape[:-1]
    whole = (*lead, *shape)

    def spread(x: Any) -> Any:
        return lax.broadcast_in_dim(x, whole, tuple(range(len(lead))))

    def word(i: int) -> Any:
        return spread(lax.index_in_dim(key, i, len(lead), keepdims=False))

    place = lax.reshape(lax.iota(np.uint64, math.prod(shape)), shape)
    counter = lax.add(lax.broadcast_in_dim(place, whole, tuple(range(len(lead), len(whole)))), spread(start))
    high = lax.convert_element_type(lax.shift_right_logical(counter, lax.full_like(counter, 32)), np.uint32)
    x, y = _threefry((word(0), word(1)), (high, lax.convert_element_type(counter, np.uint32)))
    if width == 64:
        x, y = (lax.convert_element_type(v, np.uint64) for v in (x, y))
        return lax.bitwise_or(lax.shift_left(x, lax.full_like(x, 32)), y)
    return lax.convert_element_type(lax.bitwise_xor(x, y), _WIDTHS[width])


def _batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, shape: Dims, width: int
) -> tuple[Any, int]:
    # Keys have any number of leading batch axes.
    key, start = (
        moved(x, d, 0)
        if d is not None
        else broadcast(x, shape=(size, *type_of(x).shape), dims=tuple(range(1, type_of(x).ndim + 1)))
        for x, d in zip(operands, dims, strict=True)
    )
    return random_bits(key, start, shape=shape, width=width), 0


# Uniform bits: ``shape`` of them for each key, as unsigned integers of ``width`` bits.
random_bits = Primitive("random_bits", infer=_infer, lower=_lower, batch=_batch, differentiable=False)

# ---------------------------------------------------------------- rejection sampling


def _sampler(name: str, draw: Callable[..., Any], kind: Callable[..., np.dtype], jvp: Rule | None = None) -> Primitive:
    """Samples from a key and parameters of one shape, with leading axes for batches of keys.

    Args:
        draw: takes JAX arrays, of one key and parameters.
        kind: the dtype of the samples, from the parameters' types and the static parameters.
        jvp: the forward rule, if samples depend smoothly on their parameters.
    """

    def infer(key: ArrayType, *parameters: ArrayType, **params: Any) -> ArrayType:
        lead = key.ndim - 1
        if key.dtype != dtypes.uint32 or key.ndim == 0 or key.shape[-1] != 2:
            raise TypeError(f"{name}: a key is a uint32 array of shape (2,), got {key}")
        first = parameters[0]
        if any(t.shape != first.shape or t.dtype != first.dtype for t in parameters):
            raise TypeError(f"{name}: parameters must have one type, got {', '.join(map(str, parameters))}")
        if not dtypes.is_floating(first.dtype) or first.shape[:lead] != key.shape[:-1]:
            raise TypeError(f"{name}: wants floating parameters for each key, got {first} for the key {key}")
        return ArrayType(first.shape, kind(*parameters, **params))

    def lower(key: Any, *parameters: Any, **params: Any) -> Any:
        lead = key.shape[:-1]
        if not lead:
            return draw(key, *parameters, **params)
        count = math.prod(lead)
        shape = parameters[0].shape
        flat = (lax.reshape(key, (count, 2)), *[lax.reshape(p, (count, *shape[len(lead) :])) for p in parameters])
        return lax.reshape(lax.map(lambda one: draw(*one, **params), flat), shape)

    def batch(size: int, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[Any, int]:
        front = [
            moved(x, d, 0)
            if d is not None
            else broadcast(x, shape=(size, *type_of(x).shape), dims=tuple(range(1, type_of(x).ndim + 1)))
            for x, d in zip(operands, dims, strict=True)
        ]
        return primitive(*front, **params), 0

    primitive = Primitive(name, infer=infer, lower=lower, jvp=jvp, batch=batch, differentiable=jvp is not None)
    return primitive


def _gamma_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, log: bool) -> tuple[Any, Any]:
    (key, a), t = primals, tangents[1]
    out = random_gamma(key, a, log=log)
    if t is None:
        return out, None
    if not log:
        return out, mul(t, gamma_sample_slope(a, out))
    # For a sample that underflows, the derivative at the smallest number is as good.
    sample = maximum(exp(out), number(float(np.finfo(type_of(out).dtype).tiny), out))
    return out, mul(t, div(gamma_sample_slope(a, sample), sample))


# Gamma variables, or their logarithms.
random_gamma = _sampler(
    "random_gamma",
    lambda key, a, *, log: (jax.random.loggamma if log else jax.random.gamma)(
        jax.random.wrap_key_data(key, impl="threefry2x32"), a, dtype=a.dtype
    ),
    lambda a, *, log: a.dtype,
    _gamma_jvp,
)
# Poisson variables of an integer dtype, from the rates.
random_poisson = _sampler(
    "random_poisson",
    lambda key, lam, *, dtype: jax.random.poisson(jax.random.wrap_key_data(key, impl="threefry2x32"), lam, dtype=dtype),
    lambda lam, *, dtype: dtype,
)
# Binomial variables of a floating dtype, from the number of trials and the probability.
random_binomial = _sampler(
    "random_binomial",
    lambda key, n, p, *, dtype: jax.random.binomial(
        jax.random.wrap_key_data(key, impl="threefry2x32"), n, p, dtype=dtype
    ),
    lambda n, p, *, dtype: dtype,
)
