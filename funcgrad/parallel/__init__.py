"""Multi-device programs: meshes, sharded arrays, and per-device functions.

There are two styles, which may be mixed. *By shardings*: the program is written for one device, arguments are sharded
(``device_put`` with a ``NamedSharding``, ``jit(in_shardings=...)``), and the compiler partitions the work and inserts
communication; gradients are sharded like their parameters. *Per device*: ``shard_map`` runs a function on each device's
shard, which communicates explicitly by ``psum`` and other collectives. ``Mesh``, ``NamedSharding`` and
``PartitionSpec`` are JAX's.
"""

from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec
from jax import set_mesh

from funcgrad.lax.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
)
from funcgrad.parallel.hlo_collectives import Collective, collectives
from funcgrad.parallel.devices import array_of_parts, device_get, device_put, devices, parts_of
from funcgrad.parallel.mapping import shard_map
from funcgrad.parallel.meshes import make_mesh, virtual_devices
from funcgrad.parallel.processes import free_address, initialize
from funcgrad.arguments.sharding_constraint import with_sharding_constraint

__all__ = [
    "AbstractMesh", "Collective", "Mesh", "NamedSharding", "PartitionSpec", "all_gather", "all_to_all",
    "array_of_parts", "axis_index", "axis_size", "collectives", "device_get", "device_put", "devices", "free_address",
    "initialize", "make_mesh", "parts_of", "pcast", "pmax", "pmean", "pmin", "ppermute", "pshuffle", "psum",
    "psum_scatter", "set_mesh", "shard_map", "virtual_devices", "with_sharding_constraint",
]  # fmt: skip
