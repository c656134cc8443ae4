"""Parallel styles: the placements of a module's parameters, arguments and results.

A style shards parameters and defines the placements of arguments and results. XLA inserts the communication.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

from compat._core.pytree import trees
from compat._core.tensor.tensor import Tensor
from compat.distributed.device_mesh import DeviceMesh
from compat.distributed.tensor._api import on_mesh, place_in, redistribute, where
from compat.distributed.tensor.placement_types import Placement, Replicate, Shard
from compat.nn.modules.linear import Linear
from compat.nn.modules.module import Module
from compat.nn.modules.sparse import Embedding

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleOutput", "RowwiseParallel",
    "SequenceParallel", "parallelize_module",
]  # fmt: skip

Layouts = Placement | Sequence[Placement | None] | None


class ParallelStyle(ABC):
    """The placements of a module on a mesh."""

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Applies the style."""


def redistributed(values: Any, layouts: Layouts, mesh: DeviceMesh) -> Any:
    """Redistributes tensors to ``layouts``, one for all or one for each; None leaves a tensor unchanged."""
    several = isinstance(values, (tuple, list))
    items = list(values) if several else [values]
    wanted = list(layouts) if isinstance(layouts, Sequence) else [layouts] * len(items)
    wanted += [None] * (len(items) - len(wanted))
    found = [
        redistribute(x, mesh, [p]) if isinstance(x, Tensor) and p is not None else x for x, p in zip(items, wanted)
    ]
    return type(values)(found) if several else found[0]


def _inputs(module: Module, layouts: Layouts, mesh: DeviceMesh) -> None:
    if layouts is not None:
        module.register_forward_pre_hook(lambda m, inputs: redistributed(tuple(inputs), layouts, mesh))


def _outputs(module: Module, layouts: Layouts, mesh: DeviceMesh) -> None:
    if layouts is not None:
        module.register_forward_hook(lambda m, inputs, outputs: redistributed(outputs, layouts, mesh))


def _replicate_remaining(module: Module, mesh: DeviceMesh) -> None:
    for t in [*module.parameters(), *module.buffers()]:
        if where(t) is None:
            place_in(t, mesh, [Replicate()])


class ColwiseParallel(ParallelStyle):
    """Shards a ``Linear`` along its outputs, or an ``Embedding`` along the embedding's dimension.

    Args:
        input_layouts: the placement of arguments; replicated by default.
        output_layouts: the desired placement of results; sharded along the last dimension by default.
        use_local_output: ignored: results have their global size.

    Example:
        >>> from compat.distributed.tensor import init_device_mesh
        >>> layer = parallelize_module(torch.nn.Linear(2, 4), init_device_mesh("cpu", (1,)), ColwiseParallel())
        >>> layer.weight.placements
        (Shard(dim=0),)
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):  # fmt: skip
        self.input_layouts, self.output_layouts = input_layouts or Replicate(), output_layouts or Shard(-1)

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if isinstance(module, Linear):
            for p in module.parameters(recurse=False):
                place_in(p, device_mesh, [Shard(0)])
        elif isinstance(module, Embedding):
            place_in(module.weight, device_mesh, [Shard(1)])
        else:
            raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")
        _inputs(module, Replicate(), device_mesh)
        _outputs(module, self.output_layouts, device_mesh)
        return module


class RowwiseParallel(ParallelStyle):
    """Shards a ``Linear`` along its inputs, or an ``Embedding`` along its rows; partial results are reduced.

    Args:
        input_layouts: the placement of arguments; sharded along the last dimension by default.
        output_layouts: the desired placement of results; replicated by default.
        use_local_output: ignored.
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):  # fmt: skip
        self.input_layouts, self.output_layouts = input_layouts or Shard(-1), output_layouts or Replicate()

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if isinstance(module, Linear):
            place_in(module.weight, device_mesh, [Shard(1)])
            _inputs(module, Shard(-1), device_mesh)
        elif isinstance(module, Embedding):
            place_in(module.weight, device_mesh, [Shard(0)])
            _inputs(module, Replicate(), device_mesh)
        else:
            raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")
        _replicate_remaining(module, device_mesh)
        _outputs(module, self.output_layouts, device_mesh)
        return module


class SequenceParallel(ParallelStyle):
    """Applies a normalization or dropout to tensors that are sharded along the sequence.

    Args:
        sequence_dim: the sequence dimension.
        use_local_output: ignored.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        self.sequence_dim = sequence_dim

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        _replicate_remaining(module, device_mesh)
        _inputs(module, Shard(self.sequence_dim), device_mesh)
        _outputs(module, Shard(self.sequence_dim), device_mesh)
        return module


class PrepareModuleInput(ParallelStyle):
    """Redistributes a module's arguments.

    Args:
        input_layouts: ignored: tensors have placements.
        desired_input_layouts: the desired placements; None for no change.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same for keyword arguments.
        use_local_output: ignored.
    """

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None, use_local_output: bool = False,
    ):  # fmt: skip
        self.desired, self.desired_named = desired_input_layouts, dict(desired_input_kwarg_layouts or {})

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(m: Module, args: tuple, kwargs: dict[str, Any]) -> tuple:
            named = {k: redistributed(v, self.desired_named.get(k), device_mesh) for k, v in kwargs.items()}
            return redistributed(tuple(args), self.desired, device_mesh), named

        module.register_forward_pre_hook(prepare, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Redistributes a module's results.

    Args:
        output_layouts: ignored: tensors have placements.
        desired_output_layouts: the desired placements.
        use_local_output: ignored.
    """

    def __init__(self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True):
        self.desired = desired_output_layouts

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        _outputs(module, self.desired, device_mesh)
        return module


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None, *, src_data_rank: Any = 0,
) -> Module:  # fmt: skip
    """Parallelizes a module over a 1-d mesh.

    Args:
        module: the module; its parameters stay the same objects.
        device_mesh: the mesh.
        parallelize_plan: a style, or styles by submodule name, where ``*`` matches any part.
        src_data_rank: ignored.

    Returns:
        The module. Parameters that the plan does not name are replicated when they are combined with a tensor of the
        mesh.

    Raises:
        ValueError: for a mesh of several axes, or a name that matches no submodule.
    """
    if device_mesh is None or device_mesh.ndim != 1:
        raise ValueError(f"parallelize_module: device_mesh must be a mesh of one axis, got {device_mesh}")
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan._apply(module, device_mesh)
    else:
        for path, style in (parallelize_plan or {}).items():
            parts = [m for name, m in module.named_modules() if _matches(name, path)]
            if not parts:
                raise ValueError(f"parallelize_module: the plan names {path!r}, but the module has no such submodule")
            for part in parts:
                style._apply(part, device_mesh)
    _replicate_remaining(module, device_mesh)
    _replicate_inputs(module, device_mesh)
    return module


def _matches(name: str, path: str) -> bool:
    have, want = name.split("."), path.split(".")
    return len(have) == len(want) and all(fnmatch(a, b) for a, b in zip(have, want))


def _replicate_inputs(module: Module, mesh: DeviceMesh) -> None:
    """Registers a forward pre-hook that replicates single-device tensors over the mesh."""
    move = lambda x: redistribute(x, mesh, [Replicate()] * mesh.ndim) if _is_off_mesh(x) else x
    module.register_forward_pre_hook(lambda m, args, named: trees.tree_map(move, (args, named)), with_kwargs=True)


def _is_off_mesh(x: Any) -> bool:
    return isinstance(x, Tensor) and not on_mesh(x)
