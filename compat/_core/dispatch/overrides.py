"""Calls of ``__torch_dispatch__``: of the innermost ``TorchDispatchMode``, and of the types of tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat._core.dispatch.overloads import OpOverload, aten, showing
from compat._core.memory.strides import Layout
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.registry import function, publish
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import innermost, no_handler, one_of_each_type
from compat._core.transforms.grad_mode import mode, no_grad
from funcgrad.core.caching import memoized


class _State(threading.local):
    """The dispatch state of a thread.

    Attributes:
        modes: the entered modes, the innermost last.
        below: whether ``__torch_dispatch__`` of types is disabled.
    """

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.below = False


state = _State()


class DisableTorchDispatch:
    """Context in which ``__torch_dispatch__`` of types is disabled."""

    def __enter__(self) -> None:
        self._before, state.below = state.below, True

    def __exit__(self, *_: Any) -> None:
        state.below = self._before


class NoDispatch(DisableTorchDispatch):
    """Context in which ``__torch_dispatch__`` of types and modes is disabled."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes, state.modes = state.modes, []

    def __exit__(self, *_: Any) -> None:
        super().__exit__()
        state.modes = self._modes


publish(NoDispatch, "C._DisableTorchDispatch")


@function("C._disabled_torch_dispatch_impl")
def _disabled_torch_dispatch_impl(func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
    """The ``__torch_dispatch__`` of types without overrides: the operation itself."""
    with DisableTorchDispatch():
        return func(*args, **(kwargs or {}))


class Shown(OpOverload):
    """The overload by which an undeclared operation is intercepted.

    Args:
        name: its name.
        run: its implementation.
        kernel: for a derivative, the kernel that computes it.
    """

    def __init__(self, name: str, run: Callable[..., Any], kernel: Any = None):
        super().__init__(aten.packet(name), "default")
        self.kernel = kernel
        self._run = run  # type: ignore[method-assign]


# ---------------------------------------------------------------- types


class OverriddenLayout(Layout):
    """The layout of a tensor whose type overrides operators: a copy of ``plain`` for which no plan is made."""

    __slots__ = ("plain",)
    overridden = True
    plain: Layout


@memoized("layouts of types that override operators", 4096)
def overridden_layout(layout: Layout) -> OverriddenLayout:
    """The copy of a layout with which no plan is found."""
    made = OverriddenLayout()
    made.plain = layout
    for slot in Layout.__slots__:
        if slot != "__weakref__":
            setattr(made, slot, getattr(layout, slot))
    made.whole = False  # disables shortcuts for whole buffers
    return made


def class_overrides_operators(kind: type) -> bool:
    """Whether a type defines ``__torch_dispatch__``."""
    found = getattr(kind, "__torch_dispatch__", _disabled_torch_dispatch_impl)
    return found is not _disabled_torch_dispatch_impl


def owners(values: Any) -> list[Tensor]:
    """The tensors among values whose types override operators: one for each type, subclasses before their bases."""
    if state.below:
        return []
    return one_of_each_type(
        [t for t in tree_leaves(values) if type(t) is not Tensor and isinstance(t, Tensor)], class_overrides_operators
    )


def answer(asked: Sequence[Tensor], overload: OpOverload, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The result of a call by the ``__torch_dispatch__`` of the first type that handles it.

    Args:
        asked: one tensor of each type.
        overload, args, kwargs: the intercepted call.
        call: the implementation of ``overload`` inside the handler.

    Raises:
        TypeError: if all handlers return ``NotImplemented``.
        RuntimeError: for a result that an operation cannot have.
    """
    kinds = tuple(type(t) for t in asked)
    with showing(overload, call), _below_the_graph():
        for kind in kinds:
            found = kind.__torch_dispatch__(overload, kinds, args, kwargs)  # type: ignore[attr-defined]
            if found is not NotImplemented:
                return _checked(overload, found)
    raise not_implemented(f"torch._ops.{overload}", kinds)


@contextmanager
def _below_the_graph() -> Iterator[None]:
    before, mode.above = mode.above, mode.grad
    try:
        with no_grad():
            yield
    finally:
        mode.above = before


def _checked(overload: OpOverload, found: Any) -> Any:
    """The result of a handler, if an operation can have it."""
    for leaf in tree_leaves(found):
        if isinstance(leaf, (str, dict)):
            number = overload.__name__.startswith("_local_scalar_dense")
            raise RuntimeError(f"Cannot cast {leaf} to number" if number else f"Unable to cast {leaf} to Tensor")
    return found


def not_implemented(name: str, kinds: Sequence[type], modes: Sequence[Any] = ()) -> TypeError:
    """The error if all handlers of modes and types return ``NotImplemented``."""
    return no_handler(name, "__torch_dispatch__", modes, kinds)


# ---------------------------------------------------------------- modes


@contextmanager
def around() -> Iterator[None]:
    """Context in which the innermost mode is inactive."""
    watcher = state.modes.pop()
    try:
        yield
    finally:
        state.modes.append(watcher)


@contextmanager
def unwatched() -> Iterator[None]:
    """Context in which all modes are inactive."""
    modes, state.modes = state.modes, []
    try:
        yield
    finally:
        state.modes = modes


class Declined(Exception):
    """Raised if a mode returns ``NotImplemented``, and types handle the operation."""


def answer_of_mode(overload: OpOverload, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The result of a call by the innermost mode, which is inactive meanwhile.

    Args:
        overload, args, kwargs: the intercepted call.
        call: the implementation of ``overload`` inside the mode.

    Raises:
        Declined: if the mode returns ``NotImplemented`` and the types of tensors can handle the call.
        TypeError: if there are no such tensors.
        RuntimeError: for a mode whose ``__torch_dispatch__`` is not a plain method, and for an invalid result.
    """
    kinds = tuple(type(t) for t in owners([args, kwargs]))
    with innermost(state.modes, "__torch_dispatch__") as ask, showing(overload, call):
        found = ask(overload, kinds, args, kwargs)
    if found is not NotImplemented:
        return _checked(overload, found)
    if not kinds:
        raise not_implemented(f"torch._ops.{overload}", (), state.modes[-1:])
    raise Declined


__all__ = [
    "Declined", "DisableTorchDispatch", "NoDispatch", "Shown", "answer", "answer_of_mode",
    "class_overrides_operators", "not_implemented", "overridden_layout", "owners", "state",
    "OverriddenLayout",
]  # fmt: skip
