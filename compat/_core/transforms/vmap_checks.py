"""The values that transforms trace, and checks for operations that ``vmap`` does not support.

Under ``vmap`` no single value can be read, no size may depend on values, and unbatched memory cannot hold a batched
value.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

from compat._core.memory.meta import Unknown, check_values, refused
from compat._core.transforms.grad_mode import mode
from compat._core.transforms.identities import per_batch_element
from compat._core.transforms.level_stack import DetachedStorage, Level, state
from compat._core.types.errors import dual_out, recorded_out
from funcgrad import runtime
from funcgrad.core import tracing
from funcgrad.core.callers import OWN, Api
from funcgrad.core.errors import ConcretizationError, explained
from funcgrad.core.tracing import Tracer
from funcgrad.interpreters.batching import Batching, BatchTracer
from funcgrad.interpreters.forward import ForwardTracer
from funcgrad.interpreters.reverse import ReverseTracer

TRACED = (BatchTracer, ForwardTracer, ReverseTracer)


def wrapped(x: Any) -> Any:
    """The value that the tracer of a transform wraps; under ``vmap`` the values of all batch elements."""
    return x.primal if isinstance(x, ForwardTracer) else x.value


def maps(x: Any) -> list[Batching]:
    """The ``vmap``s that batch a value, innermost first."""
    found: list[Batching] = []
    while isinstance(x, TRACED):
        if isinstance(x, BatchTracer):
            found.append(x.interpreter)
        x = wrapped(x)
    return found


def inmost(x: Any) -> Any:
    """The value below all transforms; under ``vmap`` the values of all batch elements."""
    while isinstance(x, TRACED):
        x = wrapped(x)
    return x


def followers(x: Any) -> list[Level]:
    """The transforms of ``torch.func`` that trace a value, innermost first."""
    found: list[Level] = []
    if not state.levels:
        return found
    while isinstance(x, TRACED):
        found += [entered for entered in state.levels if entered.interpreter is x.interpreter]
        x = wrapped(x)
    return found


TORCH = Api(
    {"torch": "compat", "torch.special": "compat.special", "torch.linalg": "compat.linalg"},
    "x.detach()",
    "Join tensors with torch.stack, or write to a tensor",
    "The tensor works like a number as it is, also in the functions of torch",
)
OWN.update(("compat", "torch"))


def check_constant(x: Any, asked: str, frame: FrameType) -> None:
    """Checks that a value may be converted to a Python number, which has no derivative.

    It may inside ``torch.func`` and forward-mode levels, as in PyTorch, but not inside funcgrad's own transforms.

    Raises:
        DerivativeLostError: if a transform of funcgrad differentiates the value.
    """
    if isinstance(x, Tracer):
        known = {id(entered.interpreter) for entered in state.levels}
        tracing.check_constant(x, asked, frame, lambda interpreter: id(interpreter) not in known, TORCH)


def check_memory(t: Any, storage: bool = False) -> None:
    """Checks that no transform traces a tensor's memory, so that it has an address.

    Args:
        storage: whether its storage is requested.

    Raises:
        NotImplementedError: for the storage of a traced tensor.
        RuntimeError: for its address.
    """
    found = followers(t._storage_.buffer) if state.levels and t._storage_.base.traced else []
    if found and storage:
        kind = "BatchedTensorImpl" if found[0].kind == "vmap" else "TensorWrapper"
        raise NotImplementedError(f"Cannot access storage of {kind}")
    if found:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def check_out(name: str, tensors: Sequence[Any]) -> None:
    """Checks a call with ``out=``, which would lose the derivative of the result.

    Args:
        name: the operation.
        tensors: its operands and results.

    Raises:
        RuntimeError: if one is differentiated in reverse mode.
        NotImplementedError: if one is differentiated in forward mode.
    """
    kinds = [[entered.kind for entered in followers(t._storage_.buffer)] for t in tensors if t._storage_.base.traced]
    if mode.grad and any("grad" in found for found in kinds):
        raise recorded_out(name)
    if any("jvp" in found for found in kinds):
        raise dual_out(name)


def mapping() -> bool:
    """Whether a ``vmap`` is active."""
    return any(entered.kind == "vmap" for entered in state.levels)


_ASKED = {
    "item()": "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
    "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere inside "
    "PyTorch internals, please file a bug report.",
    "bool()": "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
    "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues .",
    "its values": "Cannot access data pointer of Tensor that doesn't have storage",
}


def concrete(x: Any, asked: str) -> Any:
    """The concrete array behind a value.

    Args:
        asked: the operation that needs it: "item()", "bool()", "its values".

    Raises:
        RuntimeError: under ``vmap``.
        ConcretizationError: if there are no values, as under ``jit``.
    """
    if maps(x):
        hint = "Choose between elements with torch.where; for a number of each, return it from the function."
        raise explained(RuntimeError(_ASKED[asked]), "branch-in-vmap", hint)
    if isinstance(inmost(x), Unknown):
        raise refused(asked)
    return runtime.ready(x._concrete(asked) if isinstance(x, Tracer) else x)


_COUNTED = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{0}. "
    "Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
)
_COUNTED_BY = {
    "index": "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
    "indexing with a boolean mask.",
    "masked_select": "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this "
    "because for each batch this would return a differently shaped Tensor. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues if you need this feature.",
}


def check_counted(name: str, t: Any) -> None:
    """Checks an operation whose result size depends on the values of a tensor.

    Raises:
        RuntimeError: under ``vmap``, for a batched tensor.
        NotImplementedError: on the meta device.
    """
    if not t._storage_.base.traced:
        return
    check_values(name, t)
    if maps(t._storage_.buffer):
        raise RuntimeError(_COUNTED_BY.get(name, _COUNTED).format(name))


def shown(x: Any) -> bool:
    """Whether a value has concrete elements, so that it can be printed."""
    try:
        concrete(x, "its values")
    except (RuntimeError, ConcretizationError):
        return False
    return True


def note_write(name: str, storage: Any, new: Any, view: bool = False) -> None:
    """Checks and records a write of a traced buffer into memory.

    Args:
        view: whether it is written through a view.

    Raises:
        RuntimeError: for a batched value into unbatched memory, and for recorded writes into a tensor to differentiate
            with respect to.
    """
    if mode.grad and any(storage is leaf for entered in state.levels for leaf in entered.leaves):
        leaf = "a view of a leaf" if view else "a leaf"
        raise RuntimeError(f"{leaf} Variable that requires grad is being used in an in-place operation.")
    if state.levels:
        check_write(name, storage.buffer, new)
        while isinstance(storage, DetachedStorage):
            storage = storage.under
        state.levels[-1].written.append(storage)


def of_each(old: Any, new: Any) -> Any:
    """The contents of memory after a write: batched memory stays batched."""
    return new if set(maps(old)) <= set(maps(new)) else per_batch_element(runtime.ready(old), runtime.ready(new))


def check_write(name: str, old: Any, new: Any) -> None:
    """Checks a write under ``vmap``.

    Raises:
        RuntimeError: for a batched value into unbatched memory.
    """
    if not mapping():
        return
    before, after = maps(old), maps(new)
    extra = set(after) - set(before)
    if not extra:
        return
    level = max(number for number, entered in enumerate(state.levels, 1) if entered.interpreter in extra)
    what = f"{name.rstrip('_')}_"
    raise RuntimeError(
        f"vmap: {what}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
        "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over "
        f"at level {level}. Please try to use out-of-place operators instead of {what}."
    )


_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)

#: The same, where autograd's own functions map backward passes.
_RANDOM_GRADIENTS = (
    "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations outside of "
    "vmap as a workaround"
)


def drawing() -> list[Batching]:
    """The ``vmap``s that draw different random numbers for each batch element, outermost first.

    Raises:
        RuntimeError: if the ``randomness`` of a ``vmap`` is "error".
    """
    if not state.levels:
        return []
    entered_maps = [entered for entered in state.levels if entered.kind == "vmap"]
    if any(entered.randomness == "error" for entered in entered_maps):
        raise explained(RuntimeError(_RANDOM_GRADIENTS if state.graphs else _RANDOM), "vmap-randomness")
    return [entered.interpreter for entered in entered_maps if entered.randomness == "different"]


def spread(over: Sequence[Batching], x: Any) -> Any:
    """The batched tracer of an array whose leading axes are those of ``vmap``s, outermost first."""
    for interpreter in over:
        x = BatchTracer(interpreter, x, 0)
    return x
