"""``shard_map``: the public function, and checks of its arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence, Set
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh, PartitionSpec

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import Flat, kind, settled
from funcgrad.arguments.prefixes import spread
from funcgrad.control.widening import raised
from funcgrad.core import trees
from funcgrad.core.ir import ArrayType
from funcgrad.core.passes import common_subexpressions, dead_code, interned
from funcgrad.core.tracing import is_array, state, type_of, typed
from funcgrad.interpreters.staging import stage
from funcgrad.parallel.parts import Region, entries, map_program, names_in
from funcgrad.primitives.collectives import MeshAxis
from funcgrad.primitives.markers import automatic
from funcgrad.transforms.trace import positional_names

_MISSING: Any = inspect.Parameter.empty


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = _MISSING,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[str] = frozenset(),
    check_vma: bool = True,
) -> Callable[..., Any]:
    """``f`` on each device of a mesh, applied to the device's parts of arrays; as ``jax.shard_map``.

    Within ``f`` the mesh's axes have names: ``psum``, ``all_gather``, ``ppermute`` and the others exchange what the
    devices have. It is differentiated and batched from outside and inside, goes into ``jit``, ``scan`` and
    ``checkpoint`` and holds them, and may stand in another ``shard_map`` over other axes of the mesh.

    A value that depends on parts of arrays varies from device to device; sums and extremes over an axis, and what was
    divided along no axis, do not. Where the two meet, the second is taken as one that varies, so its gradient is a sum
    over the devices: also that of ``grad`` inside of ``f``.

    Args:
        f: takes and returns pytrees of arrays. It is traced, once for each call.
        out_specs: how results are put together: a ``PartitionSpec`` for all, or a pytree of them with the structure of
            the result or of its upper part. An axis of the mesh that is not named in it says that the result is the
            same on all devices along that axis, of which there is to be one.
        in_specs: the same for the tuple of arguments: an axis that is not named gives all of the array to each device
            along it. None for an argument that is no array.
        mesh: the devices; by default that of ``jax.set_mesh``, or of the ``shard_map`` around.
        axis_names: along which axes of the mesh ``f`` runs on each device for itself; all, if empty. Along the others
            the compiler divides the work, and specifications must not name them.
        check_vma: follow which values vary. Without it nothing is known of that: what ``out_specs`` says is believed,
            and ``grad`` inside of ``f`` gives each device the gradient of its own.

    Returns:
        A function of positional arguments like ``f``, on whole arrays; without ``f``, a decorator.

    Raises:
        TypeError: for an argument that is not a mesh, no specification or no array; it names the argument.
        ValueError: from the function, if an argument or a result cannot be divided as its specification says, if that
            names an axis that is not there, or if a result varies along an axis that its specification leaves out.

    Example:
        >>> import jax, funcgrad as fg, funcgrad.numpy as fnp
        >>> from jax.sharding import PartitionSpec as P
        >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("rows",))
        >>> mean = shard_map(lambda x: fg.pmean(fnp.mean(x), "rows"), mesh=mesh, in_specs=P("rows"), out_specs=P())
        >>> print(mean(fnp.array([1.0, 3.0])), fg.grad(mean)(fnp.array([1.0, 3.0])))
        2.0 [0.5 0.5]
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    function = validate.function("shard_map", f)
    if in_specs is _MISSING:
        raise TypeError("shard_map: in_specs must say how each argument is divided")
    in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
    names = frozenset((axis_names,)) if isinstance(axis_names, str) else frozenset(axis_names)

    @functools.wraps(function)
    def wrapped(*args: Any) -> Any:
        region = _region(mesh, names, bool(check_vma))
        leaves, tree = trees.flatten(args)
        specs = _in_specs(function, region, in_specs, args)
        arrays = [typed(x) for x, s in zip(leaves, specs, strict=True) if s is not None]
        divided = [s for s in specs if s is not None]
        flat = Flat(function, tree, "shard_map")
        found: list[PartitionSpec] = []

        def run(*parts: Any) -> list[Any]:
            given = iter(parts)
            outs = flat(*[x if s is None else next(given) for x, s in zip(leaves, specs, strict=True)])
            found[:] = _out_specs(function, region, out_specs, trees.unflatten(flat.out_tree, outs))
            return [raised(x, region.along(s)) for x, s in zip(settled(outs), found, strict=True)]

        types = [region.part(type_of(x).strong(), s) for x, s in zip(arrays, divided, strict=True)]
        name = getattr(function, "__name__", "function")
        with region.entered():
            program = stage(run, types, name=name, description="shard_map")
        closed, constants = dead_code(common_subexpressions(program)).closed()
        operands = [*constants, *arrays]
        whole = [PartitionSpec()] * len(constants)
        results = map_program(region, interned(closed), operands, [*whole, *divided], tuple(found))
        return trees.unflatten(flat.out_tree, settled(results))

    return wrapped


# ---------------------------------------------------------------- the mesh


def _region(mesh: Any, names: frozenset[str], checked: bool) -> Region:
    around = {name: axis.mesh for name, (axis, _) in state.axes.items() if isinstance(axis, MeshAxis)}
    outer = next(iter(around.values()), None)
    if mesh is None:
        mesh = outer if outer is not None else _of_context()
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"shard_map: mesh must be a Mesh, got {kind(mesh)}")
    if outer is not None and dict(mesh.shape) != dict(outer.shape):
        raise ValueError(f"shard_map: mesh {dict(mesh.shape)} is not that of the shard_map around, {dict(outer.shape)}")
    unknown = names.difference(mesh.axis_names)
    if unknown:
        raise ValueError(f"shard_map: axis_names has {sorted(unknown)}, but the mesh has {list(mesh.axis_names)}")
    taken = names.intersection(around)
    if taken:
        raise ValueError(f"shard_map: axis_names has {sorted(taken)}, which a shard_map around has as well")
    axes = tuple(n for n in mesh.axis_names if (n in names if names else n not in around))
    if not axes:
        raise ValueError("shard_map: the mesh has no axis that no shard_map around has")
    return Region(automatic(mesh), axes, checked)


def _of_context() -> Any:
    try:
        mesh: Any = jax.sharding.get_mesh()
    except ValueError:  # where JAX traces it knows the names only
        mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        raise ValueError("shard_map: there is no mesh; give it as mesh, or call the function within jax.set_mesh(mesh)")
    return mesh


# ---------------------------------------------------------------- the specifications


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _in_specs(f: Callable[..., Any], region: Region, in_specs: Any, args: tuple[Any, ...]) -> list[Any]:
    """For each leaf of the arguments its specification, checked; None for a leaf that is not an array."""
    what = "shard_map: in_specs"
    if _is_spec(in_specs):
        in_specs = (in_specs,) * len(args)
    if not isinstance(in_specs, tuple):
        raise TypeError(f"{what}: wants a PartitionSpec, or a tuple of one entry per argument, got {kind(in_specs)}")
    if len(in_specs) != len(args):
        raise ValueError(f"{what} has {len(in_specs)} entries, but the call has {len(args)} arguments")
    found = []
    for name, prefix, arg in zip(positional_names(f, len(args)), in_specs, args, strict=True):
        for path, spec, leaf in spread(what, prefix, arg, name, _is_spec, "a PartitionSpec"):
            if spec is not None:
                if not is_array(leaf):
                    raise TypeError(f"shard_map: {path} is {kind(leaf)}, wanted an array, or None in in_specs")
                _check(what, path, type_of(leaf).strong(), spec, region)
                _check_divided(what, path, type_of(leaf).strong(), spec, region)
            found.append(spec)
    return found


def _out_specs(f: Callable[..., Any], region: Region, out_specs: Any, result: Any) -> list[PartitionSpec]:
    """For each leaf of the result its specification, checked."""
    what = "shard_map: out_specs"
    found = []
    for path, spec, leaf in spread(what, out_specs, result, "the result", _is_spec, "a PartitionSpec"):
        if spec is None:
            raise TypeError(f"{what}: wants a PartitionSpec for {path}, got None")
        type = type_of(leaf).strong()
        _check(what, path, type, spec, region)
        left = type.varying.intersection(region.axes).difference(names_in(spec))
        if left:
            raise ValueError(
                f"{what}: {path} of type {type} varies along {sorted(left)}, which {spec} leaves out: that would say "
                "that all devices there have the same. Name the axis, reduce along it (psum, pmean, ...), or say "
                "check_vma=False if it is the same all the same."
            )
        found.append(spec)
    return found


def _check(what: str, path: str, type: ArrayType, spec: PartitionSpec, region: Region) -> None:
    if len(spec) > type.ndim:
        raise ValueError(f"{what}: {spec} has {len(spec)} entries, but {path} of type {type} has {type.ndim} axes")
    names = _names(what, path, spec)
    for name in names:
        if name not in region.axes:
            raise ValueError(f"{what}: {spec} for {path} names {name!r}, but there are {list(region.axes)}")
        if names.count(name) > 1:
            raise ValueError(f"{what}: {spec} for {path} names {name!r} twice")


def _names(what: str, path: str, spec: PartitionSpec) -> Sequence[str]:
    if any(e is PartitionSpec.UNCONSTRAINED for e in spec):
        raise ValueError(f"{what}: {spec} for {path} must say of each axis how it is divided, by a name or None")
    return names_in(spec)


def _check_divided(what: str, path: str, type: ArrayType, spec: PartitionSpec, region: Region) -> None:
    for axis, (size, names) in enumerate(zip(type.shape, entries(spec, type.ndim), strict=True)):
        if size % region.size(names):
            raise ValueError(
                f"{what}: axis {axis} of {path} of type {type} cannot be divided among {region.size(names)} devices, "
                f"as {spec} says"
            )
