"""``DeviceMesh``: a mesh of devices with named axes.

A mesh consists of JAX devices, all in one process: ``init_device_mesh("cpu", (8,))`` needs a process with eight. Where
PyTorch runs a process per device, one program runs on all devices. If processes are connected without JAX's distributed
runtime (backend ``gloo``), a mesh consists of processes, for ``get_group``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._distributed import groups
from funcgrad import parallel

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A mesh of devices.

    Args:
        device_type: ``"cpu"``, or another device type of JAX.
        mesh: the device indices, as a tensor or in nested lists.
        mesh_dim_names: the names of the axes.

    Attributes:
        mesh: the device indices, as a tensor.
        mesh_dim_names: the names of the axes, or None.

    Raises:
        RuntimeError: if there are not enough devices.
        ValueError: if the numbers of names and axes differ.

    Example:
        >>> DeviceMesh("cpu", [[0]], mesh_dim_names=("dp", "tp")).shape
        (1, 1)
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None, _root: Any = None,
        _kept: Sequence[str] | None = None, _init_backend: bool = True,
    ):  # fmt: skip
        self.device_type = str(device_type)
        numbers = np.asarray(mesh.tolist() if isinstance(mesh, Tensor) else mesh, np.int64)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if self.mesh_dim_names is not None and len(self.mesh_dim_names) != numbers.ndim:
            raise ValueError(f"mesh_dim_names has {len(self.mesh_dim_names)} names, but mesh has {numbers.ndim} axes")
        self._numbers = numbers
        self._axes = tuple(_kept or self.mesh_dim_names or (f"mesh_{i}" for i in range(numbers.ndim)))
        self.root: DeviceMesh = self if _root is None else _root
        self._groups: dict[str, Any] = {}
        if _root is None:
            self._make()

    def _make(self) -> None:
        self.of_processes = groups.is_initialized() and groups.get_world_size() > 1 and groups.get_backend() != "xla"
        if self.of_processes:
            self.jax_mesh: Any = None
            self._make_groups()
            return
        found = parallel.devices(None if self.device_type in ("xla", "cuda", "tpu") else self.device_type)
        if self._numbers.size and self._numbers.max() >= len(found):
            raise RuntimeError(
                f"DeviceMesh: the mesh has device {self._numbers.max()}, but there are {len(found)} devices of type "
                f"{self.device_type!r} here. To try a program with more, set "
                f"XLA_FLAGS=--xla_force_host_platform_device_count={self._numbers.max() + 1} before it is run."
            )
        self.jax_mesh = parallel.Mesh(np.array(found, dtype=object)[self._numbers], self._axes)
        _known[self.jax_mesh] = self

    def _make_groups(self) -> None:
        """A group for each line of processes along each axis; called by all processes."""
        rank = groups.get_rank()
        for axis, name in enumerate(self._axes):
            lines = np.moveaxis(self._numbers, axis, -1).reshape(-1, self._numbers.shape[axis])
            for line in lines.tolist():
                group = groups.new_group(line, sort_ranks=False)
                if rank in line:
                    self._groups[name] = group

    # ---------------------------------------------------------------- properties

    @property
    def mesh(self) -> Tensor:
        """The device indices."""
        return names_of("torch")["tensor"](self._numbers.tolist())

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._numbers.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of devices along each axis."""
        return tuple(self._numbers.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of devices, or the number along one axis."""
        return int(self._numbers.size if mesh_dim is None else self._numbers.shape[mesh_dim])

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The submesh of some axes.

        Raises:
            KeyError: for an unknown axis.
        """
        chosen = (names,) if isinstance(names, str) else tuple(names)
        if self.mesh_dim_names is None or any(n not in self.mesh_dim_names for n in chosen):
            raise KeyError(
                f"Invalid mesh_dim_name {names!r} specified. Valid mesh_dim_names are {self.mesh_dim_names}."
            )
        if chosen == self.mesh_dim_names:
            return self
        places = [self.mesh_dim_names.index(n) for n in chosen]
        others = [i for i in range(self.ndim) if i not in places]
        at = self.get_coordinate() or [0] * self.ndim
        part = np.transpose(self._numbers, [*others, *places])[tuple(at[i] for i in others)]
        return DeviceMesh(self.device_type, part, mesh_dim_names=chosen, _root=self.root, _kept=chosen)

    # ---------------------------------------------------------------- this process

    def get_rank(self) -> int:
        """This process's rank: 0 if one process has all devices."""
        return groups.get_rank() if groups.is_initialized() else 0

    def get_coordinate(self) -> list[int] | None:
        """This process's coordinates; those of its first device if it has all."""
        if not self.root.of_processes:
            return [0] * self.ndim
        found = np.argwhere(self._numbers == self.get_rank())
        return found[0].tolist() if len(found) else None

    def _axis(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs "
                    f"to be specified "
                    "when device_mesh.ndim > 1."
                )
            return 0
        return self._axes.index(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's coordinate along an axis."""
        return (self.get_coordinate() or [0] * self.ndim)[self._axis(mesh_dim)]

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group of processes along an axis.

        Raises:
            RuntimeError: if one process has all devices.
        """
        name = self._axes[self._axis(mesh_dim)]
        if not self.root.of_processes:
            raise RuntimeError(
                "DeviceMesh.get_group: this process has all devices of the mesh, so there is no process group. "
                "other. Tensors on "
                "the mesh are exchanged by their placements; see DTensor.redistribute."
            )
        return self.root._groups[name]

    def get_all_groups(self) -> list[Any]:
        """The groups of processes along each axis."""
        return [self.get_group(i) for i in range(self.ndim)]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DeviceMesh) and self._axes == other._axes and self.device_type == other.device_type
            and np.array_equal(self._numbers, other._numbers)
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.device_type, self._axes, self._numbers.tobytes()))

    def __repr__(self) -> str:
        if self.mesh_dim_names is None:
            return f"DeviceMesh({self._numbers.tolist()}, device: '{self.device_type}')"
        axes = ", ".join(f"{n}={k}" for n, k in zip(self.mesh_dim_names, self.shape))
        return f"DeviceMesh(({axes}), device: '{self.device_type}')"

    def __enter__(self) -> DeviceMesh:
        return self

    def __exit__(self, *_: object) -> None:
        return None


_known: dict[Any, DeviceMesh] = {}


def mesh_of(jax_mesh: Any) -> DeviceMesh | None:
    """The ``DeviceMesh`` for a JAX mesh."""
    return _known.get(jax_mesh)


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:  # fmt: skip
    """A mesh of the first devices.

    Args:
        device_type: ``"cpu"``, or another device type.
        mesh_shape: the number of devices along each axis.
        mesh_dim_names: the names of the axes.
        backend_override: ignored.

    Raises:
        RuntimeError: if there are not enough devices, or a name is repeated.

    Example:
        >>> init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
        DeviceMesh((dp=1), device: 'cpu')
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in {mesh_dim_names}")
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                f"mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
                f"{len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    numbers = np.arange(math.prod(mesh_shape)).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, numbers, mesh_dim_names=mesh_dim_names)
