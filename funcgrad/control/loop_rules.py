"""Differentiation and batching of loops with a carry, by transforming the program of one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from funcgrad.control.split import depth, split_for_forward, split_for_reverse
from funcgrad.core.ir import ArrayType, Atom, Equation, Literal, Program, Var, kept_with_program
from funcgrad.core.passes import dead_code
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.batching import at_axis, batch_flat
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.forward import jvp_flat
from funcgrad.interpreters.reverse import Pullback
from funcgrad.interpreters.rules import accumulate
from funcgrad.interpreters.staging import StagedTracer, Staging, stage
from funcgrad.primitives.elementwise import cast
from funcgrad.primitives.shape import broadcast, zeros

#: The function that binds a loop: (program, consts, carry, xs, length, reverse, unroll) to (carry, ys).
Loop = Callable[..., tuple[list[Any], list[Any]]]
Mask = tuple[bool, ...]


def strong(x: Any) -> Any:
    """``x`` with a strong dtype."""
    type = type_of(x)
    return cast(x, dtype=type.dtype) if type.weak else x


def repeated_number(x: Any) -> Any:
    """The number that a staged array is filled with, if its equation shows it; else None."""
    if not isinstance(x, StagedTracer) or not x.shape:
        return None
    assert isinstance(x.interpreter, Staging)
    for equation in reversed(x.interpreter.equations):
        if x.variable in equation.outputs:
            source = equation.inputs[0] if equation.primitive is broadcast else None
            return source.value if isinstance(source, Literal) else None
    return None


def split_at(values: Sequence[Any], *counts: int) -> list[list[Any]]:
    """``values`` in groups of the given sizes, and the remainder."""
    groups, start = [], 0
    for n in counts:
        groups.append(list(values[start : start + n]))
        start += n
    return [*groups, list(values[start:])]


def chosen(values: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The values selected by a mask."""
    return [v for v, m in zip(values, mask, strict=True) if m]


# ---------------------------------------------------------------- dependencies


def reached(program: Program, inputs: Sequence[bool]) -> list[bool]:
    """Which floating outputs depend differentiably on the marked inputs."""
    marked: set[Atom] = set(chosen(program.inputs, inputs))
    for equation in program.equations:
        if equation.primitive.differentiable and not marked.isdisjoint(equation.inputs):
            marked.update(v for v in equation.outputs if v.type.inexact)
    return [a in marked for a in program.outputs]


@kept_with_program
def live_carries(program: Program, consts: int, carries: int, mask: Mask) -> Mask:
    """Which carries get a derivative, after any number of steps, if the operands marked in ``mask`` have one."""
    fixed, carry, slices = split_at(mask, consts, carries)
    while True:
        after = reached(program, [*fixed, *carry, *slices])[:carries]
        grown = [a or b for a, b in zip(carry, after)]
        if grown == carry:
            return tuple(carry)
        carry = grown


class Residuals:
    """Which residuals of a loop's step are stacked, and where the others come from.

    Loop-invariant residuals, slices of the loop's inputs, and results that are stacked anyway are not stacked again.

    Attributes:
        step: the step that returns its results, and the residuals to be stacked.
        fixed: for each loop-invariant residual, its position among the residuals.
        stacked: for each other one, its position.
    """

    def __init__(self, whole: Program, outs: int, consts: int, carries: int):
        head, xs = whole.inputs[:consts], whole.inputs[consts + carries :]
        same, equations = _same_in_all_steps(whole, head)
        results = list(whole.outputs[carries:outs])
        self._outs = outs - carries
        self._before: list[Atom] = []
        self._sources: list[tuple[str, int]] = []
        self.fixed: list[int] = []
        self.stacked: list[int] = []
        for place, atom in enumerate(whole.outputs[outs:]):
            if atom in same or isinstance(atom, Literal):
                self.fixed.append(place)
                self._before.append(atom)
                continue
            self.stacked.append(place)
            if atom in xs:
                self._sources.append(("x", xs.index(atom)))
                continue
            if atom not in results:
                results.append(atom)
            self._sources.append(("y", results.index(atom)))
        outputs = [*whole.outputs[:carries], *results]
        self.step = Program(whole.inputs, whole.constants, whole.equations, outputs, whole.name)
        self._same = dead_code(Program(head, whole.constants, equations, self._before, whole.name))

    def results(self, ys: Sequence[Any]) -> list[Any]:
        """The loop's results among those of ``step``."""
        return list(ys[: self._outs])

    def values(self, consts: Sequence[Any], xs: Sequence[Any], ys: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The loop-invariant residuals, and the stacked ones."""
        return evaluate(self._same, consts), [(xs if kind == "x" else ys)[i] for kind, i in self._sources]

    def joined(self, fixed: Sequence[Any], slices: Sequence[Any]) -> list[Any]:
        """The residuals of one step in the split program's order."""
        found = dict(zip(self.fixed, fixed, strict=True)) | dict(zip(self.stacked, slices, strict=True))
        return [found[i] for i in range(len(found))]


def _same_in_all_steps(program: Program, consts: Sequence[Var]) -> tuple[set[Atom], list[Equation]]:
    """The variables that depend only on ``consts`` and the program's constants, and their equations."""
    same: set[Atom] = {*consts, *[v for v, _ in program.constants]}
    equations = []
    for equation in program.equations:
        if all(isinstance(a, Literal) or a in same for a in equation.inputs):
            same.update(equation.outputs)
            equations.append(equation)
    return same, equations


# ---------------------------------------------------------------- forward mode


def loop_jvp(
    loop: Loop, primals: Sequence[Any], tangents: Sequence[Any], *, program: Program, consts: int, carries: int,
    **how: Any,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """The results and their tangents: by one loop over both, or by two, if the tangents belong to an inner context.

    In one loop results would become values of that inner context too, which ``linearize`` must avoid.
    """
    mask = tuple(t is not None for t in tangents)
    live = live_carries(program, consts, carries, mask)
    moving = list(tangents)
    for i in range(consts, consts + carries):
        if live[i - consts] and moving[i] is None:
            moving[i] = zeros(type_of(primals[i]))
    if depth([t for t in tangents if t is not None]) > depth(primals):
        return _jvp_apart(loop, primals, moving, live, program, consts, carries, how)
    full = tuple(t is not None for t in moving)
    derived, ys_moving = jvp_step(program, consts, carries, full)
    groups = zip(split_at(primals, consts, carries), split_at(moving, consts, carries))
    operands = [[*p, *[t for t in ts if t is not None]] for p, ts in groups]
    carry, ys = loop(derived, *operands, **how)
    outs, moved = [*carry[:carries], *ys[: len(ys_moving)]], iter([*carry[carries:], *ys[len(ys_moving) :]])
    return outs, [next(moved) if m else None for m in (*live, *ys_moving)]


@kept_with_program
def jvp_step(program: Program, consts: int, carries: int, mask: Mask) -> tuple[Program, list[bool]]:
    """The step on operands, each group followed by its tangents; and which results have a tangent."""
    groups = split_at(program.input_types, consts, carries)
    masks = split_at(mask, consts, carries)
    moving: list[bool] = []

    def step(*args: Any) -> list[Any]:
        given = iter(args)
        primals: list[Any] = []
        tangents: list[Any] = []
        for types, marks in zip(groups, masks):
            primals += [next(given) for _ in types]
            tangents += [next(given) if m else None for m in marks]
        outs, moved = jvp_flat(lambda *xs: evaluate(program, xs), primals, tangents)
        moving[:] = [t is not None for t in moved[carries:]]
        carried = [
            zeros(type_of(o)) if t is None else t
            for o, t in zip(chosen(outs[:carries], masks[1]), chosen(moved[:carries], masks[1]))
        ]
        return [
            *outs[:carries],
            *map(strong, carried),
            *outs[carries:],
            *[strong(t) for t in moved[carries:] if t is not None],
        ]

    types = [t for ts, marks in zip(groups, masks) for t in (*ts, *chosen(ts, marks))]
    return stage(step, types, name=f"jvp_{program.name}"), moving


def _jvp_apart(
    loop: Loop, primals: Sequence[Any], tangents: Sequence[Any], live: Mask, program: Program, consts: int,
    carries: int, how: dict[str, Any],
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """The results by one loop, which stacks residuals, and the tangents by another, which is linear."""
    mask = tuple(t is not None for t in tangents)
    residuals, push, nonzero = _forward_plan(program, consts, carries, mask, live)
    fixed, carry, xs = split_at(primals, consts, carries)
    final, ys = loop(residuals.step, fixed, carry, xs, **how)
    same, stacked = residuals.values(fixed, xs, ys)
    t_consts, t_carry, t_xs = [[t for t in g if t is not None] for g in split_at(tangents, consts, carries)]
    carried, moved = loop(push, [*same, *t_consts], t_carry, [*stacked, *t_xs], **how)
    outs, found = [*final, *residuals.results(ys)], iter([*carried, *moved])
    return outs, [next(found) if m else None for m in (*live, *nonzero[carries:])]


@kept_with_program
def _forward_plan(
    program: Program, consts: int, carries: int, mask: Mask, live: Mask
) -> tuple[Residuals, Program, list[bool]]:
    whole, linear, nonzero = split_for_forward(program, mask)
    residuals = Residuals(whole, len(program.outputs), consts, carries)
    count = len(linear.inputs) - sum(mask)
    types, marked = linear.input_types[count:], split_at(mask, consts, carries)
    t_consts, t_carry, t_xs = split_at(types, sum(marked[0]), sum(marked[1]))
    kept = [linear.input_types[i] for i in (*residuals.fixed, *residuals.stacked)]
    same, stacked = kept[: len(residuals.fixed)], kept[len(residuals.fixed) :]

    def step(*args: Any) -> list[Any]:
        r, tc, t, s, tx = split_at(args, len(same), len(t_consts), len(t_carry), len(stacked))
        found = iter(evaluate(linear, [*residuals.joined(r, s), *tc, *t, *tx]))
        moved = [next(found) if n else None for n in nonzero]
        carried = [zeros(type) if x is None else x for x, type in zip(chosen(moved[:carries], live), t_carry)]
        return [*map(strong, [*carried, *[x for x in moved[carries:] if x is not None]])]

    staged = stage(step, [*same, *t_consts, *t_carry, *stacked, *t_xs], name=linear.name)
    return residuals, staged, nonzero


# ---------------------------------------------------------------- reverse mode


def loop_vjp(
    loop: Loop, operands: Sequence[Any], needs: Sequence[bool], *, program: Program, consts: int, carries: int,
    reverse: bool = False, **how: Any,
) -> tuple[list[Any], Pullback]:  # fmt: skip
    """The results, and the pullback: a loop in the opposite direction over the residuals of each step."""
    abstract = [isinstance(x, ArrayType) for x in operands]
    if any(abstract):
        # The loop is linear in these, so the derivative is the same everywhere, at zero too.
        operands = [zeros(x.strong()) if a else x for x, a in zip(operands, abstract)]
    plan = _reverse_plan(program, consts, carries, tuple(needs))
    fixed, carry, xs = split_at(operands, consts, carries)
    final, ys = loop(plan.residuals.step, fixed, carry, xs, reverse=reverse, **how)
    outs = [*final, *plan.residuals.results(ys)]
    same, stacked = plan.residuals.values(fixed, xs, ys)

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        step, nonzero = plan.backward(tuple(ct is not None for ct in cotangents[carries:]))
        through = [
            zeros(type_of(o)) if ct is None else ct for o, ct, m in zip(final, cotangents[:carries], plan.live) if m
        ]
        sums = [zeros(type_of(x)) for x in chosen(fixed, nonzero[:consts])]
        given = [ct for ct in cotangents[carries:] if ct is not None]
        carried, found = loop(step, same, [*through, *sums], [*stacked, *given], reverse=not reverse, **how)
        of_carry, of_consts = split_at(carried, len(through))
        found_iter, carry_iter, const_iter = iter(found), iter(of_carry), iter(of_consts)
        cts = [next(const_iter) if n else None for n in nonzero[:consts]]
        before = [next(carry_iter) if m else None for m in plan.live]
        cts += [ct if n else None for ct, n in zip(before, needs[consts : consts + carries])]
        return [*cts, *[next(found_iter) if n else None for n in nonzero[consts + carries :]]]

    return outs, pullback


class _Reverse:
    """The step of a loop, split for reverse mode.

    Attributes:
        live: which carries have a cotangent.
        residuals: the forward step and its residuals.
    """

    def __init__(self, program: Program, consts: int, carries: int, needs: Mask):
        self.program, self.consts, self.carries = program, consts, carries
        self.live = live_carries(program, consts, carries, needs)
        self.needs = (*needs[:consts], *self.live, *needs[consts + carries :])
        whole, self.derive = split_for_reverse(program, self.needs)
        self.residuals = Residuals(whole, len(program.outputs), consts, carries)
        self.kept = [a.type.strong() for a in whole.outputs[len(program.outputs) :]]
        self.backward = lru_cache(maxsize=64)(self._backward)

    def _backward(self, given: Mask) -> tuple[Program, list[bool]]:
        """The backward step, on ``(*same, *cts of the carry, *sums of those of the consts, *stacked, *cts)``.

        Args:
            given: which stacked results have a cotangent.

        Returns:
            The program, and which operands get a cotangent.
        """
        derived, nonzero = self.derive((*self.live, *given))
        consts, carries, r = self.consts, self.carries, self.residuals
        inputs = [t.strong() for t in self.program.input_types]
        outputs = [t.strong() for t in self.program.output_types]
        same, stacked = [self.kept[i] for i in r.fixed], [self.kept[i] for i in r.stacked]
        through = chosen(outputs[:carries], self.live)
        sums = chosen(inputs[:consts], nonzero[:consts])

        def step(*args: Any) -> list[Any]:
            fixed, cts, totals, slices, ys = split_at(args, len(same), len(through), len(sums), len(stacked))
            found = iter(evaluate(derived, [*r.joined(fixed, slices), *cts, *ys]))
            whole = [next(found) if n else None for n in nonzero]
            of_consts, of_carry, of_xs = split_at(whole, consts, carries)
            before = [zeros(t) if ct is None else ct for ct, t in zip(chosen(of_carry, self.live), through)]
            added = [accumulate(a, b) for a, b in zip(totals, (ct for ct in of_consts if ct is not None))]
            return [strong(x) for x in (*before, *added, *[ct for ct in of_xs if ct is not None])]

        types = [*same, *through, *sums, *stacked, *chosen(outputs[carries:], given)]
        return stage(step, types, name=derived.name), nonzero


_reverse_plan = kept_with_program(_Reverse)


# ---------------------------------------------------------------- batching


def loop_batch(
    loop: Loop, size: int, operands: Sequence[Any], dims: Sequence[int | None], *, program: Program, consts: int,
    carries: int, **how: Any,
) -> tuple[list[Any], list[int | None]]:  # fmt: skip
    """One loop for the whole batch; a carry is batched if it depends on a batched value in any step."""
    fixed, carry, xs = split_at(operands, consts, carries)
    d_fixed, d_carry, d_xs = split_at(dims, consts, carries)
    # Stacked arrays have the step axis first, then the batch axis; slices and carries have the batch axis first.
    xs = [x if d is None else at_axis(x, d, 1, size) for x, d in zip(xs, d_xs)]
    derived, batched, placed = batched_step(
        program, size, consts, carries, tuple(d_fixed), tuple(d is not None for d in d_carry),
        tuple(d is not None for d in d_xs),
    )  # fmt: skip
    carry = [at_axis(x, d, 0, size) if b else x for x, d, b in zip(carry, d_carry, batched)]
    final, ys = loop(derived, fixed, carry, xs, **how)
    return [*final, *ys], [*[0 if b else None for b in batched], *[1 if p else None for p in placed]]


@kept_with_program
def batched_step(
    program: Program, size: int, consts: int, carries: int, fixed: tuple[int | None, ...], carry: Mask, xs: Mask
) -> tuple[Program, Mask, Mask]:
    """The vectorized step, which of its carries are batched, and which of its results."""
    found: list[int | None] = []
    batched = carry
    while True:
        dims = [*fixed, *[0 if b else None for b in (*batched, *xs)]]
        kept = batched

        def step(*args: Any, dims: list[int | None] = dims, kept: Mask = kept) -> list[Any]:
            outs, where = batch_flat(lambda *a: evaluate(program, a), size, args, dims)
            found[:] = where
            wanted = [b or d is not None for b, d in zip(kept, where)] + [d is not None for d in where[carries:]]
            return [strong(at_axis(o, d, 0, size)) if w else strong(o) for o, d, w in zip(outs, where, wanted)]

        types = [_with_axis(t, d, size) for t, d in zip(program.input_types, dims)]
        staged = stage(step, types, name=f"vmap_{program.name}")
        grown = tuple(b or d is not None for b, d in zip(batched, found))
        if grown == batched:
            return staged, batched, tuple(d is not None for d in found[carries:])
        batched = grown


def _with_axis(type: ArrayType, dim: int | None, size: int) -> ArrayType:
    if dim is None:
        return type.strong()
    return type.with_shape((*type.shape[:dim], size, *type.shape[dim:])).strong()
