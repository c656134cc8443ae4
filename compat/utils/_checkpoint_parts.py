"""Internals of PyTorch's checkpointing that programs use, published in ``torch.utils.checkpoint``."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.saved_variable import save, unpack
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import warn


class SavedArguments:
    """The arguments of a call, with tensors as saved variables, which detect in-place changes.

    Attributes:
        next_functions: the nodes that receive gradients of the tensors.
    """

    def __init__(self, args: Sequence[Any]):
        # First, since this updates whether a view requires grad.
        self.next_functions = tuple(edge_of(a) for a in args if isinstance(a, Tensor))
        self._stored = [(isinstance(a, Tensor), save(a) if isinstance(a, Tensor) else a) for a in args]

    def restored(self) -> list[Any]:
        """The arguments.

        Raises:
            RuntimeError: if a tensor was changed in place.
        """
        return [unpack(stored, self) if is_tensor else stored for is_tensor, stored in self._stored]


def detach_variable(inputs: tuple) -> tuple:
    """The arguments with tensors detached, whose ``requires_grad`` is unchanged.

    Raises:
        RuntimeError: if ``inputs`` is not a tuple.

    Example:
        >>> detach_variable((torch.ones(2, requires_grad=True) * 3, "mean"))
        (tensor([3., 3.], requires_grad=True), 'mean')
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if none of the arguments requires grad."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices other than the CPU of the arguments, and their random states: two empty lists."""
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Sets the random states of devices other than the CPU, which must be none.

    Raises:
        RuntimeError: if a device is given.
    """
    if devices:
        raise RuntimeError(f"set_device_states: devices must be empty, got {list(devices)}")


class DefaultDeviceType:
    """The type of device, besides the CPU, whose random state checkpoints save."""

    __module__ = "compat.utils.checkpoint"

    _type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the device type."""
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        """The device type."""
        return DefaultDeviceType._type


class GraphExecGroup:
    """A context that groups backward passes."""

    __module__ = "compat.utils.checkpoint"

    _current = threading.local()

    def __enter__(self) -> GraphExecGroup:
        if self._get_current_group() is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {self._get_current_group()}"
            )
        GraphExecGroup._current.group = self
        return self

    def __exit__(self, *exc: object) -> None:
        GraphExecGroup._current.group = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return getattr(cls._current, "group", None)
