"""The engine: the backward pass as a loop over nodes.

A node is ready when all nodes that send it gradients have run. Among ready nodes the one with the greatest sequence
number runs first; leaves have the greatest of all. ``compat._core.autograd.hooks`` runs the hooks.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from compat._core.autograd.accumulate_grad import AccumulateGrad, LeafGrads, added
from compat._core.autograd.anomaly_mode import check_nan, warn_with_stack
from compat._core.autograd.graph_cache import Marks, sweep
from compat._core.autograd.hooks import Grads, hooks_of_leaf, run_post_hooks, run_pre_hooks, run_tensor_hooks
from compat._core.autograd.node import Edge, Node
from compat._core.autograd.saved_variable import hooks as saved_hooks
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from funcgrad import runtime

#: The prefix of a node's name in a profile.
_EVALUATE = "autograd::engine::evaluate_function: "
#: The number of nested backward passes in a thread; a deeper one runs in a new thread.
DEEPEST = 30


class _Task:
    """One backward pass.

    Attributes:
        waiting: per node, the number of its users that have not run yet.
        arrived: per node, the gradients of its outputs accumulated so far.
        wanted: the nodes to run; None for all reachable ones.
        captures: per node, pairs of an output number and the index of its gradient in ``captured``.
        marks: records each node before it runs (``compat._core.autograd.graph_cache``).
        roots: the nodes at which it begins.
        given: the gradients of the roots.
        callbacks: functions to call at the end.
        number: identifies the pass.
        particular: the nodes of leaves whose gradients must be converted.
        grads: accumulates the gradients of leaves; None for their ``grad``.
    """

    _numbers = itertools.count()

    def __init__(self, keep_graph: bool, marks: Marks | None = None, grads: LeafGrads | None = None):
        self.keep_graph = keep_graph
        self.grads = grads
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
        """Counts the users of each reachable node; returns the nodes in the order in which they were found."""
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
        """Gradients, converted for leaves that were resized or have a ``grad_dtype``.

        Raises:
            RuntimeError: if one cannot be converted; the message begins with ``where``.
        """
        fitted = list(grads)
        for i, ((node, _), grad) in enumerate(zip(edges, grads)):
            if grad is not None and node in self.particular:
                make_error = lambda what, i=i: RuntimeError(f"{where} invalid gradient at index {i} - {what}".lstrip())
                fitted[i] = node.fitted(0, grad, make_error)
        return fitted

    def restrict(self, nodes: Sequence[Node], inputs: Sequence[Edge], accumulate: bool) -> None:
        """Restricts the pass to nodes on paths to ``inputs``; captures the gradients there, or accumulates them."""
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
        """``_will_engine_execute_node``, which in PyTorch is False for a single root.

        Raises:
            RuntimeError: for a leaf's node inside ``autograd.grad``, which captures the gradient instead.
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
        """Whether a gradient shares the storage of a root's gradient, and no other node is going to use it."""
        given = any(g is not None and g._storage_ is grad._storage_ for g in self.given)
        return given and not any(g is grad for grads in self.arrived.values() for g in grads)

    # ---------------------------------------------------------------- during

    def put(self, node: Node, nr: int, grad: Tensor | None) -> None:
        """Accumulates a gradient for one output of a node."""
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
        # Nodes with equal numbers (leaves) run in the order in which they became ready.
        self._ticket += 1
        heapq.heappush(self.ready, (-node._sequence, self._ticket, node))

    def run(self) -> None:
        waiting, wanted = self.waiting, self.wanted
        while self.ready:
            node = heapq.heappop(self.ready)[2]
            grads = self.arrived.pop(node)
            mode.node = node
            try:
                if mode.observer is None:
                    results = self.step(node, grads)
                else:
                    with mode.observer(_EVALUATE + node.name(), grads):
                        results = self.step(node, grads)
            except Exception:
                if mode.anomaly:
                    warn_with_stack(node)
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
            results, grad = (), None  # so that only its consumer references a gradient

    def needed(self, node: Node, results: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """A node's gradients, with None for edges that are missing or not needed."""
        wanted, captures = self.wanted, self.captures
        goes = [node.thorough if f is None else wanted is None or f in wanted or f in captures for f, _ in node._edges]
        return [g if to else None for g, to in zip(results, goes)]

    def step(self, node: Node, grads: Grads) -> Sequence[Tensor | None]:
        """Runs one node with its hooks."""
        hooks = node._hooks if type(node) is not AccumulateGrad else hooks_of_leaf(node)
        expected = hooks is not None and bool(hooks.post)
        runs = self.wanted is None or node in self.wanted
        captures = self.captures.get(node, ())
        if captures or not runs:
            seen = list(grads)
            if not runs and hooks is not None and (captures or len(self.roots) == 1):  # of a single root always
                run_tensor_hooks(hooks, seen)
            for nr, place in captures:
                self.captured[place] = seen[nr] if nr < len(seen) else None
            if not runs:
                return ()
        if hooks is None:
            if self.marks is not None:
                self.marks.add(node, grads)
            results = node.apply(grads)
        else:
            run_tensor_hooks(hooks, grads)
            beside: Grads = []
            if hooks.pre or hooks.post:
                count = len(node._input_metadata)
                grads.extend([None] * (count - len(grads)))
                beside = grads[count:]  # hooks do not get the gradients of uncounted results
                del grads[count:]
            grads = run_pre_hooks(hooks, grads)
            results = node.apply([*grads, *beside] if beside else grads)
            if expected:
                results = run_post_hooks(hooks, self.needed(node, results), grads)
        if node._hooks is not None and node._hooks.post and not expected:
            # Hooks added while it ran do not get the incoming gradients.
            results = run_post_hooks(node._hooks, results, [None] * len(grads))
        if mode.anomaly and mode.check_nan:
            check_nan(node, results)
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
        keep_graph: whether nodes keep their saved tensors.
        create_graph: whether the backward pass is itself recorded.
        inputs: the edges whose gradients are computed; None for all leaves.
        accumulate: whether the gradients are added to ``grad`` rather than returned.

    Returns:
        The gradients at ``inputs``; None for those that no gradient reached.
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
    _continue(task, roots, grads, create_graph)


def _continue(task: _Task, roots: Sequence[Edge], grads: Sequence[Tensor | None], create_graph: bool) -> None:
    """Runs the nodes that are ready once gradients have arrived at some roots."""
    for (node, nr), grad in zip(roots, task.fitting(roots, grads, "")):
        if node is not None:
            task.put(node, nr, grad)
    for node in dict.fromkeys(node for node, _ in roots if node is not None):
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


class OpenPass:
    """A backward pass whose roots get their gradients at different times, such as from other processes.

    A node runs once, when the gradients of all its users are there.

    Args:
        roots: all nodes at which gradients will arrive.
        keep_graph: whether nodes keep what they saved.
        grads: where the gradients of leaves are accumulated.
    """

    def __init__(self, roots: Sequence[Node], keep_graph: bool, grads: LeafGrads):
        self._task = _Task(keep_graph, grads=grads)
        self._task.roots = list(roots)
        self._task.explore(self._task.roots)

    def run(self, roots: Sequence[Edge], grads: Sequence[Tensor | None]) -> None:
        """Continues the pass with the gradients of some roots."""
        _continue(self._task, roots, grads, False)
        self._task.callbacks = []


def _elsewhere(run: Callable[[], Grads]) -> Grads:
    """Runs a function in a new thread with the modes of this one, since Python's stack is limited."""
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
    """Registers a function to be called at the end of the running backward pass.

    Raises:
        RuntimeError: if no backward pass is running.
    """
    if mode.task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    mode.task.callbacks.append(callback)


__all__ = ["OpenPass", "run_backward"]
