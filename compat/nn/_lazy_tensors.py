"""``UninitializedParameter`` and ``UninitializedBuffer``."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._operators.create.factories import empty
from compat.nn._uninitialized import UninitializedTensorMixin
from compat.nn.parameter import Parameter


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose size is not known yet.

    Args:
        requires_grad: whether it requires grad.
        device, dtype: its device and dtype.

    Example:
        >>> weight = torch.nn.UninitializedParameter()
        >>> weight
        <UninitializedParameter>
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', torch.Size([2, 3]))
    """

    __module__ = "compat.nn.parameter"

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return Tensor._make_subclass(cls, empty((0,), device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict) -> Any:
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return found


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose size is not known yet.

    Args:
        requires_grad: whether it requires grad.
        device, dtype: its device and dtype.
        persistent: whether it is part of the module's ``state_dict``.
    """

    __module__ = "compat.nn.parameter"

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        made = Tensor._make_subclass(cls, empty((0,), device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made
