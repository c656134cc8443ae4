"""Backward passes over several workers.

A pass has two phases. The first determines the nodes of each worker that will receive gradients: a worker searches the
graph from its known nodes, and informs the senders of the received tensors that it finds. The second computes
gradients: a node runs once, when it has the gradients of all its users in all workers, and does not wait for those of
outputs that the loss does not depend on. A worker answers a message with gradients when all computations that depend on
them are finished, so that the first worker is informed of the end of the pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.engine import OpenPass
from compat._core.autograd.node import Edge, Node
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat.distributed.autograd.contexts import Context, Contexts, of_process
from compat.distributed.autograd.nodes import RecvRpcBackward
from compat.futures import Future, collect_all

Key = tuple[int, int]


class Pass:
    """A process's part of a backward pass.

    Args:
        contexts: the process's contexts.
        context: the context of the pass.
        key: the key of the pass: the rank of the worker that began it, and a number.
        keep_graph: whether nodes keep their saved tensors.
    """

    def __init__(self, contexts: Contexts, context: Context, key: Key, keep_graph: bool):
        self._contexts, self._context, self._key, self._keep = contexts, context, key, keep_graph
        self._roots: dict[Node, None] = {}
        self._seen: set[Node] = set()
        self._open: OpenPass | None = None
        self._calls: list[Future[Any]] = []

    def expect(self, nodes: Sequence[Node]) -> Future[Any]:
        """Adds nodes that will receive gradients; the future is done when workers they lead to have added theirs."""
        senders: dict[int, list[int]] = {}
        with self._context.lock:
            self._roots.update(dict.fromkeys(nodes))
            for node in self._received(nodes):
                senders.setdefault(node.worker, []).append(node.number)
        arguments = self._context.id, self._key, self._keep
        return collect_all([self._contexts.call(to, expect, *arguments, numbers) for to, numbers in senders.items()])

    def _received(self, nodes: Sequence[Node]) -> list[RecvRpcBackward]:
        """The nodes of received tensors that can be reached from the given nodes, except known ones."""
        found = []
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node in self._seen:
                continue
            self._seen.add(node)
            if isinstance(node, RecvRpcBackward):
                found.append(node)
            stack.extend(following for following, _ in node._edges if following is not None)
        return found

    def run(self, roots: Sequence[Edge], grads: Sequence[Tensor]) -> Future[Any]:
        """Continues with the gradients of roots; the future is done when all dependent computations are finished."""
        context = self._context
        with context.lock:
            if self._open is None:
                self._open = OpenPass(list(self._roots), self._keep, context)
            before, context.running = context.running, self
            try:
                self._open.run(roots, grads)
            finally:
                context.running = before
            calls, self._calls = self._calls, []
        return collect_all(calls)

    def send(self, node: RecvRpcBackward, grads: Sequence[Tensor]) -> None:
        """Sends the gradients of received tensors to their sender."""
        arguments = self._context.id, self._key, node.number
        self._calls.append(self._contexts.call(node.worker, propagate, *arguments, list(grads)))


def _done(future: Future[Any]) -> None:
    future.wait()  # raises the exceptions of calls


def expect(context_id: int, key: Key, keep_graph: bool, numbers: Sequence[int]) -> Future[Any]:
    """Called by a worker that will send gradients of tensors of some messages."""
    own = of_process()
    context = own.find(context_id)
    with context.lock:
        if key not in context.passes:
            context.passes[key] = Pass(own, context, key, keep_graph)
    return context.passes[key].expect([context.sent[number] for number in numbers]).then(_done)


def propagate(context_id: int, key: Key, number: int, grads: Sequence[Tensor]) -> Future[Any]:
    """Called by a worker that sends the gradients of the tensors of a message."""
    context = of_process().find(context_id)
    node = context.sent[number]
    edges: list[Edge] = [(node, nr) for nr in range(len(grads))]
    return context.passes[key].run(edges, grads).then(_done)


def backward(context_id: int, roots: Sequence[Tensor], retain_graph: bool = False) -> None:
    """Computes the gradients of the sum of scalars with respect to leaves in all workers.

    The gradients are accumulated in the context, not in ``grad``: ``get_gradients`` returns them, and
    ``DistributedOptimizer.step`` uses them.

    Args:
        context_id: the id of the context of the forward pass.
        roots: scalars that require gradients.
        retain_graph: whether the graph is kept for another backward pass.

    Raises:
        RuntimeError: if the context does not exist, for roots that are not scalars or do not require gradients, and if
            the backward pass fails in another worker.

    Example:
        >>> import tempfile, compat as torch, compat.distributed as dist
        >>> options = dist.rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> dist.rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> x = torch.ones(2, requires_grad=True)
        >>> with dist.autograd.context() as context_id:
        ...     loss = dist.rpc.rpc_sync("alone", torch.mul, args=(x, 3)).sum()
        ...     backward(context_id, [loss])
        ...     print(dist.autograd.get_gradients(context_id)[x])
        tensor([3., 3.])
        >>> dist.rpc.shutdown()
    """
    own = of_process()
    context = own.find(context_id)
    _check(roots)
    key = own.rank, next(own.passes)
    edges = [edge_of(root) for root in roots]
    begun = context.passes[key] = Pass(own, context, key, retain_graph)
    begun.expect([node for node, _ in edges if node is not None]).wait()
    ones = names_of("torch")["ones_like"]
    begun.run(edges, [ones(root.detach()) for root in roots]).wait()


def _check(roots: Any) -> None:
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(f"{root.name or ''} is not a scalar, all roots need to be scalar")
