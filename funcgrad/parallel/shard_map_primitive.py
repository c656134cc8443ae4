"""``shard_map``: a function of each device's shards, as one equation that carries a per-device program.

Outside, arrays are global; inside, they are shards, whose types record the mesh axes along which they vary. A
specification converts between the two types. The rules run the interpreters over the per-device program. Residuals of
reverse mode stay on their device: outside they are an array whose first axis is divided among the devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import jax
from jax.sharding import PartitionSpec

from funcgrad.control.call import batched_program, jvp_program
from funcgrad.control.split import depth, split_for_forward, split_for_reverse
from funcgrad.control.widening import joined, raised_all, varying_of, widened
from funcgrad.core.ir import ArrayType, Program, kept_with_program
from funcgrad.core.passes import dead_code, simplified_closed
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import state, type_of
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.lower import by_equation, lowered
from funcgrad.interpreters.reverse import Pullback
from funcgrad.interpreters.staging import stage
from funcgrad.interpreters.transpose import transpose_call
from funcgrad.primitives.collectives import MeshAxis, Over, psum_p
from funcgrad.primitives.elementwise import div, number
from funcgrad.primitives.shape import reshape

Specs = tuple[PartitionSpec, ...]
WHOLE = PartitionSpec()


class Region(NamedTuple):
    """The region in which a per-device function runs.

    Attributes:
        mesh: the mesh.
        axes: the axes along which it runs per device, in the mesh's order; the compiler partitions along the others.
        checked: whether types record the axes along which values vary.
    """

    mesh: Any
    axes: tuple[str, ...]
    checked: bool

    def size(self, names: Sequence[str] | frozenset[str]) -> int:
        return math.prod(self.mesh.shape[n] for n in names)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Context in which collectives resolve its axes."""
        before = state.axes
        state.axes = {**before, **{n: (MeshAxis(self.mesh, self.checked), self.mesh.shape[n]) for n in self.axes}}
        try:
            yield
        finally:
            state.axes = before

    def part(self, whole: ArrayType, spec: PartitionSpec) -> ArrayType:
        """The type of a device's shard of an array."""
        shape = [n // self.size(names) for n, names in zip(whole.shape, entries(spec, whole.ndim), strict=True)]
        return whole.with_shape(tuple(shape)).with_varying(whole.varying | self.along(spec))

    def whole(self, part: ArrayType, spec: PartitionSpec) -> ArrayType:
        """The type of the global array with such shards."""
        shape = [n * self.size(names) for n, names in zip(part.shape, entries(spec, part.ndim), strict=True)]
        return part.with_shape(tuple(shape)).with_varying(part.varying.difference(self.axes))

    def along(self, spec: PartitionSpec) -> frozenset[str]:
        """The axes along which the types of shards vary."""
        return frozenset(names_in(spec)) if self.checked else frozenset()

    def others(self, spec: PartitionSpec) -> tuple[str, ...]:
        """The axes that a specification omits."""
        return tuple(n for n in self.axes if n not in names_in(spec))


def entries(spec: PartitionSpec, ndim: int) -> list[tuple[str, ...]]:
    """The mesh axes that each axis of an array is divided along."""
    found = [() if e is None else e if isinstance(e, tuple) else (e,) for e in spec]
    return [*found, *[()] * (ndim - len(found))]


def names_in(spec: PartitionSpec) -> list[str]:
    return [name for names in entries(spec, len(spec)) for name in names]


# ---------------------------------------------------------------- binding


def map_program(
    region: Region, program: Program, operands: Sequence[Any], in_specs: Sequence[PartitionSpec], out_specs: Specs
) -> list[Any]:
    """Runs a per-device program; captured values are replicated."""
    closed, constants = simplified_closed(program)
    specs = (*[WHOLE] * len(constants), *in_specs)
    given, params = _widen([*constants, *operands], _params(region, closed, specs, tuple(out_specs)))
    return shard_map_p(*given, **params)


def _params(region: Region, program: Program, in_specs: Specs, out_specs: Specs) -> dict[str, Any]:
    return {
        "program": program, "mesh": region.mesh, "axes": region.axes, "in_specs": in_specs, "out_specs": out_specs,
        "checked": region.checked,
    }  # fmt: skip


def _region(params: dict[str, Any]) -> Region:
    return Region(params["mesh"], params["axes"], params["checked"])


def _widen(operands: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """The ``widen`` rule: a program whose shards vary along exactly the axes that they are divided along, and enclosing
    ones."""
    region, program = _region(params), params["program"]
    with region.entered():
        given = [v | region.along(s) for v, s in zip(varying_of(operands), params["in_specs"], strict=True)]
        inputs = joined(given, [t.varying for t in program.input_types])
        program = widened(program, inputs)
        outputs = [t.varying | region.along(s) for t, s in zip(program.output_types, params["out_specs"], strict=True)]
        program = widened(program, inputs, tuple(outputs))
    own = frozenset(region.axes)
    types = [t.with_varying(t.varying - own) for t in program.input_types]
    return raised_all(operands, types), {**params, "program": program}


def _infer(*types: ArrayType, program: Program, in_specs: Specs, out_specs: Specs, **params: Any) -> list[ArrayType]:
    region = Region(params["mesh"], params["axes"], params["checked"])
    parts = [region.part(t.strong(), s) for t, s in zip(types, in_specs, strict=True)]
    wanted = [t.strong() for t in program.input_types]
    if parts != wanted:
        raise TypeError(f"shard_map: parts of types {parts}, but its program wants {wanted}")
    return [region.whole(t.strong(), s) for t, s in zip(program.output_types, out_specs, strict=True)]


def _lower(*operands: Any, program: Program, in_specs: Specs, out_specs: Specs, **params: Any) -> list[Any]:
    run = lowered(program)
    with by_equation() as inside:
        mapped = jax.shard_map(
            run,
            mesh=None if inside else params["mesh"],  # a nested one must use JAX's context mesh
            in_specs=in_specs,
            out_specs=list(out_specs),
            axis_names=set(params["axes"]),
            check_vma=False,  # checked by our types
        )
        return list(mapped(*operands))


# ---------------------------------------------------------------- residuals


class _Kept:
    """The residuals of a per-device program, stored on the devices that computed them.

    Attributes:
        forward: the program whose outputs are the results followed by the stored residuals.
        specs: the specifications of the stored residuals.
        sources: for each residual the index of an operand, or, from -1 down, of a stored residual.
    """

    def __init__(self, region: Region, whole: Program, outs: int):
        results, residuals = whole.outputs[:outs], whole.outputs[outs:]
        inputs = {v: i for i, v in enumerate(whole.inputs)}
        kept = list(dict.fromkeys(a for a in residuals if a not in inputs))
        self.sources = [inputs[a] if a in inputs else -1 - kept.index(a) for a in residuals]
        self.shapes = [a.type.shape for a in kept]
        axes = [tuple(n for n in region.axes if not region.checked or n in a.type.varying) for a in kept]
        self.specs = tuple(PartitionSpec(names) if names else WHOLE for names in axes)
        program = Program(whole.inputs, whole.constants, whole.equations, [*results, *kept], whole.name)

        def run(*xs: Any) -> list[Any]:
            found = evaluate(program, xs)
            stored = [
                reshape(x, shape=(1,)) if names and not type_of(x).shape else x
                for x, names in zip(found[outs:], axes, strict=True)
            ]
            return [*found[:outs], *stored]

        self.forward = stage(run, program.input_types, name=program.name)

    def residuals(self, operands: Sequence[Any], in_specs: Specs, kept: Sequence[Any]) -> list[tuple[Any, Any]]:
        """For each residual the global array, and its specification."""
        return [(operands[i], in_specs[i]) if i >= 0 else (kept[-1 - i], self.specs[-1 - i]) for i in self.sources]

    def inner(self, stored: Sequence[Any]) -> list[Any]:
        """The residuals inside, given those that are stored or operands."""
        return [
            x if i >= 0 or type_of(x).shape == self.shapes[-1 - i] else reshape(x, shape=self.shapes[-1 - i])
            for x, i in zip(stored, self.sources, strict=True)
        ]

    def types(self, region: Region, program: Program, in_specs: Specs) -> list[ArrayType]:
        """The types of the residuals that are operands."""
        outs = self.forward.output_types[len(self.forward.outputs) - len(self.specs) :]
        stored = [t.strong().with_varying(t.varying | region.along(s)) for t, s in zip(outs, self.specs, strict=True)]
        return [program.input_types[i].strong() if i >= 0 else stored[-1 - i] for i in self.sources]


@kept_with_program
def _reverse_plan(
    program: Program, needs: tuple[bool, ...], region: Region, in_specs: Specs, out_specs: Specs
) -> tuple[_Kept, Callable[[tuple[bool, ...]], tuple[Program, list[bool]]]]:
    with region.entered():
        whole, derive = split_for_reverse(program, needs)
        kept = _Kept(region, whole, len(program.outputs))
    count = len(kept.sources)
    stored = kept.types(region, program, in_specs)

    @lru_cache(maxsize=64)
    def backward(given: tuple[bool, ...]) -> tuple[Program, list[bool]]:
        """The program from residuals and given cotangents to the cotangents of the operands."""
        with region.entered():
            derived, nonzero = derive(given)
            out = [s for s, g in zip(out_specs, given, strict=True) if g]
            into = [s for s, n in zip(in_specs, nonzero, strict=True) if n]

            def run(*args: Any) -> list[Any]:
                cts = _entering(region, args[count:], out)
                return _leaving(region, evaluate(derived, [*kept.inner(args[:count]), *cts]), into)

            types = [*stored, *derived.input_types[count:]]
            return dead_code(stage(run, types, name=derived.name)), nonzero

    return kept, backward


def _entering(region: Region, cts: Sequence[Any], specs: Sequence[PartitionSpec]) -> list[Any]:
    """Cotangents of results if types do not record replication: each device gets its share."""
    if region.checked:
        return list(cts)
    sizes = [region.size(region.others(s)) for s in specs]
    return [ct if n == 1 else div(ct, number(n, ct)) for ct, n in zip(cts, sizes, strict=True)]


def _leaving(region: Region, cts: Sequence[Any], specs: Sequence[PartitionSpec]) -> list[Any]:
    """Cotangents of operands: summed over the devices with the same shard."""
    if region.checked:
        return list(cts)
    others = [region.others(s) for s in specs]
    return [psum_p(ct, over=Over(names, False)) if names else ct for ct, names in zip(cts, others, strict=True)]


def _vjp(operands: Sequence[Any], needs: Sequence[bool], params: dict[str, Any]) -> tuple[list[Any], Pullback]:
    region, program = _region(params), params["program"]
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    if any(isinstance(x, ArrayType) for x in operands):
        return [], lambda cts: _transposed(region, program, in_specs, out_specs, operands, cts)
    plan, backward = _reverse_plan(program, tuple(needs), region, in_specs, out_specs)
    found = map_program(region, plan.forward, operands, in_specs, (*out_specs, *plan.specs))
    n = len(out_specs)

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        mask = tuple(ct is not None for ct in cotangents)
        derived, nonzero = backward(mask)
        arrays = [*plan.residuals(operands, in_specs, found[n:])]
        arrays += [(ct, s) for ct, s in zip(cotangents, out_specs, strict=True) if ct is not None]
        into = tuple(s for s, z in zip(in_specs, nonzero, strict=True) if z)
        cts = iter(map_program(region, derived, [x for x, _ in arrays], [s for _, s in arrays], into))
        return [next(cts) if z else None for z in nonzero]

    return found[:n], pullback


def _transposed(
    region: Region, program: Program, in_specs: Specs, out_specs: Specs, operands: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """The cotangents of the operands given as types, in which the program is linear."""
    linear = [isinstance(x, ArrayType) for x in operands]
    known = [i for i, is_linear in enumerate(linear) if not is_linear]
    given = [i for i, ct in enumerate(cts) if ct is not None]
    types = [program.input_types[i] for i in known] + [program.output_types[i].strong() for i in given]
    nonzero: list[bool] = []

    def run(*args: Any) -> list[Any]:
        inner: list[Any] = [t.strong() for t in program.input_types]
        for i, x in zip(known, args):
            inner[i] = x
        entered = _entering(region, args[len(known) :], [out_specs[i] for i in given])
        received = dict(zip(given, entered, strict=True))
        found = transpose_call(program, inner, [received.get(i) for i in range(len(cts))])
        nonzero[:] = [ct is not None for ct in found]
        into = [s for s, ct in zip(in_specs, found, strict=True) if ct is not None]
        return _leaving(region, [ct for ct in found if ct is not None], into)

    with region.entered():
        derived = stage(run, types, name=f"transpose_{program.name}")
    specs = [in_specs[i] for i in known] + [out_specs[i] for i in given]
    arrays = [operands[i] for i in known] + [cts[i] for i in given]
    into = tuple(s for s, z in zip(in_specs, nonzero, strict=True) if z)
    found = iter(map_program(region, derived, arrays, specs, into))
    return [next(found) if z else None for z in nonzero]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    region, program = _region(params), params["program"]
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    mask = tuple(t is not None for t in tangents)
    given = [t for t in tangents if t is not None]
    moved = [s for s, m in zip(in_specs, mask, strict=True) if m]
    n = len(out_specs)
    if depth(given) > depth(primals):
        # In one program with their tangents, results would become values of the inner context too.
        kept, linear, nonzero = _forward_plan(program, mask, region, in_specs)
        known = map_program(region, kept.forward, primals, in_specs, (*out_specs, *kept.specs))
        arrays = kept.residuals(primals, in_specs, known[n:])
        specs = [*[s for _, s in arrays], *moved]
        pushed = tuple(s for s, z in zip(out_specs, nonzero, strict=True) if z)
        found = iter(map_program(region, linear, [*[x for x, _ in arrays], *given], specs, pushed))
        return known[:n], [next(found) if z else None for z in nonzero]
    with region.entered():
        derived, nonzero = jvp_program(program, mask)
    pushed = tuple(s for s, z in zip(out_specs, nonzero, strict=True) if z)
    results = map_program(region, derived, [*primals, *given], [*in_specs, *moved], (*out_specs, *pushed))
    found = iter(results[n:])
    return results[:n], [next(found) if z else None for z in nonzero]


@kept_with_program
def _forward_plan(
    program: Program, mask: tuple[bool, ...], region: Region, in_specs: Specs
) -> tuple[_Kept, Program, list[bool]]:
    with region.entered():
        whole, linear, nonzero = split_for_forward(program, mask)
        kept = _Kept(region, whole, len(program.outputs))
        count = len(kept.sources)
        types = [*kept.types(region, program, in_specs), *linear.input_types[count:]]
        pushed = stage(lambda *xs: evaluate(linear, [*kept.inner(xs[:count]), *xs[count:]]), types, name=linear.name)
    return kept, pushed, nonzero


# ---------------------------------------------------------------- batching


def _batch(size: int, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[list[Any], list]:
    region, program = _region(params), params["program"]
    types = [t if d is None else _with_axis(t, d, size) for t, d in zip(program.input_types, dims, strict=True)]
    with region.entered():
        derived, out_dims = batched_program(program, size, tuple(types), tuple(dims))
    in_specs = tuple(_with_entry(s, d) for s, d in zip(params["in_specs"], dims, strict=True))
    out_specs = tuple(_with_entry(s, d) for s, d in zip(params["out_specs"], out_dims, strict=True))
    return map_program(region, derived, operands, in_specs, out_specs), out_dims


def _with_axis(type: ArrayType, dim: int, size: int) -> ArrayType:
    return type.with_shape((*type.shape[:dim], size, *type.shape[dim:]))


def _with_entry(spec: PartitionSpec, dim: int | None) -> PartitionSpec:
    """A specification with an undivided axis added."""
    if dim is None:
        return spec
    padded = [*spec, *[None] * (dim - len(spec))]
    return PartitionSpec(*padded[:dim], None, *padded[dim:])


shard_map_p = Primitive(
    "shard_map", infer=_infer, lower=_lower, jvp=_jvp, vjp=_vjp, batch=_batch, widen=_widen, multiple=True
)
