"""Showing each operation to those who watch: what ``TorchDispatchMode`` rests on.

Nobody watches most of the time, and then nothing is looked at. While somebody does, the functions by which operations
are called find no plans, so that every call goes to ``miss``, which is here for as long.

An operation whose gradient is wanted is recorded first, so that its node saves its operands as always; what the mode
then gives takes the place of the result's memory. The result that was recorded is never computed, since operations are
deferred and nobody asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from compat._core.autograd.saved_variable import Packed, SavedResult, exchanged, hooks
from compat._core.dispatch.overloads import name_of, overload_of
from compat._core.dispatch.overrides import Declined, answer_of_mode, state
from compat._core.operators.declared import Declared, every
from compat._core.operators.signature import MISSING
from compat._core.operators.view_op import ViewOp
from compat._core.pytree.trees import tree_leaves
from compat._core.schema.parameter import Param
from compat._core.tensor.autograd_state import SHARED
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types.memory_format import preserve_format

#: Parameters of operations that follow from others.
_FOLLOWING = frozenset(["power"])
_watching = 0
_lock = threading.Lock()
_NOTHING: dict = {}


@function("C._watched")
@contextmanager
def watched() -> Iterator[None]:
    """Within it operations are shown to ``state.modes``."""
    global _watching
    with _lock:
        _watching += 1
        if _watching == 1:
            for declared in every():
                for function, inplace in declared.entries:
                    _hide(declared, function, inplace)
    try:
        yield
    finally:
        with _lock:
            _watching -= 1
            if _watching == 0:
                for declared in every():
                    for function, _ in declared.entries:
                        _give_back(function)


def _hide(declared: Declared, function: Any, inplace: bool) -> None:
    scope = function.__globals__
    scope["hidden"] = scope["plans"], scope["miss"]
    scope["plans"] = _NOTHING
    scope["miss"] = partial(_show, declared, function, inplace, scope["miss"])


def interpose(declared: Declared, function: Any, inplace: bool, show: Callable[..., Any]) -> None:
    """Has calls of a function made for an operation that find no plan come to ``show``, which is called as ``_show``
    is; a mode comes before it."""
    scope = function.__globals__
    if "hidden" not in scope:
        scope["miss"] = partial(show, declared, function, inplace, scope["miss"])
        return
    plans, miss = scope["hidden"]
    scope["hidden"] = plans, partial(show, declared, function, inplace, miss)
    scope["miss"] = partial(_show, declared, function, inplace, scope["hidden"][1])


def _give_back(function: Any) -> None:
    scope = function.__globals__
    if "hidden" in scope:  # what was declared meanwhile was not hidden
        scope["plans"], scope["miss"] = scope.pop("hidden")


def _show(
    declared: Declared,
    called: Any,
    inplace: bool,
    miss: Callable[..., Any],
    args: list,
    out: Any = None,
    named: Any = None,
) -> Any:
    """One call: the innermost mode says what it gives."""
    if not state.modes:
        if mode.observer is None:
            return miss(args, out, named)
        with mode.observer(f"aten::{name_of(declared.name, inplace)}", args):
            return miss(args, out, named)
    given = declared.by_name(args, named)
    overload = overload_of(declared.name, inplace, given, out is not None)
    ran: list[Any] = []
    called, shown, keywords = called_with(declared, called, args, out, named)

    def call(*args: Any, **kwargs: Any) -> Any:
        ran.append(called(*args, **kwargs))
        return ran[-1]

    ask = partial(answer_of_mode, overload, call, shown, keywords)
    record = bool(mode.grad) and any(t.requires_grad for t in _tensors([args, out]))
    try:
        if record and not (isinstance(declared, ViewOp) or inplace or out is not None):
            return _recorded(partial(miss, args, out, named), ask)
        found = ask()
    except Declined:
        return miss(args, out, named)
    # What is a view, or was written, has its history from being so: it cannot come from elsewhere.
    elsewhere = record and not {id(t) for t in _tensors(found)} <= {id(t) for t in _tensors(ran)}
    if not elsewhere:
        return found
    with around():
        return miss(args, out, named)


def _tensors(tree: Any) -> list[Tensor]:
    return [t for t in tree_leaves(tree) if isinstance(t, Tensor)]


def called_with(
    declared: Declared, called: Callable[..., Any], args: Sequence[Any], out: Any, named: Any
) -> tuple[Callable[..., Any], tuple, dict[str, Any]]:
    """What calling what is shown does, and the arguments as it is shown: without those that are as by default."""
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
    made = _tensors(result)
    kept = kept_of(made)
    pack(kept, False)
    with no_grad():
        for nr, (t, new) in enumerate(zip(made, _tensors(ask()))):
            _take(t, new, [e for e in kept if type(e) in (Packed, SavedResult) and e.nr == nr])
            exchange(made, t, t)
    pack(kept, True)
    return result


def node_of(made: Sequence[Tensor]) -> Any:
    """The node of results."""
    return next((t._node for t in made if t._node is not None), None)


def kept_of(made: Sequence[Tensor]) -> Sequence[Any]:
    """What the node of results keeps."""
    return getattr(node_of(made), "saved", None) or ()


def exchange(made: Sequence[Tensor], t: Tensor, new: Tensor) -> None:
    """Has the node of results keep ``new`` where it keeps the result ``t`` that no gradient goes through."""
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
    if new._layout is not t._layout or new._offset != t._offset:
        with unwatched():
            new = t.detach().clone().copy_(new)  # in the memory order that it has
    for holder in (t, *[e.value for e in kept if type(e) is Packed]):
        holder._storage, holder._counter, holder._view = new._storage, new._counter, SHARED
    new._view = new._view or SHARED
    for e in kept:
        if type(e) is SavedResult:
            e.storage, e.counter, e.version = new._storage, new._counter, new._counter.version


@contextmanager
def around() -> Iterator[None]:
    """Within it the innermost mode sees nothing."""
    watcher = state.modes.pop()
    try:
        yield
    finally:
        state.modes.append(watcher)


@contextmanager
def unwatched() -> Iterator[None]:
    """Within it nobody is shown anything."""
    modes, state.modes = state.modes, []
    try:
        yield
    finally:
        state.modes = modes


__all__ = ["unwatched", "watched"]
