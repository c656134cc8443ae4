"""``RemoteModule``: a module in another worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from compat._core.tensor.tensor import Tensor
from compat._core.types.device import device as Device
from compat.distributed.rpc import RRef, remote, rpc_sync
from compat.distributed.rpc.messages import REDUCERS
from compat.futures import Future
from compat.nn.modules.module import Module

__all__ = ["RemoteModule"]

#: The attributes of modules that a remote module supports.
_HERE = frozenset(("forward", "forward_async", "remote_parameters", "get_module_rref", "train", "eval", "training"))


def _made(module_class: type[Module], args: Sequence[Any], kwargs: Mapping[str, Any], device: str) -> Module:
    made = module_class(*args, **kwargs)
    if not isinstance(made, Module):
        raise ValueError(
            "Expect `module_cls(*args, **kwargs)` returns an instance of <class nn.Module>, "
            f"but it returns an instance of {type(made)}."
        )
    return made.to(device)


def _parameters(module: RRef[Module], recurse: bool) -> list[RRef[Tensor]]:
    return [RRef(parameter) for parameter in module.local_value().parameters(recurse)]


def _trained(module: RRef[Module], mode: bool) -> None:
    module.local_value().train(mode)


class RemoteModule(Module):
    """A module in another worker, which ``forward`` calls. Gradients need a context of distributed autograd.

    It can be an argument of remote calls, but cannot be pickled otherwise. Unsupported methods of modules, such as
    ``parameters``, raise an error; use ``get_module_rref``.

    Args:
        remote_device: the worker's name or rank, and a device of the worker, the CPU by default: ``"ps"``,
            ``"ps/cpu"``, ``"rank:1/cpu"``.
        module_cls: the class of the module.
        args: the positional arguments of the class.
        kwargs: the keyword arguments of the class.

    Raises:
        ValueError: for an invalid ``remote_device``, and a class whose instances are not modules.
        RuntimeError: before ``init_rpc``, and for an unknown worker.

    Example:
        >>> import tempfile, compat as torch, compat.distributed.rpc as rpc
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mkdtemp()}/store")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> net = RemoteModule("alone", torch.nn.Linear, args=(2, 1))
        >>> net(torch.ones(3, 2)).shape, len(net.remote_parameters())
        (torch.Size([3, 1]), 2)
        >>> rpc.shutdown()
    """

    def __init__(
        self, remote_device: str, module_cls: type[Module], args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None, _module_interface_cls: Any = None,
    ):  # fmt: skip
        super().__init__()
        self.on, self.device = _place(remote_device)
        self.module_rref = remote(self.on, _made, (module_cls, tuple(args or ()), dict(kwargs or {}), self.device))
        self.module_rref._get_future().wait()  # raises

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module, and returns its result."""
        return self.module_rref.rpc_sync().__call__(*args, **kwargs)

    def forward_async(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """Calls the module, and returns a ``Future`` of its result."""
        found: Future[Any] = self.module_rref.rpc_async().__call__(*args, **kwargs)
        return found

    def remote_parameters(self, recurse: bool = True) -> list[RRef[Tensor]]:
        """References to the module's parameters, for a ``DistributedOptimizer``.

        Args:
            recurse: whether to include the parameters of submodules.
        """
        found: list[RRef[Tensor]] = rpc_sync(self.on, _parameters, (self.module_rref, recurse))
        return found

    def get_module_rref(self) -> RRef[Module]:
        """A reference to the module."""
        return self.module_rref

    def train(self, mode: bool = True) -> Any:
        """Sets the training mode of the module."""
        rpc_sync(self.on, _trained, (self.module_rref, mode))
        self.training = mode
        return self

    def __getstate__(self) -> NoReturn:
        raise RuntimeError(
            "Cannot pickle RemoteModule in python pickler. RemoteModule can only be pickled when using RPC"
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.__getstate__()


def _unsupported(name: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(f"Method ``{name}`` not supported for RemoteModule")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises ``ValueError``: the module is in another worker."
    return refuse


for _name in [name for name, value in vars(Module).items() if callable(value) and not name.startswith("_")]:
    if _name not in _HERE:
        setattr(RemoteModule, _name, _unsupported(_name))


def _place(remote_device: Any) -> tuple[str | int, str]:
    """The worker, by its name or its rank, and the device.

    Raises:
        ValueError: for an invalid text.
    """
    if not isinstance(remote_device, str) or not remote_device or remote_device.count("/") > 1:
        raise ValueError(f"Could not parse remote_device: {remote_device}. The valid format is '<workername>/<device>'")
    name, _, device = remote_device.partition("/")
    Device(device or "cpu")
    return int(name[5:]) if name.startswith("rank:") and name[5:].isdigit() else name, device or "cpu"


def _reduced(module: RemoteModule) -> tuple:
    return _received, (type(module), module.on, module.device, module.module_rref, module.training)


def _received(kind: type[RemoteModule], on: str | int, device: str, rref: RRef[Module], training: bool) -> RemoteModule:
    made = object.__new__(kind)
    Module.__init__(made)
    made.on, made.device, made.module_rref, made.training = on, device, rref, training
    return made


REDUCERS[RemoteModule] = _reduced
