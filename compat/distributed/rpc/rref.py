"""``RRef``: a reference to a value in a worker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

from compat.autograd import backward as local_backward
from compat.distributed.autograd.passes import backward as distributed_backward
from compat.distributed.rpc.agent import CALL, INTERNAL, Agent, current
from compat.distributed.rpc.constants import UNSET_RPC_TIMEOUT
from compat.distributed.rpc.functions import async_execution, is_async
from compat.distributed.rpc.messages import REDUCERS
from compat.distributed.rpc.options import WorkerInfo
from compat.distributed.rpc.references import Parent, Reference, RRefId
from compat.futures import Future

T = TypeVar("T")


class RRef(Generic[T]):
    """A reference to a value in a worker, its owner, which keeps it as long as a worker has a reference to it.

    The constructor makes this worker the owner of a value; ``remote`` returns references to results in other workers.
    References can be arguments and results of remote calls, also in a third worker.

    Args:
        value: the value.
        type_hint: ignored.

    Raises:
        RuntimeError: before ``init_rpc``; if it is pickled outside of RPC.

    Example:
        >>> import tempfile, compat as torch, compat.distributed.rpc as rpc
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> RRef([1, 2]).rpc_sync().index(2)
        1
        >>> rpc.remote("alone", torch.add, args=(torch.ones(2), 1)).to_here()
        tensor([2., 2.])
        >>> rpc.shutdown()
    """

    _agent: Agent
    _reference: Reference

    def __init__(self, value: T, type_hint: Any = None):
        agent = current()
        self._agent, self._reference = agent, agent.references.owned(agent.references.new_id())
        self._reference.value.set_result(value)

    @classmethod
    def _of(cls, agent: Agent, reference: Reference) -> RRef[Any]:
        """An ``RRef`` of a reference whose count includes it."""
        made = object.__new__(cls)
        made._agent, made._reference = agent, reference
        return made

    def __del__(self) -> None:
        if "_reference" in self.__dict__:
            self._agent.forget(self._reference.key)

    # ---------------------------------------------------------------- the value

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> T:
        """The value, copied from the owner; the value itself in the owner. Waits until it is computed.

        Args:
            timeout: the timeout in seconds; 0 for none.

        Raises:
            Exception: the exception of the function that computes the value.
            RuntimeError: after the timeout.
        """
        if self.is_owner():
            return self.local_value()
        created = self._reference.created
        if created is not None and created.done():
            created.wait()  # raises
        found: T = self._agent.call(
            self._reference.owner, fetch, (self._reference.id,), timeout=timeout, kind=INTERNAL
        ).wait()
        return found

    def local_value(self) -> T:
        """The value, in its owner.

        Raises:
            RuntimeError: in another worker.
        """
        if not self.is_owner():
            raise RuntimeError(
                f"For {self!r}, can't call localValue() on user {self._agent.info}. Call it on owner {self.owner()}"
            )
        found: T = self._reference.value.wait()
        return found

    def is_owner(self) -> bool:
        """Whether this worker has the value."""
        return self._reference.owner == self._agent.info.id

    def owner(self) -> WorkerInfo:
        """The worker that has the value."""
        return self._agent.workers[self._reference.owner]

    def owner_name(self) -> str:
        """The name of the worker that has the value."""
        return self.owner().name

    def confirmed_by_owner(self) -> bool:
        """Whether the owner has answered the call that computes the value."""
        return self._reference.created is None or self._reference.created.done()

    def _get_future(self) -> Future[Any]:
        """A future that is done when the owner has answered."""
        if self._reference.created is not None:
            return self._reference.created
        return self._reference.value if self.is_owner() else _completed(None)

    def _get_type(self, timeout: float = UNSET_RPC_TIMEOUT, blocking: bool = True) -> Any:
        """The type of the value; with ``blocking=False`` a future of it."""
        found = self._agent.call(self._reference.owner, type_of, (self._reference.id,), timeout=timeout, kind=INTERNAL)
        return found.wait() if blocking else found

    # ---------------------------------------------------------------- methods of the value

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """An object whose methods call those of the value in the owner, and return their results."""
        return _Proxy(lambda *args: _call(self, args, timeout).wait())

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """An object whose methods call those of the value in the owner, and return futures."""
        return _Proxy(lambda *args: _call(self, args, timeout))

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
        """An object whose methods call those of the value in the owner, and return references to their results."""
        return _Proxy(lambda *args: make_remote(self._reference.owner, call_method, (self, *args), {}, timeout))

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Runs a backward pass from the value, a scalar, in its owner.

        Args:
            dist_autograd_ctx_id: the context to accumulate gradients in; by default they are accumulated in ``grad``.
            retain_graph: whether the graph is kept.

        Raises:
            RuntimeError: if the context does not exist, or the value is not a scalar that requires gradients.
        """
        self._agent.call(
            self._reference.owner, backward_from, (self, dist_autograd_ctx_id, retain_graph), timeout=0
        ).wait()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise RuntimeError("Can not pickle rref in python pickler, rref can only be pickled when using RPC")

    def __repr__(self) -> str:
        of = self._reference
        if self.is_owner():
            return f"OwnerRRef({of.id})"
        return f"UserRRef(RRefId = {of.id}, ForkId = {of.key})"


class _Proxy:
    """An object whose methods call those of a remote value.

    Args:
        call: calls a method, given its name and arguments.
    """

    def __init__(self, call: Callable[..., Any]):
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(_method, self._call, name)


def _method(call: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    return call(name, args, kwargs)


def _call(rref: RRef[Any], args: tuple, timeout: float) -> Future[Any]:
    return rref._agent.call(rref._reference.owner, call_method, (rref, *args), timeout=timeout, kind=CALL)


def _completed(value: Any) -> Future[Any]:
    done: Future[Any] = Future()
    done.set_result(value)
    return done


def make_remote(
    to: int, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], timeout: float
) -> RRef[Any]:
    """A reference to the result of a function in a worker; see ``remote``."""
    agent = current()
    references = agent.references
    id = references.new_id()
    own = references.owned(id) if to == agent.info.id else references.child(id, to, (to, id))
    references.add(own)  # of the call
    own.created = agent.call(to, create, (id, function, args, kwargs), timeout=timeout)
    own.created.add_done_callback(lambda _: agent.forget(own.key))
    return RRef._of(agent, own)


# ---------------------------------------------------------------- called in the owner


@async_execution
def create(id: RRefId, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Future[Any]:
    """Computes the value of a reference that another worker has created."""
    value = current().references.owned(id).value
    try:
        found = function(*args, **kwargs)
    except Exception as error:
        value.set_exception(error)
        raise
    if not is_async(function):
        value.set_result(found)
        return _completed(None)
    return found.then(partial(_created, value))


def _created(value: Future[Any], done: Future[Any]) -> None:
    try:
        value.set_result(done.wait())
    except Exception as error:
        value.set_exception(error)
        raise


def fetch(id: RRefId) -> Future[Any]:
    """The value of a reference, for another worker."""
    return current().references.owned(id).value


def type_of(id: RRefId) -> Future[Any]:
    """The type of the value of a reference, for another worker."""
    return current().references.owned(id).value.then(lambda done: type(done.wait()))


@async_execution
def call_method(rref: RRef[Any], name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Calls a method of the value of a reference."""
    method = getattr(rref.local_value(), name)
    found = method(*args, **kwargs)
    return found if is_async(method) else _completed(found)


def backward_from(rref: RRef[Any], context_id: int, retain_graph: bool) -> None:
    """Runs a backward pass from the value of a reference."""
    root = rref.local_value()
    if context_id < 0:
        local_backward([root], retain_graph=retain_graph)
    else:
        distributed_backward(context_id, [root], retain_graph)


# ---------------------------------------------------------------- in messages


def _reduced(rref: RRef[Any]) -> tuple:
    of = rref._reference
    return _received, (of.id, of.owner, rref._agent.references.add(of))


def _received(id: RRefId, owner: int, parent: Parent) -> RRef[Any]:
    agent = current()
    if owner != agent.info.id:
        return RRef._of(agent, agent.references.child(id, owner, parent))
    own = agent.references.owned(id)
    agent.references.add(own)
    agent._release(parent)
    return RRef._of(agent, own)


REDUCERS[RRef] = _reduced
