"""Nodes whose backward is a Python function of tensors, for operations without a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.node import NO_EDGE, Node
from compat._core.autograd.saved_variable import SavedTensor, save, unpack
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode, next_sequence, no_grad
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import FREED
from compat._core.types.memory_format import strided
from compat._core.types.size import Size
from funcgrad.core.caching import memoized

#: ``pull(gradient, kept)``: for each operand, a function of its gradient, or None where there is none.
Pull = Callable[[Tensor, Mapping[str, Any]], Sequence[Callable[[], Tensor | None] | None]]


class PulledNode(Node):
    """A node with a given pullback.

    Attributes:
        saved: the saved tensors, in the order of the names; None once freed.
        others: saved values besides tensors, by name.
        pull: the pullback; it may not reference tensors itself.
        result: the size and dtype of the incoming gradient.
    """

    __slots__ = ("saved", "others", "pull", "result")
    #: The names of the saved tensors.
    names: tuple[str, ...] = ()
    saved: tuple | None
    others: dict[str, Any]
    pull: Pull
    result: tuple[Size, Dtype]

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        return self.result if nr == 0 else None

    def release(self) -> None:
        if self.saved:
            self.saved = None

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        if self.saved is None:
            raise RuntimeError(FREED)
        kept = {name: unpack(entry, self) for name, entry in zip(self.names, self.saved)}
        if grads[0] is None:
            return [None] * len(self.next_functions)
        thunks = self.pull(grads[0], kept | self.others)
        return [
            None if thunk is None or edge is NO_EDGE else thunk() for thunk, edge in zip(thunks, self.next_functions)
        ]


@memoized("classes of custom nodes", 4096)
def _node_class(name: str, tensors: tuple[str, ...], others: tuple[str, ...]) -> type[PulledNode]:
    namespace: dict[str, Any] = {"__slots__": (), "__module__": "builtins", "names": tensors}
    for place, kept in enumerate(tensors):
        namespace[f"_raw_saved_{kept}"] = property(partial(_raw, place))
        namespace[f"_saved_{kept}"] = property(partial(_saved, place))
    for kept in others:
        namespace[f"_saved_{kept}"] = property(partial(_other, kept))
    return type(name, (PulledNode,), namespace)


def _raw(place: int, node: PulledNode) -> SavedTensor:
    return SavedTensor._of(node, place)


def _saved(place: int, node: PulledNode) -> Tensor | None:
    return _raw(place, node).unpack()


def _other(name: str, node: PulledNode) -> Any:
    return node.others[name]


def transformed() -> bool:
    """Whether a transform or a forward-mode level is active, which differentiates the operation's steps itself."""
    return bool(level_stack.state.levels) or level_stack.state.duals is not None


def without_recording() -> AbstractContextManager[Any]:
    """Context for computing a result for ``pulled``: ``no_grad``, except inside a transform."""
    return nullcontext() if transformed() else no_grad()


def outside(t: Tensor) -> Tensor:
    """An operand for computing a result for ``pulled``: detached, except inside a transform."""
    return t if transformed() else t.detach()


def _check_captured(operands: Sequence[Tensor]) -> None:
    """Checks the operands of an operation inside a transform.

    Raises:
        RuntimeError: for a sparse tensor that requires grad.
    """
    if mode.grad and any(t.__class__ is not Tensor and t.layout is not strided and t.requires_grad for t in operands):
        raise RuntimeError("inside torch.func's transforms sparse tensors from outside may not require grad")


def pulled(name: str, result: Tensor, operands: Sequence[Tensor], pull: Pull, /, **kept: Any) -> Tensor:
    """Gives an unrecorded result a node with a pullback, if an operand requires grad; returns the result.

    Args:
        name: the node's name.
        result: a new tensor.
        operands: the tensors that get gradients.
        pull: ``pull(gradient, kept)``: for each operand a function that computes its gradient, or None. Its operations
            are recorded if the backward pass is.
        kept: the values that the pullback needs, including tensors; attributes ``_saved_...`` of the node.
    """
    if transformed():
        _check_captured(operands)
        return result
    if not mode.grad or not any(t.requires_grad for t in operands):
        return result
    tensors = {k: v for k, v in kept.items() if isinstance(v, Tensor)}
    others = {k: v for k, v in kept.items() if not isinstance(v, Tensor)}
    node = object.__new__(_node_class(name, tuple(tensors), tuple(others)))
    node.next_functions = tuple([edge_of(t) for t in operands])
    node._sequence = next_sequence()
    node._hooks = None
    node.saved = tuple([save(t) for t in tensors.values()])
    node.others, node.pull = others, pull
    node.result = result.shape, result.dtype
    result._rg_, result._node_, result._nr_ = True, node, 0
    return result
