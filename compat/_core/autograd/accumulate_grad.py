"""Leaves of the backward graph: the node that accumulates a leaf's gradient, and gradient edges of tensors."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from compat._core.autograd.node import NO_EDGE, Edge, Node, fit, overrides_operators
from compat._core.memory.exchange import swap
from compat._core.memory.strides import Layout, contiguous_strides
from compat._core.tensor.autograd_state import PASSING, SHARED, Autograd
from compat._core.tensor.tensor import Tensor, autograd_of, from_buffer, wrap
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import Once, size_text
from compat._core.types.memory_format import strided
from compat._core.types.size import Size
from funcgrad.core.ir import ArrayType, Program
from funcgrad.interpreters.staging import stage


class LeafGrads(Protocol):
    """Gradients of leaves that a backward pass accumulates elsewhere than in ``grad``."""

    def get(self, leaf: Tensor) -> Tensor | None:
        """The gradient of a leaf."""

    def put(self, leaf: Tensor, grad: Tensor) -> None:
        """Replaces the gradient of a leaf."""


class AccumulateGrad(Node):
    """Accumulates gradients into the ``grad`` of a leaf.

    Attributes:
        variable: the leaf.
        size: its size when the node was made, which gradients have, even if the leaf is resized later.
    """

    __slots__ = ("variable", "size")
    variable: Tensor
    size: Size

    next_functions = _edges = ()
    #: The greatest number, so that leaves run as soon as their gradient is complete.
    _sequence = sys.maxsize

    def __init__(self, variable: Tensor):
        self.variable = variable
        self.size = variable._layout_.size
        self._hooks = None

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def particular(self) -> bool:
        """Whether gradients must be converted first: the leaf was resized, or has a ``grad_dtype``."""
        meta = self.variable._autograd_state_
        return self.size != self.variable._layout_.size or (meta is not None and meta.grad_dtypes is not None)

    def fitted(self, nr: int, grad: Tensor, make_error: Callable[[str], Exception]) -> Tensor:
        meta = self.variable._autograd_state_
        if meta is None or meta.grad_dtypes is None:
            return super().fitted(nr, grad, make_error)
        return fit(grad, (self.size, meta.grad_dtypes[0] if meta.grad_dtypes else grad.dtype), make_error)

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        return (self.size, self.variable._layout_.dtype) if nr == 0 else None

    def program(self) -> Program:
        dtype = self.variable._layout_.dtype.numpy
        assert dtype is not None
        return stage(lambda grad: [grad], [ArrayType(tuple(self.size), dtype)], name="AccumulateGrad")

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        grad = grads[0]
        variable = self.variable
        meta = autograd_of(variable)
        if grad is None or not variable._rg_:
            pass  # no gradient, or the leaf no longer requires grad; hooks run nevertheless
        elif variable._node_ is not None:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        elif mode.task is not None and mode.task.grads is not None:
            before = mode.task.grads.get(variable)
            mode.task.grads.put(variable, grad.clone() if before is None else added(before, grad))
        else:
            if meta.grad is None:
                del grad  # ``_owned`` counts references
                grad = _owned(variable, grads)
                if swap(meta, "grad", None, grad):
                    if isinstance(grads, list) and self._hooks is not None and self._hooks.post:
                        grads[0] = grad.detach()  # shares its memory with ``grad``
                    grad = None
            if grad is not None:
                _add(variable, meta, grad)
        if meta.post_accumulate:
            for hook in list(meta.post_accumulate.values()):
                given = hook(variable)
                if isinstance(given, Tensor):
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
                if given is not None:
                    raise TypeError(f"expected Variable, but hook returned '{type(given).__name__}'")
        return ()


def _add(variable: Tensor, meta: Autograd, grad: Tensor) -> None:
    """Adds to the gradient of a leaf, which other threads may change meanwhile."""
    while True:
        before = meta.grad
        if before is None:
            after: Tensor = grad
        elif mode.grad or (before.__class__ is not Tensor and before.layout is not grad.layout):
            after = added(before, grad)
        else:
            after = before.add_(grad)
        if after is before or swap(meta, "grad", before, after):
            break
    if before is not None and after._layout_.stride != variable._layout_.stride and mode.lays_out:
        _check_layout(after, variable)


def added(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two gradients; for a dense and a sparse one, the dense one comes first."""
    return b + a if overrides_operators(a) and a.is_sparse and not b.is_sparse else a + b


def _owned(variable: Tensor, grads: Sequence[Any]) -> Tensor:
    """The gradient in a storage of its own, with the strides of a dense variable, else row-major.

    Buffers are immutable, so a buffer with exactly this gradient need not be copied. As in PyTorch, the storage itself
    is reused for a gradient without other references, and for a gradient passed to backward that reached the leaf
    through views alone.

    Args:
        grads: a list of the incoming gradient.
    """

    alone = sys.getrefcount(grads[0]) == 2  # the list, and the argument just now
    grad: Tensor = grads[0]
    layout = variable._layout_
    stride = layout.stride if layout.dense else contiguous_strides(layout.size)
    if overrides_operators(grad) and grad.layout is not strided:
        whole = not grad.is_sparse or (grad._values().is_contiguous() and grad._indices().is_contiguous())
        return grad.detach() if alone and whole else grad.clone()
    if overrides_operators(grad):
        return grad.detach() if grad.stride() == stride else grad.clone()
    found = grad._layout_
    whole = found.whole and not found.conj and not found.neg and found.base.device is layout.base.device
    if grad._view_ is PASSING and mode.task.hands_over(grad):
        if all(n < 2 or a == b for n, a, b in zip(found.size, found.stride, stride)):
            grad._view_ = SHARED
            return grad
    if not mode.grad and alone and not mode.lays_out:
        return grad.detach()
    if not mode.grad and whole and (found.stride == stride if found.size == layout.size else _obeys(found, layout)):
        storage = grad._storage_
        if storage.base.traced and level_stack.state.duals is not None:
            return grad.detach()  # drops its tangent
        return wrap(storage, found) if alone and grad._view_ is None else from_buffer(storage.buffer, found)
    return variable.detach().new_empty_strided(layout.size, stride, dtype=grad.dtype).copy_(grad)


def _check_layout(grad: Tensor, variable: Tensor) -> None:
    """Warns once about a gradient whose strides differ from the layout contract."""
    if overrides_operators(grad) or _obeys(grad._layout_, variable._layout_):
        return
    Once.warn(
        "grad and param do not obey the gradient layout contract. This is not an error, but may impair performance.\n"
        f"grad.sizes() = {size_text(grad.shape)}, strides() = {size_text(grad.stride())}\n"
        f"param.sizes() = {size_text(variable.shape)}, strides() = {size_text(variable.stride())}",
        key="gradient layout contract",
    )


def _obeys(found: Layout, layout: Layout) -> bool:
    """Whether a gradient obeys PyTorch's layout contract, which compares strides along the gradient's dimensions. A
    gradient of another size that does not obey it cannot be copied to the leaf's layout."""
    if not layout.dense:
        return found.contiguous
    return all(n == 1 or a == b for n, a, b in zip(found.size, found.stride, layout.stride))


AccumulateGrad.__module__ = "builtins"


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The ``AccumulateGrad`` node of a leaf; the same one while there are references to it."""
    meta = autograd_of(leaf)
    while True:
        known = meta.accumulator
        found = None if known is None else known()
        if found is not None:
            return found
        node = AccumulateGrad(leaf)
        if swap(meta, "accumulator", known, weakref.ref(node)):
            return node


def leaf_edge(t: Tensor) -> Edge:
    """The edge to a leaf's ``AccumulateGrad`` node."""
    view = t._view_
    if (
        view is not None
        and view.base is not None
        and view.base.requires_grad
        and not (t._autograd_state_ and t._autograd_state_.own)
    ):
        # A view made without recording inherits requires_grad from its base, but no gradient reaches that.
        return NO_EDGE
    return (accumulator(t), 0)


def edge_of(t: Tensor) -> Edge:
    """The gradient edge of a tensor."""
    if not t.requires_grad:
        return NO_EDGE
    node = t.grad_fn
    return leaf_edge(t) if node is None else (node, t._nr_)
