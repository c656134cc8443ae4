"""Max unpooling; pooling with other norms; local response normalization."""

from __future__ import annotations

from collections.abc import Callable
from math import isinf, prod
from typing import Any

from compat._core.operators.declaration import Gradients
from compat._core.operators.op import Op, aten
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import int64
from compat._core.types.errors import lacks, size_text
from compat._operators.indexing.indices import flat
from compat._operators.spatial import by, each, in_format_of_input
from compat._operators.view.shape import squeeze, unsqueeze
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import add, mul
from funcgrad.primitives.shape import full, iota, reshape

Ints = tuple[int, ...]

# ---------------------------------------------------------------- max unpooling


def _check_unpool(n: int) -> Callable[..., None]:
    def check(input: Tensor, indices: Tensor, output_size: Ints) -> None:
        size = tuple(input.shape)
        if indices.dtype is not int64:
            got = f" but got: {indices.dtype.scalar_name}" if n == 2 else ""
            raise RuntimeError(f"elements in indices should be type int64{got}")
        if len(size) not in (n + 1, n + 2):
            raise RuntimeError(
                f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with "
                f"{len(size)} dimensions."
            )
        if tuple(indices.shape) != size:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({size_text(size)}) but got indices "
                f"tensor with shape: {size_text(indices.shape)}"
            )
        empty = next((d for d in range(1, len(size)) if size[d] == 0), None)
        if empty is not None:
            raise RuntimeError(
                f"max_unpooling{n}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, "
                f"but got {size_text(size)} with dimension {empty} being empty."
            )
        if not input.dtype.is_floating_point:
            raise lacks(f"max_unpool{n}d", input.dtype)

    return check


def _inspect_unpool(input: Tensor, indices: Tensor, output_size: Ints) -> None:
    found = values_of(indices)
    bad = found[(found < 0) | (found >= prod(output_size))]
    if bad.size:
        # PyTorch reports the last invalid index.
        raise RuntimeError(f"Found an invalid max index: {bad[-1]} (output volumes are of size {by(output_size)})")


def _flat_indices(indices: Any, rows: int, volume: int) -> Any:
    """Indices into each of ``rows`` planes of ``volume`` elements, as indices into the flattened array."""
    inner = reshape(indices, shape=(rows, type_of(indices).size // rows))
    first = mul(iota(shape=type_of(inner).shape, axis=0, dtype=int64.numpy), int64.numpy.type(volume))
    return flat(add(inner, first))


def _unpool(n: int) -> Op:
    def body(input, indices, output_size):
        lead = type_of(input).shape[:-n]
        shape, zero = (*lead, *output_size), type_of(input).dtype.type(0)
        if not prod(shape) or not type_of(input).size:
            return full(zero, shape)
        flat_indices = _flat_indices(indices, prod(lead), prod(output_size))
        return reshape(np.at(full(zero, (prod(shape),)))[flat_indices].set(flat(input)), shape=shape)

    def backward(ct: Any, indices: Any, output_size: Ints) -> Any:
        shape = type_of(indices).shape
        if not type_of(indices).size:
            return full(type_of(ct).dtype.type(0), shape)
        flat_indices = _flat_indices(indices, prod(shape[:-n]), prod(output_size))
        return reshape(np.at(flat(ct))[flat_indices].get(), shape=shape)

    body.__doc__ = f"Elements at indices into the last {n} dimensions, zeros elsewhere."
    declared = aten(
        f"max_unpool{n}d(Tensor self, Tensor indices, SymInt[{n}] output_size) -> Tensor",
        node=f"MaxUnpool{n}DBackward0", saves="indices", names=f"_C._nn.max_unpool{n}d",
        layout=in_format_of_input if n == 2 else "contiguous",
        check=_check_unpool(n), values=_inspect_unpool, out=False, gradients=Gradients(without="indices"),
    )(body)  # fmt: skip
    declared.backward(backward)
    return declared


_UNPOOL = {n: _unpool(n) for n in (2, 3)}


def _unpooled_size(input: Tensor, kernel: Ints, stride: Ints, padding: Ints, output_size: Any) -> Ints:
    """The size before pooling; ``output_size`` selects one if several sizes are possible.

    Raises:
        ValueError: for an impossible size.
    """
    n = len(kernel)
    spatial = tuple(input.shape)[-n:]
    default = tuple((size - 1) * s + k - 2 * p for size, k, s, p in zip(spatial, kernel, stride, padding))
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d, (size, s) in enumerate(zip(default, stride)):
        if not size - s < output_size[d] < size + s:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {size - s} and {size + s})')
    return tuple(v.__index__() for v in output_size)


_UNPOOL_DOC = """The maxima of ``max_pool{n}d`` at their positions before pooling, zeros elsewhere.

    Args:
        input: the result of ``max_pool{n}d``.
        indices: the flat indices of the maxima, from ``return_indices``.
        kernel_size, stride, padding: those of the pooling.
        output_size: the size before pooling, if it is ambiguous.

    Raises:
        RuntimeError: for mismatched sizes, and indices out of range.
        ValueError: for an ``output_size`` that does not pool to the input's size.
    """


def _publish_unpool(n: int) -> None:
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        kernel = each(kernel_size, n)
        step = kernel if stride is None else each(stride, n)
        size = _unpooled_size(input, kernel, step, each(padding, n), output_size)
        if n > 1:
            return _UNPOOL[n].function(input, indices, size)
        found = _UNPOOL[2].function(unsqueeze(input, -1), unsqueeze(indices, -1), (*size, 1))
        return squeeze(found, -1)

    max_unpool.__name__ = max_unpool.__qualname__ = f"max_unpool{n}d"
    max_unpool.__doc__ = _UNPOOL_DOC.format(n=n)
    function(f"F.max_unpool{n}d")(max_unpool)


for _n in (1, 2, 3):
    _publish_unpool(_n)

# ---------------------------------------------------------------- norms of windows

_LP_DOC = """The ``norm_type``-norm of windows over the last {n} dimensions; the sum for 1.

    Args:
        norm_type: the order of the norm; infinity for the largest magnitude, minus infinity for the smallest.
        kernel_size: the window size, a number or one per dimension.
        stride: the step between windows; by default the window size.
        ceil_mode: whether a window may reach past the end.

    Example:
        >>> torch.nn.functional.lp_pool{n}d(torch.ones({ones}), 1.0, 2).flatten()
        tensor([{sum}.])
    """


def _publish_lp(n: int) -> None:
    def lp_pool(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        if isinstance(norm_type, (int, float)) and isinf(norm_type):
            max_pool = names_of("F")[f"max_pool{n}d"]
            if norm_type > 0:
                return max_pool(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
            return -max_pool(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        count = prod(each(kernel_size, n))
        mean = names_of("F")[f"avg_pool{n}d"](input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (mean.sign() * names_of("F")["relu"](mean.abs())).mul(count).pow(1.0 / norm_type)

    lp_pool.__name__ = lp_pool.__qualname__ = f"lp_pool{n}d"
    lp_pool.__doc__ = _LP_DOC.format(n=n, ones=", ".join(["1", "1", *["2"] * n]), sum=2**n)
    function(f"F.lp_pool{n}d")(lp_pool)


for _n in (1, 2, 3):
    _publish_lp(_n)

# ---------------------------------------------------------------- local response normalization


@function("F.local_response_norm")
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """The input divided by ``(k + alpha * mean of the squares in size neighbouring channels) ** beta``.

    Args:
        input: a tensor with batch, channels, and at least one more dimension.
        size: the number of channels in a neighbourhood.
        alpha, beta, k: the numbers in the formula.

    Raises:
        ValueError: for fewer than three dimensions.

    Example:
        >>> torch.nn.functional.local_response_norm(torch.ones(1, 1, 1), 1, alpha=1.0, beta=1.0)
        tensor([[[0.5000]]])
    """
    n = input.dim()
    if n < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {n} dimensions)")
    if input.numel() == 0:
        return input
    return input / _mean_of_squares(input, size).mul(alpha).add(k).pow(beta)


def _mean_of_squares(input: Tensor, size: int) -> Tensor:
    """The mean of the squares in ``size`` neighbouring channels."""
    F = names_of("F")
    squares = input.mul(input)
    padding = (size // 2, (size - 1) // 2)
    if input.dim() == 3:
        padded = F["pad"](unsqueeze(squares, 1), (0, 0, *padding))
        return squeeze(F["avg_pool2d"](padded, (size, 1), stride=1), 1)
    shape = tuple(input.shape)
    padded = F["pad"](squares.view(shape[0], 1, shape[1], shape[2], -1), (0, 0, 0, 0, *padding))
    return squeeze(F["avg_pool3d"](padded, (size, 1, 1), stride=1), 1).view(shape)
