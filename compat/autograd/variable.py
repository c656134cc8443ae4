"""``torch.autograd.Variable``: the deprecated wrapper of tensors that require grad."""

from __future__ import annotations

from typing import Any

from compat._core.autograd.engine import queue_callback
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import warn

_VOLATILE = "volatile was removed and now has no effect. Use `with torch.no_grad():` instead."


def _volatile(t: Tensor) -> bool:
    """False, with a warning: the property is deprecated."""
    warn("volatile was removed (Variable.volatile is always False)")
    return False


publish(property(_volatile, lambda t, value: warn(_VOLATILE)), "Tensor.volatile")


class VariableMeta(type):
    """Counts every tensor as an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class ImperativeEngine:
    """The engine of backward passes."""

    def queue_callback(self, callback: Any) -> None:
        """Registers a callback for the end of the running backward pass."""
        queue_callback(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether the running pass accumulates into all leaves, as reentrant checkpointing requires."""
        from compat._core.transforms.grad_mode import mode

        return mode.task is None or mode.task.wanted is None


class Variable(metaclass=VariableMeta):
    """A new leaf tensor that shares memory with ``data``; deprecated.

    Args:
        data: the tensor; by default an empty one.
        requires_grad: whether the leaf requires grad.

    Raises:
        TypeError: if ``data`` is not a tensor.

    Example:
        >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile is not None:
            warn(_VOLATILE)
        if data is None:
            return Tensor().requires_grad_(requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)


Variable.__module__ = "torch.autograd.variable"
