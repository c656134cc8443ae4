"""``torch.signal.windows``: window functions.

Each takes its size ``M``; ``sym``, False for a periodic window, the first part of a symmetric one longer by one;
and where and as what it is to be. The greatest element is 1, but not of an even window with ``sym``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from compat._core.tensor.namespace import torch

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


class _Window:
    """The arguments that all windows take.

    Args:
        name: the name of the window.
        m: its size.
        sym: whether it is symmetric.
        options: ``dtype``, ``layout``, ``device``, ``requires_grad``.
    """

    def __init__(self, name: str, m: int, sym: bool, options: dict[str, Any]):
        known = {"dtype", "layout", "device", "requires_grad"}
        unknown = next((key for key in options if key not in known), None)
        if unknown is not None:
            raise TypeError(f"{name}() got an unexpected keyword argument '{unknown}'")
        dtype = options.get("dtype")
        self.dtype = torch.get_default_dtype() if dtype is None else dtype
        layout = options.get("layout", torch.strided)
        if m < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={m}")
        if layout is not torch.strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if self.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {self.dtype}")
        self.m = m
        self.sym = sym
        self.options = dict(
            dtype=self.dtype, device=options.get("device"), requires_grad=options.get("requires_grad", False)
        )

    @property
    def span(self) -> int:
        """The number of steps between the ends."""
        return self.m - 1 if self.sym or self.m <= 1 else self.m

    def short(self) -> Any:
        """The window, if it is too short to have a shape."""
        return torch.ones((self.m,), **self.options) if self.m < 2 else None

    def line(self, start: Any, end: Any) -> Any:
        """Evenly spaced values."""
        return torch.linspace(start=start, end=end, steps=self.m, **self.options)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Any:
    """``exp(-|n - center| / tau)``.

    Args:
        M, sym, options: see the module.
        center: by default the middle; must be None for a symmetric window.
        tau: the decay constant.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> torch.signal.windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])
    """
    window = _Window("exponential", M, sym, options)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return window.short()
    middle = window.span / 2.0 if center is None else center
    return torch.exp(-torch.abs(window.line(-middle * (1 / tau), (-middle + (M - 1)) * (1 / tau))))


def cosine(M: int, *, sym: bool = True, **options: Any) -> Any:
    """Half a period of a sine: ``sin(pi * (n + 0.5) / M)``."""
    window = _Window("cosine", M, sym, options)
    if M == 0:
        return window.short()
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return torch.sin(window.line(0.5 * step, (0.5 + (M - 1)) * step))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Any:
    """``exp(-(n / std) ** 2 / 2)``, n counted from the middle.

    Raises:
        ValueError: for settings out of range.
    """
    window = _Window("gaussian", M, sym, options)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return window.short()
    start, scale = -window.span / 2.0, 1 / (std * math.sqrt(2))
    return torch.exp(-(window.line(start * scale, (start + (M - 1)) * scale) ** 2))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Any:
    """``i0(beta * sqrt(1 - x ** 2)) / i0(beta)``, x from -1 to 1.

    Args:
        M, sym, options: see the module.
        beta: the shape parameter.

    Raises:
        ValueError: for settings out of range.
    """
    window = _Window("kaiser", M, sym, options)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return window.short()
    b = torch.tensor(beta, dtype=window.dtype)
    end = torch.minimum(b, -b + (M - 1) * (2.0 * b / window.span))
    x = window.line(-b, end)
    return torch.i0(torch.sqrt(b * b - torch.pow(x, 2))) / torch.i0(b)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Any:
    """The triangular window: ``1 - |2 n / (M - 1) - 1|``."""
    window = _Window("bartlett", M, sym, options)
    return window.short() if M < 2 else 1 - torch.abs(window.line(-1, -1 + (M - 1) * (2 / window.span)))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Any:
    """``a[0] - a[1] * cos(x) + a[2] * cos(2 * x) - ...``, x over one period.

    Raises:
        TypeError, ValueError: if ``a`` is not a list, or empty.

    Example:
        >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
        tensor([0., 1., 0.])
    """
    window = _Window("general_cosine", M, sym, options)
    if M < 2:
        return window.short()
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not list(a):
        raise ValueError("Coefficients cannot be empty")
    x = window.line(0, (M - 1) * (2 * math.pi / window.span))
    weights = torch.tensor([(-1) ** i * w for i, w in enumerate(a)], **window.options)
    harmonics = torch.arange(weights.shape[0], **window.options)
    return (weights.unsqueeze(-1) * torch.cos(harmonics.unsqueeze(-1) * x)).sum(0)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Any:
    """``alpha - (1 - alpha) * cos(x)``, x over one period."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Any:
    """``0.54 - 0.46 * cos(x)``, x over one period."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Any:
    """``0.5 - 0.5 * cos(x)``, x over one period."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Any:
    """``0.42 - 0.5 * cos(x) + 0.08 * cos(2 * x)``, x over one period."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Any:
    """Four cosines with very low side lobes (A. Nuttall, "Some windows with very good sidelobe behavior", 1981)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)
