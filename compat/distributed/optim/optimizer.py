"""``DistributedOptimizer``: an optimizer in each worker that has some of the parameters."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.distributed.autograd import get_gradients
from compat.distributed.rpc import RRef, remote, rpc_async
from compat.futures import wait_all

__all__ = ["DistributedOptimizer"]

#: Held during a step, which sets ``grad`` of parameters that optimizers of several trainers may share.
_stepping = threading.Lock()


class _LocalOptimizer:
    """The optimizer of a worker.

    Args:
        optimizer_class: the class of the optimizer.
        parameters: references to parameters of this worker.
        args: the arguments of the class after the parameters.
        kwargs: the keyword arguments of the class.
    """

    def __init__(self, optimizer_class: type, parameters: Sequence[RRef[Tensor]], args: tuple, kwargs: dict[str, Any]):
        self._parameters = [parameter.local_value() for parameter in parameters]
        self._optimizer = optimizer_class(self._parameters, *args, **kwargs)

    def step(self, context_id: int) -> None:
        """Makes a step with the gradients of a context, without changing ``grad``."""
        found = get_gradients(context_id)
        with _stepping:
            before = [parameter.grad for parameter in self._parameters]
            try:
                for parameter in self._parameters:
                    parameter.grad = found.get(parameter)
                self._optimizer.step()
            finally:
                for parameter, grad in zip(self._parameters, before):
                    parameter.grad = grad


class DistributedOptimizer:
    """An optimizer of parameters in several workers, with gradients of ``torch.distributed.autograd``.

    Each worker that has some of the parameters gets an optimizer of these. Steps of several trainers in one worker run
    sequentially, in an undefined order.

    Args:
        optimizer_class: the class of the optimizers.
        params_rref: references to the parameters.
        args: the arguments of the optimizers after the parameters.
        kwargs: the keyword arguments of the optimizers.

    Raises:
        RuntimeError: before ``init_rpc``.
        Exception: the exception of the class in a worker.

    Example:
        >>> import tempfile, compat as torch, compat.distributed as dist
        >>> options = dist.rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> dist.rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> w = torch.ones(2, requires_grad=True)
        >>> optimizer = DistributedOptimizer(torch.optim.SGD, [dist.rpc.RRef(w)], lr=0.5)
        >>> with dist.autograd.context() as context_id:
        ...     dist.autograd.backward(context_id, [(w * w).sum()])
        ...     optimizer.step(context_id)
        >>> w
        tensor([0., 0.], requires_grad=True)
        >>> dist.rpc.shutdown()
    """

    def __init__(self, optimizer_class: type, params_rref: Iterable[RRef[Tensor]], *args: Any, **kwargs: Any):
        by_owner: dict[Any, list[RRef[Tensor]]] = {}
        for parameter in params_rref:
            by_owner.setdefault(parameter.owner(), []).append(parameter)
        self.is_functional_optim = False
        self.remote_optimizers = [
            remote(owner, _LocalOptimizer, (optimizer_class, parameters, args, kwargs))
            for owner, parameters in by_owner.items()
        ]
        wait_all([optimizer._get_future() for optimizer in self.remote_optimizers])  # raises

    def step(self, context_id: int) -> None:
        """Makes a step in each worker with its gradients in a context.

        Args:
            context_id: the id of the context, in which ``backward`` has run.

        Raises:
            RuntimeError: if the context does not exist.
        """
        wait_all([rpc_async(o.owner(), _step, (o, context_id)) for o in self.remote_optimizers])


def _step(optimizer: RRef[_LocalOptimizer], context_id: int) -> None:
    optimizer.local_value().step(context_id)
