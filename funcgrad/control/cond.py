"""``cond``: an equation that carries a program per branch, one of which runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jax import lax

from funcgrad.arguments.flatten import kind
from funcgrad.control.loop_rules import chosen, strong
from funcgrad.control.split import depth, split_for_forward, split_for_reverse
from funcgrad.control.widening import widen_cond
from funcgrad.core import dtypes, trees
from funcgrad.core.errors import explained, here
from funcgrad.core.ir import ArrayType, Program, kept_with_program
from funcgrad.core.passes import common_subexpressions, dead_code
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import is_array, type_of, typed
from funcgrad.interpreters.batching import at_axis, batch_flat
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.forward import jvp_flat
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.reverse import Pullback
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.elementwise import cast, ne, number, select
from funcgrad.primitives.shape import broadcast, zeros

Mask = tuple[bool, ...]
Pair = tuple[Program, Program]

# ---------------------------------------------------------------- the primitive


def _infer(condition: ArrayType, *types: ArrayType, on_true: Program, on_false: Program) -> list[ArrayType]:
    if condition.dtype != dtypes.bool_ or condition.shape:
        raise TypeError(f"cond: the condition must be one bool, got {condition}")
    for program in (on_true, on_false):
        wanted = [t.strong() for t in program.input_types]
        if [t.strong() for t in types] != wanted:
            raise TypeError(f"cond: operands of types {list(types)}, but a branch wants {wanted}")
    outs = [[t.strong() for t in p.output_types] for p in (on_true, on_false)]
    if outs[0] != outs[1]:
        raise TypeError(f"cond: the branches must return the same types, got {outs[0]} and {outs[1]}")
    return outs[0]


def cond_programs(condition: Any, pair: Pair, operands: Sequence[Any]) -> list[Any]:
    """Runs one of two programs of the same operands; captured values become operands of both."""
    on_true, on_false, constants = _closed(*pair)
    return cond_p(condition, *constants, *operands, on_true=on_true, on_false=on_false)


@kept_with_program
def _closed(on_true: Program, on_false: Program) -> tuple[Program, Program, list[Any]]:
    """Both programs with the constants of both as leading inputs."""
    first, second = (dead_code(common_subexpressions(p)) for p in (on_true, on_false))
    of_true, of_false = ([v for v, _ in p.constants] for p in (first, second))
    values = [x for p in (first, second) for _, x in p.constants]

    def widened(program: Program, mine: int) -> Program:
        own = [of_true, of_false]
        other = [type(v)(v.type) for v in own[1 - mine]]
        head = [*own[0], *other] if mine == 0 else [*other, *own[1]]
        return Program([*head, *program.inputs], [], program.equations, program.outputs, program.name)

    return widened(first, 0), widened(second, 1), values


# ---------------------------------------------------------------- derivatives


def _zeros_for(values: Sequence[Any], types: Sequence[ArrayType], mask: Sequence[bool]) -> list[Any]:
    return [strong(zeros(t.strong()) if v is None else v) for v, t, m in zip(values, types, mask) if m]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, on_true: Program, on_false: Program) -> Any:
    condition, *operands = primals
    mask = tuple(t is not None for t in tangents[1:])
    given = [t for t in tangents[1:] if t is not None]
    if depth(given) > depth(primals):
        whole, linear, moving = _forward_pair(on_true, on_false, mask)
        known = cond_programs(condition, whole, operands)
        n = len(on_true.outputs)
        outs, found = known[:n], iter(cond_programs(condition, linear, [*known[n:], *given]))
    else:
        pair, moving = _jvp_pair(on_true, on_false, mask)
        known = cond_programs(condition, pair, [*operands, *given])
        n = len(on_true.outputs)
        outs, found = known[:n], iter(known[n:])
    return outs, [next(found) if m else None for m in moving]


@kept_with_program
def _jvp_pair(on_true: Program, on_false: Program, mask: Mask) -> tuple[Pair, Mask]:
    """Both branches on operands and tangents, and which results have a tangent in either."""
    types = [*on_true.input_types, *chosen(on_true.input_types, mask)]
    moving = (False,) * len(on_true.outputs)

    def pushed(program: Program) -> Callable[..., list[Any]]:
        def run(*args: Any) -> list[Any]:
            nonlocal moving
            given = iter(args[len(mask) :])
            tangents = [next(given) if m else None for m in mask]
            outs, moved = jvp_flat(lambda *xs: evaluate(program, xs), args[: len(mask)], tangents)
            moving = tuple(a or t is not None for a, t in zip(moving, moved))
            return [*map(strong, outs), *_zeros_for(moved, program.output_types, moving)]

        return run

    stage(pushed(on_true), types)  # which of its results have a tangent, before the other branch's zeros are known
    first, second = (stage(pushed(p), types, name=f"jvp_{p.name}") for p in (on_false, on_true))
    return (second, first), moving


def _padded(program: Program, outs: int, before: Sequence[ArrayType], after: Any) -> Program:
    """A branch that also returns the other branch's residuals, as zeros."""

    def run(*args: Any) -> list[Any]:
        found = evaluate(program, args)
        return [
            *map(strong, found[:outs]), *[zeros(t) for t in before], *map(strong, found[outs:]),
            *[zeros(t) for t in after],
        ]  # fmt: skip

    return stage(run, program.input_types, name=program.name)


def _residual_types(whole: Program, outs: int) -> list[ArrayType]:
    return [t.strong() for t in whole.output_types[outs:]]


def _joined(wholes: Pair, outs: int) -> tuple[Pair, list[list[ArrayType]]]:
    """Both forward branches, each with the residuals of both."""
    kept = [_residual_types(w, outs) for w in wholes]
    pair = _padded(wholes[0], outs, [], kept[1]), _padded(wholes[1], outs, kept[0], [])
    return pair, kept


@kept_with_program
def _forward_pair(on_true: Program, on_false: Program, mask: Mask) -> tuple[Pair, Pair, Mask]:
    n = len(on_true.outputs)
    splits = [split_for_forward(p, mask) for p in (on_true, on_false)]
    wholes, kept = _joined((splits[0][0], splits[1][0]), n)
    moving = tuple(a or b for a, b in zip(splits[0][2], splits[1][2]))
    types = [*kept[0], *kept[1], *[t.strong() for t in chosen(on_true.input_types, mask)]]

    def linear(which: int) -> Program:
        _, program, nonzero = splits[which]
        skip = len(kept[0]) if which else 0

        def run(*args: Any) -> list[Any]:
            residuals, tangents = args[skip : skip + len(kept[which])], args[len(kept[0]) + len(kept[1]) :]
            found = iter(evaluate(program, [*residuals, *tangents]))
            return _zeros_for([next(found) if m else None for m in nonzero], on_true.output_types, moving)

        return stage(run, types, name=program.name)

    return wholes, (linear(0), linear(1)), moving


def _vjp(operands: Sequence[Any], needs: Sequence[bool], params: dict[str, Any]) -> tuple[list[Any], Pullback]:
    on_true, on_false = params["on_true"], params["on_false"]
    # Linear in the operands given as types, so the derivative is the same everywhere, at zero too.
    condition, *given = [zeros(x.strong()) if isinstance(x, ArrayType) else x for x in operands]
    wholes, backward = _reverse_pair(on_true, on_false, tuple(needs[1:]))
    known = cond_programs(condition, wholes, given)
    outs, residuals = known[: len(on_true.outputs)], known[len(on_true.outputs) :]

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        pair, nonzero = backward(tuple(ct is not None for ct in cotangents))
        found = iter(cond_programs(condition, pair, [*residuals, *[ct for ct in cotangents if ct is not None]]))
        return [None, *[next(found) if n else None for n in nonzero]]

    return outs, pullback


@kept_with_program
def _reverse_pair(on_true: Program, on_false: Program, needs: Mask) -> tuple[Pair, Callable[[Mask], Any]]:
    n = len(on_true.outputs)
    splits = [split_for_reverse(p, needs) for p in (on_true, on_false)]
    wholes, kept = _joined((splits[0][0], splits[1][0]), n)
    made: dict[Mask, tuple[Pair, Mask]] = {}

    def backward(given: Mask) -> tuple[Pair, Mask]:
        if given not in made:
            derived = [derive(given) for _, derive in splits]
            nonzero = tuple(a or b for a, b in zip(derived[0][1], derived[1][1]))
            types = [*kept[0], *kept[1], *[t.strong() for t in chosen(on_true.output_types, given)]]
            first, second = (_back(i, program, mine, nonzero, types) for i, (program, mine) in enumerate(derived))
            made[given] = (first, second), nonzero
        return made[given]

    def _back(which: int, program: Program, mine: Sequence[bool], nonzero: Mask, types: list[ArrayType]) -> Program:
        skip = len(kept[0]) if which else 0

        def run(*args: Any) -> list[Any]:
            residuals, cts = args[skip : skip + len(kept[which])], args[len(kept[0]) + len(kept[1]) :]
            found = iter(evaluate(program, [*residuals, *cts]))
            return _zeros_for([next(found) if m else None for m in mine], on_true.input_types, nonzero)

        return stage(run, types, name=program.name)

    return wholes, backward


# ---------------------------------------------------------------- batching


def _batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, on_true: Program, on_false: Program
) -> tuple[list[Any], list[int | None]]:
    (condition, *rest), (chooses, *others) = operands, dims
    pair, batched = _batched_pair(on_true, on_false, size, tuple(type_of(x) for x in rest), tuple(others))
    if chooses is None:
        return cond_programs(condition, pair, rest), [0 if b else None for b in batched]
    # Examples choose differently: both branches run.
    results = []
    for b, x, y in zip(batched, *(evaluate(p, rest) for p in pair)):
        x, y = (v if b else at_axis(v, None, 0, size) for v in (x, y))
        shape = type_of(x).shape
        results.append(select(broadcast(condition, shape=shape, dims=(0,)), x, y))
    return results, [0] * len(results)


@kept_with_program
def _batched_pair(
    on_true: Program, on_false: Program, size: int, types: tuple[ArrayType, ...], dims: tuple[int | None, ...]
) -> tuple[Pair, Mask]:
    batched = (False,) * len(on_true.outputs)

    def run(program: Program) -> Callable[..., list[Any]]:
        def f(*args: Any) -> list[Any]:
            nonlocal batched
            outs, found = batch_flat(lambda *xs: evaluate(program, xs), size, args, dims)
            batched = tuple(b or d is not None for b, d in zip(batched, found))
            return [strong(at_axis(o, d, 0, size) if b else o) for o, d, b in zip(outs, found, batched)]

        return f

    stage(run(on_true), types)  # which of its results are batched, before the other branch's are matched
    second = stage(run(on_false), types, name=f"vmap_{on_false.name}")
    return (stage(run(on_true), types, name=f"vmap_{on_true.name}"), second), batched


cond_p = Primitive(
    "cond",
    infer=_infer,
    lower=lambda c, *xs, on_true, on_false: lax.cond(c, lowered(on_true), lowered(on_false), *xs),
    jvp=_jvp,
    vjp=_vjp,
    batch=_batch,
    widen=widen_cond,
    multiple=True,
)

# ---------------------------------------------------------------- public functions


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """One of two functions of the operands, chosen by an array.

    Both are traced, one runs; both run under ``vmap`` of the condition. They may close over arrays and tracers.

    Args:
        pred: a scalar bool or number; nonzero chooses ``true_fun``.
        true_fun, false_fun: take the operands and return pytrees of one structure, of the same shapes and dtypes.
        operands: pytrees of arrays.

    Returns:
        The chosen function's result, a pytree of arrays.

    Raises:
        TypeError: if the condition is not a scalar, an operand or a result is not an array, or the results differ in
            structure, shapes or dtypes.
        ConcretizationError: if a branch needs the value of a traced array.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> f = fg.jit(lambda x: fg.cond(x > 1, fnp.log, lambda x: x - 1, x))
        >>> print(f(1.0), fg.grad(f)(2.0), fg.vmap(f)(fnp.array([0.0, 1.0])))
        0.0 0.5 [-1.  0.]
    """
    condition = trees.array_of(pred)
    if not is_array(condition) or type_of(condition).shape:
        raise TypeError(f"cond: the condition must be one bool or number, got {condition!r}")
    condition = typed(condition)
    if type_of(condition).dtype != dtypes.bool_:
        condition = ne(condition, number(0, condition))
    (first, second), leaves, tree = branch_programs("cond", {"true_fun": true_fun, "false_fun": false_fun}, operands)
    return trees.unflatten(tree, cond_programs(condition, (first, second), leaves))


def branch_programs(
    name: str, branches: dict[str, Callable[..., Any]], operands: tuple
) -> tuple[list[Program], list[Any], Any]:
    """The programs of functions of the same operands, one of which will run.

    Returns:
        The programs, whose results have the same types; the flat operands; the structure of the results.

    Raises:
        TypeError: if the results differ; the message names the branches.
    """
    leaves, tree = trees.flatten(operands)
    leaves = [strong(typed(x)) for x in leaves]
    types = [type_of(x) for x in leaves]
    structures: list[Any] = []

    def flat(label: str) -> Callable[..., list[Any]]:
        if not callable(branches[label]):
            raise TypeError(f"{name}: {label} must be a function, got {kind(branches[label])}")

        def run(*args: Any) -> list[Any]:
            result = branches[label](*trees.unflatten(tree, args))
            outs, found = trees.flatten(result)
            if not all(map(is_array, outs)):
                raise TypeError(f"{name}: {label} must return arrays, got {result!r} at {here()}")
            structures.append(found)
            return outs

        return run

    programs = [stage(flat(label), types, name=label.removesuffix("_fun"), description=name) for label in branches]
    for label, found in zip(branches, structures, strict=True):
        if found != structures[0]:
            message = (
                f"{name}: the branches must return one structure, got {structures[0]} from {next(iter(branches))} and "
                f"{found} from {label}"
            )
            raise explained(TypeError(message), "branches")
    return _alike(name, list(branches), programs), leaves, structures[0]


def _alike(name: str, labels: Sequence[str], programs: Sequence[Program]) -> list[Program]:
    """All branches with the same strong result types; a weak result takes the others' dtype."""
    wanted = []
    for types in zip(*[p.output_types for p in programs], strict=True):
        first = types[0]
        dtype, weak = first.dtype, first.weak
        for t in types[1:]:
            if weak or t.weak:
                dtype, weak = dtypes.promote_weak(dtype, weak, t.dtype, t.weak)
        for label, t in zip(labels, types, strict=True):
            if t.shape != first.shape or (t.dtype != dtype and not t.weak):
                other, of = next((u, m) for u, m in zip(types, labels) if u.shape != t.shape or u.dtype != t.dtype)
                (a, x), (b, y) = sorted([(labels.index(label), t), (labels.index(of), other)], key=lambda pair: pair[0])
                message = (
                    f"{name}: the branches must return the same types, got {x.strong()} from {labels[a]} and "
                    f"{y.strong()} from {labels[b]}"
                )
                raise explained(TypeError(message), "branches")
        wanted.append(dtype)

    def cast_to(program: Program) -> Program:
        def run(*args: Any) -> list[Any]:
            outs = evaluate(program, args)
            return [x if type_of(x) == type_of(x).with_dtype(d) else cast(x, dtype=d) for x, d in zip(outs, wanted)]

        types = program.output_types
        same = all(t == t.with_dtype(d) for t, d in zip(types, wanted))
        return program if same else stage(run, program.input_types, name=program.name)

    return [cast_to(p) for p in programs]
