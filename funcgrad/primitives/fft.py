"""Fourier transforms: of complex arrays, and between real ones and the nonredundant half of a Hermitian spectrum.

The transform of complex arrays is a symmetric matrix, its own transpose. Those of real arrays omit the mirrored half of
the spectrum, so each is the other's transpose, with the coefficients that have a mirror image weighted by 1/2 or 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import cast, conj, mul, scale
from funcgrad.primitives.shape import Dims


def _along_last(transform: Any, x: Any, axes: Dims) -> Any:
    """Applies XLA's transform of the last axes to others."""
    n = x.ndim
    order = (*[a for a in range(n) if a not in axes], *axes)
    if order == tuple(range(n)):
        return transform(x)
    return lax.transpose(transform(lax.transpose(x, order)), tuple(np.argsort(order).tolist()))


def _check_axes(name: str, x: ArrayType, axes: Dims) -> None:
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ValueError(f"{name}: axes {axes} do not fit {x}")
    if any(x.shape[a] < 1 for a in axes):
        raise ValueError(f"{name}: there is nothing to transform along axes {axes} of {x}")


# ---------------------------------------------------------------- complex


def _fft_infer(x: ArrayType, *, axes: Dims, inverse: bool) -> ArrayType:
    if not dtypes.is_complex(x.dtype):
        raise TypeError(f"fft: takes complex arrays, got {x}")
    if not 1 <= len(axes) <= 3:
        raise ValueError(f"fft: one to three axes at once, got {axes}")
    _check_axes("fft", x, axes)
    return x.strong()


def _fft_lower(x: Any, *, axes: Dims, inverse: bool) -> Any:
    if x.size == 0:
        return x
    kind = lax.FftType.IFFT if inverse else lax.FftType.FFT
    return _along_last(lambda y: lax.fft(y, kind, tuple(x.shape[a] for a in axes)), x, axes)


def _fft_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int], *, axes: Dims, inverse: bool
) -> tuple[Any, int]:
    dim = dims[0]
    return fft(operands[0], axes=tuple(a + (a >= dim) for a in axes), inverse=inverse), dim


# The Fourier transform along one to three axes; the inverse is divided by the number of elements, the other is not.
fft = Primitive(
    "fft",
    infer=_fft_infer,
    lower=_fft_lower,
    transpose=(lambda ct, x, *, axes, inverse: fft(ct, axes=axes, inverse=inverse),),
    batch=_fft_batch,
)

# ---------------------------------------------------------------- real to half spectrum, and its inverse


def _mirrored(n: int, ndim: int, axis: int, weight: float, like: Any) -> Any:
    """1 for coefficients that are their own mirror image, ``weight`` for those that represent two."""
    weights = np.full(n // 2 + 1, weight)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    shape = [1] * ndim
    shape[axis] = n // 2 + 1
    return cast(weights.reshape(shape), dtype=type_of(like).dtype)


def _half_shape(x: ArrayType, axis: int, n: int) -> Dims:
    return (*x.shape[:axis], n, *x.shape[axis + 1 :])


def _rfft_infer(x: ArrayType, *, axis: int) -> ArrayType:
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"rfft: takes float32 and float64 arrays, got {x}")
    _check_axes("rfft", x, (axis,))
    return ArrayType(_half_shape(x, axis, x.shape[axis] // 2 + 1), dtypes.complex_of(x.dtype))


def _rfft_lower(x: Any, *, axis: int) -> Any:
    n = x.shape[axis]
    if x.size == 0:
        return lax.full((*x.shape[:axis], n // 2 + 1, *x.shape[axis + 1 :]), 0, dtypes.complex_of(x.dtype))
    return _along_last(lambda y: lax.fft(y, lax.FftType.RFFT, (n,)), x, (axis,))


def _rfft_transpose(ct: Any, x: ArrayType, *, axis: int) -> Any:
    n = x.shape[axis]
    counted = mul(conj(ct), _mirrored(n, x.ndim, axis, 0.5, ct))
    return scale(irfft(counted, axis=axis, n=n), n)


rfft = Primitive(
    "rfft",
    infer=_rfft_infer,
    lower=_rfft_lower,
    transpose=(_rfft_transpose,),
    batch=lambda size, operands, dims, *, axis: (rfft(operands[0], axis=axis + (axis >= dims[0])), dims[0]),
)


def _irfft_infer(x: ArrayType, *, axis: int, n: int) -> ArrayType:
    if not dtypes.is_complex(x.dtype):
        raise TypeError(f"irfft: takes complex arrays, got {x}")
    _check_axes("irfft", x, (axis,))
    if n < 1 or x.shape[axis] != n // 2 + 1:
        raise ValueError(f"irfft: {n} elements have {n // 2 + 1} coefficients, got {x} along axis {axis}")
    return ArrayType(_half_shape(x, axis, n), dtypes.real_of(x.dtype))


def _irfft_lower(x: Any, *, axis: int, n: int) -> Any:
    if x.size == 0:
        return lax.full((*x.shape[:axis], n, *x.shape[axis + 1 :]), 0, dtypes.real_of(x.dtype))
    return _along_last(lambda y: lax.fft(y, lax.FftType.IRFFT, (n,)), x, (axis,))


def _irfft_transpose(ct: Any, x: ArrayType, *, axis: int, n: int) -> Any:
    spectrum = conj(rfft(ct, axis=axis))
    return scale(mul(spectrum, _mirrored(n, x.ndim, axis, 2.0, spectrum)), 1 / n)


# The inverse of ``rfft``, to ``n`` elements, normalized. The imaginary parts of coefficients that are their own mirror
# image are ignored.
irfft = Primitive(
    "irfft",
    infer=_irfft_infer,
    lower=_irfft_lower,
    transpose=(_irfft_transpose,),
    batch=lambda size, operands, dims, *, axis, n: (
        irfft(operands[0], axis=axis + (axis >= dims[0]), n=n),
        dims[0],
    ),
)
