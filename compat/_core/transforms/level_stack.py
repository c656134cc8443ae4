"""The stack of active transforms of a thread: those of ``torch.func``, and the forward-mode level.

An operation on a tracer replays its program into the surrounding trace (``compat._core.operators.plan``). This module
implements the other rules of PyTorch's transforms: ``no_grad`` and ``inference_mode`` drop derivatives, captured
tensors that require grad stay in their graph, and unbatched memory cannot be overwritten with a batched value under
``vmap``.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from compat._core.memory import strided_access
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base
from compat._core.transforms.grad_mode import mode
from compat._core.transforms.identities import hold_backward, hold_forward, keep_backward, keep_forward
from funcgrad import runtime
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import Interpreter, Tracer, bind
from funcgrad.interpreters.batching import BatchTracer
from funcgrad.interpreters.forward import Forward, ForwardTracer
from funcgrad.interpreters.reverse import Reverse, ReverseTracer
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.shape import zeros


@dataclass
class Level:
    """An active transform.

    Attributes:
        kind: "grad", "jvp", "vmap", "functionalize".
        randomness: whether batch elements draw the "same" or "different" random numbers, or drawing is an "error".
        interpreter: its interpreter; None before it has one.
        batch: for a "vmap", its arguments and results (``compat.func._vmap.Batch``).
        written: the storages written while it was the innermost transform.
        leaves: the storages of the tensors to differentiate with respect to.
        detached: the detached storages made while it was the innermost transform.
        given: the tensors to differentiate with respect to.
        known: by slot on its tape, the gradient edges of tensors in the graph that the function can inspect.
        recorded: whether operations were recorded when it was entered.
    """

    kind: str
    randomness: str = "error"
    interpreter: Any = None
    batch: Any = None
    written: list[Any] = field(default_factory=list)
    leaves: list[Any] = field(default_factory=list)
    detached: list[weakref.ref[DetachedStorage]] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)
    known: dict[int, Any] = field(default_factory=dict)
    recorded: bool = True


class _State(threading.local):
    """The transforms that run in this thread.

    Attributes:
        levels: the transforms of ``torch.func``, outermost first.
        duals: the interpreter of the forward-mode level; None outside of one.
        graphs: whether graphs of tensors are allowed inside transforms.
    """

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.duals: Any = None
        self.graphs = False


state = _State()


@contextmanager
def level(kind: str, randomness: str = "error") -> Iterator[Level]:
    """Context of one more transform. It enables the derivatives that the transform needs, whatever mode surrounds
    it."""
    grad, inference, forward = mode.grad, mode.inference, mode.forward
    entered, outer = Level(kind, randomness, recorded=bool(grad)), state.levels
    try:
        state.levels = [*outer, entered]
        if kind == "grad":
            mode.grad, mode.inference = True, False
        elif kind == "jvp":
            mode.forward = True
        yield entered
    finally:
        state.levels = outer
        mode.grad, mode.inference, mode.forward = grad, inference, forward
        for storage in entered.written:
            _left(storage, entered.interpreter)
        for ref in entered.detached:
            made = ref()
            if made is not None:
                made.left(entered.interpreter)
        if state.levels:
            state.levels[-1].detached += entered.detached


def recorded() -> bool:
    """Whether operations on tensors outside of all transforms are recorded in their graph."""
    return bool(mode.grad) and (not state.levels or state.levels[0].recorded)


def _left(storage: Any, interpreter: Interpreter | None) -> None:
    """Replaces the tracers of a transform that has returned, in memory from outside that it has written."""
    buffer = storage.buffer
    while isinstance(buffer, (ForwardTracer, ReverseTracer)) and buffer.interpreter is interpreter:
        buffer = buffer.underlying()
    if buffer is not storage.buffer:
        buffer = storage.buffer = runtime.ready(buffer)
        storage.base = Base(storage.base.shape, storage.base.dtype, isinstance(buffer, Tracer))


_REFUSED = (
    "You are attempting to call Tensor.{0}() {1}inside of a function being transformed by a functorch transform. This "
    "is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
    "{0}() outside of a function being transformed instead."
)


def refuse(what: str) -> None:
    """Raises an error for a method of graphs inside a transform of ``torch.func``.

    Args:
        what: the name of the method: "backward", "retain_grad", "requires_grad_".

    Raises:
        RuntimeError: inside a transform.
    """
    if what == "backward" and state.graphs and any(entered.kind == "vmap" for entered in state.levels):
        raise RuntimeError(
            "backward() called inside torch.vmap. This is not supported, please call backward() outside torch.vmap or "
            "instead use torch.autograd.grad inside torch.vmap"
        )
    inside = state.levels and (what != "retain_grad" or state.levels[-1].kind == "grad")
    if inside and not state.graphs:
        if what == "backward":
            raise RuntimeError(
                "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
                "functorch.vjp instead or call backward() outside of functorch transforms."
            )
        functions = "(or perhaps using torch.autograd.functional.* APIs) " if what == "requires_grad_" else ""
        raise RuntimeError(_REFUSED.format(what, functions))


@contextmanager
def graphs() -> Iterator[None]:
    """Context in which graphs of tensors are allowed inside transforms."""
    before = state.graphs
    try:
        state.graphs = True
        yield
    finally:
        state.graphs = before


# ---------------------------------------------------------------- dropping derivatives


def held(x: Any) -> Any:
    """A traced value without the derivatives that ``no_grad`` and other modes disable here."""
    if isinstance(x, Tracer) and (state.levels or state.duals is not None):
        if not mode.grad and any(entered.kind == "grad" for entered in state.levels):
            x = hold_backward(x)
        if not mode.forward:
            x = hold_forward(x)
    return x


def rewritten(old: Any, new: Any) -> Any:
    """The contents of memory after a write; under ``no_grad`` with the derivatives of the old contents."""
    backward = not mode.grad and any(entered.kind == "grad" for entered in state.levels)
    forward = not mode.forward and (state.levels or state.duals is not None)
    if backward or forward:
        old, new = runtime.ready(old), runtime.ready(new)
    if backward and isinstance(old, Tracer):
        new = keep_backward(old, new)
    if forward and isinstance(old, Tracer):
        new = keep_forward(old, new)
    return new


class IndirectStorage(UntypedStorage):
    """A storage without a buffer of its own: ``read`` and ``write`` those of others."""

    __slots__ = ()
    buffer = property(lambda self: self.read(), lambda self, new: self.write(new))

    def read(self) -> Any:
        """The present contents."""
        raise NotImplementedError


class DetachedStorage(IndirectStorage):
    """A view of another storage without derivatives: reads drop them, and writes keep those of the memory.

    Attributes:
        under: the other storage.
        forward: whether forward-mode derivatives are dropped, too.
    """

    __slots__ = ("under", "forward")

    def __init__(self, under: UntypedStorage, forward: bool):
        self.under = under
        self.forward = forward
        self.base = under.base
        self.placing = under.placing
        self.version, self.born = 0, under.born
        if state.levels:
            state.levels[-1].detached.append(weakref.ref(self))

    def read(self) -> Any:
        x = _outlived(runtime.ready(self.under.buffer))
        if not isinstance(x, Tracer):
            return x
        return stop_gradient(x) if self.forward else hold_backward(x)

    def write(self, buffer: Any) -> None:
        """Puts new elements into the memory."""
        old = _outlived(runtime.ready(self.under.buffer))
        if isinstance(old, Tracer):
            buffer = keep_backward(old, runtime.ready(buffer))
            buffer = keep_forward(old, buffer) if self.forward else buffer
        self.under.write(buffer)

    def data_ptr(self) -> int:
        """The address of the memory."""
        return self.under.data_ptr()

    def left(self, interpreter: Interpreter | None) -> None:
        """Keeps only the values of a transform that has returned, so that its tracers are freed."""
        x = self.under.buffer
        if isinstance(x, (ForwardTracer, ReverseTracer)) and x.interpreter is interpreter:
            value = runtime.ready(x.underlying())
            self.base = Base(self.base.shape, self.base.dtype, isinstance(value, Tracer))
            self.under = UntypedStorage(value, self.base)


def detached(storage: UntypedStorage, forward: bool = True) -> UntypedStorage:
    """The storage of a traced tensor without derivatives.

    Args:
        forward: whether forward-mode derivatives are dropped, too: they are by ``detach``, and not by ``no_grad``.
    """
    if not forward and not any(entered.kind == "grad" for entered in state.levels):
        return storage
    if isinstance(storage, DetachedStorage) and storage.forward >= forward:
        return storage
    if state.levels or state.duals is not None:
        return DetachedStorage(storage, forward)
    return UntypedStorage(stop_gradient(_outlived(storage.buffer)), storage.base)


class Beneath(DetachedStorage):
    """Another storage's memory below the innermost transform that traces it.

    A write changes only the values and keeps the derivative of that transform.
    """

    __slots__ = ()

    def __init__(self, under: UntypedStorage):
        super().__init__(under, True)

    def read(self) -> Any:
        x = _outlived(runtime.ready(self.under.buffer))
        return x.underlying() if isinstance(x, (ForwardTracer, ReverseTracer)) else x

    def write(self, buffer: Any) -> None:
        """Puts new elements into the memory."""
        old, new = _outlived(runtime.ready(self.under.buffer)), runtime.ready(buffer)
        if isinstance(old, (ForwardTracer, ReverseTracer)):
            while isinstance(new, (ForwardTracer, ReverseTracer)) and new.interpreter is old.interpreter:
                new = new.underlying()
        if isinstance(old, ForwardTracer):
            assert isinstance(old.interpreter, Forward)
            new = ForwardTracer(old.interpreter, new, old.tangent)
        elif isinstance(old, ReverseTracer):
            new = old.interpreter.wrap(new, old.type)
            new.slot = old.slot
        self.under.write(new)


def beneath(storage: UntypedStorage) -> UntypedStorage:
    """The storage of a traced tensor's ``data``: outside the innermost transform, inside the others.

    Raises:
        RuntimeError: for a batched value.
    """
    if not state.levels and state.duals is None:
        return detached(storage)
    if isinstance(_outlived(storage.buffer), BatchTracer):
        raise RuntimeError("accessing `data` under vmap transform is not allowed")
    return Beneath(storage)


def check_set_data(*tensors: Any) -> None:
    """Checks the tensors of an assignment to ``data``.

    Raises:
        RuntimeError: if a transform traces one of them.
    """
    traced = [_outlived(t._storage_.buffer) for t in tensors if t._storage_.base.traced] if state.levels else []
    if any(isinstance(x, BatchTracer) for x in traced):
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")
    if any(isinstance(x, (ForwardTracer, ReverseTracer)) for x in traced):
        raise RuntimeError("mutating directly with `.data` inside functorch transform is not allowed.")


# ---------------------------------------------------------------- tensors from outside

#: Makes a tensor that requires grad a tracer whose operations are recorded; ``compat.func._recording`` sets it.
_lift: Callable[[Any], Any] | None = None


def set_lift(function: Callable[[Any], Any]) -> None:
    """Sets the function behind ``lift``."""
    global _lift
    _lift = function


def lift(t: Any) -> Any:
    """A tensor that requires grad, as a tracer whose operations are recorded in the tensor's graph."""
    for entered in state.levels:
        through(entered.interpreter)
    if _lift is None:  # not imported yet, as for a forward-mode level alone
        import_module("compat.func")
    assert _lift is not None
    return _lift(t)


#: Functions of ``compat.func._grad_nodes``: ``mark`` makes a tensor over a tracer of ``grad`` require grad,
#: ``record_edge`` records the tracer of such a tensor's elements, ``hook`` makes the transform call its hooks.
mark: Callable[..., None]
record_edge: Callable[[Any, Any], None]
hook: Callable[[Any, Any], None]


def set_following(*functions: Callable[..., None]) -> None:
    """Sets ``mark``, ``record_edge`` and ``hook``."""
    global mark, record_edge, hook
    mark, record_edge, hook = functions


def in_sight(buffers: Sequence[Any]) -> bool:
    """Whether results have a ``grad_fn``: not inside ``vmap`` and ``jvp``, even with captured tensors."""
    return not state.levels or state.graphs or not any(isinstance(x, (BatchTracer, ForwardTracer)) for x in buffers)


def in_graph(t: Any) -> bool:
    """Whether a tensor is in the graph around all transforms; a leaf made inside a differentiating one is not."""
    if not t._rg_ or t._storage_.base.traced:
        return False
    root = t if t._view_ is None or t._view_.base is None else t._view_.base
    return root._node_ is not None or t._storage_.born < mode.outset


def buffer(t: Any) -> Any:
    """The buffer of an operand; a tracer for a tensor that requires grad outside all transforms."""
    if t._rg_ and recorded() and (state.levels or state.duals is not None) and in_graph(t):
        return strided_access.write(_blank(t), t._layout_, t._offset_, lift(t))
    x = t._storage_.buffer
    if t._rg_ and x.__class__ is ReverseTracer and state.levels and state.levels[-1].interpreter is not x.interpreter:
        root = t if t._view_ is None or t._view_.base is None else t._view_.base
        layout = root._layout_
        if (
            layout.contiguous
            and layout.whole
            and layout.base.shape == layout.size
            and layout.dtype is layout.base.dtype
        ):
            record_edge(root, x)
    return _outlived(x) if isinstance(x, Tracer) and not x.interpreter.alive else x


def _blank(t: Any) -> Any:
    """A buffer of zeros for the elements that a tensor does not cover; None if it covers all.

    Elements of an expanded tensor share places, so counting elements is not enough.
    """
    base = t._layout_.base
    covers = t._layout_.whole and base.numel == t._layout_.numel and base.dtype is t._layout_.dtype
    return None if covers else zeros(ArrayType(base.shape, base.dtype.numpy))


def _outlived(x: Any) -> Any:
    """The value of a tracer that outlived its transform.

    Raises:
        RuntimeError: for a tracer of a ``vmap``.
    """
    while isinstance(x, (ForwardTracer, ReverseTracer)) and not x.interpreter.alive:
        x = x.underlying()
    if isinstance(x, BatchTracer) and not x.interpreter.alive:
        raise RuntimeError(_ESCAPED)
    return x


def check_alive(storage: UntypedStorage) -> None:
    """Checks that memory can still be read.

    Raises:
        RuntimeError: if a ``vmap`` that has returned batches it.
    """
    _outlived(storage.buffer)


_ESCAPED = (
    "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
    "https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in "
    "`gen_vmap_plumbing` Please file an issue if it looks like the latter"
)


def through(interpreter: Interpreter | None) -> None:
    """Makes the interpreter bind operations outside itself, where they are recorded in a graph of tensors."""
    if isinstance(interpreter, Reverse):
        interpreter.outside = bind
