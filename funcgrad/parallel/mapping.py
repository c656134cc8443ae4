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
from funcgrad.parallel.shard_map_primitive import Region, entries, map_program, names_in
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
    """``f`` run on each device of a mesh, on the device's shards of arrays; as ``jax.shard_map``.

    Within ``f`` the mesh axes are named: ``psum``, ``all_gather``, ``ppermute`` and other collectives communicate along
    them. It can be differentiated and batched from outside and inside, used in and around ``jit``, ``scan`` and
    ``checkpoint``, and nested over other mesh axes.

    A value that depends on shards varies along the axes that they are divided along; sums and extrema over an axis, and
    undivided arrays, are replicated. An operation on both treats the replicated value as varying, so its gradient is
    summed over the devices, for ``grad`` inside ``f`` too.

    Args:
        f: takes and returns pytrees of arrays. It is traced at each call.
        out_specs: how results are assembled: a ``PartitionSpec`` for all, or a prefix pytree of them. A mesh axis that
            it omits asserts that the result is replicated along it.
        in_specs: likewise for the tuple of arguments: arrays are replicated along omitted axes. None for an argument
            that is not an array.
        mesh: the mesh; by default that of ``jax.set_mesh``, or of the enclosing ``shard_map``.
        axis_names: the mesh axes along which ``f`` runs per device; all, if empty. Along the others the compiler
            partitions, and specifications must not name them.
        check_vma: whether types track the axes along which values vary. Otherwise ``out_specs`` are trusted, and
            ``grad`` inside ``f`` returns each device's own gradient.

    Returns:
        A function of positional arguments like ``f``, on global arrays; without ``f``, a decorator.

    Raises:
        TypeError: for an invalid mesh, specification or argument; the message names it.
        ValueError: from the function, if an argument or a result cannot be divided as specified, if a specification
            names a missing axis, or if a result varies along an axis that its specification omits.

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
    if not isinstance(mesh, (Mesh, AbstractMesh)):
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
    except ValueError:  # under JAX's tracing only the names are known
        mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        raise ValueError("shard_map: there is no mesh; give it as mesh, or call the function within jax.set_mesh(mesh)")
    return mesh


# ---------------------------------------------------------------- the specifications


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _in_specs(f: Callable[..., Any], region: Region, in_specs: Any, args: tuple[Any, ...]) -> list[Any]:
    """The checked specification of each leaf of the arguments; None for a leaf that is not an array."""
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
    """The checked specification of each leaf of the result."""
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
