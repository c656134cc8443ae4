"""``DTensor``: a tensor whose buffer is sharded over devices.

JAX arrays have a sharding; XLA partitions operations on them and inserts communication. So operators need no rules for
sharded tensors: a ``Tensor`` with a sharded buffer uses the same plans, windows and backward pass. Any tensor whose
buffer is on the devices of a mesh is a ``DTensor``, including results of operations.

Shapes are global, as in PyTorch. If a dimension does not divide evenly, the buffer is padded, and the tensor is a view
of the valid part.

Within a program XLA performs pending reductions, so no operator returns a ``Partial`` tensor. ``from_local`` creates
tensors of a separate class, which stores the summands, sharded along leading dimensions; operations use the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from compat._core.memory.meta import Unknown, on_meta
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base, contiguous_strides, layout_of
from compat._core.operators.op import aten
from compat._core.pytree import trees
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array, wrap
from compat._core.tensor.version_counter import bump_version
from compat._core.transforms.grad_mode import mode, no_grad
from compat.distributed.device_mesh import DeviceMesh, mesh_of
from compat.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from compat.nn.modules._to import placing
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter
from funcgrad import parallel, runtime
from funcgrad.core.tracing import Tracer

__all__ = ["DTensor", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]


@aten("_redistribute(Tensor self, *, Any sharding) -> Tensor", node="RedistributeBackward0", names="")
def _constrained(input: Any, *, sharding: Any) -> Any:
    return parallel.with_sharding_constraint(input, sharding)


# ---------------------------------------------------------------- placements


def buffer_of(t: Tensor) -> Any:
    """The computed buffer of a tensor."""
    return runtime.ready(t._storage_.buffer)


class _Sharded(Unknown):
    """The memory of a tensor on the device ``meta`` that is to be sharded once it has values."""

    __slots__ = ("sharding",)

    def __init__(self, type: Any, sharding: Any):
        super().__init__(type)
        self.sharding = sharding


class _ShardedStorage(UntypedStorage):
    """The memory of a tensor on a mesh: what is written to it is sharded as its buffer was."""

    __slots__ = ()

    def __init__(self, buffer: Any, base: Base):
        super().__init__(buffer, base)
        self.sharding = buffer.sharding

    def write(self, buffer: Any) -> None:
        traced = isinstance(buffer, Tracer) and not isinstance(buffer, runtime.Deferred)
        if not traced and not runtime.computed_from(buffer, self.buffer):  # the result of a fill or a copy
            buffer = parallel.device_put(runtime.ready(buffer), self.sharding)
        super().write(buffer)


def on_mesh(t: Tensor) -> bool:
    """Whether a tensor, possibly not yet computed, is on a mesh; True for traced tensors."""
    if t.__class__ is PartialTensor or t._layout_.base.traced:
        return True
    devices = runtime.place_of(t._storage_.buffer)
    return devices is not None and (len(devices) > 1 or where(t) is not None)


def where(t: Tensor) -> tuple[DeviceMesh, tuple[Placement, ...]] | None:
    """The mesh and the placements of a tensor; None if it is not on a mesh."""
    if t.__class__ is PartialTensor:
        return t._where
    if t._layout_.base.traced and not isinstance(t._storage_.buffer, _Sharded):
        return None
    sharding = getattr(buffer_of(t), "sharding", None)
    mesh = mesh_of(getattr(sharding, "mesh", None)) if isinstance(sharding, parallel.NamedSharding) else None
    if mesh is None:
        return None
    found: dict[str, Placement] = {}
    for dim, entry in enumerate(sharding.spec):  # type: ignore[union-attr]
        view_dim = _view_dim(t, dim) if entry else None
        for name in (entry,) if isinstance(entry, str) else entry or ():
            found[name] = Replicate() if view_dim is None else Shard(view_dim)
    return mesh, tuple(found.get(name, Replicate()) for name in mesh._axes)


def _view_dim(t: Tensor, dim: int) -> int | None:
    """The dimension of a view for a dimension of its buffer; None if the view has size 1 along it."""
    shape, layout = t._layout_.base.shape, t._layout_
    step = prod(shape[dim + 1 :])
    for d, (size, stride) in enumerate(zip(layout.size, layout.stride)):
        if size > 1 and stride <= step < stride * size:
            return d
    return dim if tuple(layout.size) == tuple(shape) else None


def sharding_of(t: Any, mesh: DeviceMesh, placements: Sequence[Placement] | None, name: str) -> Any:
    """The JAX sharding for a tensor with placements on a mesh; on a submesh, other axes of the mesh are unchanged.

    Raises:
        RuntimeError: for ``Partial``.
        ValueError: for a dimension out of range.
    """
    placed = list(placements or [Replicate()] * mesh.ndim)
    if len(placed) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placed)}, "
            f"and device_mesh.ndim: {mesh.ndim}."
        )
    if mesh.root.of_processes:
        raise NotImplementedError(
            f"{name}: sharded tensors need JAX's distributed runtime, which init_process_group('xla') initializes; "
            "with 'gloo' each process has separate tensors."
        )
    known = where(t) if isinstance(t, Tensor) and mesh is not mesh.root else None
    all_of: dict[str, Placement] = dict(zip(mesh.root._axes, known[1])) if known and known[0] is mesh.root else {}
    all_of.update(zip(mesh._axes, placed))
    shape = tuple(t.shape) if isinstance(t, Tensor) else tuple(t)
    entries: list[list[str]] = [[] for _ in shape]
    for axis in mesh.root._axes:
        placement = all_of.get(axis, Replicate())
        if isinstance(placement, Partial):
            raise RuntimeError(f"{name}: Can not redistribute to Partial! DTensor.from_local makes such tensors.")
        if isinstance(placement, Shard):
            dim = placement.dim + len(shape) * (placement.dim < 0)
            if not 0 <= dim < len(shape):
                raise ValueError(
                    f"{name}: {placement} names a dimension that a tensor of size {list(shape)} does not have"
                )
            entries[dim].append(axis)
    return parallel.NamedSharding(mesh.root.jax_mesh, parallel.PartitionSpec(*[tuple(e) or None for e in entries]))


def _padded_shape(size: Sequence[int], sharding: Any) -> tuple[int, ...]:
    """The shape of a buffer padded to divide evenly: a multiple of the first device's shard."""
    found = []
    for n, entry in zip(size, (*sharding.spec, *[None] * len(size))):
        axes = (entry,) if isinstance(entry, str) else entry or ()
        parts = prod([sharding.mesh.shape[axis] for axis in axes])
        found.append(-(-n // parts) * parts)
    return tuple(found)


def _valid_part(buffer: Any, padded_shape: tuple[int, ...], size: tuple[int, ...], dtype: Any) -> Tensor:
    """A leaf that is the valid part of a padded buffer."""
    base = Base(padded_shape, dtype)
    return wrap(_ShardedStorage(buffer, base), layout_of(base, size, contiguous_strides(padded_shape), 0))


def placed(t: Tensor, sharding: Any) -> Tensor:
    """A leaf with a tensor's values and a sharded buffer; one on the device ``meta`` remembers the sharding."""
    size = tuple(t.shape)
    padded_shape = _padded_shape(size, sharding)
    with no_grad():
        plain = t.detach().contiguous()
    if on_meta(t):
        buffer, layout = plain._storage_.buffer, plain._layout_
        return wrap(UntypedStorage(_Sharded(buffer.type, sharding), layout.base), layout, 0)
    if plain._layout_.access[0] == "whole" and tuple(plain._storage_.base.shape) == padded_shape and plain.numel():
        array = parallel.device_put(buffer_of(plain), None)
    else:
        array = runtime.from_numpy(np.pad(array_of(plain), [(0, n - m) for n, m in zip(padded_shape, size)]))
    return _valid_part(parallel.device_put(array, sharding), padded_shape, size, t.dtype)


def assign(t: Tensor, array: np.ndarray) -> None:
    """Copies an array to a tensor, which keeps its sharding."""
    made = placed(from_array(array, t.dtype), buffer_of(t).sharding)
    t._storage_.write(made._storage_.buffer)
    bump_version(t)


# ---------------------------------------------------------------- the class


class _DTensorMeta(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, t: Any) -> bool:
        return isinstance(t, Tensor) and where(t) is not None


class DTensor(Tensor, metaclass=_DTensorMeta):
    """A tensor whose buffer is sharded over a mesh.

    ``distribute_tensor`` and operations on sharded tensors create them. ``isinstance`` checks the buffer, and so do
    ``placements``, ``device_mesh``, ``to_local``, ``full_tensor`` and ``redistribute``, which all tensors have.

    Example:
        >>> from compat.distributed.tensor import DTensor, Shard, distribute_tensor, init_device_mesh
        >>> x = distribute_tensor(torch.ones(4, 2), init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> isinstance(x, DTensor), isinstance(torch.ones(2), DTensor), x.placements
        (True, False, (Shard(dim=0),))
    """

    @staticmethod
    def from_local(
        local_tensor: Any, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape: Any = None, stride: Any = None, grad_placements: Any = None,
    ) -> Tensor:  # fmt: skip
        """The tensor whose shard, replica or summand on each device is ``local_tensor``.

        Args:
            local_tensor: the value on each device, all of which are in this process: one tensor, or a list of
                one per device, in the order of the mesh. Shards may differ in size.
            device_mesh: the mesh.
            placements: one per mesh axis; ``Replicate`` by default.
            run_check, shape, stride, grad_placements: ignored.

        Raises:
            ValueError: for a list that does not have one tensor for each device.

        Example:
            >>> from compat.distributed.tensor import DTensor, Partial, init_device_mesh
            >>> x = DTensor.from_local(torch.ones(2), init_device_mesh("cpu", (1,)), [Partial()])
            >>> x.placements, x + 1
            ((Partial(reduce_op='sum'),), tensor([2., 2.]))
        """
        kinds = list(placements or [Replicate()] * device_mesh.ndim)
        given = list(local_tensor) if isinstance(local_tensor, (list, tuple)) else [local_tensor] * device_mesh.size()
        if len(given) != device_mesh.size():
            raise ValueError(f"from_local: got {len(given)} local tensors for a mesh of {device_mesh.size()} devices")
        for axis in reversed(range(device_mesh.ndim)):
            count = device_mesh.shape[axis]
            lines = [given[i : i + count] for i in range(0, len(given), count)]
            given = [_combined(line, kinds[axis]) for line in lines]
        whole, partial = given[0], [i for i, p in enumerate(kinds) if isinstance(p, Partial)]
        if not partial:
            return redistribute(whole, device_mesh, kinds)
        # The leading dimensions stack the summands, outermost axis first; the other placements shard later dimensions.
        n, dims = len(partial), whole.dim() - len(partial)
        moved = [Shard(p.dim % dims + n) if isinstance(p, Shard) else p for p in kinds]
        for i, axis in enumerate(partial):
            moved[axis] = Shard(i)
        return PartialTensor.of(redistribute(whole, device_mesh, moved), device_mesh, tuple(kinds))


def _combined(line: Sequence[Tensor], placement: Placement) -> Tensor:
    """The values of the devices along an axis, as one tensor."""
    torch = names_of("torch")
    if isinstance(placement, Shard):
        dim = placement.dim if placement.dim < 0 else placement.dim - line[0].dim()
        return torch["cat"](list(line), dim) if len(line) > 1 else line[0]
    return torch["stack"](list(line)) if isinstance(placement, Partial) else line[0]


_REDUCTIONS = {"sum": "sum", "avg": "mean", "max": "amax", "min": "amin", "product": "prod"}


class PartialTensor(Tensor):
    """A tensor with a pending reduction along some mesh axes.

    Operators use the reduced value. ``redistribute`` to ``Shard`` reduces and scatters in one step.
    """

    _summands: Tensor
    _where: tuple[DeviceMesh, tuple[Placement, ...]]

    @classmethod
    def of(cls, summands: Tensor, mesh: DeviceMesh, placements: tuple[Placement, ...]) -> Tensor:
        """The tensor of summands, which are stacked along a leading dimension for each ``Partial`` axis."""
        size = summands.shape[sum(isinstance(p, Partial) for p in placements) :]
        make: Any = Tensor
        made = make._make_wrapper_subclass(cls, size, dtype=summands.dtype)
        made._summands, made._where = summands, (mesh, placements)
        return made

    def reduced(self) -> Tensor:
        """The reduced value, sharded along the other axes like the summands."""
        found = self._summands
        for placement in self._where[1]:
            if isinstance(placement, Partial):
                found = getattr(found, _REDUCTIONS[placement.reduce_op])(0)
        mesh, placements = self._where
        return _constrained(
            found, sharding=sharding_of(found.shape, mesh, _without_partial(placements), "redistribute")
        )

    def redistribute(self, device_mesh: Any = None, placements: Any = None, **options: Any) -> Tensor:
        mesh = self._where[0]
        return redistribute(self.reduced(), device_mesh or mesh, placements or self._where[1])

    def full_tensor(self, **options: Any) -> Tensor:
        return _full_tensor(self.reduced())

    def to_local(self, **options: Any) -> Tensor:
        first = self._summands
        for placement in self._where[1]:
            if isinstance(placement, Partial):
                first = first[0]
        return _to_local(first)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in _UNREDUCED_ATTRIBUTES:
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        return cls.__torch_dispatch__(func, types, args, kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        one = lambda x: x.reduced() if x.__class__ is PartialTensor else x
        args, kwargs = trees.tree_map(one, (tuple(args), kwargs or {}))
        return func(*args, **kwargs)


#: Attributes read from the unreduced tensor.
_UNREDUCED_ATTRIBUTES = frozenset(
    ("__get__", "__set__", "size", "dim", "numel", "is_floating_point", "is_complex", "__len__")
)


def _without_partial(placements: Sequence[Placement]) -> list[Placement]:
    return [Replicate() if isinstance(p, Partial) else p for p in placements]


def _placement_of(t: Tensor, name: str) -> tuple[DeviceMesh, tuple[Placement, ...]]:
    found = where(t)
    if found is None:
        raise AttributeError(f"'Tensor' object has no attribute '{name}': it is not a DTensor")
    return found


def redistribute(
    t: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The tensor with other placements, which its gradient gets, too.

    Args:
        t: the tensor, with any placement.
        device_mesh: the mesh; by default the tensor's.
        placements: one per mesh axis.
        async_op, forward_dtype, backward_dtype: ignored.

    Raises:
        ValueError: for impossible placements.
    """
    mesh = device_mesh if device_mesh is not None else _placement_of(t, "redistribute")[0]
    sharding = sharding_of(t, mesh, placements, "redistribute")
    if not on_mesh(t):  # all of it is on one device
        made = placed(t, sharding)
        if not (t.requires_grad and mode.grad):
            return made
        return _ToMesh.apply(t, sharding)
    size = tuple(t.shape)
    padded_shape = _padded_shape(size, sharding)
    if padded_shape == size:
        return _constrained(t, sharding=sharding)
    more = [n for pair in zip(padded_shape[::-1], size[::-1]) for n in (0, pair[0] - pair[1])]
    longer = _constrained(names_of("torch")["constant_pad_nd"](t, more), sharding=sharding)
    for dim, n in enumerate(size):
        longer = longer.narrow(dim, 0, n) if padded_shape[dim] != n else longer
    return longer


def _full_tensor(t: Tensor, *, grad_placements: Any = None) -> Tensor:
    """The global value of a ``DTensor``, on one device."""
    _placement_of(t, "full_tensor")
    return _ToOneDevice.apply(t) if t.requires_grad and mode.grad else _on_one_device(t)


def _on_one_device(t: Tensor) -> Tensor:
    from compat._core.tensor.tensor import array_of, from_array

    with no_grad():
        return from_array(array_of(t.detach()), t.dtype)


def _function_class() -> Any:
    from compat.autograd.function import Function

    return Function


class _ToMesh(_function_class()):  # type: ignore[misc]
    """Moves a single-device tensor to a mesh; its gradient is moved back."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, sharding: Any) -> Tensor:
        return placed(t, sharding)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _on_one_device(grad), None


class _ToOneDevice(_function_class()):  # type: ignore[misc]
    """Moves a tensor from a mesh to one device; its gradient gets the former placements."""

    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        ctx.sharding = buffer_of(t).sharding
        return _on_one_device(t)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return (placed(grad, ctx.sharding),)


def _to_local(t: Tensor, *, grad_placements: Any = None) -> Tensor:
    """The shard of a ``DTensor`` on the first device."""
    mesh, placements = _placement_of(t, "to_local")
    part = t
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard):
            whole = part.shape[placement.dim]
            part = part.narrow(placement.dim, 0, min(whole, -(-whole // mesh.shape[axis])))
    return _full_tensor(part) if where(part) is not None else part


def _placements(t: Tensor) -> tuple[Placement, ...]:
    """The placements of a ``DTensor``, one per mesh axis."""
    return _placement_of(t, "placements")[1]


def _device_mesh(t: Tensor) -> DeviceMesh:
    """The mesh of a ``DTensor``."""
    return _placement_of(t, "device_mesh")[0]


for _name, _method in (("redistribute", redistribute), ("full_tensor", _full_tensor), ("to_local", _to_local)):
    setattr(Tensor, _name, _method)
Tensor.placements = property(_placements)  # type: ignore[attr-defined]
Tensor.device_mesh = property(_device_mesh)  # type: ignore[attr-defined]


# ---------------------------------------------------------------- creation


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *, src_data_rank: Any = 0
) -> Tensor:
    """A leaf with a tensor's values, sharded over a mesh.

    Args:
        tensor: a leaf.
        device_mesh: the mesh.
        placements: one per mesh axis; ``Replicate`` by default.
        src_data_rank: ignored.

    Raises:
        RuntimeError: for the result of an operation.
        ValueError: for a dimension out of range.

    Example:
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
    """Shards the memory of a tensor in place, as optimizers and modules reference the object."""
    made = placed(param, sharding_of(param, device_mesh, placements, "DTensor"))
    with no_grad():
        param.data = made


def _placed_alike(old: Tensor, new: Tensor) -> Tensor:
    """A new tensor on the mesh of the one that it replaces."""
    return new if where(old) is None or on_meta(new) else placed(new, buffer_of(old).sharding)


placing.append(_placed_alike)


def distribute_module(
    module: Module, device_mesh: DeviceMesh, partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None, output_fn: Callable[..., Any] | None = None,
) -> Module:  # fmt: skip
    """Shards the parameters and buffers of a module over a mesh.

    Args:
        module: the module; its parameters stay the same objects.
        device_mesh: the mesh.
        partition_fn: called with each submodule's name, the submodule and the mesh, to shard its parameters; the
            remaining ones are replicated.
        input_fn: called before each forward pass with the module, its arguments and the mesh; returns the arguments.
        output_fn: called after it with the module, its results and the mesh; returns the results.

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
