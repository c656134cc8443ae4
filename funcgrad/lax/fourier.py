"""The Fourier transforms of the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax.lax import FftType

from funcgrad import fft as transforms
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.lax.operands import checked, sizes_of

__all__ = ["fft"]

_KINDS = {
    FftType.FFT: transforms.fftn,
    FftType.IFFT: transforms.ifftn,
    FftType.RFFT: transforms.rfftn,
    FftType.IRFFT: transforms.irfftn,
}


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """The Fourier transform of the last axes.

    Args:
        x: an array: of real numbers for ``RFFT``, of complex ones for ``IRFFT``, of either for the others.
        fft_type: ``"FFT"``, ``"IFFT"``, ``"RFFT"``, from real numbers to half of the spectrum, or its inverse
            ``"IRFFT"``.
        fft_lengths: the sizes of these axes; for ``IRFFT``, of the result.

    Returns:
        An array, complex; real for ``IRFFT``.

    Raises:
        TypeError: for operands that are not arrays, or other dtypes.
        ValueError: for an unknown kind, or sizes that are not the array's.

    Example:
        >>> import numpy as np
        >>> print(fft(np.array([1.0, 0.0, 0.0]), "RFFT", (3,)))
        [1.+0.j 1.+0.j]
    """
    x, lengths = checked("fft", x), sizes_of("fft", fft_lengths)
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(f"fft: the kind must be one of {', '.join(FftType.__members__)}, got {fft_type!r}")
        fft_type = FftType[fft_type.upper()]
    kind = type_of(x)
    last = kind.shape[kind.ndim - len(lengths) :]
    wanted = (*lengths[:-1], lengths[-1] // 2 + 1) if fft_type == FftType.IRFFT and lengths else lengths
    if not lengths or last != wanted:
        raise ValueError(f"fft: the last axes of {kind} are not of the lengths {wanted}")
    if fft_type == FftType.IRFFT and not dtypes.is_complex(kind.dtype):
        raise TypeError(f"fft: IRFFT takes complex arrays, got {kind}")
    return _KINDS[fft_type](x, lengths, tuple(range(kind.ndim - len(lengths), kind.ndim)))
