"""What the transforms of this thread trace, and checks for operations that ``vmap`` does not support.

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
    """The value below all transforms: under ``vmap`` the values of all batch elements."""
    while isinstance(x, TRACED):
        x = wrapped(x)
    return x


def followers(x: Any) -> list[Level]:
    """The transforms of ``torch.func`` that follow a value, innermost first."""
    found: list[Level] = []
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
OWN.add("compat")


def check_constant(x: Any, asked: str, frame: FrameType) -> None:
    """Whether a number may be taken out of a value. In what ``torch.func`` and duals differentiate it may, as in
    PyTorch; in what funcgrad's own transforms do it would cut the derivative in silence.

    Raises:
        DerivativeLostError: if so.
    """
    if isinstance(x, Tracer):
        known = {id(entered.interpreter) for entered in state.levels}
        tracing.check_constant(x, asked, frame, lambda interpreter: id(interpreter) not in known, TORCH)


def check_memory(t: Any, storage: bool = False) -> None:
    """Whether a tensor has memory of its own to look at, which no transform follows.

    Args:
        storage: whether its storage is requested.

    Raises:
        NotImplementedError: if it has not, for a storage.
        RuntimeError: else.
    """
    found = followers(t._storage_.buffer) if state.levels and t._storage_.base.traced else []
    if found and storage:
        kind = "BatchedTensorImpl" if found[0].kind == "vmap" else "TensorWrapper"
        raise NotImplementedError(f"Cannot access storage of {kind}")
    if found:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def check_out(name: str, tensors: Sequence[Any]) -> None:
    """Whether an operation may write its result into a given tensor, which would lose its derivative.

    Args:
        name: the operation.
        tensors: its operands and results.

    Raises:
        RuntimeError: where one is differentiated in reverse mode.
        NotImplementedError: where one is differentiated in forward mode.
    """
    kinds = [[entered.kind for entered in followers(t._storage_.buffer)] for t in tensors if t._storage_.base.traced]
    if mode.grad and any("grad" in found for found in kinds):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if any("jvp" in found for found in kinds):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )


def mapping() -> bool:
    """Whether a ``vmap`` runs."""
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
    """The array that is traced.

    Args:
        asked: the operation that needs it: "item()", "bool()", "its values".

    Raises:
        RuntimeError: under ``vmap``.
        ConcretizationError: where there are no values, as under ``jit``.
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
    """Whether an operation may count elements of a tensor, to give a result of that size.

    Raises:
        RuntimeError: under ``vmap``, for a batched number.
        NotImplementedError: on the meta device, where there is nothing to count.
    """
    if not t._storage_.base.traced:
        return
    check_values(name, t)
    if maps(t._storage_.buffer):
        raise RuntimeError(_COUNTED_BY.get(name, _COUNTED).format(name))


def shown(x: Any) -> bool:
    """Whether what is traced has values to show."""
    try:
        concrete(x, "its values")
    except (RuntimeError, ConcretizationError):
        return False
    return True


def note_write(name: str, storage: Any, new: Any, view: bool = False) -> None:
    """Notes that memory gets a new buffer, which is traced.

    Args:
        view: whether it is written through a view.

    Raises:
        RuntimeError: where unbatched memory would have to hold a value that a ``vmap`` batches, and for recorded writes
            into what is differentiated by.
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
    """The content of memory after a write: where it was batched before, it stays batched."""
    return new if set(maps(old)) <= set(maps(new)) else per_batch_element(runtime.ready(old), runtime.ready(new))


def check_write(name: str, old: Any, new: Any) -> None:
    """Raises where unbatched memory would have to hold a value that a ``vmap`` batches.

    Raises:
        RuntimeError: if so.
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
        RuntimeError: if one of them does not want any.
    """
    entered_maps = [entered for entered in state.levels if entered.kind == "vmap"]
    if any(entered.randomness == "error" for entered in entered_maps):
        raise explained(RuntimeError(_RANDOM_GRADIENTS if state.graphs else _RANDOM), "vmap-randomness")
    return [entered.interpreter for entered in entered_maps if entered.randomness == "different"]


def spread(over: Sequence[Batching], x: Any) -> Any:
    """An array with leading axes for some ``vmap``s, outermost first, as a tracer that they batch."""
    for interpreter in over:
        x = BatchTracer(interpreter, x, 0)
    return x
