"""``torch._C`` functions about the running backward pass, nodes and hooks."""

from __future__ import annotations

import heapq
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.node import Node
from compat._core.autograd.saved_variable import SavedTensor, hooks
from compat._core.tensor.registry import function, publish
from compat._core.tensor.tensor import Tensor, autograd_of
from compat._core.transforms.grad_mode import mode, next_sequence
from compat._core.types.removable_handle import HookDict
from compat.autograd.function import Error
from compat.autograd.grad_mode import is_multithreading_enabled


@function("C._current_graph_task_id")
def current_graph_task_id() -> int:
    """The id of the running backward pass in this thread; -1 outside."""
    return -1 if mode.task is None else mode.task.number


@function("C._current_autograd_node")
def current_autograd_node() -> Any:
    """The node whose backward is running; None outside a backward pass."""
    return mode.node


@function("C._will_engine_execute_node")
def will_engine_execute_node(node: Any) -> bool:
    """Whether the running backward pass reaches a node.

    Raises:
        RuntimeError: outside a backward pass, for an argument that is not a node, and for a leaf's node within
            ``autograd.grad``, which captures the gradient before it.
    """
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    if mode.task is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    return bool(mode.task.counts(node))


@function("C._current_graph_task_execution_order")
def current_graph_task_execution_order() -> list[Any]:
    """The nodes of the running backward pass, in execution order.

    Raises:
        RuntimeError: outside a backward pass, and if it may run in several threads.
    """
    if mode.task is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    if is_multithreading_enabled():
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed with multithreading "
            "disabled, e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n...     "
            "torch.autograd.grad(...)\n"
        )
    roots = list(dict.fromkeys(mode.task.roots))
    waiting = dict.fromkeys(roots, 0)
    stack, found = list(roots), []
    for node in stack:  # grows
        for following, _ in node.next_functions:
            if following is not None:
                if following not in waiting:
                    stack.append(following)
                waiting[following] = waiting.get(following, 0) + 1
    ticket = itertools.count()
    ready = [(-n._sequence, next(ticket), n) for n in roots if not waiting[n]]
    heapq.heapify(ready)
    while ready:
        node = heapq.heappop(ready)[2]
        if mode.task.reaches(node):
            found.append(node)
        for following, _ in node.next_functions:
            if following is not None:
                waiting[following] -= 1
                if not waiting[following]:
                    heapq.heappush(ready, (-following._sequence, next(ticket), following))
    return found


@function("C._log_api_usage_once")
def log_api_usage_once(event: str) -> None:
    """Has no effect: usage is not logged."""


@function("C._get_tracing_state")
def get_tracing_state() -> Any:
    """The state of the call that ``torch.jit._get_trace_graph`` is recording; None if there is none."""
    tracing = sys.modules.get("compat.jit._tracing")
    return None if tracing is None else tracing.current()


def keep_graph() -> bool:
    """Whether the running backward pass retains saved values.

    Raises:
        RuntimeError: outside a backward pass.
    """
    if mode.task is None:
        raise RuntimeError("Accessing the current graph task's keep_graph attribute outside of a backward pass.")
    return bool(mode.task.keep_graph)


def kineto_available() -> bool:
    """Whether PyTorch's profiling library is available: False."""
    return False


def _profiler_enabled() -> bool:
    """Whether a profiler records in this thread."""
    return mode.observer is not None


def unsafe_set_version_counter(tensors: Tensor | tuple[Tensor, ...], versions: int | tuple[int, ...]) -> None:
    """Sets the version counters of tensors.

    Raises:
        RuntimeError: if the numbers of versions and tensors differ, or one is negative.
    """
    several = isinstance(tensors, (tuple, list))
    given: Any = tensors if several else (tensors,)
    numbers: Any = versions if several else (versions,)
    if len(given) != len(numbers):
        raise RuntimeError(f"tensors and versions must be of the same length, got {len(given)} and {len(numbers)}")
    for t, version in zip(given, numbers):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        t._counter_.version = version


def _all_subclasses(base: type) -> Iterator[type]:
    below: list[type] = base.__subclasses__()
    for kind in below:
        yield kind
        yield from _all_subclasses(kind)


class UndefinedGradBackward(Node):
    """The node of results without gradients."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::UndefinedGradBackward"

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        return [None] * len(grads)


def set_history(node: Node, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
    """Connects tensors to the graph as the results of a node with some operands."""
    node.next_functions = tuple(edge_of(t) for t in operands)
    node._sequence, node._hooks = next_sequence(), None
    for nr, t in enumerate(results):
        t._rg_, t._node_, t._nr_ = True, node, nr


class _Barrier(Node):
    """A function that returns aliases of its arguments as results of a new node.

    Args:
        make: a function that creates the node.
        count: the number of tensors.
    """

    def __init__(self, make: Callable[[], Node], count: int):
        self._make, self._count = make, count

    def __call__(self, *tensors: Any, **kwargs: Any) -> Any:
        if len(tensors) != self._count:
            raise TypeError(f"expected {self._count} arguments, got {len(tensors)} instead")
        results = tuple(t.detach() for t in tensors)
        set_history(self._make(), tensors, results)
        return results[0] if self._count == 1 else results


class DelayedError(_Barrier):
    """A function of ``count`` tensors, whose backward raises ``message``."""

    def __init__(self, message: str, count: int):
        super().__init__(partial(Error, message), count)


class UndefinedGrad(_Barrier):
    """A function of a tensor, whose backward discards the gradient."""

    def __init__(self) -> None:
        super().__init__(UndefinedGradBackward, 1)


class _Functions:
    """The node classes by name."""

    def __getattr__(self, name: str) -> type:
        kind: type
        for kind in _all_subclasses(Node):
            if kind.__name__ == name:
                return kind
        raise AttributeError(f"module 'torch._C._functions' has no attribute '{name}'")


publish(_Functions(), "C._functions")
publish(
    SimpleNamespace(
        SavedTensor=SavedTensor,
        _get_current_graph_task_keep_graph=keep_graph,
        _saved_tensors_hooks_is_enabled=lambda: hooks.forbidden is None,
        _saved_tensors_hooks_get_disabled_error_message=lambda: hooks.forbidden,
        _unsafe_set_version_counter=unsafe_set_version_counter,
        kineto_available=kineto_available,
        _profiler_enabled=_profiler_enabled,
    ),
    "C._autograd",
)


# ---------------------------------------------------------------- internal attributes of tensors


class _NoHooks(HookDict):
    """A value set as a tensor's hooks that is not a dictionary."""

    __slots__ = ("given",)
    given: Any


def _hooks_of(t: Tensor) -> HookDict | None:
    if t.grad_fn is None:
        return None if t._autograd_state_ is None else t._autograd_state_.hooks
    return None if t.grad_fn._hooks is None else t.grad_fn._hooks.tensor.get(t._nr_)


def _backward_hooks(t: Tensor) -> Any:
    """The hooks of a tensor by id; None if it never had one."""
    found = _hooks_of(t)
    return found.given if isinstance(found, _NoHooks) else found


def _set_backward_hooks(t: Tensor, given: Any) -> None:
    hooks = None if given is None else HookDict(given) if isinstance(given, Mapping) else _NoHooks()
    if isinstance(hooks, _NoHooks):
        hooks.given = given
    before = _hooks_of(t)
    if before:
        before.clear()  # a leaf's node may reference them
    if t.grad_fn is None:
        autograd_of(t).hooks = hooks
    elif hooks is None:
        t.grad_fn.hooks().tensor.pop(t._nr_, None)
    else:
        t.grad_fn.hooks().tensor[t._nr_] = hooks


def _refuse(message: str) -> Any:
    def refuse(t: Tensor) -> None:
        raise RuntimeError(message)

    return refuse


publish(
    property(_backward_hooks, _set_backward_hooks, _refuse("Deletion of _backwards_hooks not allowed!")),
    "Tensor._backward_hooks",
)
publish(
    property(lambda t: t.grad_fn, None, _refuse("Deletion of _grad_fn not allowed. Detach tensor instead!")),
    "Tensor._grad_fn",
)
publish(property(id, doc="A unique number of the tensor."), "Tensor._cdata")
_requires_grad: Any = Tensor.__dict__["requires_grad"]
publish(_requires_grad.deleter(_refuse("requires_grad must be a bool")), "Tensor.requires_grad")
