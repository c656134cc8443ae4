"""Windows for spectra, and the range of elements."""

from __future__ import annotations

import math
from typing import Any

from compat._core.operators.composite import OPTIONS, composite
from compat._core.operators.op import aten
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import cpp_name, lacks, wrap_dim
from compat._operators.reduction.min_max import extreme, shared_by_the_equal
from compat._operators.reduction.sum_mean_var import axes_of
from funcgrad.primitives import reductions as r
from funcgrad.primitives.elementwise import add

# ---------------------------------------------------------------- the range


def _check_range(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> None:
    if dim is None:
        if not input.numel():
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
    elif input.dim() and not input.shape[wrap_dim(dim, input.dim())]:
        along = wrap_dim(dim, input.dim())
        raise IndexError(f"aminmax: Expected reduction dim {along} to have non-zero size.")
    if input.dtype.is_complex:
        raise lacks("aminmax_cpu", input.dtype)


@aten(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    node="AminmaxBackward0", saves="dim keepdim max! min! self!", check=_check_range,
)  # fmt: skip
def aminmax(input, *, dim, keepdim):
    """The smallest and the largest element, of all or along a dimension.

    Args:
        dim: the dimension.
        keepdim: leave it with size 1.
        out: a pair of tensors to write the results into.

    Raises:
        RuntimeError: for a tensor without elements.
        IndexError: for a dimension out of range, or is empty.

    Example:
        >>> torch.aminmax(torch.tensor([2, 1, 3])).max
        tensor(3)
    """
    axes = axes_of(input, dim)
    return extreme(r.reduce_min, input, axes, keepdim), extreme(r.reduce_max, input, axes, keepdim)


@aminmax.backward
def aminmax_backward(ct0: Any, ct1: Any, input: Any, result0: Any, result1: Any, dim: int | None) -> Any:
    axes = axes_of(input, dim)
    return add(shared_by_the_equal(ct0, input, result0, axes), shared_by_the_equal(ct1, input, result1, axes))


# ---------------------------------------------------------------- windows


def _window(name: str, length: int, periodic: bool, dtype: Dtype | None, make: Any) -> Tensor:
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
    kind = dtype if dtype is not None else torch["ones"](1).dtype
    found = make(torch["arange"](count, dtype=kind), count - 1)
    return found[:length].clone() if periodic else found


_DOC = """The {name} window: {formula}.

    Args:
        window_length: its size.
        periodic: whether to return the first elements of a symmetric window longer by one.
        dtype: of the result.

    Raises:
        RuntimeError: for a negative size, and integers.

    Example:
        >>> torch.{function}(2).shape
        torch.Size([2])
    """


def _cosines(n: Tensor, last: int, *weights: float) -> Tensor:
    """``weights[0] + weights[1] cos x + weights[2] cos 2x``, x going round once in ``last`` steps."""
    terms = (w * (n * (2 * math.pi * k / last)).cos() for k, w in enumerate(weights) if k)
    total: Any = weights[0]
    for term in terms:
        total = term + total
    return total


def _bartlett(n: Tensor, last: int) -> Tensor:
    up = n * (2.0 / last)
    return names_of("torch")["where"](up <= 1, up, 2 - up)


def _publish(name: str, formula: str, make: Any) -> None:
    def window(window_length: int, periodic: bool = True, *, dtype: Dtype | None = None, **options: Any) -> Tensor:
        found = _window(name, window_length, periodic, dtype, make)
        return found.requires_grad_() if options.get("requires_grad") else found

    window.__name__ = window.__qualname__ = f"{name}_window"
    window.__doc__ = _DOC.format(name=name, formula=formula, function=window.__name__)
    composite(
        f"{name}_window(int window_length, *, {OPTIONS}) -> Tensor",
        f"{name}_window.periodic(int window_length, bool periodic, *, {OPTIONS}) -> Tensor",
        names=f"torch.{name}_window",
        errors="before",
    )(window)


_publish("hann", "half of 1 - cos x, x going round once", lambda n, last: _cosines(n, last, 0.5, -0.5))
_publish(
    "blackman",
    "0.42 - 0.5 cos x + 0.08 cos 2x, x going round once",
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
    """The Hamming window: ``alpha - beta cos x``, x going round once; arguments as for ``hann_window``.

    Example:
        >>> torch.hamming_window(2)
        tensor([0.0800, 1.0000])
    """
    found = _window("hamming", window_length, periodic, dtype, lambda n, last: _cosines(n, last, alpha, -beta))
    return found.requires_grad_() if options.get("requires_grad") else found


@composite(
    f"kaiser_window(int window_length, *, {OPTIONS}) -> Tensor",
    f"kaiser_window.periodic(int window_length, bool periodic, *, {OPTIONS}) -> Tensor",
    f"kaiser_window.beta(int window_length, bool periodic, float beta, *, {OPTIONS}) -> Tensor",
    names="torch.kaiser_window", errors="before",
)  # fmt: skip
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, **options):
    """The Kaiser window: ``i0(beta * sqrt(1 - t**2)) / i0(beta)``, t going from -1 to 1; otherwise as ``hann_window``.

    Args:
        beta: how narrow it is.

    Example:
        >>> torch.kaiser_window(3, False, 2.0)
        tensor([0.4387, 1.0000, 0.4387])
    """

    def make(n: Tensor, last: int) -> Tensor:
        place = n * (2.0 / last) - 1
        i0 = names_of("torch")["i0"]
        # Rounding may carry the last place past 1.
        rest = (1 - place * place).clamp(min=0)
        return i0(beta * rest.sqrt()) / i0(names_of("torch")["full"]((), beta, dtype=n.dtype))

    found = _window("kaiser", window_length, periodic, dtype, make)
    return found.requires_grad_() if options.get("requires_grad") else found
