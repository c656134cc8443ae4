"""Nested tensors of layout ``torch.strided`` whose components are views of one buffer."""

from __future__ import annotations

from importlib import import_module

from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor, array_of

__all__: list[str] = []


@function("torch._nested_view_from_buffer")
def nested_view_from_buffer(self: Tensor, nested_size: Tensor, nested_strides: Tensor, offsets: Tensor) -> Tensor:
    """A nested tensor whose components are views of a buffer, in its graph.

    Args:
        self: the buffer, of one dimension.
        nested_size, nested_strides: (components, dimensions); the size and the strides of each component.
        offsets: (components,); the offset of each component in the buffer.

    Raises:
        RuntimeError: for arguments of other dimensions.

    Example:
        >>> rows = torch.tensor([[2], [3]]), torch.tensor([[1], [1]]), torch.tensor([0, 2])
        >>> torch._nested_view_from_buffer(torch.arange(5), *rows).unbind()
        (tensor([0, 1]), tensor([2, 3, 4]))
    """
    checks = (
        (self, 1, "buffer.dim() == 1", "The input buffer must be flat"),
        (nested_size, 2, "nested_sizes.dim() == 2", "Expected the nested size tensor to be two dimensional."),
        (nested_strides, 2, "nested_strides.dim() == 2", "Expected the nested strides tensor to be two dimensional."),
        (offsets, 1, "storage_offsets.dim() == 1", "Expected the offsets tensor to be one dimensional."),
    )
    for t, dim, condition, text in checks:
        if t.dim() != dim:
            raise RuntimeError(f"{condition} INTERNAL ASSERT FAILED: {text}")
    sizes, strides, starts = (array_of(t).tolist() for t in (nested_size, nested_strides, offsets))
    if not len(sizes) == len(strides) == len(starts):
        raise RuntimeError(
            f"expected a size, strides and an offset for each component, but got {len(sizes)} sizes, {len(strides)} "
            f"strides and {len(starts)} offsets"
        )
    begin = int(self.storage_offset())
    nested_of = import_module("compat.nested._internal.strided_nested").nested_of
    made: Tensor = nested_of(
        [self.as_strided(n, step, begin + start) for n, step, start in zip(sizes, strides, starts, strict=True)]
    )
    return made
