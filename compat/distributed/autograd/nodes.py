"""The nodes of the backward graph for tensors that were sent to another process, or received from one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.node import Node
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import next_sequence
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.size import Size


class _Boundary(Node):
    """A node for tensors of a message between two processes.

    Attributes:
        types: the size and dtype of each tensor.
    """

    __slots__ = ("types",)
    types: list[tuple[Size, Dtype]]

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        return self.types[nr] if nr < len(self.types) else None

    def filled(self, grads: Sequence[Tensor | None]) -> list[Tensor]:
        """The gradients of all tensors, zeros for missing ones."""
        zeros = names_of("torch")["zeros"]
        given = [*grads, *[None] * (len(self.types) - len(grads))]
        return [zeros(size, dtype=dtype) if g is None else g for g, (size, dtype) in zip(given, self.types)]


class SendRpcBackward(_Boundary):
    """The node of tensors that were sent, which receives their gradients.

    Args:
        tensors: the tensors.
    """

    __slots__ = ()

    def __init__(self, tensors: Sequence[Tensor]):
        self.types = [(t.shape, t.dtype) for t in tensors]
        self.next_functions = tuple(edge_of(t) for t in tensors)
        self._sequence = next_sequence()
        self._hooks = None

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        return self.filled(grads)


class RecvRpcBackward(_Boundary):
    """The node of tensors that were received, which sends their gradients to the sender.

    Args:
        tensors: the tensors, which become its outputs.
        context: the distributed autograd context that they belong to.
        worker: the rank of the sender.
        number: the number of the sender's node in that context.
    """

    __slots__ = ("context", "worker", "number")

    def __init__(self, tensors: Sequence[Tensor], context: Any, worker: int, number: int):
        self.types = [(t.shape, t.dtype) for t in tensors]
        self.context, self.worker, self.number = context, worker, number
        self.next_functions = ()
        self._sequence = next_sequence()
        self._hooks = None
        for nr, t in enumerate(tensors):
            t._rg_, t._node_, t._nr_ = True, self, nr

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        self.context.running.send(self, self.filled(grads))
        return ()


for _kind in (SendRpcBackward, RecvRpcBackward):
    _kind.__module__ = "builtins"
