"""``DTensor``: a tensor whose buffer is divided among devices.

An array of JAX's says which device has which part of it, and XLA divides what is computed of it and exchanges what has
to be. So an operator on such tensors is the operator: a ``Tensor`` with a divided buffer goes through the same plans,
the same windows and the same backward pass, and there is no table of operators. Any tensor whose buffer lies on the
devices of a mesh is a ``DTensor``, results of operations too.

Shapes are those of the whole, as with PyTorch's. Dimensions must divide evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.memory.strides import contiguous_layout
from compat._core.operators.op import aten
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, from_buffer
from compat._core.transforms.grad_mode import mode, no_grad
from compat.distributed.device_mesh import DeviceMesh, mesh_of
from compat.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter
from funcgrad import parallel, runtime

__all__ = ["DTensor", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]


@aten("_redistribute(Tensor self, *, Any sharding) -> Tensor", node="RedistributeBackward0", names="")
def _constrained(input: Any, *, sharding: Any) -> Any:
    return parallel.with_sharding_constraint(input, sharding)


# ---------------------------------------------------------------- where a tensor is


def buffer_of(t: Tensor) -> Any:
    """The computed buffer of a tensor."""
    return runtime.ready(t._storage.buffer)


def where(t: Tensor) -> tuple[DeviceMesh, tuple[Placement, ...]] | None:
    """On which mesh a tensor lies, and how; None for one that lies on no mesh."""
    if t._layout.base.traced:
        return None
    sharding = getattr(buffer_of(t), "sharding", None)
    mesh = mesh_of(getattr(sharding, "mesh", None)) if isinstance(sharding, parallel.NamedSharding) else None
    if mesh is None:
        return None
    found: dict[str, Placement] = {}
    for dim, entry in enumerate(sharding.spec):  # type: ignore[union-attr]
        for name in (entry,) if isinstance(entry, str) else entry or ():
            found[name] = Shard(dim)
    return mesh, tuple(found.get(name, Replicate()) for name in mesh._axes)


def sharding_of(t: Any, mesh: DeviceMesh, placements: Sequence[Placement] | None, name: str) -> Any:
    """What JAX is told of a tensor that lies so on a mesh; along the other axes of a mesh's root it stays as it is.

    Raises:
        ValueError: for a dimension that is not there or cannot be divided evenly, and for ``Partial``.
    """
    placed = list(placements or [Replicate()] * mesh.ndim)
    if len(placed) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placed)}, and "
            f"device_mesh.ndim: {mesh.ndim}."
        )
    if mesh.root.of_processes:
        raise NotImplementedError(
            f"{name}: tensors in parts are on devices of one runtime of JAX. Processes have that after "
            "init_process_group('xla'); with 'gloo' they exchange tensors of their own."
        )
    known = where(t) if isinstance(t, Tensor) else None
    all_of: dict[str, Placement] = dict(zip(mesh.root._axes, known[1])) if known and known[0] is mesh.root else {}
    all_of.update(zip(mesh._axes, placed))
    shape = tuple(t.shape) if isinstance(t, Tensor) else tuple(t)
    entries: list[list[str]] = [[] for _ in shape]
    for axis in mesh.root._axes:
        placement = all_of.get(axis, Replicate())
        if isinstance(placement, Partial):
            raise ValueError(f"{name}: no tensor can be made Partial: XLA adds up within programs")
        if isinstance(placement, Shard):
            dim = placement.dim + len(shape) * (placement.dim < 0)
            if not 0 <= dim < len(shape):
                raise ValueError(
                    f"{name}: {placement} names a dimension that a tensor of size {list(shape)} does not have"
                )
            entries[dim].append(axis)
    _check_even(shape, entries, mesh, name)
    return parallel.NamedSharding(mesh.root.jax_mesh, parallel.PartitionSpec(*[tuple(e) or None for e in entries]))


def _check_even(shape: Sequence[int], entries: Sequence[Sequence[str]], mesh: DeviceMesh, name: str) -> None:
    sizes = dict(zip(mesh.root._axes, mesh.root.shape))
    for dim, axes in enumerate(entries):
        parts = 1
        for axis in axes:
            parts *= sizes[axis]
        if shape[dim] % parts:
            raise ValueError(
                f"{name}: dimension {dim} of a tensor of size {list(shape)} cannot be divided evenly "
                f"among {parts} devices"
            )


def placed(t: Tensor, sharding: Any) -> Tensor:
    """A leaf with a tensor's values, whose buffer is divided so."""
    with no_grad():
        plain = t.detach().contiguous()
        array = parallel.device_put(buffer_of(plain), None) if plain.numel() else buffer_of(plain)
    if plain._layout.access[0] != "whole" or tuple(plain._storage.base.shape) != tuple(t.shape):
        array = runtime.from_numpy(plain.numpy())
    return from_buffer(parallel.device_put(array, sharding), contiguous_layout(tuple(t.shape), t.dtype))


# ---------------------------------------------------------------- the class


class _Divided(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, t: Any) -> bool:
        return isinstance(t, Tensor) and where(t) is not None


class DTensor(Tensor, metaclass=_Divided):
    """A tensor whose buffer is divided among the devices of a mesh.

    ``distribute_tensor`` makes them, and operations on them do. ``isinstance`` looks at the buffer, and so do
    ``placements``, ``device_mesh``, ``to_local``, ``full_tensor`` and ``redistribute``, which all tensors have.

    Example:
        >>> import compat as torch
        >>> from compat.distributed.tensor import DTensor, Shard, distribute_tensor, init_device_mesh
        >>> x = distribute_tensor(torch.ones(4, 2), init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> isinstance(x, DTensor), isinstance(torch.ones(2), DTensor), x.placements
        (True, False, (Shard(dim=0),))
    """

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape: Any = None, stride: Any = None, grad_placements: Any = None,
    ) -> Tensor:  # fmt: skip
        """The tensor of which each device has ``local_tensor``: as a part, all of it, or a summand.

        Args:
            local_tensor: the same for all devices, which are this process's.
            device_mesh: the devices.
            placements: for each axis of the mesh; ``Replicate`` by default.
            run_check, shape, stride, grad_placements: change nothing.
        """
        whole = local_tensor
        left: list[Placement] = []
        for axis, placement in enumerate(placements or [Replicate()] * device_mesh.ndim):
            count = device_mesh.size(axis)
            if isinstance(placement, Shard):
                whole = names_of("torch")["cat"]([whole] * count, placement.dim)
            elif isinstance(placement, Partial):
                whole = whole * count if placement.reduce_op == "sum" else whole
                placement = Replicate()
            left.append(placement)
        return redistribute(whole, device_mesh, left)


def _known(t: Tensor, name: str) -> tuple[DeviceMesh, tuple[Placement, ...]]:
    found = where(t)
    if found is None:
        raise AttributeError(f"'Tensor' object has no attribute '{name}': it is no DTensor")
    return found


def redistribute(
    t: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The tensor, divided in another way; its gradient is divided so as well.

    Args:
        t: the tensor, in whatever way it lies.
        device_mesh: the devices; by default those that it lies on.
        placements: for each axis of the mesh.
        async_op, forward_dtype, backward_dtype: change nothing.

    Raises:
        ValueError: for what cannot be divided so.
    """
    mesh = device_mesh if device_mesh is not None else _known(t, "redistribute")[0]
    sharding = sharding_of(t, mesh, placements, "redistribute")
    if where(t) is None:  # all of it is on one device
        made = placed(t, sharding)
        if not (t.requires_grad and mode.grad):
            return made
        return _Moved.apply(t, sharding)
    return _constrained(t, sharding=sharding)


def _full_tensor(t: Tensor, *, grad_placements: Any = None) -> Tensor:
    """All of a ``DTensor``, on one device."""
    _known(t, "full_tensor")
    return _Gathered.apply(t) if t.requires_grad and mode.grad else _whole(t)


def _whole(t: Tensor) -> Tensor:
    from compat._core.tensor.tensor import array_of, from_array

    with no_grad():
        return from_array(array_of(t.detach()), t.dtype)


def _function_class() -> Any:
    from compat.autograd.function import Function

    return Function


class _Moved(_function_class()):  # type: ignore[misc]
    """Puts a tensor of one device on a mesh; its gradient comes back."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, sharding: Any) -> Tensor:
        return placed(t, sharding)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _whole(grad), None


class _Gathered(_function_class()):  # type: ignore[misc]
    """Takes a tensor from a mesh; its gradient is divided as it was."""

    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        ctx.sharding = buffer_of(t).sharding
        return _whole(t)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return (placed(grad, ctx.sharding),)


def _to_local(t: Tensor, *, grad_placements: Any = None) -> Tensor:
    """The part of a ``DTensor`` that the first device has."""
    mesh, placements = _known(t, "to_local")
    part = t
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard):
            size = t.shape[placement.dim] // mesh.size(axis)
            part = part.narrow(placement.dim, 0, size)
    return _full_tensor(part) if where(part) is not None else part


def _placements(t: Tensor) -> tuple[Placement, ...]:
    """How a ``DTensor`` lies on each axis of its mesh."""
    return _known(t, "placements")[1]


def _device_mesh(t: Tensor) -> DeviceMesh:
    """The mesh of devices that a ``DTensor`` lies on."""
    return _known(t, "device_mesh")[0]


for _name, _method in (("redistribute", redistribute), ("full_tensor", _full_tensor), ("to_local", _to_local)):
    setattr(Tensor, _name, _method)
Tensor.placements = property(_placements)  # type: ignore[attr-defined]
Tensor.device_mesh = property(_device_mesh)  # type: ignore[attr-defined]


# ---------------------------------------------------------------- making them


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *, src_data_rank: Any = 0
) -> Tensor:
    """A leaf with a tensor's values, divided among the devices of a mesh.

    Args:
        tensor: a leaf.
        device_mesh: the devices.
        placements: for each axis of the mesh; ``Replicate`` by default.
        src_data_rank: changes nothing.

    Raises:
        RuntimeError: for the result of an operation.
        ValueError: for a dimension that cannot be divided evenly.

    Example:
        >>> import compat as torch
        >>> from compat.distributed.tensor import Replicate, distribute_tensor, init_device_mesh
        >>> distribute_tensor(torch.ones(2), init_device_mesh("cpu", (1,)), [Replicate()]).full_tensor()
        tensor([1., 1.])
    """
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    made = placed(tensor, sharding_of(tensor, device_mesh, placements, "distribute_tensor"))
    if isinstance(tensor, Parameter):
        return Parameter(made, tensor.requires_grad)
    return made.requires_grad_(tensor.requires_grad)


def place_in(param: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement]) -> None:
    """Divides the memory of a tensor that stays the same object, as optimizers and modules hold it."""
    made = placed(param, sharding_of(param, device_mesh, placements, "DTensor"))
    with no_grad():
        param.data = made


def distribute_module(
    module: Module, device_mesh: DeviceMesh, partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None, output_fn: Callable[..., Any] | None = None,
) -> Module:  # fmt: skip
    """Divides the parameters and buffers of a module among the devices of a mesh.

    Args:
        module: the module; its parameters stay the same objects.
        device_mesh: the devices.
        partition_fn: called with each submodule's name, the submodule and the mesh, to divide its parameters; what it
            leaves is put on each device.
        input_fn: called before each forward pass with the module, its arguments and the mesh; gives the arguments.
        output_fn: called after it with the module, its results and the mesh; gives the results.

    Returns:
        The module.
    """
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, device_mesh)
    for t in [*module.parameters(), *module.buffers()]:
        if where(t) is None:
            place_in(t, device_mesh, [Replicate()] * device_mesh.ndim)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, device_mesh))
    return module


def _factory(name: str) -> Callable[..., Tensor]:
    def made(*size: Any, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, **more: Any) -> Tensor:
        needs = more.pop("requires_grad", False)
        return distribute_tensor(names_of("torch")[name](*size, **more), device_mesh, placements).requires_grad_(needs)

    made.__name__ = name
    made.__doc__ = f"``torch.{name}``, divided among the devices of a mesh."
    return made


empty, full, ones, rand, randn, zeros = map(_factory, ("empty", "full", "ones", "rand", "randn", "zeros"))
