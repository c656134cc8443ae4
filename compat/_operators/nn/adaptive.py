"""Adaptive pooling: one window per element of the result, from a rounded-down start to a rounded-up end."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.op import Op, aten
from compat._core.tensor.registry import document, function
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import lacks, size_text
from compat._operators.arguments import tensor_argument
from compat._operators.spatial import in_format_of_input, suggests_channels_last
from compat._operators.view.shape import squeeze, unsqueeze
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import div, select
from funcgrad.primitives.indexing import IndexDims, scatter_add, take, take_along
from funcgrad.primitives.reductions import reduce_sum
from funcgrad.primitives.shape import broadcast, full, reshape

Dims = tuple[int, ...]

# ---------------------------------------------------------------- windows


def _window_indices(size: int, count: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The indices of the elements of ``count`` windows, padded to one length, and the mask without the padding."""
    start = numpy.arange(count) * size // count
    end = -(-(numpy.arange(1, count + 1) * size) // count)
    widest = int((end - start).max(initial=0))
    indices = start[:, None] + numpy.arange(widest)
    return numpy.minimum(indices, max(size - 1, 0)), indices < end[:, None]


def _windows(x: Any, counts: Dims) -> tuple[Any, numpy.ndarray, numpy.ndarray]:
    """The elements of all windows, ``(*lead, *counts, k)``; the mask of valid ones and their flat indices, ``(*counts,
    k)``.
    """
    n = len(counts)
    shape = type_of(x).shape
    lead, spatial = shape[:-n], shape[-n:]
    rows = [_window_indices(size, count) for size, count in zip(spatial, counts)]
    valid = numpy.ones((1,) * (2 * n), bool)
    flat = numpy.zeros((1,) * (2 * n), numpy.int64)
    for i, (indices, mask) in enumerate(rows):
        at = [1] * (2 * n)
        at[2 * i : 2 * i + 2] = indices.shape
        valid = valid & mask.reshape(at)
        flat = flat + indices.reshape(at) * prod(spatial[i + 1 :])
    order = (*range(0, 2 * n, 2), *range(1, 2 * n, 2))
    table = (*counts, -1) if prod(counts) else (*counts, 1)
    valid = numpy.broadcast_to(valid, flat.shape).transpose(order).reshape(table)
    flat = flat.transpose(order).reshape(table)
    gathered = take(reshape(x, shape=(*lead, prod(spatial))), flat, axis=len(lead))
    return gathered, valid, flat


def _like(table: numpy.ndarray, x: Any) -> Any:
    """A table of the last dimensions of an array, broadcast to its shape."""
    shape = type_of(x).shape
    return broadcast(table, shape=shape, dims=tuple(range(len(shape) - table.ndim, len(shape))))


# ---------------------------------------------------------------- averages


def _check_average(n: int) -> Any:
    name = f"adaptive_avg_pool{n}d"

    def check(input: Tensor, output_size: Dims) -> None:
        if len(output_size) != n:
            raise RuntimeError(f"{name}: output_size must be {n}")
        if any(v < 0 for v in output_size):
            sizes = ", ".join(map(str, output_size)) if n == 2 else "{}, {},{}".format(*output_size)
            raise RuntimeError(
                f"{name}: elements of output_size must be greater than or equal to 0 but received {{{sizes}}}"
            )
        size = tuple(input.shape)
        for d in range(1 if n == 3 else max(len(size) - n, 0), len(size)):
            if size[d] == 0:
                raise RuntimeError(
                    f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                    f"{size_text(size)} with dimension {d} being empty"
                )
        if len(size) not in (n + 1, n + 2):
            raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got {size_text(size)}")
        if not input.dtype.is_floating_point:
            raise lacks("adaptive_avg_pool2d" if n == 2 else "adaptive_avg_pool3d_cpu", input.dtype)

    return check


def _average(n: int) -> Op:
    def body(input, output_size):
        type = type_of(input)
        lead, spatial = type.shape[:-n], type.shape[-n:]
        if prod(type.shape) == 0 or 0 in output_size:
            return _zeros(input, (*lead, *output_size))
        if all(s % c == 0 for s, c in zip(spatial, output_size)):
            split = tuple(v for s, c in zip(spatial, output_size) for v in (c, s // c))
            axes = tuple(len(lead) + 2 * i + 1 for i in range(n))
            total = reduce_sum(reshape(input, shape=(*lead, *split)), axes=axes)
            return div(total, type.dtype.type(prod(spatial) // prod(output_size)))
        elements, valid, _ = _windows(input, output_size)
        masked = select(_like(valid, elements), elements, full(type.dtype.type(0), type_of(elements).shape))
        total = reduce_sum(masked, axes=(type_of(masked).ndim - 1,))
        return div(total, _like(valid.sum(-1).astype(type.dtype), total))

    body.__doc__ = f"The averages of windows over the last {n} dimensions."
    return aten(
        f"adaptive_avg_pool{n}d(Tensor self, SymInt[{n}] output_size) -> Tensor",
        node=f"AdaptiveAvgPool{n}DBackward0", saves="self!", names=f"_C._nn._adaptive_avg_pool{n}d",
        layout=in_format_of_input if n == 2 else "contiguous",
        check=_check_average(n), out=False,
    )(body)  # fmt: skip


def _zeros(x: Any, shape: Dims) -> Any:
    """Zeros that depend on ``x``, so that it gets a gradient of zeros."""
    zero = reduce_sum(reshape(x, shape=(prod(type_of(x).shape),)), axes=(0,))
    return broadcast(np.multiply(zero, type_of(x).dtype.type(0)), shape=shape, dims=())


_AVERAGE = {n: _average(n) for n in (2, 3)}

# ---------------------------------------------------------------- maxima


def _check_max(n: int) -> Any:
    name = f"adaptive_max_pool{n}d"

    def check(input: Tensor, output_size: Dims) -> None:
        size = tuple(input.shape)
        if len(size) not in (n + 1, n + 2):
            raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got: {size_text(size)}")
        for d in range(1, len(size)):
            if size[d] == 0:
                raise RuntimeError(
                    f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                    f"{size_text(size)} with dimension {d} being empty"
                )
        if len(output_size) != n:
            raise RuntimeError(f"{name}(): internal error: output_size.size() must be {n}")
        if any(v < 0 for v in output_size):
            new = (*size[:-n], *output_size)
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {next(v for v in new if v < 0)}: {size_text(new)}"
            )
        if not input.dtype.is_floating_point:
            raise lacks(name if n == 2 else f"{name}_cpu", input.dtype)

    return check


def window_maxima(windows: Any, indices: Any) -> tuple[Any, Any]:
    """The maximum of each window, and its index.

    Args:
        windows: ``(..., k)``.
        indices: the indices of the elements, of the same shape.
    """
    last = type_of(windows).ndim - 1
    # The last NaN is the maximum, as in PyTorch.
    nan = np.isnan(windows)
    rank = np.where(nan, np.arange(1, type_of(windows).shape[-1] + 1), 0)
    maximum = np.where(np.any(nan, axis=last), np.argmax(rank, axis=last), np.argmax(windows, axis=last))
    maximum = reshape(maximum, shape=(*type_of(maximum).shape, 1))
    shape = type_of(windows).shape[:-1]
    return tuple(reshape(take_along(x, maximum, axis=last), shape=shape) for x in (windows, indices))


def _max(n: int) -> Op:
    def body(input, output_size):
        type = type_of(input)
        if prod(type.shape) == 0 or 0 in output_size:
            shape = (*type.shape[:-n], *output_size)
            return _zeros(input, shape), full(numpy.int64(0), shape)
        elements, valid, flat = _windows(input, output_size)
        lowest = full(type.dtype.type(-numpy.inf), type_of(elements).shape)
        masked = select(_like(valid, elements), elements, lowest)
        return window_maxima(masked, _like(flat, masked))

    body.__doc__ = f"The maxima of windows over the last {n} dimensions, and their flat indices in these dimensions."
    layout = in_format_of_input if n == 2 else "contiguous"
    declared = aten(
        f"adaptive_max_pool{n}d(Tensor self, int[{n}] output_size) -> (Tensor, Tensor)",
        node=f"AdaptiveMaxPool{n}DBackward0", saves="result1! self!", names=f"_C._nn.adaptive_max_pool{n}d",
        layout=layout, check=_check_max(n), out=False,
    )(body)  # fmt: skip

    def backward(ct0: Any, input: Any, result1: Any, output_size: Any) -> Any:
        shape = type_of(input).shape
        planes, windows, elements = prod(shape[:-n]), prod(output_size), prod(shape[-n:])
        zero = full(type_of(ct0).dtype.type(0), (planes, elements))
        if not planes * windows * elements:
            return reshape(zero, shape=shape)
        dims = IndexDims(window=(), collapsed=(1,), operand_batch=(0,), indices_batch=(0,), index_map=(1,))
        rows = reshape(result1, shape=(planes, windows, 1))
        found = scatter_add(zero, rows, reshape(ct0, shape=(planes, windows)), dims=dims, mode="promise", unique=False)
        return reshape(found, shape=shape)

    declared.backward(backward)
    return declared


_MAX = {n: _max(n) for n in (2, 3)}

# ---------------------------------------------------------------- public functions

_DOC = """The {what} of adaptive windows over the last {n} dimensions, for a result of the given size.

    Args:
        input: the pooled dimensions, preceded by channels and optionally a batch.
        output_size: the size of the pooled dimensions, a number or one per dimension; None keeps a size.{more}

    Raises:
        RuntimeError: if ``output_size`` is invalid or does not match the input.

    Example:
        >>> torch.nn.functional.{name}(torch.ones(1, 4, {size}), 2).shape
        torch.Size([1, 4, {out}])
    """
_MORE = "\n        return_indices: whether to return also the flat indices of the maxima in the pooled dimensions."


def _sizes(name: str, input: Any, output_size: Any, n: int) -> Dims:
    tensor_argument(name, "input", 1, input)
    given = (output_size,) * n if output_size is None or hasattr(output_size, "__index__") else tuple(output_size)
    if input.dim() <= len(given) and not hasattr(output_size, "__index__"):
        raise ValueError(f"Input dimension should be at least {len(given) + 1}")
    if not given or input.dim() < len(given):  # the operator raises for too few dimensions
        return given
    return tuple(m if n is None else n.__index__() for n, m in zip(given, input.shape[-len(given) :]))


def _name_and_document(pool: Any, name: str, what: str, n: int, more: str) -> None:
    text = _DOC.format(what=what, n=n, more=more, name=name, size=", ".join("5" * n), out=", ".join("2" * n))
    document(pool, text)
    pool.__name__ = pool.__qualname__ = name


def _publish(n: int) -> None:
    average, maximum = _AVERAGE[n].function, _MAX[n].function
    spatial = tuple(range(-1, -n - 1, -1))

    def average_pool(input: Tensor, output_size: Any) -> Tensor:
        sizes = _sizes(f"adaptive_avg_pool{n}d", input, output_size, n)
        if sizes != (1,) * n or not input.numel():
            return average(input, sizes)
        found: Any = input.mean(spatial, keepdim=True)
        if suggests_channels_last(input.shape, input.stride()):
            channels = input.shape[1]
            found.as_strided_(tuple(found.shape), (channels, 1, *(channels,) * n))
        return found

    def max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        found = maximum(input, _sizes(f"adaptive_max_pool{n}d", input, output_size, n))
        return found if return_indices else found[0]

    _name_and_document(average_pool, f"adaptive_avg_pool{n}d", "averages", n, "")
    _name_and_document(max_pool, f"adaptive_max_pool{n}d", "maxima", n, _MORE)
    function(f"F.adaptive_avg_pool{n}d")(average_pool)
    function(f"F.adaptive_max_pool{n}d")(max_pool)


for _n in (2, 3):
    _publish(_n)


def _size_1d(name: str, input: Any, output_size: Any) -> Dims:
    """The output size as that of a 2-d pool over rows of height 1."""
    tensor_argument(name, "input", 1, input)
    given = (output_size.__index__(),) if hasattr(output_size, "__index__") else tuple(output_size)
    if len(given) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(given)})")
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.dim()}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {name})"
        )
    return (1, *given)


@composite(
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    names="torch.adaptive_avg_pool1d F.adaptive_avg_pool1d",
)
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    sizes, row = _size_1d("adaptive_avg_pool1d", input, output_size), unsqueeze(input, -2)
    found = row.mean((-1, -2), keepdim=True) if sizes == (1, 1) and row.numel() else _AVERAGE[2](row, sizes)
    return squeeze(found, -2)


@composite(names="F.adaptive_max_pool1d")
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    sizes = _size_1d("adaptive_max_pool1d", input, output_size)
    values, indices = _MAX[2](unsqueeze(input, -2), sizes)
    values = squeeze(values, -2)
    return (values, squeeze(indices, -2)) if return_indices else values


_name_and_document(adaptive_avg_pool1d, "adaptive_avg_pool1d", "averages", 1, "")
_name_and_document(adaptive_max_pool1d, "adaptive_max_pool1d", "maxima", 1, _MORE)
