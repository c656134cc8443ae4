"""Who is asked what an operation gives: the innermost ``TorchDispatchMode``, then the types of its tensors."""

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
    """What a thread is within.

    Attributes:
        modes: the modes entered, the innermost last.
        below: whether tensors of types with a say are taken as they are.
    """

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.below = False


state = _State()


class DisableTorchDispatch:
    """Context in which types are not asked what operations do."""

    def __enter__(self) -> None:
        self._before, state.below = state.below, True

    def __exit__(self, *_: Any) -> None:
        state.below = self._before


class NoDispatch(DisableTorchDispatch):
    """Context in which neither types nor modes are asked what operations do."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes, state.modes = state.modes, []

    def __exit__(self, *_: Any) -> None:
        super().__exit__()
        state.modes = self._modes


publish(NoDispatch, "C._DisableTorchDispatch")


@function("C._disabled_torch_dispatch_impl")
def _disabled_torch_dispatch_impl(func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
    """The ``__torch_dispatch__`` of tensors that override nothing: the operation itself."""
    with DisableTorchDispatch():
        return func(*args, **(kwargs or {}))


class Shown(OpOverload):
    """The intercepted form of an undeclared operation.

    Args:
        name: what it is called.
        run: what it does.
    """

    def __init__(self, name: str, run: Callable[..., Any]):
        super().__init__(aten.packet(name), "default")
        self._run = run  # type: ignore[method-assign]


# ---------------------------------------------------------------- types


class OverriddenLayout(Layout):
    """The layout of a tensor whose type overrides operators: as another one, ``plain``, but no plan is made for it."""

    __slots__ = ("plain",)
    overridden = True
    plain: Layout


@memoized("layouts of types that override operators", 4096)
def overridden_layout(layout: Layout) -> OverriddenLayout:
    """A layout with which no plan is found."""
    made = OverriddenLayout()
    made.plain = layout
    for slot in Layout.__slots__:
        if slot != "__weakref__":
            setattr(made, slot, getattr(layout, slot))
    made.whole = False  # there are no short cuts through it
    return made


def has_say(kind: type) -> bool:
    """Whether a type says what operations on its tensors do."""
    found = getattr(kind, "__torch_dispatch__", _disabled_torch_dispatch_impl)
    return found is not _disabled_torch_dispatch_impl


def owners(values: Any) -> list[Tensor]:
    """The tensors among values whose types are to be asked: one for each type, subclasses before their bases."""
    if state.below:
        return []
    return one_of_each_type(
        [t for t in tree_leaves(values) if type(t) is not Tensor and isinstance(t, Tensor)], has_say
    )


def answer(asked: Sequence[Tensor], overload: OpOverload, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What the types of tensors make of a call.

    Args:
        asked: one tensor of each type.
        overload, args, kwargs: the intercepted call.
        call: what calling ``overload`` does.

    Raises:
        TypeError: if none of them knows what to do.
        RuntimeError: if what one gives is nothing that an operation could give.
    """
    kinds = tuple(type(t) for t in asked)
    with showing(overload, call), _below_the_graph():
        for kind in kinds:
            found = kind.__torch_dispatch__(overload, kinds, args, kwargs)  # type: ignore[attr-defined]
            if found is not NotImplemented:
                return _checked(overload, found)
    raise nobody_knows(f"torch._ops.{overload}", kinds)


@contextmanager
def _below_the_graph() -> Iterator[None]:
    before, mode.above = mode.above, mode.grad
    try:
        with no_grad():
            yield
    finally:
        mode.above = before


def _checked(overload: OpOverload, found: Any) -> Any:
    """What somebody gave as the result of an operation, if it can be one: tensors, numbers, nothing."""
    for leaf in tree_leaves(found):
        if isinstance(leaf, str | dict):
            number = overload.__name__.startswith("_local_scalar_dense")
            raise RuntimeError(f"Cannot cast {leaf} to number" if number else f"Unable to cast {leaf} to Tensor")
    return found


def nobody_knows(name: str, kinds: Sequence[type], modes: Sequence[Any] = ()) -> TypeError:
    """The error where no mode and no type says what an operation gives."""
    return no_handler(name, "__torch_dispatch__", modes, kinds)


# ---------------------------------------------------------------- modes


class Declined(Exception):
    """A mode left an operation to others."""


def answer_of_mode(overload: OpOverload, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What the innermost mode makes of a call; within it, the one around it is the innermost.

    Args:
        overload, args, kwargs: the intercepted call.
        call: what calling ``overload`` does.

    Raises:
        Declined: if it leaves it to the types of tensors.
        TypeError: if there are no such tensors then.
        RuntimeError: for a mode whose ``__torch_dispatch__`` is no plain method, and for what cannot be a result.
    """
    kinds = tuple(type(t) for t in owners([args, kwargs]))
    with innermost(state.modes, "__torch_dispatch__") as ask, showing(overload, call):
        found = ask(overload, kinds, args, kwargs)
    if found is not NotImplemented:
        return _checked(overload, found)
    if not kinds:
        raise nobody_knows(f"torch._ops.{overload}", (), state.modes[-1:])
    raise Declined


__all__ = [
    "Declined", "DisableTorchDispatch", "NoDispatch", "Shown", "answer", "answer_of_mode",
    "has_say", "nobody_knows", "overridden_layout", "owners", "state",
    "OverriddenLayout",
]  # fmt: skip
