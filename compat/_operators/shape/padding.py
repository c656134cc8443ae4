"""Padding: constant, reflection, replication, circular."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from compat._core.memory.strides import contiguous_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes
from compat._core.operators.op import Op, aten
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import bool_
from compat._core.types.errors import lacks, size_text, wrong_argument
from compat._core.types.scalar_conversion import fits
from compat._operators.arguments import float_argument, tensor_argument
from compat._operators.spatial import in_format_of_input
from compat._operators.view.slicing import slice_view
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import cast
from funcgrad.primitives.indexing import take
from funcgrad.primitives.shape import concatenate, reverse, slice_
from funcgrad.primitives.shape import pad as pad_edges

# ---------------------------------------------------------------- constant padding


def _check(input: Tensor, pad: tuple[int, ...], value: Any = 0) -> None:
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    n = input.dim()
    if len(pad) > 2 * n:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {n}dimensions."
        )
    for i in range(len(pad) // 2):
        cropped = input.shape[n - 1 - i] + min(pad[2 * i], 0)
        if cropped < 0 or cropped + min(pad[2 * i + 1], 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")


@aten(
    "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    node="ConstantPadNdBackward0", saves="pad", names="torch.constant_pad_nd", dtypes=Dtypes(fits=fits("value")),
    layout=in_format_of_input, check=_check, out=False,
)  # fmt: skip
def constant_pad_nd(input, pad, value):
    """Pads a tensor with a constant.

    Args:
        input: a tensor.
        pad: the padding before and after the last dimension, then the one before it, ...; negative numbers crop.
        value: the padding value.

    Raises:
        RuntimeError: for an odd number of paddings, more than two for a dimension, or a crop of more than its size.

    Example:
        >>> torch.constant_pad_nd(torch.tensor([[1, 2]]), (1, 0, 0, 1), 7)
        tensor([[7, 1, 2],
                [7, 7, 7]])
    """
    type = type_of(input)
    low, high = [0] * type.ndim, [0] * type.ndim
    for i in range(len(pad) // 2):
        low[-1 - i], high[-1 - i] = pad[2 * i], pad[2 * i + 1]
    fill = type.dtype.type(value) if isinstance(value, int) else cast(value, dtype=type.dtype)
    return pad_edges(input, fill, low=tuple(low), high=tuple(high), interior=(0,) * type.ndim)


# ---------------------------------------------------------------- reflection and replication


def _part(x: Any, axis: int, start: int, limit: int) -> Any:
    shape = type_of(x).shape
    low, high = [0] * len(shape), list(shape)
    low[axis], high[axis] = start, limit
    return slice_(x, start=tuple(low), limit=tuple(high), strides=(1,) * len(shape))


def _reflected(x: Any, axis: int, before: int, after: int) -> Any:
    """Reflection padding of an axis, by the mirrored elements next to the first and the last."""
    n = type_of(x).shape[axis]
    inner = _part(x, axis, max(-before, 0), n - max(-after, 0))
    pieces = [inner]
    if before > 0:
        pieces.insert(0, reverse(_part(x, axis, 1, before + 1), axes=(axis,)))
    if after > 0:
        pieces.append(reverse(_part(x, axis, n - after - 1, n - 1), axes=(axis,)))
    return concatenate(*pieces, axis=axis) if len(pieces) > 1 else inner


def _replicated(x: Any, axis: int, before: int, after: int) -> Any:
    """Replication padding of an axis, by copies of the first and the last element."""
    n = type_of(x).shape[axis]
    indices = numpy.clip(numpy.arange(-before, n + after), 0, n - 1)
    return take(x, indices, axis=axis)


_DIMENSION_NAMES = ("W", "H", "D")


def _check_mirror(name: str, spatial: int, reflects: bool) -> Any:
    def check(input: Tensor, padding: Sequence[int]) -> None:
        size, n = tuple(input.shape), input.dim()
        if n not in (spatial + 1, spatial + 2) or any(v == 0 for v in size[n - spatial - 1 :]):
            raise RuntimeError(
                f"Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with possibly 0 batch size and other "
                f"non-zero dimensions for input, but got: {size_text(size)}"
            )
        for i in range(spatial):
            d, (before, after) = n - 1 - i, padding[2 * i : 2 * i + 2]
            if reflects and (before >= size[d] or after >= size[d]):
                raise RuntimeError(
                    f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but "
                    f"got: padding ({before}, {after}) at dimension {d} of input {size_text(size)}"
                )
        new = [size[n - 1 - i] + padding[2 * i] + padding[2 * i + 1] for i in range(spatial)]
        if any(v < 1 for v in new):
            names = list(reversed(list(enumerate(_DIMENSION_NAMES[:spatial]))))
            input_text = " ".join(f"{name}: {size[n - 1 - i]}" for i, name in names)
            output_text = " ".join(f"{name}: {new[i]}" for i, name in names)
            raise RuntimeError(f"input ({input_text}) is too small. Calculated output {output_text}")
        if input.dtype is bool_:
            raise lacks(name, bool_)

    return check


def _declare(kind: str, pad_axis: Any, spatial: int) -> Op:
    """Declares ``reflection_padNd`` or ``replication_padNd``."""
    name = f"{kind}_pad{spatial}d"

    def body(input, padding):
        n = type_of(input).ndim
        for i in range(spatial):
            before, after = padding[2 * i : 2 * i + 2]
            if before or after:
                input = pad_axis(input, n - 1 - i, before, after)
        return input

    body.__doc__ = f"{kind.capitalize()} padding of the last {spatial} dimensions, as for ``constant_pad_nd``."
    return aten(
        f"{name}(Tensor self, SymInt[{2 * spatial}] padding) -> Tensor",
        node=f"{kind.capitalize()}Pad{spatial}DBackward0", saves="padding self!", names=f"_C._nn.{name}",
        layout=in_format_of_input, check=_check_mirror(name, spatial, kind == "reflection"), out=False,
    )(body)  # fmt: skip


_MIRRORS = {
    "reflect": {n: _declare("reflection", _reflected, n) for n in (1, 2, 3)},
    "replicate": {n: _declare("replication", _replicated, n) for n in (1, 2, 3)},
}

# ---------------------------------------------------------------- circular padding, and all modes


def _circular(input: Tensor, pad: Sequence[int]) -> Tensor:
    """Circular padding by copies into a new tensor, which the graph contains, as in PyTorch."""
    n, spatial = input.dim(), len(pad) // 2
    size, before = list(input.shape), [0] * n
    for i in range(spatial):
        d, (low, high) = n - 1 - i, pad[2 * i : 2 * i + 2]
        if low > size[d] or high > size[d]:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        size[d] += low + high
        before[d] = low
        if size[d] < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    made = input.new_empty_strided(tuple(size), contiguous_strides(tuple(size)))
    inside, source = made, input
    for d in range(n - 1, n - spatial - 1, -1):
        low, high = before[d], size[d] - input.shape[d] - before[d]
        inside = slice_view(inside, d, max(low, 0), size[d] - max(high, 0))
        source = slice_view(source, d, max(-low, 0), input.shape[d] - max(-high, 0))
    inside.copy_(source)
    for d in range(n - 1, n - spatial - 1, -1):
        low, high = before[d], size[d] - input.shape[d] - before[d]
        if low > 0:
            slice_view(made, d, 0, low).copy_(slice_view(made, d, size[d] - low - max(high, 0), size[d] - max(high, 0)))
        if high > 0:
            slice_view(made, d, size[d] - high, size[d]).copy_(slice_view(made, d, max(low, 0), max(low, 0) + high))
    return made


@composite(names="F.pad")
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads a tensor.

    Args:
        input: a tensor; in other modes than ``"constant"``, channels precede the padded dimensions.
        pad: the padding before and after the last dimension, then the one before it, ...; negative numbers crop.
        mode: ``"constant"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        value: the padding value, in mode ``"constant"``.

    Raises:
        RuntimeError: for a ``pad`` that is invalid for the size of the tensor.
        NotImplementedError: for unknown modes, and numbers of dimensions that the mode does not support.

    Example:
        >>> torch.nn.functional.pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 0), mode="reflect")
        tensor([[3., 2., 1., 2., 3.]])
    """
    tensor_argument("pad", "input", 1, input)
    if not isinstance(pad, (tuple, list)):
        raise wrong_argument("pad", "pad", 2, "tuple of ints", pad)
    pad, n = tuple(p.__index__() for p in pad), input.dim()
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * n:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {n}"
        )
    fill = 0.0 if value is None else float_argument("pad", "value", 4, value)
    if mode == "constant":
        return constant_pad_nd(input, pad, fill)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    spatial = len(pad) // 2
    if spatial and n in (spatial + 1, spatial + 2) and spatial <= 3:
        if mode == "circular":
            return _circular(input, pad)
        if mode in _MIRRORS:
            return _MIRRORS[mode][spatial](input, pad)
    if mode not in ("circular", *_MIRRORS):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    raise NotImplementedError(f"Padding size {len(pad)} is not supported for {n}D input tensor.")
