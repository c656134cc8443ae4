"""The functions of ``torch.distributed.rpc``."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import compat.distributed.autograd.contexts as contexts
import compat.distributed.rpc.agent as agents
from compat._distributed.rendezvous import rendezvous
from compat._distributed.transport.stores import PrefixStore
from compat.distributed.rpc.agent import Agent, current
from compat.distributed.rpc.constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT
from compat.distributed.rpc.options import BackendType, RpcBackendOptions, TensorPipeRpcBackendOptions, WorkerInfo
from compat.distributed.rpc.rref import RRef, make_remote
from compat.futures import Future

__all__ = ["RRef", "get_worker_info", "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown"]

_groups = itertools.count()
_NAME = re.compile(r"[A-Za-z0-9_:-]{1,127}")


def init_rpc(
    name: str, backend: BackendType | None = None, rank: int = -1, world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> None:  # fmt: skip
    """Makes this process a worker, and waits for the others.

    Args:
        name: the worker's unique name, of letters, digits, ``_``, ``:`` and ``-``.
        backend: ``BackendType.TENSORPIPE``.
        rank: this worker's rank; by default from the environment.
        world_size: the number of workers; by default from the environment.
        rpc_backend_options: a ``TensorPipeRpcBackendOptions``.

    Raises:
        RuntimeError: if RPC is initialized already, or for an invalid name.
        TypeError: for a backend or options of another type.
        ValueError: if the rank or the number of workers is missing.
        DistNetworkError: if other workers do not join.

    Example:
        >>> import tempfile, compat as torch
        >>> options = TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> get_worker_info()
        WorkerInfo(id=0, name=alone)
        >>> shutdown()
    """
    if backend is not None and not isinstance(backend, BackendType):
        raise TypeError("Argument backend must be a member of BackendType")
    if rpc_backend_options is not None and not isinstance(rpc_backend_options, RpcBackendOptions):
        raise TypeError("Argument rpc_backend_options must be an instance of RpcBackendOptions")
    if agents.is_current():
        raise RuntimeError("RPC is already initialized")
    if not isinstance(name, str):
        raise RuntimeError(f"Argument {name} must be of type {str} but got type {type(name)}")
    if not _NAME.fullmatch(name):
        raise RuntimeError(
            "Worker name must match ^[A-Za-z0-9-_:]*$ and must be shorter than 128 characters and not empty, but got "
            f"{name!r}"
        )
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    if not isinstance(options, TensorPipeRpcBackendOptions):
        raise TypeError(f"`rpc_backend_options` must be a `TensorPipeRpcBackendOptions`. {options}")
    timeout = timedelta(seconds=options.rpc_timeout) if options.rpc_timeout else timedelta(days=365)
    place = rank, -1 if world_size is None else world_size
    store, rank, size = next(rendezvous(options.init_method, *place, timeout=timeout))
    store.set_timeout(timeout)
    agent = Agent(name, rank, size, PrefixStore(f"rpc/{next(_groups)}", store), options)
    agents.install(agent)
    contexts.install(agent.contexts)
    agent.barrier()  # from here on calls may arrive


def shutdown(graceful: bool = True, timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Ends RPC in this worker.

    Args:
        graceful: whether to wait until all workers have called ``shutdown`` and all calls are done; until then this
            worker runs calls of others.
        timeout: the timeout of the wait in seconds; 0 for none.

    Raises:
        RuntimeError: before ``init_rpc``, or after the timeout.

    Example:
        >>> import tempfile
        >>> options = TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> shutdown()
    """
    agent = current()
    try:
        if graceful:
            agent.join(timeout)
    finally:
        agent.close()
        agents.install(None)
        contexts.install(None)


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """The name and the rank of a worker, by default of this one.

    Args:
        worker_name: a worker's name.

    Raises:
        RuntimeError: before ``init_rpc``, and for an unknown name.

    Example:
        >>> import tempfile
        >>> options = TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> get_worker_info("alone").id
        0
        >>> shutdown()
    """
    agent = current()
    return agent.info if worker_name is None else agent.worker(worker_name)


def rpc_sync(
    to: str | int | WorkerInfo, func: Callable[..., Any], args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None, timeout: float = UNSET_RPC_TIMEOUT,
) -> Any:  # fmt: skip
    """Calls a function in a worker, and returns its result.

    Functions and classes are sent by name, so the worker must be able to import them; other arguments and the result
    are pickled. The remote worker's copies of tensors that require gradients are leaves, except in a context of
    ``torch.distributed.autograd``.

    Args:
        to: the worker's name, rank or ``WorkerInfo``.
        func: a function.
        args: the positional arguments of the function.
        kwargs: the keyword arguments of the function.
        timeout: the timeout in seconds; 0 for none, and by default that of the options.

    Raises:
        RuntimeError: before ``init_rpc``, for an unknown worker, after the timeout, and if the worker has ended.
        TypeError: for a function that is not callable.
        Exception: the exception of the function; its text contains the worker's name and the traceback.

    Example:
        >>> import tempfile, compat as torch
        >>> options = TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> rpc_sync("alone", torch.add, args=(torch.ones(2), 3))
        tensor([4., 4.])
        >>> shutdown()
    """
    return rpc_async(to, func, args, kwargs, timeout).wait()


def rpc_async(
    to: str | int | WorkerInfo, func: Callable[..., Any], args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None, timeout: float = UNSET_RPC_TIMEOUT,
) -> Future[Any]:  # fmt: skip
    """Calls a function in a worker, and returns a ``Future`` of its result; see ``rpc_sync``.

    Raises:
        RuntimeError: before ``init_rpc``, and for an unknown worker; ``Future.wait`` raises other exceptions.
        TypeError: for a function that is not callable.

    Example:
        >>> import tempfile, compat as torch
        >>> options = TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> rpc_async("alone", max, args=(1, 2)).then(lambda done: done.wait() * 10).wait()
        20
        >>> shutdown()
    """
    agent = _agent(func)
    return agent.call(agent.worker(to).id, func, tuple(args or ()), kwargs, timeout)


def remote(
    to: str | int | WorkerInfo, func: Callable[..., Any], args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None, timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef[Any]:  # fmt: skip
    """Calls a function in a worker, and returns a reference to its result, which stays there; see ``rpc_sync``.

    It does not wait: reading the value raises an exception of the function.

    Args:
        to: the worker's name, rank or ``WorkerInfo``.
        func: a function, or a class to create an instance of.
        args: the positional arguments of the function.
        kwargs: the keyword arguments of the function.
        timeout: the timeout in seconds; 0 for none, and by default that of the options.

    Raises:
        RuntimeError: before ``init_rpc``, and for an unknown worker.
        TypeError: for a function that is not callable.

    Example:
        >>> import tempfile, compat as torch
        >>> options = TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> net = remote("alone", torch.nn.Linear, args=(2, 1))
        >>> net.rpc_sync().forward(torch.ones(3, 2)).shape
        torch.Size([3, 1])
        >>> shutdown()
    """
    agent = _agent(func)
    return make_remote(agent.worker(to).id, func, tuple(args or ()), dict(kwargs or {}), timeout)


def _agent(func: Any) -> Agent:
    """The agent for a call of a function.

    Raises:
        TypeError: for a function that is not callable.
    """
    agent = current()
    if not callable(func):
        raise TypeError("function should be callable.")
    return agent


def _require_initialized(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that raises unless RPC is initialized, as a decorator."""

    @functools.wraps(func)
    def checked(*args: Any, **kwargs: Any) -> Any:
        current()
        return func(*args, **kwargs)

    return checked
