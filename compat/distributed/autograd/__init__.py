"""``torch.distributed.autograd``: gradients of computations that consist of remote calls.

Within a ``context`` remote calls record, in both workers, that tensors that require gradients were sent. ``backward``
follows the graph through all workers.
"""

from __future__ import annotations

from compat._core.tensor.tensor import Tensor
from compat.distributed.autograd.contexts import Context, of_process
from compat.distributed.autograd.passes import backward

__all__ = ["backward", "context", "get_gradients", "is_available"]

DistAutogradContext = Context


def is_available() -> bool:
    """Whether distributed autograd is available: True."""
    return True


class context:
    """Context of a forward pass over several workers and its backward passes; its value is the context's id.

    When it ends, all workers delete their records of it.

    Raises:
        RuntimeError: before ``init_rpc``, and inside another context of the same thread.

    Example:
        >>> import tempfile, compat as torch, compat.distributed as dist
        >>> options = dist.rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> dist.rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> x = torch.ones((), requires_grad=True)
        >>> with context() as context_id:
        ...     dist.autograd.backward(context_id, [x * 2])
        ...     dist.autograd.get_gradients(context_id)
        {tensor(1., requires_grad=True): tensor(2.)}
        >>> dist.rpc.shutdown()
    """

    def __enter__(self) -> int:
        self._contexts = of_process()
        self._context = self._contexts.begin()
        return self._context.id

    def __exit__(self, *exc: object) -> None:
        self._contexts.end(self._context)


def get_gradients(context_id: int) -> dict[Tensor, Tensor]:
    """The gradients that backward passes of a context have accumulated in this worker, by leaf.

    Raises:
        RuntimeError: if the context does not exist.

    Example:
        >>> import tempfile, compat.distributed as dist
        >>> options = dist.rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> dist.rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> with dist.autograd.context() as context_id:
        ...     get_gradients(context_id)
        {}
        >>> dist.rpc.shutdown()
    """
    found = of_process().find(context_id)
    with found.lock:
        return dict(found.gradients)
