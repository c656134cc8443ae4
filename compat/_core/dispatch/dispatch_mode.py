"""The layers of the dispatcher for modes and profilers: what ``TorchDispatchMode`` rests on.

An operation whose gradient is wanted is recorded first, so that its node saves its operands as always; what the mode
then gives takes the place of the result's memory. The result that was recorded is never computed, since operations are
deferred and not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from compat._core.autograd.saved_variable import Packed, SavedResult, exchanged, hooks
from compat._core.dispatch import factory_modes
from compat._core.dispatch.dispatcher import Call, Function, add_layer, all_calls
from compat._core.dispatch.overloads import OpOverload, name_of, overload_of
from compat._core.dispatch.overrides import Declined, answer_of_mode, state
from compat._core.schema.parameter import MISSING, Param
from compat._core.tensor.autograd_state import SHARED
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensors_in
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types.memory_format import preserve_format

#: Parameters of operations that follow from others.
_FOLLOWING = frozenset(["power"])


@contextmanager
def watched() -> Iterator[None]:
    """Context in which ``state.modes`` intercept operations."""
    add_layer("profiler", _noting, _noted)
    add_layer("mode", lambda call: bool(state.modes), _shown)
    with all_calls():
        yield


def _noting(call: Call) -> bool:
    return mode.observer is not None and not state.modes and not isinstance(call.operator, Function)


def _noted(call: Call, below: Callable[[], Any]) -> Any:
    """The layer of a profiler: a call within the context that it makes for it."""
    assert mode.observer is not None
    with mode.observer(f"aten::{name_of(call.operator.name, call.inplace)}", call.args):
        return below()


def _shown(call: Call, below: Callable[[], Any]) -> Any:
    """The layer of modes: the innermost one says what a call gives."""
    if isinstance(call.operator, Function):
        return factory_modes.shown(call, below)
    ran: list[Any] = []
    called, shown, keywords = shown_call(call)

    def run(*args: Any, **kwargs: Any) -> Any:
        ran.append(called(*args, **kwargs))
        return ran[-1]

    ask = partial(answer_of_mode, overload_called(call), run, shown, keywords)
    record = bool(mode.grad) and any(t.requires_grad for t in tensors_in([call.args, call.out]))
    try:
        if record and not (call.operator.is_view or call.inplace or call.out is not None):
            return _recorded(below, ask)
        found = ask()
    except Declined:
        return below()
    # What is a view, or was written, has its history from being so: it cannot come from elsewhere.
    elsewhere = record and not {id(t) for t in tensors_in(found)} <= {id(t) for t in tensors_in(ran)}
    if not elsewhere:
        return found
    with around():
        return below()


def overload_called(call: Call) -> OpOverload:
    """The overload that a call is of."""
    given = call.operator.by_name(call.args, call.named)
    return overload_of(call.operator.name, call.inplace, given, call.out is not None)


def shown_call(call: Call) -> tuple[Callable[..., Any], tuple, dict[str, Any]]:
    """What calling what is shown does, and the arguments as it is shown: without those that are as by default."""
    declared, called, args, out, named = call.operator, call.function, call.args, call.out, call.named
    positional: list[Any] = []
    keywords: dict[str, Any] = dict(named or {})
    hidden: dict[str, Any] = {}
    for p, a in zip(declared.params, args):
        if a is MISSING or (p.name == "memory_format" and a is preserve_format):
            continue
        if p.name in _FOLLOWING:
            hidden[p.name] = a
        elif not p.keyword:
            dims = p.kind == "dims" and isinstance(a, int)
            positional.append([a] if dims else list(a) if p.starred or isinstance(a, tuple) else a)
        elif p.required or a is not p.default:
            keywords[p.name] = a
    own = [p for p in declared.params if not p.keyword and p.name not in _FOLLOWING]
    while positional and _is_default(own[len(positional) - 1], positional[-1]):
        positional.pop()
    if out is not None:
        keywords["out"] = out
    given = tuple(positional)
    return partial(_completed, called, given, hidden) if hidden else called, given, keywords


def _completed(called: Callable[..., Any], shown: tuple, hidden: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """A call with what follows from other arguments, if these are as they were shown."""
    same = len(args) == len(shown) and all(a is b or isinstance(a, Tensor) for a, b in zip(args, shown))
    return called(*args, **(hidden if same else {}), **kwargs)


def _is_default(p: Param, value: Any) -> bool:
    if p.required or p.starred or isinstance(value, Tensor):
        return False
    return type(value) is type(p.default) and bool(value == p.default)


# ---------------------------------------------------------------- results with a history


def _recorded(record: Callable[[], Any], ask: Callable[[], Any]) -> Any:
    """The recorded result, over the memory of what a mode gives."""
    modes, state.modes = state.modes, []
    try:
        result, pack = packed_later(record)
    finally:
        state.modes = modes
    made = tensors_in(result)
    kept = kept_of(made)
    pack(kept, False)
    with no_grad():
        for nr, (t, new) in enumerate(zip(made, tensors_in(ask()))):
            _take(t, new, [e for e in kept if type(e) in (Packed, SavedResult) and e.nr == nr])
            exchange(made, t, t)
    pack(kept, True)
    return result


def node_of(made: Sequence[Tensor]) -> Any:
    """The node of results."""
    return next((t._node_ for t in made if t._node_ is not None), None)


def kept_of(made: Sequence[Tensor]) -> Sequence[Any]:
    """What the node of results keeps."""
    return getattr(node_of(made), "saved", None) or ()


def exchange(made: Sequence[Tensor], t: Tensor, new: Tensor) -> None:
    """Makes the node of results keep ``new`` where it keeps the result ``t`` that no gradient goes through."""
    kept = kept_of(made)
    if any(type(e) is tuple and e[0] is t for e in kept):
        node_of(made).saved = exchanged(kept, t, new)


def packed_later(record: Callable[[], Any]) -> tuple[Any, Callable[[Sequence[Any], bool], None]]:
    """What ``record`` gives, made without the hooks in force that pack what nodes keep, and what packs it.

    That takes what a node keeps, and whether its own results among it are meant: operands are packed before anybody is
    asked, results after.
    """
    pair = hooks.stack[-1] if hooks.stack else None
    if pair is None:
        return record(), lambda kept, results: None
    hooks.push((lambda t: t, pair[1]))
    try:
        result = record()
    finally:
        hooks.pop()
    return result, lambda kept, results: _pack(
        pair[0], [e for e in kept if type(e) is Packed and (e.nr is not None) == results]
    )


def _pack(pack: Callable[[Tensor], Any], entries: Sequence[Packed]) -> None:
    with no_grad():
        for e in entries:
            e.value = pack(e.value)


def _take(t: Tensor, new: Tensor, kept: Sequence[Any]) -> None:
    """Puts a fresh result over the memory of another tensor.

    Args:
        kept: what its node keeps of it.
    """
    if new._layout_ is not t._layout_ or new._offset_ != t._offset_:
        with unwatched():
            new = t.detach().clone().copy_(new)  # in the memory order that it has
    for holder in (t, *[e.value for e in kept if type(e) is Packed]):
        holder._storage_, holder._counter_, holder._view_ = new._storage_, new._counter_, SHARED
    new._view_ = new._view_ or SHARED
    for e in kept:
        if type(e) is SavedResult:
            e.storage, e.counter, e.version = new._storage_, new._counter_, new._counter_.version


@contextmanager
def around() -> Iterator[None]:
    """Context in which the innermost mode sees nothing."""
    watcher = state.modes.pop()
    try:
        yield
    finally:
        state.modes.append(watcher)


@contextmanager
def unwatched() -> Iterator[None]:
    """Context in which nobody is shown anything."""
    modes, state.modes = state.modes, []
    try:
        yield
    finally:
        state.modes = modes


__all__ = ["unwatched", "watched"]
