"""Window functions for spectra: ``hann_window``, ``hamming_window``, ``kaiser_window`` and others."""

from __future__ import annotations

import math
from typing import Any

from compat._core.operators.composite import OPTIONS, composite
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import get_default_dtype
from compat._core.types.errors import cpp_name


def _window(name: str, length: int, periodic: bool, dtype: Dtype | None, options: dict[str, Any], make: Any) -> Tensor:
    """The window ``make(indices, last index)`` of a length, with the option ``requires_grad``."""
    window = _values(name, length, periodic, dtype, make)
    return window.requires_grad_() if options.get("requires_grad") else window


def _values(name: str, length: int, periodic: bool, dtype: Dtype | None, make: Any) -> Tensor:
    torch = names_of("torch")
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            f"{name}_window expects floating point dtypes, got: TensorOptions(dtype={cpp_name(dtype)}, device=cpu, "
            "layout=Strided (default), requires_grad=false (default), pinned_memory=false, memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(f"{name}_window requires non-negative window_length, got window_length={length}")
    if length == 0:
        return torch["empty"](0, dtype=dtype)
    if length == 1:
        return torch["ones"](1, dtype=dtype)
    count = length + 1 if periodic else length
    kind = get_default_dtype() if dtype is None else dtype
    window = make(torch["arange"](count, dtype=kind), count - 1)
    return window[:length].clone() if periodic else window


_DOC = """The {name} window: {formula}.

    Args:
        window_length: the number of elements.
        periodic: whether the window is a period: a symmetric window of one more element, without the last one.
        dtype: the dtype of the result.

    Raises:
        RuntimeError: for a negative size, and integers.

    Example:
        >>> torch.{function}(2).shape
        torch.Size([2])
    """


def _cosines(n: Tensor, last: int, *weights: float) -> Tensor:
    """``weights[0] + weights[1] cos x + weights[2] cos 2x``, where x is from 0 to 2 pi in ``last`` steps."""
    terms = (w * (n * (2 * math.pi * k / last)).cos() for k, w in enumerate(weights) if k)
    total: Any = weights[0]
    for term in terms:
        total = term + total
    return total


def _bartlett(n: Tensor, last: int) -> Tensor:
    rising = n * (2.0 / last)
    return names_of("torch")["where"](rising <= 1, rising, 2 - rising)


def _publish(name: str, formula: str, make: Any) -> None:
    def window(window_length: int, periodic: bool = True, *, dtype: Dtype | None = None, **options: Any) -> Tensor:
        return _window(name, window_length, periodic, dtype, options, make)

    window.__name__ = window.__qualname__ = f"{name}_window"
    window.__doc__ = _DOC.format(name=name, formula=formula, function=window.__name__)
    composite(
        f"{name}_window(int window_length, *, {OPTIONS}) -> Tensor",
        f"{name}_window.periodic(int window_length, bool periodic, *, {OPTIONS}) -> Tensor",
        names=f"torch.{name}_window",
        errors="before",
    )(window)


_publish("hann", "(1 - cos x) / 2, where x is from 0 to 2 pi", lambda n, last: _cosines(n, last, 0.5, -0.5))
_publish(
    "blackman",
    "0.42 - 0.5 cos x + 0.08 cos 2x, where x is from 0 to 2 pi",
    lambda n, last: _cosines(n, last, 0.42, -0.5, 0.08),
)
_publish("bartlett", "a triangle", _bartlett)


@composite(
    f"hamming_window(int window_length, *, {OPTIONS}) -> Tensor",
    f"hamming_window.periodic(int window_length, bool periodic, *, {OPTIONS}) -> Tensor",
    f"hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, {OPTIONS}) -> Tensor",
    "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, "
    f"{OPTIONS}) -> Tensor",
    names="torch.hamming_window", errors="before",
)  # fmt: skip
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, **options):
    """The Hamming window: ``alpha - beta cos x``, where x is from 0 to 2 pi; other arguments as for ``hann_window``.

    Example:
        >>> torch.hamming_window(2)
        tensor([0.0800, 1.0000])
    """
    make = lambda n, last: _cosines(n, last, alpha, -beta)
    return _window("hamming", window_length, periodic, dtype, options, make)


@composite(
    f"kaiser_window(int window_length, *, {OPTIONS}) -> Tensor",
    f"kaiser_window.periodic(int window_length, bool periodic, *, {OPTIONS}) -> Tensor",
    f"kaiser_window.beta(int window_length, bool periodic, float beta, *, {OPTIONS}) -> Tensor",
    names="torch.kaiser_window", errors="before",
)  # fmt: skip
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, **options):
    """The Kaiser window: ``i0(beta * sqrt(1 - t**2)) / i0(beta)``, where t is from -1 to 1.

    Args:
        beta: the shape parameter; a greater one makes the window narrower.
        window_length, periodic, dtype: as for ``hann_window``.

    Example:
        >>> torch.kaiser_window(3, False, 2.0)
        tensor([0.4387, 1.0000, 0.4387])
    """

    def make(n: Tensor, last: int) -> Tensor:
        t = n * (2.0 / last) - 1
        i0 = names_of("torch")["i0"]
        # The last ``t`` may be rounded to more than 1.
        squared = (1 - t * t).clamp(min=0)
        return i0(beta * squared.sqrt()) / i0(names_of("torch")["full"]((), beta, dtype=n.dtype))

    return _window("kaiser", window_length, periodic, dtype, options, make)
