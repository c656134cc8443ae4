"""The layers of the dispatcher for ``TorchDispatchMode`` and profilers.

An operation whose gradient is wanted is recorded first, so that its node saves its operands as usual; the mode's result
then replaces the storage of the recorded one, which is never computed, since operations are deferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from compat._core.autograd.saved_variable import Packed, SavedResult
from compat._core.dispatch import factory_modes
from compat._core.dispatch.dispatcher import Call, Function, add_layer, all_calls
from compat._core.dispatch.overloads import OpOverload, name_of, overload_of
from compat._core.dispatch.overrides import Declined, answer_of_mode, around, owners, state, unwatched
from compat._core.dispatch.recorded_results import exchange, kept_of, overridden, packed_later, with_history
from compat._core.schema.parameter import MISSING, Param
from compat._core.tensor.autograd_state import SHARED
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensors_in
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types.memory_format import preserve_format

#: Parameters whose values are derived from other arguments, and which overloads lack.
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
    """The profiler's layer: runs a call inside the profiler's context."""
    assert mode.observer is not None
    with mode.observer(f"aten::{name_of(call.operator.name, call.inplace)}", call.args):
        return below()


def _shown(call: Call, below: Callable[[], Any]) -> Any:
    """The layer of modes: calls the innermost one."""
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
        if owners(call.values):
            return overridden(call, below, ask)
        if record and not (call.operator.is_view or call.inplace or call.out is not None):
            return _recorded(call, below, ask)
        found = ask()
        if call.operator.is_view and owners(found):  # of tensors of plain types
            return with_history(call.args, below, lambda: found, True)
    except Declined:
        return below()
    # The history of a view or an in-place result needs the operation itself: if the mode did not run it, run it now.
    elsewhere = record and not {id(t) for t in tensors_in(found)} <= {id(t) for t in tensors_in(ran)}
    if not elsewhere:
        return found
    with around():
        return below()


def overload_called(call: Call) -> OpOverload:
    """The overload of a call."""
    given = call.operator.by_name(call.args, call.named)
    return overload_of(call.operator.name, call.inplace, given, call.out is not None)


def shown_call(call: Call) -> tuple[Callable[..., Any], tuple, dict[str, Any]]:
    """The implementation of an intercepted call, and its arguments: without those that equal their defaults."""
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
    """A call with the derived arguments, if the other arguments are unchanged."""
    same = len(args) == len(shown) and all(a is b or isinstance(a, Tensor) for a, b in zip(args, shown))
    return called(*args, **(hidden if same else {}), **kwargs)


def _is_default(p: Param, value: Any) -> bool:
    if p.required or p.starred or isinstance(value, Tensor):
        return False
    return type(value) is type(p.default) and bool(value == p.default)


# ---------------------------------------------------------------- recorded results


def _recorded(call: Call, record: Callable[[], Any], ask: Callable[[], Any]) -> Any:
    """The recorded result, over the storage of the mode's result; or that, if its type overrides operators."""
    with unwatched():
        result, pack = packed_later(record)
    made = tensors_in(result)
    kept = kept_of(made)
    pack(kept, False)
    with no_grad():
        found = ask()
        if owners(found):
            return with_history(call.args, record, lambda: found)
        for nr, (t, new) in enumerate(zip(made, tensors_in(found))):
            _take(t, new, [e for e in kept if type(e) in (Packed, SavedResult) and e.nr == nr])
            exchange(made, t, t)
    pack(kept, True)
    return result


def _take(t: Tensor, new: Tensor, kept: Sequence[Any]) -> None:
    """Moves a new result to the storage of another tensor.

    Args:
        kept: the entries of the result among its node's saved values.
    """
    if new._layout_ is not t._layout_ or new._offset_ != t._offset_:
        with unwatched():
            new = t.detach().clone().copy_(new)  # in the recorded result's memory order
    for holder in (t, *[e.value for e in kept if type(e) is Packed]):
        holder._storage_, holder._counter_, holder._view_ = new._storage_, new._counter_, SHARED
    new._view_ = new._view_ or SHARED
    for e in kept:
        if type(e) is SavedResult:
            e.storage, e.counter, e.version = new._storage_, new._counter_, new._counter_.version


__all__ = ["watched"]
