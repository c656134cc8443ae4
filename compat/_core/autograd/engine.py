"""The backward pass: a loop over nodes, the latest made first.

Nodes carry the number at which they were made, and an operand's node is always older than its user's; still, the order
alone does not suffice (leaves come first as soon as they are ready), so each node waits until all its users have run.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from compat._core.autograd.anomaly_mode import check, explain
from compat._core.autograd.graph_cache import Marks, sweep
from compat._core.autograd.node import AccumulateGrad, Edge, Hooks, Node, added
from compat._core.autograd.saved_variable import hooks as saved_hooks
from compat._core.tensor.tensor import Tensor, autograd_of
from compat._core.transforms.grad_mode import mode
from funcgrad import runtime

Grads = list[Tensor | None]
#: What a profiler calls a node that runs, besides its name.
_EVALUATE = "autograd::engine::evaluate_function: "
#: So many passes may be inside of one another before the next one gets a thread.
DEEPEST = 30


class _Task:
    """One backward pass.

    Attributes:
        waiting: per node, how many of its users have not run yet.
        arrived: per node, the gradients of its outputs gathered so far.
        wanted: the nodes to run or to pass through; None for all that can be reached.
        captures: per node, pairs of an output number and where its gradient goes in ``captured``.
        runs: whether a captured node itself is to run (it is if others lie behind it).
        marks: records the running node, if hooks or anomaly mode need it.
        roots: where it begins.
        given: the gradients that it begins with.
        callbacks: functions to call at its end.
        number: tells it from others.
        particular: the leaves' nodes that expect other gradients than operations give.
    """

    _numbers = itertools.count()

    def __init__(self, keep_graph: bool, marks: Marks | None = None):
        self.keep_graph = keep_graph
        self.marks = marks
        self.waiting: dict[Node, int] = {}
        self.arrived: dict[Node, Grads] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.wanted: set[Node] | None = None
        self.captures: dict[Node, list[tuple[int, int]]] = {}
        self.captured: Grads = []
        self._ticket = 0
        self.roots: list[Node] = []
        self.given: Sequence[Tensor | None] = ()
        self.callbacks: list[Callable[[], Any]] = []
        self.number = next(_Task._numbers)
        self.particular: set[Node] = set()

    # ---------------------------------------------------------------- before

    def explore(self, roots: Sequence[Node]) -> list[Node]:
        """Counts each node's users among what can be reached; returns the nodes, users first."""
        waiting = self.waiting
        waiting.update(dict.fromkeys(roots, 0))
        seen = set(roots)
        stack = list(dict.fromkeys(roots))
        found = []
        while stack:
            node = stack.pop()
            found.append(node)
            for following, _ in node._edges:
                if following is not None:
                    waiting[following] = waiting.get(following, 0) + 1
                    if following not in seen:
                        seen.add(following)
                        stack.append(following)
        self.particular = {node for node in found if isinstance(node, AccumulateGrad) and node.particular}
        return found

    def fitting(self, edges: Sequence[Edge], grads: Sequence[Tensor | None], where: str) -> Sequence[Tensor | None]:
        """Gradients in the sizes and dtypes that leaves expect which are not their own: no operation knows of those.

        Raises:
            RuntimeError: where one does not fit; it begins with ``where``.
        """
        fitted = list(grads)
        for i, ((node, _), grad) in enumerate(zip(edges, grads)):
            if grad is not None and node in self.particular:
                make_error = lambda what, i=i: RuntimeError(f"{where} invalid gradient at index {i} - {what}".lstrip())
                fitted[i] = node.fitted(0, grad, make_error)
        return fitted

    def restrict(self, nodes: Sequence[Node], inputs: Sequence[Edge], accumulate: bool) -> None:
        """Wants only nodes on the way to ``inputs``; captures the gradients there, or accumulates them."""
        self.captured = [None] * len(inputs)
        targets: set[Node] = set()
        for place, (node, nr) in enumerate(inputs):
            if node is None:
                continue
            targets.add(node)
            if not accumulate:
                self.captures.setdefault(node, []).append((nr, place))
        users: dict[Node, list[Node]] = {}
        for node in nodes:
            for following, _ in node._edges:
                if following is not None:
                    users.setdefault(following, []).append(node)
        wanted: set[Node] = set()
        stack = [u for t in targets for u in users.get(t, ())]
        while stack:
            node = stack.pop()
            if node not in wanted:
                wanted.add(node)
                stack.extend(users.get(node, ()))
        self.wanted = wanted | targets if accumulate else wanted

    def reaches(self, node: Node) -> bool:
        """Whether this pass reaches a node with a gradient."""
        if node not in self.waiting:
            return False
        return self.wanted is None or node in self.wanted or node in self.captures

    def counts(self, node: Node) -> bool:
        """The same for those that ask PyTorch's engine, which forgets the root where there is only one.

        Raises:
            RuntimeError: for a leaf's node within ``autograd.grad``, which captures the gradient before it gets there.
        """
        if self.roots == [node] or not self.reaches(node):
            return False
        if node in self.captures and not node._edges:
            raise RuntimeError(
                "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). "
                "This is currently not supported."
            )
        return True

    def hands_over(self, grad: Tensor) -> bool:
        """Whether a gradient lies in the memory of one that the pass began with, and no other node waits for it."""
        given = any(g is not None and g._storage_ is grad._storage_ for g in self.given)
        return given and not any(g is grad for grads in self.arrived.values() for g in grads)

    # ---------------------------------------------------------------- during

    def put(self, node: Node, nr: int, grad: Tensor | None) -> None:
        """A gradient arrives at one output of a node."""
        grads = self.arrived.get(node)
        if grads is None:
            grads = self.arrived[node] = []
        while len(grads) <= nr:
            grads.append(None)
        if grad is not None:
            have = grads[nr]
            if have is None:
                grads[nr] = grad
            else:
                grads[nr] = have + grad if have.__class__ is Tensor else added(have, grad)

    def push(self, node: Node) -> None:
        # Equal numbers (leaves) go in the order in which they became ready.
        self._ticket += 1
        heapq.heappush(self.ready, (-node._sequence, self._ticket, node))

    def run(self) -> None:
        waiting, wanted = self.waiting, self.wanted
        while self.ready:
            node = heapq.heappop(self.ready)[2]
            grads = self.arrived.pop(node)
            mode.node = node
            try:
                with nullcontext() if mode.observer is None else mode.observer(_EVALUATE + node.name(), grads):
                    results = self.step(node, grads)
            except Exception:
                if mode.anomaly:
                    explain(node)
                raise
            if self.particular:
                results = self.fitting(node._edges, results, f"Function {node.name()} returned an")
            for (following, nr), grad in zip(node._edges, results):
                if following is None or not (wanted is None or following in wanted or following in self.captures):
                    continue
                self.put(following, nr, grad)
                waiting[following] -= 1
                if waiting[following] == 0:
                    self.push(following)
            results, grad = (), None  # only its consumer references a gradient

    def asked(self, node: Node, results: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """A node's gradients, without those of missing edges."""
        wanted, captures = self.wanted, self.captures
        goes = [node.thorough if f is None else wanted is None or f in wanted or f in captures for f, _ in node._edges]
        return [g if to else None for g, to in zip(results, goes)]

    def step(self, node: Node, grads: Grads) -> Sequence[Tensor | None]:
        """Runs one node with its hooks."""
        hooks = node._hooks if type(node) is not AccumulateGrad else _leaf_hooks(node)
        expected = hooks is not None and bool(hooks.post)
        runs = self.wanted is None or node in self.wanted
        captures = self.captures.get(node, ())
        if captures or not runs:
            seen = list(grads)
            if not runs and hooks is not None and (captures or len(self.roots) == 1):  # of a single root always
                _call_tensor_hooks(node, hooks, seen)
            for nr, place in captures:
                self.captured[place] = seen[nr] if nr < len(seen) else None
            if not runs:
                return ()
        if hooks is None:
            if self.marks is not None:
                self.marks.add(node, grads)
            results = node.apply(grads)
        else:
            _call_tensor_hooks(node, hooks, grads)
            beside: Grads = []
            if hooks.pre or hooks.post:
                count = len(node._input_metadata)
                grads.extend([None] * (count - len(grads)))
                beside = grads[count:]  # of results that a node does not count no hook knows
                del grads[count:]
            grads = _call_pre_hooks(hooks, grads)
            results = node.apply([*grads, *beside] if beside else grads)
            if expected:
                results = _call_post_hooks(hooks, self.asked(node, results), grads)
        if node._hooks is not None and node._hooks.post and not expected:
            # Hooks added while it ran: incoming gradients are not kept for them.
            results = _call_post_hooks(node._hooks, results, [None] * len(grads))
        if mode.anomaly and mode.check_nan:
            check(node, results)
        if not self.keep_graph:
            node.release()
        return results


def run_backward(
    roots: Sequence[Edge],
    grads: Sequence[Tensor | None],
    *,
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Edge] | None = None,
    accumulate: bool = True,
) -> Grads:
    """Runs backward from ``roots`` with their gradients.

    Args:
        keep_graph: whether nodes keep what they saved.
        create_graph: whether the backward pass is itself recorded.
        inputs: where the gradients are wanted; None for all leaves.
        accumulate: whether those are added to ``grad`` rather than returned.

    Returns:
        The gradients at ``inputs``, None where none arrived.
    """
    if mode.depth >= DEEPEST:
        again = partial(run_backward, roots, grads, keep_graph=keep_graph, create_graph=create_graph, inputs=inputs)
        return _elsewhere(partial(again, accumulate=accumulate))
    if inputs is None and not create_graph and mode.observer is None and not mode.watched and mode.lays_out:
        swept = lambda marks: _run(_Task(keep_graph, marks), roots, grads, create_graph, None, accumulate)
        sweep(roots, grads, keep_graph, swept)
        runtime.backward_done()
        return []
    task = _Task(keep_graph)
    _run(task, roots, grads, create_graph, inputs, accumulate)
    return task.captured


def _run(
    task: _Task,
    roots: Sequence[Edge],
    grads: Sequence[Tensor | None],
    create_graph: bool,
    inputs: Sequence[Edge] | None,
    accumulate: bool,
) -> None:
    task.given = grads
    task.roots = nodes = [node for node, _ in roots if node is not None]
    found = task.explore(nodes)
    if inputs is not None:
        task.restrict(found, inputs, accumulate)
    for (node, nr), grad in zip(roots, task.fitting(roots, grads, "")):
        if node is not None:
            task.put(node, nr, grad)
    for node in dict.fromkeys(nodes):
        if not task.waiting.get(node):
            task.push(node)
    before, hooks = (mode.grad, mode.node, mode.task, mode.depth), list(saved_hooks.stack)
    try:
        mode.grad, mode.node, mode.task = create_graph, None, task
        mode.depth += 1
        task.run()
        for callback in task.callbacks:  # one may add more
            callback()
    finally:
        mode.grad, mode.node, mode.task, mode.depth = before
        saved_hooks.restore(hooks)


def _elsewhere(run: Callable[[], Grads]) -> Grads:
    """Runs in a thread of its own, in the modes of this one: Python's stack is not deep enough for more."""
    modes = [(local, dict(local.__dict__)) for local in (mode, saved_hooks)]
    results: list[Grads] = []
    errors: list[BaseException] = []

    def body() -> None:
        for local, values in modes:
            local.__dict__.update(values)
        mode.depth = 0
        try:
            results.append(run())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def queue_callback(callback: Callable[[], Any]) -> None:
    """Makes the backward pass that is running call a function when it is done.

    Raises:
        RuntimeError: if none is running.
    """
    if mode.task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    mode.task.callbacks.append(callback)


# ---------------------------------------------------------------- hooks


def _leaf_hooks(node: Any) -> Hooks | None:
    """A leaf keeps its tensor hooks itself, since its node may be freed and made again."""
    meta = node.variable._autograd_state_
    if meta is None or not meta.hooks:
        return node._hooks
    hooks = node.hooks()
    hooks.tensor[0] = meta.hooks
    return hooks


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", None) or type(hook).__name__


def _call_tensor_hooks(node: Node, hooks: Hooks, grads: Grads) -> None:
    for nr, registered in hooks.tensor.items():
        if registered and nr >= len(grads):
            grads.extend([None] * (nr + 1 - len(grads)))
        for hook in list(registered.values()):
            grad = grads[nr]
            new = hook(grad)
            if new is not None:
                grads[nr] = _checked(hook, new, grad)
    for nr, ref in hooks.retains.items():
        tensor = ref()
        if tensor is not None and nr < len(grads) and grads[nr] is not None:
            _retain(tensor, grads[nr])


def _checked(hook: Any, new: Any, old: Tensor | None) -> Tensor:
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if old is not None and new.shape != old.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    if old is not None and new.dtype is not old.dtype:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value (was {old.type()} got {new.type()})")
    return new


def _retain(tensor: Tensor, grad: Any) -> None:
    meta = autograd_of(tensor)
    if meta.grad is None:
        meta.grad = grad if mode.grad else grad.clone()
    else:
        meta.grad = meta.grad + grad


def _call_pre_hooks(hooks: Hooks, grads: Grads) -> Grads:
    for hook in list(hooks.pre.values()):
        new = hook(tuple(grads))
        if new is not None:
            new = new if isinstance(new, tuple) else (new,)
            grads = _all_checked(hook, new, grads)
    return grads


def _call_post_hooks(hooks: Hooks, results: Sequence[Tensor | None], grads: Grads) -> Sequence[Tensor | None]:
    for hook in list(hooks.post.values()):
        new = hook(tuple(results), tuple(grads))
        if new is not None:
            if isinstance(new, Tensor):
                new = (new,)
            if not isinstance(new, tuple):
                raise TypeError(f"expected tuple, but hook returned '{type(new).__name__}'")
            results = _all_checked(hook, new, results)
    return results


def _all_checked(hook: Any, new: tuple, old: Sequence[Tensor | None]) -> Grads:
    if len(new) != len(old):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(new)}, but expected {len(old)})"
        )
    return [None if n is None else _checked(hook, n, o) for n, o in zip(new, old)]


__all__ = ["run_backward"]
