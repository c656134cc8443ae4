"""Fourier transforms along several axes, of any size and norm, from primitives; used by ``funcgrad.fft``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.primitives import fft as p
from funcgrad.primitives.elementwise import scale
from funcgrad.primitives.shape import pad, slice_

Axes = Sequence[int] | None

#: The norm of the inverse transform that belongs to a forward norm.
OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _normalized(x: Any, norm: str | None, n: int, inverse: bool, name: str) -> Any:
    """XLA's transform, whose inverse is divided by ``n``, normalized according to ``norm``."""
    norm = checked_norm(norm, name)
    wanted = OPPOSITE[norm] if not inverse else norm
    factor = {"backward": 1.0, "ortho": 1 / math.sqrt(n), "forward": 1 / n}[OPPOSITE[wanted]]
    if inverse:
        factor *= n
    return x if factor == 1 else scale(x, factor)


def checked_norm(norm: str | None, name: str) -> str:
    """A valid norm; ``"backward"`` by default."""
    return validate.one_of(name, "norm", "backward" if norm is None else norm, OPPOSITE)


def transformable(x: Any, name: str, real: bool = False) -> Any:
    """``x`` as an array that can be transformed: real or complex, in single or double precision."""
    (x,) = promoted(asoperand(x, name), floating=True)
    dtype = type_of(x).dtype
    if real and dtypes.is_complex(dtype):
        raise TypeError(f"{name}: takes real arrays, got {type_of(x)}")
    if dtype.itemsize < 4:
        dtype = dtypes.float32
    return astype(x, dtype if real else dtypes.complex_of(dtype) if not dtypes.is_complex(dtype) else dtype)


def _resized(x: Any, sizes: Sequence[int], axes: Sequence[int], name: str) -> Any:
    """``x`` cropped or zero-padded at the end to ``sizes`` along ``axes``."""
    shape = list(type_of(x).shape)
    for n, axis in zip(sizes, axes, strict=True):
        if n < 1:
            raise ValueError(f"{name}: invalid number of data points ({n}) along axis {axis} of {type_of(x)}")
        shape[axis] = n
    mine = type_of(x).shape
    if any(n < m for n, m in zip(shape, mine, strict=True)):
        limit = tuple(min(n, m) for n, m in zip(shape, mine, strict=True))
        x = slice_(x, start=(0,) * len(mine), limit=limit, strides=(1,) * len(mine))
        mine = limit
    if tuple(shape) == tuple(mine):
        return x
    none = (0,) * len(mine)
    high = tuple(n - m for n, m in zip(shape, mine, strict=True))
    return pad(x, type_of(x).dtype.type(0), low=none, high=high, interior=none)


def _sizes_and_axes(x: Any, s: Axes, axes: Axes, name: str) -> tuple[list[int], list[int]]:
    """``s`` and ``axes`` resolved for ``x``: one size for each axis."""
    ndim, shape = type_of(x).ndim, type_of(x).shape
    s = s if s is None else validate.sequence(name, "s", s)
    if axes is None:
        count = ndim if s is None else len(s)
        if count > ndim:
            raise ValueError(f"{name}: s {tuple(s or ())} has more sizes than {type_of(x)} has axes")
        chosen = list(range(ndim - count, ndim))
    else:
        chosen = [validate.axis(name, a, ndim) for a in validate.sequence(name, "axes", axes)]
    if s is None:
        return [shape[a] for a in chosen], chosen
    if len(s) != len(chosen):
        raise ValueError(f"{name}: s {tuple(s)} and axes {tuple(chosen)} must have the same length")
    sizes = [-1 if n is None else validate.integer(name, "the size", n) for n in s]
    return [shape[a] if n == -1 else n for n, a in zip(sizes, chosen, strict=True)], chosen


def _along(x: Any, axes: Sequence[int], inverse: bool) -> Any:
    """Transforms along ``axes``, the last first; repeated axes are transformed repeatedly."""
    group: list[int] = []
    for axis in reversed(axes):
        if axis in group or len(group) == 3:
            x = p.fft(x, axes=tuple(sorted(group)), inverse=inverse)
            group = []
        group.append(axis)
    return p.fft(x, axes=tuple(sorted(group)), inverse=inverse) if group else x


def complex_transform(x: Any, s: Axes, axes: Axes, norm: str | None, inverse: bool, name: str) -> Any:
    """Complex to complex; a real array becomes complex."""
    x = transformable(x, name)
    sizes, chosen = _sizes_and_axes(x, s, axes, name)
    x = _resized(x, sizes, chosen, name)
    return _normalized(_along(x, chosen, inverse), norm, math.prod(sizes), inverse, name)


def _check_real_axes(axes: Sequence[int], name: str) -> None:
    if not axes or axes[-1] in axes[:-1]:
        raise ValueError(f"{name}: wants at least one axis, the last of them only once, got {tuple(axes)}")


def transform_of_real(x: Any, s: Axes, axes: Axes, norm: str | None, name: str) -> Any:
    """Real to complex; the last axis has the first half of the coefficients."""
    x = transformable(x, name, real=True)
    sizes, chosen = _sizes_and_axes(x, s, axes, name)
    _check_real_axes(chosen, name)
    x = p.rfft(_resized(x, sizes, chosen, name), axis=chosen[-1])
    return _normalized(_along(x, chosen[:-1], False), norm, math.prod(sizes), False, name)


def transform_to_real(x: Any, s: Axes, axes: Axes, norm: str | None, name: str) -> Any:
    """Complex to real, from the first half of the coefficients along the last axis."""
    x = transformable(x, name)
    sizes, chosen = _sizes_and_axes(x, s, axes, name)
    _check_real_axes(chosen, name)
    if s is None or s[-1] in (None, -1):
        sizes[-1] = 2 * (sizes[-1] - 1)
    if sizes[-1] < 1:
        raise ValueError(f"{name}: invalid number of data points ({sizes[-1]}) along axis {chosen[-1]} of {type_of(x)}")
    x = _resized(x, [*sizes[:-1], sizes[-1] // 2 + 1], chosen, name)
    x = p.irfft(_along(x, chosen[:-1], True), axis=chosen[-1], n=sizes[-1])
    return _normalized(x, norm, math.prod(sizes), True, name)


def size_of_one(n: int | None) -> Axes:
    """``s`` for a single axis."""
    return None if n is None else (n,)
