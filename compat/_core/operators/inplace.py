"""In-place operations: checks, the write to memory, and the version.

An in-place operation runs the program of the functional one and writes the result into the tensor's strided memory.
``compat._core.autograd.rebase_history`` updates the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.autograd.forward_ad import separate
from compat._core.autograd.rebase_history import check_recorded, rebase
from compat._core.memory.exchange import exchange
from compat._core.memory.numpy_storage import Hosted, place_of
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base, overlap
from compat._core.tensor import capture_checks
from compat._core.tensor.autograd_state import LOOSE, SHARED
from compat._core.tensor.tensor import Tensor, autograd_of, sync, wrap
from compat._core.tensor.version_counter import bump_version, record_line
from compat._core.transforms import level_stack, vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import OVERLAPS_INPUT


def check_memory(t: Tensor, values: Sequence[Any]) -> None:
    """Checks that ``t`` may be written by an operation on ``values``.

    Raises:
        RuntimeError: for an inference tensor outside inference mode, and as ``check_overlaps``.
    """
    if t._counter_ is None and not mode.inference and t._view_ is not LOOSE:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    check_overlaps(t, values)


def check_overlaps(t: Tensor, values: Sequence[Any]) -> None:
    """Checks that no input overlaps partially with ``t``.

    Tensors with the conjugate or negative bit are read from a copy, so they are not checked.

    Raises:
        RuntimeError: if one overlaps.
    """
    storage = t._storage_
    if t._layout_.conj or t._layout_.neg:
        return
    for v in values:
        if v is not t and isinstance(v, Tensor) and (v._storage_ is storage or v._storage_.__class__ is Hosted):
            if not (v._layout_.conj or v._layout_.neg) and _overlap(t, v) == "partial":
                raise RuntimeError(OVERLAPS_INPUT)


def check_apart(values: Sequence[Any], target: int) -> None:
    """Checks that no other input overlaps with the target, even fully.

    Raises:
        RuntimeError: if one overlaps.
    """
    t = values[target]
    for i, v in enumerate(values):
        if i != target and isinstance(v, Tensor) and (v._storage_ is t._storage_ or v._storage_.__class__ is Hosted):
            if _overlap(t, v) in ("full", "partial"):
                raise RuntimeError(OVERLAPS_INPUT)


def _overlap(a: Tensor, b: Tensor) -> str:
    """The overlap of two tensors (``compat._core.memory.strides.overlap``)."""
    (storage, here), (other, there) = place_of(a._storage_, a._offset_), place_of(b._storage_, b._offset_)
    return overlap(a._layout_, here, b._layout_, there) if storage is other else "none"


def put(t: Tensor, buffer: Any, traced: bool, name: str = "") -> None:
    """Replaces the buffer of a tensor's storage, and bumps the version.

    Args:
        name: the operation's name, for messages.
    """
    if traced:
        separate(t)
    storage = t._storage_
    if traced:
        vmap_checks.note_write(name, storage, buffer, t._is_view())
        buffer = level_stack.rewritten(storage.buffer, vmap_checks.of_each(storage.buffer, buffer))
    storage.write(buffer)
    if traced and not storage.base.traced:
        storage.base = Base(storage.base.shape, storage.base.dtype, True)
    bump_version(t)


def replace(t: Tensor, read: Any, new: Any) -> bool:
    """Replaces the buffer of a tensor's storage by the result of an operation, and bumps the version, unless another
    thread has replaced it since it was read; returns whether it did."""
    storage, counter = t._storage_, t._counter_
    done = exchange(storage, read, new, counter)
    if done:
        if mode.anomaly and counter is not None:
            record_line(counter)
        return True
    if done is None and storage.replace(read, new, t._layout_, t._offset_):
        bump_version(t)
        return True
    return False


def _write(plan: Any, t: Tensor, values: Sequence[Any]) -> None:
    """Runs the program of a plan that writes into ``t``, and writes its result."""
    if plan.traced:
        put(t, plan.forward(*plan.arguments(values))[0], True, plan.kernel.name)
        regenerate_layout(t)
        return
    while True:
        buffers, numbers = plan.arguments(values)
        if replace(t, buffers[plan.written], plan.forward(buffers, numbers)[0]):
            return


def run_into(plan: Any, values: Sequence[Any]) -> Tensor:
    """Runs a plan that writes into one of its inputs; returns that input."""
    t = values[plan.target]
    if t._storage_.born < mode.since:
        capture_checks.refuse(t, plan.kernel.name, dict(zip(plan.kernel.inputs, values)))
    if plan.node is not None:
        check_recorded(t)
    check_memory(t, values)
    if plan.node is None:
        _write(plan, t, values)
        return t
    kept, old = values, None
    if plan.keeps(plan.target):
        kept = list(values)
        kept[plan.target] = old = _snapshot(t)
    node = plan.make_node(kept)
    if old is not None and old._rg_:
        old._node_, old._nr_ = old.clone()._node_, 0  # PyTorch saves a clone, with its node
    _write(plan, t, values)
    if plan.derivative.saved_results:
        plan.keep_results(node, [t])
    rebase(t, node, 0)
    return t


def regenerate_layout(t: Tensor) -> None:
    """Updates the tensor's layout to its storage's new base."""
    if t._view_ is None:
        t._view_ = SHARED
    sync(t)


def _snapshot(t: Tensor) -> Tensor:
    """A tensor with the value before a write, over the old buffer, which is immutable."""
    old = wrap(UntypedStorage(t._storage_.buffer, t._storage_.base), t._layout_, t._offset_)
    old._rg_, old._node_, old._nr_ = t._rg_, t._node_, t._nr_
    return old


def become(t: Tensor, view: Tensor) -> Tensor:
    """Turns ``t`` into a view of itself, as ``unsqueeze_`` does; returns it.

    As in PyTorch, ``retain_grad`` and hooks registered before still refer to the gradient of the old tensor.
    """
    if view._node_ is not None:
        check_recorded(t)
    check_memory(t, ())
    t._layout_, t._offset_ = view._layout_, view._offset_
    if view._node_ is not None:
        if t._node_ is not None and t._node_._hooks is not None and t._nr_ in t._node_._hooks.tensor:
            autograd_of(t).hooks = t._node_._hooks.tensor[t._nr_]
        t._rg_, t._node_, t._nr_ = True, view._node_, view._nr_
    bump_version(t)
    if t._counter_ is not None:
        if view._node_ is not None and t._view_ is not None and t._view_.base is not None:
            t._view_.version = t._counter_.version
    return t
