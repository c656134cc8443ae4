"""Results of modes and types that override operators: their place in the graph.

Autograd is above such overrides: the operation is recorded on the operands without them, and the result of the override
takes the place of the recorded one, which is never computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.autograd.saved_variable import Packed, SavedResult, exchanged, hooks
from compat._core.dispatch.dispatched_duals import is_wrapper, pushing, twin
from compat._core.dispatch.dispatcher import Call
from compat._core.dispatch.overrides import DisableTorchDispatch, NoDispatch
from compat._core.pytree.trees import tree_flatten, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensors_in
from compat._core.transforms.grad_mode import mode, no_grad


def overridden(call: Call, below: Callable[[], Any], ask: Callable[[], Any]) -> Any:
    """The result of a call of an operator by an override.

    Args:
        call: the call.
        below: the call without the override.
        ask: calls the override.
    """
    wanted = bool(mode.grad) and any(t.requires_grad for t in tensors_in(call.values))
    if call.out is not None and wanted:
        with DisableTorchDispatch():
            return below()  # raises an error
    if call.inplace or call.out is not None:
        return written(call.args[0] if call.inplace else call.out, below, ask, wanted)
    view = call.operator.is_view
    return with_history(call.args, below, ask, view) if wanted or view else ask()


def written(target: Any, record: Callable[[], Any], ask: Callable[[], Any], wanted: bool) -> Any:
    """Runs an in-place operation by an override, and records it in the graph."""
    if not isinstance(target, Tensor) or target._counter_ is None:
        ask()
        return target
    storage = target._storage_
    if wanted:
        before = storage.buffer
        with NoDispatch():
            record()
        storage.buffer = before  # the override writes the tensor instead
    version = target._counter_.version + (not wanted)
    ask()
    target._counter_.version = version
    _keep(target._node_ if wanted else None, target, 0)
    return target


def with_history(given: Any, record: Callable[[], Any], ask: Callable[[], Any], view: bool = False) -> Any:
    """The result of an override, with the ``grad_fn`` of the recorded result.

    Args:
        given: the operands.
    """
    with NoDispatch():
        recorded, pack = packed_later(record)
    results = tensors_in(recorded)
    pack(kept_of(results), False)
    with no_grad():
        leaves, tree = tree_flatten(ask())
    operands = {id(t) for t in tensors_in(given)}
    places = [i for i, new in enumerate(leaves) if isinstance(new, Tensor)]
    node = node_of(results)
    for nr, (i, t) in enumerate(zip(places, results)):
        leaves[i] = twin(leaves[i]) if id(leaves[i]) in operands else leaves[i]
        _take_history(leaves[i], t, view)
        _keep(node, leaves[i], nr)
        exchange(results, t, leaves[i])
    pack(kept_of(results), True)
    return tree_unflatten(leaves, tree)


def _take_history(new: Tensor, t: Tensor, view: bool) -> None:
    """Gives a tensor the ``grad_fn`` of ``t``, and, for a view, its base."""
    alike = new._storage_ is t._storage_ or (is_wrapper(new) and is_wrapper(t))
    if view and new.shape == t.shape and alike and not pushing(new):
        new._storage_, new._layout_, new._offset_ = t._storage_, t._layout_, t._offset_
        new._counter_, new._view_ = t._counter_, t._view_
    if t._node_ is not None:
        new._rg_, new._node_, new._nr_ = True, t._node_, t._nr_


def _keep(node: Any, new: Tensor, nr: int) -> None:
    """Replaces the result ``nr`` by ``new`` among a node's saved tensors, and disables cached backward passes for
    it."""
    if node is None:
        return
    node.hooks()
    entries = getattr(node, "saved", None) or ()
    for e in entries:
        if type(e) is Packed and e.nr == nr:
            e.value = new.detach()
    if any(type(e) is SavedResult and e.nr == nr for e in entries):
        kept = Packed(new, Tensor.detach, lambda t: t, nr if new._node_ is node else None)
        node.saved = tuple([kept if type(e) is SavedResult and e.nr == nr else e for e in entries])


# ---------------------------------------------------------------- saved tensors


def node_of(made: Sequence[Tensor]) -> Any:
    """The node of results."""
    return next((t._node_ for t in made if t._node_ is not None), None)


def kept_of(made: Sequence[Tensor]) -> Sequence[Any]:
    """The saved values of the node of results."""
    return getattr(node_of(made), "saved", None) or ()


def exchange(made: Sequence[Tensor], t: Tensor, new: Tensor) -> None:
    """Replaces the nondifferentiable result ``t`` by ``new`` among the saved tensors of the results' node."""
    kept = kept_of(made)
    if any(type(e) is tuple and e[0] is t for e in kept):
        node_of(made).saved = exchanged(kept, t, new)


def packed_later(record: Callable[[], Any]) -> tuple[Any, Callable[[Sequence[Any], bool], None]]:
    """The result of ``record``, run without the active pack hooks; and a function that applies them later.

    Its arguments are a node's saved values, and whether to pack the node's own results or the operands: operands are
    packed before a mode or type is called, results after it.
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


__all__ = ["exchange", "kept_of", "overridden", "packed_later", "with_history", "written"]
