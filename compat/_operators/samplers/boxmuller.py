"""Standard normals from uniforms, in rows of sixteen, as in PyTorch's AVX2 kernel.

A row of sixteen uniforms gives sixteen normals: with ``u`` the first eight and ``v`` the last eight,
``sqrt(-2 log(1 - u))`` times ``cos(2 pi v)`` and times ``sin(2 pi v)`` (G. E. P. Box and M. E. Muller, "A note on the
generation of random normal deviates", Ann. Math. Stat. 29 (1958)).

In float32 the logarithm, sine and cosine are the polynomials of the Cephes library (S. L. Moshier, *Methods and
Programs for Mathematical Functions*, 1989), with every step rounded to float32 and fused multiply-adds. A fused step is
computed in float64, where the product of two float32 numbers is exact, and then rounded. In principle it could round
twice, but each function has only 2**24 possible arguments, for all of which the tests find PyTorch's results. In
float64 the three functions are those of the C library.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from compat._operators.samplers.exact import c_function, fma32, fma64
from funcgrad.native.twins import twin

__all__ = ["normals_from_bits32", "normals_from_uniform64"]

_BLOCK = 16384  # pairs computed together, so that the scratch arrays stay in the cache

_F = np.float32
_SQRT_HALF_BITS = np.int32(0x3F3504F3)
_LOG_TAIL = (
    _F(-1.1514610310e-1),
    _F(1.1676998740e-1),
    _F(-1.2420140846e-1),
    _F(1.4249322787e-1),
    _F(-1.6668057665e-1),
    _F(2.0000714765e-1),
    _F(-2.4999993993e-1),
    _F(3.3333331174e-1),
)
_LOG_HEAD = _F(7.0376836292e-2)
_LN2_HIGH, _LN2_LOW = _F(0.693359375), _F(-2.12194440e-4)
_FOUR_OVER_PI = _F(1.27323954473516)
_QUARTER_PI_HIGH, _QUARTER_PI_LOW = (
    (_F(-0.78515625), _F(-2.4187564849853515625e-4)),
    np.float64(_F(-3.77489497744594108e-8)),
)
_COS = (_F(2.443315711809948e-5), _F(-1.388731625493765e-3), _F(4.166664568298827e-2))
_SIN = (_F(-1.9515295891e-4), _F(8.3321608736e-3), _F(-1.6666654611e-1))


_native = twin(Path(__file__).with_suffix(".c"))


def normals_from_bits32(words: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Float32 normals, one for each 32-bit word (uint32, shape ``(16 * rows,)``), of which the low 24 bits are used."""
    if _native is not None:
        found = np.empty(words.shape, np.float32)
        _native.normals(np.ascontiguousarray(words, np.uint32), found, mean, std)
        return found
    return normals_by_numpy(words, mean, std)


def normals_by_numpy(words: np.ndarray, mean: float, std: float) -> np.ndarray:
    """``normals_from_bits32`` in NumPy, without the C twin."""
    rows = words.reshape(-1, 2, 8)
    out = np.empty(rows.shape, np.float32)
    step = _BLOCK // 8
    scratch = _Scratch(8 * min(step, len(rows)))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        cosines, sines = scratch.of_size(8 * len(block)).pair(block)
        out[start : start + step, 0] = fma32(cosines, std, mean).reshape(-1, 8)
        out[start : start + step, 1] = fma32(sines, std, mean).reshape(-1, 8)
    return out.reshape(-1)


def normals_from_uniform64(uniforms: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Float64 normals, one for each float64 uniform in ``[0, 1)``, shape ``(16 * rows,)``."""
    rows = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(-2.0 * c_function("log")(1.0 - rows[:, 0]))
    angle = (2.0 * math.pi) * rows[:, 1]
    pair = np.stack([radius * c_function("cos")(angle), radius * c_function("sin")(angle)], axis=1)
    return fma64(pair, std, mean).reshape(-1)


class _Scratch:
    """Buffers for one block: two of integers, others of floats in both precisions (``x64`` is ``x`` in float64)."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.i, self.j = np.empty((2, n), np.int32)
        self.x, self.y, self.z, self.s, self.radius = np.empty((5, n), np.float32)
        self.x64, self.y64, self.z64, self.t64 = np.empty((4, n), np.float64)

    def of_size(self, n: int) -> _Scratch:
        """These buffers, or new ones for the last block, which is shorter."""
        return self if n == self._n else _Scratch(n)

    def pair(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Radius times cosine and radius times sine for a block of shape ``(rows, 2, 8)``."""
        self._radius(block[:, 0])
        self._angles(block[:, 1])
        cosine, sine = self.y, self.s
        cosine *= self.radius
        sine *= self.radius
        return cosine, sine

    def _fused(self, y: np.ndarray, x64: np.ndarray, addend: np.floating) -> None:
        """``y = y * x + addend``, rounded once; ``y64`` is ``y`` in float64, before and after."""
        np.multiply(self.y64, x64, out=self.t64)
        np.add(self.t64, np.float64(addend), out=self.t64)
        y[...] = self.t64
        self.y64[...] = y

    def _radius(self, words: np.ndarray) -> None:
        """``radius = sqrt(-2 log(1 - u))`` for ``u = (word mod 2**24) / 2**24``."""
        x, y, z, i, j = self.x, self.y, self.z, self.i, self.j
        x64, y64, z64, t64 = self.x64, self.y64, self.z64, self.t64
        np.bitwise_and(words, np.uint32(0xFFFFFF), out=i.view(np.uint32).reshape(-1, 8))
        np.subtract(np.int32(1 << 24), i, out=i)  # 2**24 (1 - u), in [1, 2**24]
        x[...] = i
        # Split into 2**e times a mantissa in [sqrt(1/2), sqrt(2)), on the bits.
        bits = x.view(np.int32)
        np.subtract(bits, _SQRT_HALF_BITS, out=i)
        i >>= 23
        np.left_shift(i, 23, out=j)
        bits -= j
        i -= 24
        x -= _F(1)

        np.multiply(x, x, out=z)
        x64[...], z64[...] = x, z
        np.multiply(x64, np.float64(_LOG_HEAD), out=t64)
        np.add(t64, np.float64(_LOG_TAIL[0]), out=t64)
        y[...] = t64
        y64[...] = y
        for coefficient in _LOG_TAIL[1:]:
            self._fused(y, x64, coefficient)
        y *= x
        y64[...] = y
        exponent = self.s
        exponent[...] = i
        np.multiply(exponent, _LN2_LOW, out=self.radius)
        np.multiply(y64, z64, out=t64)
        t64 += self.radius
        y[...] = t64
        z *= _F(0.5)  # exact, like exponent * _LN2_HIGH, so that these two fused steps need no float64
        y -= z
        x += y
        exponent *= _LN2_HIGH
        x += exponent
        x *= _F(-2)
        np.sqrt(x, out=self.radius)

    def _angles(self, words: np.ndarray) -> None:
        """``y = cos(2 pi v)`` and ``s = sin(2 pi v)`` for ``v = (word mod 2**24) / 2**24``."""
        x, y, z, s, i = self.x, self.y, self.z, self.s, self.i
        x64, y64, z64, t64 = self.x64, self.y64, self.z64, self.t64
        np.bitwise_and(words, np.uint32(0xFFFFFF), out=i.view(np.uint32).reshape(-1, 8))
        x[...] = i
        x *= _F(2.0**-24)
        x *= _F(2 * math.pi)
        np.multiply(x, _FOUR_OVER_PI, out=y)
        i[...] = y.astype(np.int32)
        i += 1
        i &= -2  # the even octant: 0, 2, 4, 6 or 8
        y[...] = i
        for part in _QUARTER_PI_HIGH:  # with few bits, so that their products with y are exact
            np.multiply(y, part, out=z)
            x += z
        y64[...], x64[...] = y, x
        np.multiply(y64, _QUARTER_PI_LOW, out=t64)
        t64 += x64
        x[...] = t64

        np.multiply(x, x, out=z)
        z64[...] = z
        self._polynomial(s, _SIN)
        s *= z
        x64[...], y64[...] = x, s
        np.multiply(y64, x64, out=t64)
        t64 += x64
        s[...] = t64

        self._polynomial(y, _COS)
        y *= z
        y64[...] = y
        np.multiply(y64, z64, out=t64)
        z64 *= 0.5
        t64 -= z64
        y[...] = t64
        y += _F(1)
        self._apply_octants(y.view(np.int32), s.view(np.int32))

    def _polynomial(self, y: np.ndarray, coefficients: tuple[np.floating, ...]) -> None:
        """``y`` = the quadratic polynomial in ``z`` with these coefficients, the highest power first."""
        head, middle, last = coefficients
        np.multiply(self.z64, np.float64(head), out=self.t64)
        np.add(self.t64, np.float64(middle), out=self.t64)
        y[...] = self.t64
        self.y64[...] = y
        self._fused(y, self.z64, last)

    def _apply_octants(self, cosine: np.ndarray, sine: np.ndarray) -> None:
        """Swaps and negates cosines and sines, as int32 bits, according to the octants in ``i``."""
        i, j = self.i, self.j
        other = self.x.view(np.int32)
        np.left_shift(i, 30, out=j)
        j >>= 31  # all ones where the octant is 2 mod 4
        np.bitwise_xor(cosine, sine, out=other)
        other &= j
        cosine ^= other
        sine ^= other
        np.bitwise_and(i, 4, out=j)
        j <<= 29
        sine ^= j
        i += 2
        i &= 4
        i <<= 29
        cosine ^= i
