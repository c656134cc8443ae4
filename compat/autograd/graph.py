"""``torch.autograd.graph``: nodes and edges, and hooks on them and on saved tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from compat._core.autograd import node as _node
from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.node import GradientEdge
from compat._core.autograd.saved_variable import hooks
from compat._core.tensor.tensor import Tensor, wrap
from compat._core.tensor.version_counter import bump_version
from compat._core.transforms.grad_mode import mode as _mode
from compat._core.types.removable_handle import RemovableHandle
from funcgrad.runtime import capturing


class _NodeMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _node.Node)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, _node.Node)


class Node(metaclass=_NodeMeta):
    """The base class of all nodes; for ``isinstance`` and annotations.

    Example:
        >>> import compat as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> isinstance((x * 3).grad_fn, torch.autograd.graph.Node)
        True
    """

    __module__ = "compat.autograd.graph"

    name, metadata, next_functions = _node.Node.name, _node.Node.metadata, vars(_node.Node)["next_functions"]
    register_hook, register_prehook = _node.Node.register_hook, _node.Node.register_prehook
    _register_hook_dict, _sequence_nr = _node.Node._register_hook_dict, _node.Node._sequence_nr
    _input_metadata = _node.Node._input_metadata


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor; ``backward`` and ``grad`` accept it instead of the tensor.

    Raises:
        RuntimeError: if the tensor does not require grad.

    Example:
        >>> import compat as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> edge = torch.autograd.graph.get_gradient_edge(x)
        >>> torch.autograd.grad((x * 3).sum(), edge)
        (tensor([3., 3.]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    tensor.grad_fn  # noqa: B018 - updates that of a view
    node, nr = edge_of(tensor)
    assert node is not None
    return GradientEdge(node, nr)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Increments the version of one or several tensors, as an in-place change does.

    Raises:
        RuntimeError: for an argument that is neither a tensor nor an iterable of tensors.
    """
    if not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    tensors = (tensor,) if isinstance(tensor, Tensor) else tuple(tensor)
    if not all(isinstance(t, Tensor) for t in tensors):
        raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
    for t in tensors:
        bump_version(t)


# ---------------------------------------------------------------- saved tensors


class saved_tensors_hooks:
    """Context in which nodes save ``pack_hook(tensor)``, which ``unpack_hook`` converts back to the tensor.

    Example:
        >>> import compat as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
        ...     y = x.detach() * x
        >>> y.sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    __module__ = "compat.autograd.graph"

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        pair = (self.pack_hook, self.unpack_hook)
        if not all(map(callable, pair)):
            raise TypeError(
                "_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\n"
                f"Invoked with: {', '.join(map(repr, pair))}"
            )
        hooks.push(pair)

    def __exit__(self, *exc: object) -> None:
        hooks.pop()


class save_on_cpu(saved_tensors_hooks):
    """Hooks that leave saved tensors as they are, as PyTorch's do for tensors on the CPU."""

    __module__ = "compat.autograd.graph"

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda t: t, lambda t: t)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context in which using hooks on saved tensors raises ``error_message``.

    Raises:
        RuntimeError: if hooks are set already.
    """
    if hooks.stack:
        raise RuntimeError(error_message)
    before = hooks.forbidden
    hooks.forbidden = error_message
    try:
        yield
    finally:
        hooks.forbidden = before


class _SavedCopy:
    """The value of a saved tensor before in-place changes, which replace a storage's immutable buffer."""

    __slots__ = ("storage", "buffer", "base", "layout", "offset", "version", "__weakref__")

    def __init__(self, t: Tensor):
        self.storage = t._storage_
        self.buffer, self.base = t._storage_.buffer, t._storage_.base
        self.layout, self.offset, self.version = t._layout_, t._offset_, t._version

    def tensor(self) -> Tensor:
        return wrap(type(self.storage)(self.buffer, self.base), self.layout, self.offset)


class _AllowMutationOnSavedContext(saved_tensors_hooks):
    """Hooks that preserve the values of saved tensors through in-place changes.

    Attributes:
        cloned: the values of saved tensors that have changed.
        tid_to_weakhandle: the saved values, by storage, version, layout and storage offset.
    """

    active = False

    def __init__(self) -> None:
        super().__init__(self._keep, self._restore)
        self._alive = True
        self.tid_to_weakhandle: weakref.WeakValueDictionary[tuple[int, int, Any, int], _SavedCopy]
        self.tid_to_weakhandle = weakref.WeakValueDictionary()

    def _keep(self, t: Tensor) -> _SavedCopy:
        key = (id(t._storage_), t._version, t._layout_, t._offset_)
        found = self.tid_to_weakhandle.get(key)
        if found is None:
            found = self.tid_to_weakhandle[key] = _SavedCopy(t)
        return found

    def _restore(self, kept: _SavedCopy) -> Tensor:
        if not self._alive:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded."
            )
        return kept.tensor()

    @property
    def cloned(self) -> Mapping[_SavedCopy, Tensor]:
        return {k: k.tensor() for k in self.tid_to_weakhandle.values() if k.storage.buffer is not k.buffer}

    def clear(self) -> None:
        """Releases all saved values."""
        self.tid_to_weakhandle.clear()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Context in which saved tensors may be changed in place; backward uses the values that they had when saved.

    Raises:
        RuntimeError: if such contexts are nested.

    Example:
        >>> import compat as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.clone()
        ...     out = (y**2).sum()
        ...     y.sin_()
        ...     out.backward()
        tensor([0.8415, 0.8415], grad_fn=<SinBackward0>)
        >>> x.grad
        tensor([2., 2.])
    """
    if _AllowMutationOnSavedContext.active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    _AllowMutationOnSavedContext.active = True
    try:
        with context:
            yield context
    finally:
        context.clear()
        context._alive = False
        _AllowMutationOnSavedContext.active = False


def region_activation_memory_budget(budget: float) -> AbstractContextManager[None]:
    """Context with a memory budget for activations in a compiled function.

    The budget has no effect: XLA decides which activations are stored when it compiles the step.

    Args:
        budget: between 0, for the least memory, and 1.

    Raises:
        TypeError: for an argument that is not a number.
        ValueError: for a number outside ``[0, 1]``.
        RuntimeError: outside ``torch.compile``.
    """
    where = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{where}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{where}: must be in [0, 1], got {budget}")
    if not capturing():
        raise RuntimeError(f"{where} can only be used inside a torch.compile region; it has no effect in eager mode.")
    return nullcontext()


# ---------------------------------------------------------------- streams of devices


def _check_flag(enabled: bool) -> None:
    if not isinstance(enabled, bool):
        raise RuntimeError(f"enabled must be a bool, but got {type(enabled).__name__}")


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Checks its argument; without effect, since there is only one stream.

    Raises:
        RuntimeError: for an argument that is not a bool.
    """
    _check_flag(enabled)


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Checks its argument; without effect, since there are no captured CUDA graphs.

    Raises:
        RuntimeError: for an argument that is not a bool.
    """
    _check_flag(enabled)


# ---------------------------------------------------------------- hooks on several tensors


class _MultiHandle(RemovableHandle):
    """A handle that removes several hooks."""

    def __init__(self, handles: tuple[RemovableHandle, ...]):
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Calls ``fn`` once in each backward pass that computes gradients of the tensors.

    Args:
        tensors: the tensors.
        fn: a function of a list of their gradients, with None for tensors that the pass does not reach; or, with
            ``mode="any"``, of one gradient.
        mode: ``"all"`` to call it when all gradients are computed, ``"any"`` to call it with the first one.

    Raises:
        ValueError: for another mode.

    Example:
        >>> import compat as torch
        >>> a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> handle = torch.autograd.graph.register_multi_grad_hook([a, b], print)
        >>> (2 * a + 3 * b).backward()
        [tensor([2.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        seen: set[int] = set()

        def first(grad: Tensor) -> None:
            number = _mode.task.number
            if number not in seen:
                seen.add(number)  # not only the last one, since backward passes can be nested
                fn(grad)

        return _MultiHandle(tuple(t.register_hook(first) for t in tensors if t.requires_grad))
    nodes = [edge_of(t)[0] if t.requires_grad else None for t in tensors]
    if any(n is None for n in nodes):
        raise AssertionError("Expected gradient function to be set")
    #: By pass: the computed gradients, and the number of missing ones.
    passes: dict[int, tuple[list[Tensor | None], int]] = {}

    def collect(index: int, grad: Tensor) -> None:
        task = _mode.task
        if task.number not in passes:
            passes[task.number] = [None] * len(nodes), sum(map(task.counts, nodes))
        grads, missing = passes.pop(task.number)
        grads[index] = grad
        if missing == 1:
            fn(grads)
        else:
            passes[task.number] = grads, missing - 1

    handles = (t.register_hook(partial(collect, i)) for i, t in enumerate(tensors))
    return _MultiHandle(tuple(handles))


__all__ = [
    "GradientEdge",
    "Node",
    "_AllowMutationOnSavedContext",
    "_MultiHandle",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]
