"""Conversion between tensors, on which users' functions work, and arrays and tracers, on which interpreters work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compat._core.memory import strided_access
from compat._core.memory.meta import Unknown
from compat._core.memory.strides import contiguous_layout
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.tensor import Tensor, from_buffer, refresh
from compat._core.transforms import level_stack, vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype
from compat._core.types.device import META, device_of
from funcgrad import runtime
from funcgrad.core.tracing import Interpreter, JaxArray, Tracer, type_of


class TensorTracer(Tracer):
    """The tracer of a tensor that requires grad inside transforms: operations on it are recorded in its graph."""

    __slots__ = ("tensor",)

    def __init__(self, interpreter: Interpreter, tensor: Tensor):
        self.interpreter = interpreter
        self.type = type_of(elements(tensor))
        self.tensor = tensor

    def underlying(self) -> Any:
        return elements(self.tensor)


def elements(t: Tensor) -> Any:
    """A tensor's elements as an array or tracer, without its graph."""
    if t._view_ is not None:
        refresh(t)
    return strided_access.read(runtime.ready(t._storage_.buffer), t._layout_, t._offset_)


def array(t: Tensor, anyway: bool = False) -> Any:
    """A tensor's elements as an array or tracer; a tensor that requires grad becomes a tracer that records in its
    graph.

    Args:
        anyway: whether that applies also while operations are not recorded.

    Raises:
        RuntimeError: for a wrapper subclass, which has no elements of its own.
    """
    if t.__class__ is not Tensor and t._overrides_operators_ and isinstance(t._storage_.buffer, Unknown):
        raise RuntimeError(
            f"A tensor of {type(t).__name__} has no elements of its own that a transform could follow; transform a "
            "function of the tensors that it holds"
        )
    if t._view_ is not None:
        refresh(t)
    if t._rg_ and (anyway or mode.grad) and level_stack.in_graph(t):
        return level_stack.lift(t)
    x = elements(t)
    if t._rg_ and level_stack.state.levels:
        level_stack.record_edge(t, x)
    return x


def tensor_of(x: Any) -> Tensor:
    """A tensor over an array or tracer."""
    x = outside(runtime.ready(x))
    if isinstance(x, TensorTracer):
        return x.tensor
    t = type_of(x)
    traced = isinstance(x, Tracer)
    inmost = vmap_checks.inmost(x) if traced else x
    where = META if isinstance(inmost, Unknown) else device_of(inmost)
    made = from_buffer(x, contiguous_layout(t.shape, dtype.from_numpy(t.dtype), traced, where))
    if traced and level_stack.state.levels:
        level_stack.mark(made, x)
    return made


#: The types of operands and results of funcgrad's functions.
ARRAYS: Any = (Tracer, JaxArray)


def tensors_in(tree: Any) -> list[Tensor]:
    """The tensors among the leaves of a tree."""
    return [t for t in tree_leaves(tree) if isinstance(t, Tensor)]


def taken(x: Any) -> Any:
    """An argument of a function of tensors: arrays and tracers become tensors, other arguments are unchanged."""
    return tensor_of(x) if x.__class__ is not Tensor and isinstance(x, ARRAYS) else x


def all_taken(args: Iterable[Any]) -> list[Any]:
    """``taken`` for arguments, and for those in lists and tuples."""
    return [type(x)(all_taken(x)) if type(x) in (list, tuple) else taken(x) for x in args]


def mixed(args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """``taken`` for positional and keyword arguments; None if no argument is an array or tracer."""
    if not any_to_take(args) and not (named and any_to_take(named.values())):
        return None
    return all_taken(args), dict(zip(named, all_taken(named.values())))


def any_to_take(args: Iterable[Any]) -> bool:
    """Whether there are arrays or tracers among arguments, or in lists and tuples."""
    for x in args:  # many functions ask before each call
        kind = x.__class__
        if kind in _PLAIN:
            continue
        if any_to_take(x) if kind is list or kind is tuple else isinstance(x, ARRAYS):
            return True
    return False


#: The most frequent classes of arguments that are neither arrays nor sequences.
_PLAIN = frozenset((Tensor, bool, int, float, str, type(None)))


def outside(x: Any) -> Any:
    """A value without the tracers of transforms that have returned."""
    while isinstance(x, Tracer) and not x.interpreter.alive:
        x = x.underlying()
    return x
