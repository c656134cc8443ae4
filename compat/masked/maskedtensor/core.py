"""``MaskedTensor``: a dense tensor with a mask, which is True for the elements that are specified.

Functions are applied to the values, their graph is that of the values, and masked elements take no part in reductions.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import bool_
from compat._core.types.memory_format import LAYOUTS
from compat.nested._internal.table_tensor import OfValues, TableTensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]


class MaskedTensor(OfValues, TableTensor):
    """A tensor with a mask; see ``masked_tensor``.

    Attributes:
        elements: the values, also of masked elements.
        mask: booleans of the same size, True for specified elements.

    Example:
        >>> x = torch.masked.masked_tensor(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([True, False, True]))
        >>> x * 2
        MaskedTensor(
          [  2.0000,       --,   8.0000]
        )
        >>> x.sum()
        MaskedTensor(  5.0000, True)
    """

    parts = ("elements", "mask")
    layout = LAYOUTS["strided"]
    rank = 4
    _shown_as = "MaskedTensor"

    mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Self:
        _warn()
        check(data, mask)
        return cls.of(data.detach().requires_grad_(requires_grad), mask)

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False):
        pass

    @classmethod
    def of(cls, elements: Tensor, mask: Tensor) -> Self:
        """A masked tensor in the graph of its values."""
        return cls.of_parts(elements.shape, elements.dtype, elements.device, elements=elements, mask=mask)

    @classmethod
    def unsupported(cls, name: str) -> Exception:
        return TypeError(f"no implementation found for 'torch.ops.aten.{name}' on types that implement MaskedTensor")

    def _like(self, elements: Tensor) -> MaskedTensor:
        return MaskedTensor.of(elements, self.mask)

    def get_data(self) -> Tensor:
        """The values, also of masked elements."""
        return self.elements

    def get_mask(self) -> Tensor:
        """The mask, True for specified elements."""
        return self.mask

    def to_tensor(self, value: Any) -> Tensor:
        """A dense tensor, in which masked elements have a given value."""
        found: Tensor = self.elements.masked_fill(self.mask.logical_not(), value)
        return found

    def stride(self, dim: int | None = None) -> Any:
        """The strides of the values."""
        return self.elements.stride() if dim is None else self.elements.stride(dim)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the values are contiguous."""
        return self.elements.is_contiguous()

    def item(self) -> Any:
        """The number that a tensor of one element is."""
        return self.elements.item()

    def __bool__(self) -> bool:
        return bool(self.elements)

    def __deepcopy__(self, memo: dict) -> MaskedTensor:
        if id(self) not in memo:
            memo[id(self)] = self.of(self.elements.__deepcopy__(memo), self.mask.__deepcopy__(memo))
        found: MaskedTensor = memo[id(self)]
        return found

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return masked_tensor, (self.elements.detach(), self.mask, self.requires_grad)

    def _text(self) -> str:
        values, mask = self.elements.detach().tolist(), self.mask.tolist()
        if not self.dim():
            return f"MaskedTensor({_number(values) if mask else '--'}, {mask})"
        return f"MaskedTensor(\n{_indented(_shown(values, mask, self.dim()))}\n)"


MaskedTensor.__module__ = "torch.masked.maskedtensor.core"


def _number(x: Any) -> str:
    return f"{x:8.4f}" if isinstance(x, float) else str(x)


def _shown(values: Any, mask: Any, ndim: int) -> str:
    if ndim == 1:
        return f"[{', '.join(_number(x) if kept else '      --' for x, kept in zip(values, mask))}]"
    rows = ",\n".join(_indented(_shown(x, kept, ndim - 1)) for x, kept in zip(values, mask))
    return f"[\n{rows}\n]"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def check(data: Any, mask: Any) -> None:
    """Raises the errors of ``masked_tensor`` for its arguments."""
    for name, t in (("data", data), ("mask", mask)):
        if not isinstance(t, Tensor) or isinstance(t, MaskedTensor):
            raise TypeError(f"{name} must be a Tensor")
    if mask.dtype is not bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    if data.layout is not LAYOUTS["strided"] or mask.layout is not data.layout:
        raise TypeError(f"data and mask must be strided tensors, got {data.layout} and {mask.layout}")


def _warn() -> None:
    """Warns that masked tensors are a prototype, at this line: it is shown once."""
    warnings.warn(
        "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a "
        "Github issue for features requests and see our documentation on the torch.masked module for further "
        "information about the project.",
        UserWarning,
        stacklevel=1,
    )


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor, a leaf.

    Args:
        data: the values.
        mask: booleans of the same size, True for specified elements.
        requires_grad: whether its gradient is computed.

    Raises:
        TypeError: for arguments that are not tensors, and a mask of another dtype.
        ValueError: for different sizes.

    Example:
        >>> torch.masked.masked_tensor(torch.tensor([1, 2]), torch.tensor([True, False])).to_tensor(0)
        tensor([1, 0])
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """A masked tensor in the graph of ``data``, with the same memory.

    Raises:
        TypeError: for arguments that are not tensors, and a mask of another dtype.
        ValueError: for different sizes.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.masked.as_masked_tensor(x * 3, torch.tensor([True, False])).sum().backward()
        >>> x.grad
        tensor([3., 0.])
    """
    _warn()
    check(data, mask)
    return MaskedTensor.of(data, mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether an object is a masked tensor.

    Example:
        >>> torch.masked.is_masked_tensor(torch.ones(2))
        False
    """
    return isinstance(obj, MaskedTensor)


def same_mask(tensors: list[MaskedTensor]) -> Tensor:
    """The mask of several tensors.

    Raises:
        ValueError: if they differ.
    """
    first = tensors[0].mask
    for t in tensors[1:]:
        if t.mask is not first and not names_of("torch")["equal"](t.mask, first):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    return first
