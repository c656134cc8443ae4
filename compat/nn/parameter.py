"""``Parameter`` and ``Buffer``: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

from compat._core.tensor import array_type
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import disabled
from compat._core.tensor.version_counter import VersionCounter
from compat._core.types.errors import no_attribute
from compat._operators.create.factories import empty
from compat.multiprocessing.reductions import reduce_tensor
from compat.nn._uninitialized import UninitializedTensorMixin, is_lazy

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter",  # noqa: F822 - at the first access
    "UninitializedTensorMixin", "is_lazy",
]  # fmt: skip


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Counts tensors of other subclasses that were made parameters as instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module lists among its parameters.

    It shares the memory of ``data`` and is a leaf, whatever ``data`` was computed from.

    Args:
        data: its values; an empty float tensor if left out.
        requires_grad: whether it requires grad.

    Raises:
        RuntimeError: if ``requires_grad`` is true for a dtype without derivatives.

    Example:
        >>> torch.nn.Parameter(torch.ones(2))
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()
    __torch_function__ = disabled
    _shown_as_ = "tensor"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = empty((0,))
        kind = type(data)
        if kind is not Tensor and kind is not Parameter:
            made = data.detach().requires_grad_(requires_grad)
            if type(made) is not kind:
                raise RuntimeError(
                    f"Creating a Parameter from an instance of type {kind.__name__} requires that detach() returns an "
                    f"instance of the same type, but return type {type(made).__name__} was found instead. To use the "
                    "type as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                    "implementation."
                )
            made._is_param = True
            return made
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict) -> Any:
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return found

    def __copy__(self) -> Any:
        made = super().__copy__()  # type: ignore[misc]  # attached like all tensor methods
        if made._counter_ is not None:
            made._counter_ = VersionCounter()  # separate from the counter of its data
        return made

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """Counts any tensor that is marked as a buffer as an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer when it is assigned; the result is a marked plain ``Tensor``.

    Args:
        data: its values; an empty float tensor if left out.
        persistent: whether it is part of the module's ``state_dict``.

    Example:
        >>> module = torch.nn.Module()
        >>> module.mean = torch.nn.Buffer(torch.zeros(2))
        >>> dict(module.named_buffers())
        {'mean': tensor([0., 0.])}
    """

    __torch_function__ = disabled

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = empty((0,))
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


publish(Parameter, "nn.Parameter")
publish(Buffer, "nn.Buffer")
ForkingPickler.register(Parameter, reduce_tensor)
array_type.register(Parameter)


def __getattr__(name: str) -> Any:
    # Imported on first use, for the reason that compat.nn._uninitialized gives.
    if name in ("UninitializedBuffer", "UninitializedParameter"):
        from importlib import import_module

        return getattr(import_module("compat.nn._lazy_tensors"), name)
    raise no_attribute(__name__, name)
