"""``DistributedDataParallel``: data parallelism over processes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat._core.pytree import trees
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types.device import available
from compat._core.types.device import device as Device
from compat._distributed import collectives, objects
from compat._distributed.groups import chosen_group
from compat.nn.modules.module import Module
from compat.nn.parallel._reducer import GradBucket, Reducer

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over processes, each of which has a part of the batch.

    Parameters and buffers are initialized from rank 0. Each backward pass averages gradients bucket by bucket while it
    continues; after it, ``grad`` contains the averages.

    Args:
        module: the module, with the same parameters in all processes, on devices of one type.
        device_ids: a list of the one accelerator that the module is on, to which arguments of the module are moved.
            With None or an empty list they are not moved.
        output_device: ignored.
        dim: ignored.
        broadcast_buffers: whether buffers are broadcast from rank 0 before each forward pass; True by default.
        init_sync: whether the constructor broadcasts parameters and buffers from rank 0.
        process_group: the process group; all processes by default.
        bucket_cap_mb: the approximate bucket size in MiB; 25 by default.
        find_unused_parameters: whether a forward pass may leave parameters unused; the graph of its results is
            searched.
        check_reduction: ignored.
        gradient_as_bucket_view: whether gradients are views of buckets, instead of copies.
        static_graph: whether each pass uses the same parameters; like ``find_unused_parameters`` here.
        forward_sync_buffers: as ``broadcast_buffers``.

    Attributes:
        module: the module, whose names in ``state_dict()`` have the prefix ``module.``.

    Raises:
        ValueError: without a process group, for parameters on devices of several types, and for ``device_ids`` of a
            module on the CPU or on several devices.
        RuntimeError: if no parameter requires gradients, or processes have different parameters; or, from ``forward``,
            if the last backward pass did not compute the gradients of all parameters.

    Example:
        >>> import compat as torch, compat.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> net = DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> net(torch.ones(3, 2)).sum().backward()
        >>> net.module.bias.grad
        tensor([3.])
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False,
        delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None, mixed_precision: Any = None,
        device_mesh: Any = None, forward_sync_buffers: bool | None = None,
    ):  # fmt: skip
        super().__init__()
        if device_mesh is not None:
            process_group = device_mesh.get_group(0)
        self.process_group = chosen_group(process_group)
        unsupported = {
            "mixed_precision": mixed_precision, "param_to_hook_all_reduce": param_to_hook_all_reduce,
            "delay_all_reduce_named_params": delay_all_reduce_named_params,
        }  # fmt: skip
        for name, value in unsupported.items():
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not supported, got {value!r}")
        ignored: set[str] = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore = ignored
        kept = [(name, p) for name, p in module.named_parameters() if name not in ignored]
        trained = [(name, p) for name, p in kept if p.requires_grad]
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self.module, self.dim, self.device = module, dim, kept[0][1].device
        self.device_type, self.device_ids, self.output_device = _placed([p for _, p in kept], device_ids, output_device)
        self.broadcast_buffers = next((b for b in (forward_sync_buffers, broadcast_buffers) if b is not None), True)
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * 1024 * 1024)
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._verify(kept)
        self.modules_buffers = [b for name, b in module.named_buffers() if name not in ignored]
        if init_sync:
            self._broadcast([p for _, p in kept] + self.modules_buffers)
        self.reducer = self._reducer(trained)

    def _reducer(self, trained: Sequence[tuple[str, Tensor]]) -> Reducer:
        searched = self.find_unused_parameters or self.static_graph
        cap = self.bucket_bytes_cap
        return Reducer(trained, self.process_group, cap, searched, self.gradient_as_bucket_view)

    def _verify(self, params: Sequence[tuple[str, Tensor]]) -> None:
        """Checks that all processes have the same parameters."""
        gathered: list[Any] = [None] * self.process_group.size()
        local = [(name, tuple(p.shape), str(p.dtype), p.requires_grad) for name, p in params]
        objects.all_gather_object(gathered, local, self.process_group)
        rank = self.process_group.rank()
        for other, remote in enumerate(gathered):
            if len(remote) != len(local):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {rank} has {len(local)} params, while rank "
                    f"{other} has inconsistent {len(remote)} params."
                )
            for i, (a, b) in enumerate(zip(local, remote)):
                if a != b:
                    raise RuntimeError(
                        f"[{rank}]: params[{i}] in this process with sizes {list(a[1])} appears not to match sizes of "
                        f"the same param in process {other}: {a} there is {b}."
                    )

    def _broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Broadcasts tensors from rank 0."""
        works = [
            collectives.broadcast(t.detach(), group=self.process_group, group_src=0, async_op=True) for t in tensors
        ]
        for work in works:
            if work is not None:
                work.wait()

    # ---------------------------------------------------------------- calls

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Calls the module, and prepares the reducer if gradients are recorded."""
        differentiates = mode.grad and self.require_backward_grad_sync
        if differentiates:
            self.reducer.check_finished()
        if self.require_forward_param_sync and self.broadcast_buffers and self.modules_buffers:
            with no_grad():
                self._broadcast(self.modules_buffers)
        if self.device_ids is not None:
            inputs, kwargs = _moved((inputs, kwargs), Device(self.device_type, self.device_ids[0]))
        outputs = self.module(*inputs, **kwargs)
        self.reducer.enabled = self.require_backward_grad_sync
        if differentiates:
            self.require_forward_param_sync = True
            self.reducer.prepare(outputs)
        else:
            self.require_forward_param_sync = self.require_backward_grad_sync
        return outputs

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context in which gradients are accumulated locally; the next backward pass outside averages the sums.

        Example:
            >>> import compat as torch, compat.distributed as dist
            >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
            >>> net = DistributedDataParallel(torch.nn.Linear(2, 1))
            >>> with net.no_sync():
            ...     net(torch.ones(3, 2)).sum().backward()
            >>> net(torch.ones(3, 2)).sum().backward()
            >>> net.module.bias.grad
            tensor([6.])
            >>> dist.destroy_process_group()
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: object, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Registers a communication hook, which replaces the averaging of each bucket.

        Args:
            state: the first argument of the hook.
            hook: called with ``state`` and a ``GradBucket``; returns a ``Future`` of the tensor that replaces the
                bucket's buffer.

        Raises:
            TypeError: for a hook that is not callable.
            RuntimeError: if there is one already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook, self.reducer.state = hook, state

    def _set_static_graph(self) -> None:
        self.static_graph = self.reducer.find_unused = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Facts about the module and its settings, by PyTorch's names; whether the graph is static is not examined."""
        return {
            "module_name": type(self.module).__name__, "world_size": self.process_group.size(),
            "rank": self.process_group.rank(), "broadcast_buffers": int(self.broadcast_buffers),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view), "bucket_cap_bytes": self.bucket_bytes_cap,
        }  # fmt: skip

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Sequence[str]
    ) -> None:
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def __getstate__(self) -> dict[str, Any]:
        state = copy.copy(self.__dict__)
        for name in ("process_group", "reducer"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = chosen_group(None)
        ignored = self.parameters_to_ignore
        self.reducer = self._reducer(
            [(n, p) for n, p in self.module.named_parameters() if p.requires_grad and n not in ignored]
        )


def _placed(
    params: Sequence[Tensor], device_ids: Sequence[Any] | None, output_device: Any
) -> tuple[str, list[int] | None, int | None]:
    """The type of a module's devices, and ``device_ids`` and ``output_device`` as numbers; None unless tensors move.

    Raises:
        ValueError: for indices that do not match the devices of the parameters.
    """
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    devices = {p.device for p in params}
    kinds = {device.type for device in devices}
    if len(kinds) != 1:
        raise ValueError(
            "DistributedDataParallel's input module must be on the same type of devices, but input module "
            f"parameters locate in {kinds}."
        )
    (kind,) = kinds
    if not device_ids or kind == "cpu" or len(devices) > 1:
        if device_ids or output_device:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/"
                f"multiple-device GPU modules or CPU modules, but got device_ids {device_ids}, output_device "
                f"{output_device}, and module parameters {devices}."
            )
        return kind, None, None
    numbers = [d if isinstance(d, int) else available(d).index or 0 for d in (device_ids[0], output_device or 0)]
    return kind, numbers[:1], numbers[0] if output_device is None else numbers[1]


def _moved(values: Any, device: Device) -> Any:
    return trees.tree_map(lambda x: x.to(device) if isinstance(x, Tensor) else x, values)
