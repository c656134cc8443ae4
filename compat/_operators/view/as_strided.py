"""Views of arbitrary strides."""

from __future__ import annotations

from typing import Any

from compat._core.memory.strides import check_reach
from compat._core.operators.view_op import view
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import size_text


def _check_as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> None:
    if len(size) == len(stride) and all(n >= 0 for n in (*size, *stride)):
        offset = input._offset_ if storage_offset is None else storage_offset
        check_reach(size, stride, offset, input.element_size(), input._storage_.nbytes())


@view(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
    node="AsStridedBackward0", inplace_node="AsStridedBackward1", saves="size storage_offset stride",
    names="torch.as_strided Tensor.as_strided Tensor.as_strided_", check=_check_as_strided, through_storage=True,
)  # fmt: skip
def as_strided(input, size, stride, storage_offset):
    """A view of the storage of ``input`` with any size, strides and offset.

    Raises:
        RuntimeError: if it exceeds the storage.
    """
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {size_text(stride)}"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={size_text(size)} and strides={size_text(stride)}"
        )
    if storage_offset is not None and storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    return input._replace(size=size, stride=stride, offset=input.offset if storage_offset is None else storage_offset)
