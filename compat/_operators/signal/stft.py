"""Short-time Fourier transforms: spectra of overlapping frames of a signal, and the inverse."""

from __future__ import annotations

from typing import Any

from compat._core.operators.composite import composite
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import Once, warn
from compat._operators.signal.fft import BY_COUNT, BY_ROOT, NONE

_ONESIDED_COMPLEX = "Cannot have onesided output if window or input is complex"


def _window_text(window: Tensor | None) -> str:
    return "None" if window is None else f"{window.type()}{{{list(window.shape)}}}"


def _padded_window(window: Tensor | None, win_length: int, n_fft: int, like: Tensor) -> Tensor | None:
    """The window padded with zeros on both sides to ``n_fft``; None if it consists of ones."""
    if win_length >= n_fft:
        return window
    torch = names_of("torch")
    left = (n_fft - win_length) // 2
    dtype = like.dtype.to_real()
    padded = torch["zeros"](n_fft, dtype=dtype if window is None else window.dtype)
    padded.narrow(0, left, win_length).copy_(torch["ones"](win_length) if window is None else window)
    return padded


def _check_stft(input: Tensor, what: str, n_fft: int, hop: int, win_length: int, window: Tensor | None) -> None:
    length = input.shape[-1] if input.dim() else 0
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"{what}expected a tensor of floating point or complex values")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"{what}expected a 1D or 2D tensor")
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{what}expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{what}expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{what}expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is not None and tuple(window.shape) != (win_length,):
        raise RuntimeError(
            f"{what}expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
            f"{list(window.shape)}"
        )


@composite(names="torch.stft Tensor.stft")
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """The Fourier transforms of overlapping frames of a signal.

    Args:
        input: (time,) or (batch, time).
        n_fft: the length of a frame.
        hop_length: the distance between frames; ``n_fft // 4`` by default.
        win_length: the length of the window; ``n_fft`` by default.
        window: the values of the window function; ones by default.
        center: whether frames are centered at their times; the signal is then padded at both ends.
        pad_mode: the mode of this padding, as for ``torch.nn.functional.pad``.
        normalized: whether to divide by the root of ``n_fft``.
        onesided: whether to return only the first half of the frequencies, which determines the others for real
            signals; True for these by default.
        return_complex: whether to return complex numbers; must be given for real signals.
        align_to_window: without ``center``, whether the first window, instead of the first frame, begins with the
            signal.

    Returns:
        (batch, frequencies, frames), or (..., 2) of real and imaginary parts unless ``return_complex``.

    Raises:
        RuntimeError: for sizes and dtypes that do not match.

    Example:
        >>> torch.stft(torch.ones(16), 8, window=torch.ones(8), return_complex=True).abs()[0, 0]
        tensor(8.)
    """
    torch = names_of("torch")
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        dims = input.dim()
        padded = input.view([1] * (3 - dims) + list(input.shape))
        padded = names_of("F")["pad"](padded, [n_fft // 2] * 2, pad_mode)
        input = padded.view(padded.shape[-dims:])
    if window is None:
        Once.warn(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. "
            "Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral "
            "leakage.To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`."
        )
    complex_given = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not complex_given:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    hop = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    what = (
        f"stft({input.type()}{list(input.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={win_length}, "
        f"window={_window_text(window)}, normalized={int(normalized)}, onesided={_optional(onesided)}, "
        f"return_complex={_optional(return_complex)}, align_to_window={_optional(align_to_window)}) : "
    )
    _check_stft(input, what, n_fft, hop, win_length, window)
    if return_complex is False:
        warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
            "tensors for all inputs, and return_complex=False will raise an error.\nNote: you can still call "
            "torch.view_as_real on the complex output to recover the old return format."
        )
    batched: Any = input if input.dim() == 2 else input.unsqueeze(0)
    length = win_length if align_to_window else n_fft
    start = (n_fft - win_length) // 2 if align_to_window else 0
    if start:
        batched = names_of("F")["pad"](batched, [start, start])
    count = 1 + (batched.shape[1] - 2 * start - length) // hop
    step = batched.stride()
    frames = batched.as_strided((batched.shape[0], count, n_fft), (step[0], hop * step[1], step[1]))
    padded_window = _padded_window(window, win_length, n_fft, input)
    frames = frames if padded_window is None else frames * padded_window
    half = not complex_given if onesided is None else onesided
    if half and complex_given:
        raise RuntimeError(_ONESIDED_COMPLEX)
    normalization = BY_ROOT if normalized else NONE
    if frames.is_complex():
        found = torch["_fft_c2c"](frames, (2,), normalization, True)
    else:
        found = torch["_fft_r2c"](frames, (2,), normalization, half)
    found = found.transpose_(1, 2)
    found = found if input.dim() == 2 else found.squeeze_(0)
    as_complex = complex_given if return_complex is None else return_complex
    return found if as_complex else torch["view_as_real"](found)


def _optional(value: bool | None) -> str:
    return "None" if value is None else str(int(value))


def _check_istft(
    input: Tensor, what: str, n_fft: int, hop: int, win_length: int, window: Tensor | None, half: bool
) -> None:
    if not input.numel():
        raise RuntimeError(f"{what}input tensor cannot be empty.")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"{what}expected a tensor with 3 or 4 dimensions, but got {input.dim() + 1}")
    count, formula = (
        (n_fft // 2 + 1, "n_fft / 2 + 1 when onesided=True") if half else (n_fft, "n_fft when onesided=False")
    )
    if input.shape[-2] != count:
        raise RuntimeError(
            f"{what}expected the frequency dimension (3rd to the last) of the input tensor to match {formula}, but got "
            f"{input.shape[-2]}"
        )
    if not 0 < hop <= win_length:
        raise RuntimeError(f"{what}expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{what}expected 0 < win_length <= n_fft")
    if window is not None and tuple(window.shape) != (win_length,):
        raise RuntimeError(f"{what}Invalid window shape. window has to be 1D and length of `win_length`")


def _overlap_add(frames: Any, hop: int) -> Any:
    """The sum of overlapping frames: (batch, time) from (batch, count, length)."""
    _, count, length = frames.shape
    time = (count - 1) * hop + length
    columns = frames.transpose(1, 2)
    fold = names_of("F")["fold"]
    if columns.is_complex():
        parts = names_of("torch")["view_as_real"](columns).unbind(-1)
        return names_of("torch")["complex"](*[fold(p, (1, time), (1, length), stride=(1, hop))[:, 0, 0] for p in parts])
    return fold(columns, (1, time), (1, length), stride=(1, hop))[:, 0, 0]


@composite(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, "
    "bool return_complex=False) -> Tensor",
    names="torch.istft",
)
@composite(names="Tensor.istft")
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The inverse of ``stft``: the least squares estimate of the signal.

    Source: D. W. Griffin and J. S. Lim, "Signal estimation from modified short-time Fourier transform", 1984.

    Args:
        input: (frequencies, frames), or (batch, frequencies, frames).
        length: the length of the result.
        return_complex: whether the signal is complex.
        n_fft, hop_length, win_length, window, center, normalized, onesided: as for ``stft``.

    Raises:
        RuntimeError: for sizes and dtypes that do not match, and windows that do not cover the signal.

    Example:
        >>> window = torch.hann_window(8)
        >>> torch.istft(torch.stft(torch.ones(16), 8, window=window, return_complex=True), 8, window=window).mean()
        tensor(1.)
    """
    torch = names_of("torch")
    hop = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    what = (
        f"istft({'CPU' + input.type().removeprefix('torch.').removesuffix('Tensor') + 'Type'}{list(input.shape)}, "
        f"n_fft={n_fft}, hop_length={hop}, win_length={win_length}, window={_window_text(window)}, "
        f"center={int(center)}, normalized={int(normalized)}, onesided={_optional(onesided)}, "
        f"length={length}, return_complex={int(return_complex)}) "
    )
    if window is None:
        Once.warn(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by "
            "stft to make the inversion lossless.To suppress this warning and use a rectangular window, explicitly "
            "set `window=torch.ones(n_fft, device=<device>)`."
        )
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    half = True if onesided is None and input.size(-2) != n_fft else bool(onesided)
    _check_istft(input, f"{what}: ", n_fft, hop, win_length, window, half)
    if half and return_complex:
        raise RuntimeError(_ONESIDED_COMPLEX)
    if window is not None and window.is_complex() and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    batched = input if input.dim() == 3 else input.unsqueeze(0)
    spectra = torch["view_as_complex"](torch["view_as_real"](batched).transpose(1, 2))
    normalization = BY_ROOT if normalized else BY_COUNT
    if return_complex:
        frames = torch["_fft_c2c"](spectra, (2,), normalization, False)
    else:
        spectra = spectra if half else spectra[..., : n_fft // 2 + 1]
        frames = torch["_fft_c2r"](spectra, (2,), normalization, n_fft)
    padded_window = _padded_window(window, win_length, n_fft, frames)
    if padded_window is None:
        padded_window = torch["ones"](n_fft, dtype=frames.dtype)
    signal = _overlap_add(frames * padded_window, hop)
    weight = _overlap_add((padded_window * padded_window).expand(1, frames.shape[1], n_fft), hop)
    start = n_fft // 2 if center else 0
    end = signal.shape[1] - start if length is None else min(start + length, signal.shape[1])
    signal, weight = signal[:, start:end], weight[:, start:end]
    if weight.abs().min().lt(1e-11).item():
        raise RuntimeError(f"{what}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    signal = signal / weight
    if length is not None and length > signal.shape[1]:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings."
        )
        signal = names_of("F")["pad"](signal, [0, length - signal.shape[1]])
    return signal if input.dim() == 3 else signal.squeeze(0)
