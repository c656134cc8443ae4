"""``fully_shard``: shards parameters, gradients and optimizer state.

The batch is sharded as well. XLA all-gathers parameters and reduce-scatters gradients, and chooses when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compat._core.pytree import trees
from compat._core.tensor.tensor import Tensor
from compat.distributed.device_mesh import DeviceMesh, init_device_mesh
from compat.distributed.tensor._api import on_mesh, place_in, redistribute, where
from compat.distributed.tensor.placement_types import Placement, Replicate, Shard
from compat.nn.modules.module import Module
from funcgrad import parallel

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of computations.

    Attributes:
        param_dtype: the dtype of parameters and arguments in the forward pass; only None is supported.
        reduce_dtype: the dtype of gradient reductions; only None is supported.
        output_dtype: the dtype of results.
        cast_forward_inputs: whether arguments are cast.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay on the devices."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters are offloaded to host memory; supported only on the CPU, where this has no effect.

    Attributes:
        pin_memory: ignored.
    """

    pin_memory: bool = True


class FSDPModule:
    """The mixin of modules sharded by ``fully_shard``; XLA decides when parameters are gathered."""

    def unshard(self, async_op: bool = False) -> None:
        """Ignored."""

    def reshard(self) -> None:
        """Ignored."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Ignored: gradients are always reduced over all devices."""

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Ignored."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Ignored."""

    def set_modules_to_forward_prefetch(self, modules: Any) -> None:
        """Ignored."""

    def set_modules_to_backward_prefetch(self, modules: Any) -> None:
        """Ignored."""


def fully_shard(
    module: Any, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),
    offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008 - has no state
    ignored_params: set[Tensor] | None = None,
) -> Any:  # fmt: skip
    """Shards a module's parameters and its batches over a mesh.

    Args:
        module: the module, or a list of modules; parameters stay the same objects. Parameters that an earlier call for
            a submodule has sharded are unchanged. Those on the device ``meta`` are sharded once ``to_empty`` gives them
            memory.
        mesh: the devices; all by default. With two axes, parameters are replicated along the first (hybrid sharding).
        reshard_after_forward: ignored.
        shard_placement_fn: returns the dimension along which a parameter is sharded. By default the first one that
            divides evenly, otherwise the first, with smaller shards on the last devices.
        mp_policy: the dtypes of computations; casting parameters is not supported.
        offload_policy: ignored.
        ignored_params: parameters that are replicated.

    Returns:
        The module, whose class is an ``FSDPModule`` as well.

    Raises:
        NotImplementedError: for an unsupported policy.

    Example:
        >>> from compat.distributed.fsdp import FSDPModule, fully_shard
        >>> net = fully_shard(torch.nn.Linear(2, 4))
        >>> net.weight.placements, isinstance(net, FSDPModule)
        ((Shard(dim=0),), True)
        >>> with torch.device("meta"):
        ...     large = torch.nn.Linear(4, 8)
        >>> fully_shard(large).to_empty(device="cpu").weight.placements
        (Shard(dim=0),)
    """
    if mp_policy.param_dtype is not None or mp_policy.reduce_dtype is not None:
        raise NotImplementedError(
            "fully_shard: mp_policy's param_dtype and reduce_dtype are not supported; use autocast"
        )
    mesh = mesh if mesh is not None else init_device_mesh("cpu", (len(parallel.devices()),))
    modules = module if isinstance(module, (list, tuple)) else [module]
    ignored = {id(p) for p in ignored_params or ()}
    for one in modules:
        for p in one.parameters():
            if not _sharded(p, mesh):
                wanted = shard_placement_fn(p) if shard_placement_fn is not None else None
                placement = Replicate() if id(p) in ignored else _placement(p, mesh, wanted)
                place_in(p, mesh, [*[Replicate()] * (mesh.ndim - 1), placement])
        for b in one.buffers():
            if where(b) is None:
                place_in(b, mesh, [Replicate()] * mesh.ndim)
        _shard_batches(one, mesh)
        one.__class__ = type(f"FSDP{type(one).__name__}", (FSDPModule, type(one)), {"__module__": type(one).__module__})
    return module


def _sharded(p: Tensor, mesh: DeviceMesh) -> bool:
    found = where(p)
    if found is None or found[0] is not mesh.root:
        return False
    return any(isinstance(found[1][mesh.root._axes.index(axis)], Shard) for axis in mesh._axes)


def _placement(p: Tensor, mesh: DeviceMesh, wanted: Shard | None) -> Placement:
    count, found = mesh.size(mesh.ndim - 1), where(p)
    if wanted is not None:
        return wanted
    taken = {d.dim: 1 for d in found[1] if isinstance(d, Shard)} if found is not None else {}
    sizes = dict(zip(mesh.root._axes, mesh.root.shape))
    for dim, size in enumerate(p.shape):
        parts = count
        if dim in taken and found is not None:
            for axis, placement in zip(mesh.root._axes, found[1]):
                parts *= sizes[axis] if placement.is_shard(dim) else 1
        if size % parts == 0:
            return Shard(dim)
    return Shard(0) if p.dim() and not taken else Replicate()


def _shard_batches(module: Module, mesh: DeviceMesh) -> None:
    """Registers a forward pre-hook that shards single-device tensors along the batch."""

    def move(x: Any) -> Any:
        if not isinstance(x, Tensor) or on_mesh(x):
            return x
        even = x.dim() > 0 and x.shape[0] % mesh.size() == 0
        return redistribute(x, mesh, [Shard(0) if even else Replicate()] * mesh.ndim)

    module.register_forward_pre_hook(lambda m, args, named: trees.tree_map(move, (args, named)), with_kwargs=True)
