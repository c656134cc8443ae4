"""Loops with a dynamic number of steps: ``while_loop``, and ``fori_loop``, which is a ``scan`` if its bounds are
static."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import kind
from funcgrad.control.loop_rules import batched_step, jvp_step, live_carries, split_at
from funcgrad.control.scan import leaves_of, scan, step_program
from funcgrad.control.split import depth
from funcgrad.control.widening import widen_while
from funcgrad.core import dtypes, trees
from funcgrad.core.errors import NonDifferentiableError, here
from funcgrad.core.ir import ArrayType, Program, kept_with_program
from funcgrad.core.passes import simplified_closed
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import is_array, type_of
from funcgrad.interpreters.batching import at_axis, batch_flat
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.reverse import Pullback
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.elementwise import select
from funcgrad.primitives.reductions import reduce_any
from funcgrad.primitives.shape import broadcast, zeros

Mask = tuple[bool, ...]

# ---------------------------------------------------------------- the primitive


def _infer(*types: ArrayType, condition: Program, body: Program, tested: int, consts: int) -> list[ArrayType]:
    given = [t.strong() for t in types]
    test, fixed, carry = split_at(given, tested, consts)
    for program, wanted in ((condition, [*test, *carry]), (body, [*fixed, *carry])):
        if [t.strong() for t in program.input_types] != wanted:
            raise TypeError(f"while: operands of types {list(types)}, but a program wants {program.input_types}")
    if [t.strong() for t in body.output_types] != carry:
        raise TypeError(f"while: the carry is {carry} before a step and {body.output_types} after it")
    return carry


def _lower(*operands: Any, condition: Program, body: Program, tested: int, consts: int) -> list[Any]:
    test, fixed, carry = split_at(operands, tested, consts)
    goes_on, step = lowered(condition), lowered(body)
    return list(lax.while_loop(lambda c: goes_on(*test, *c)[0], lambda c: step(*fixed, *c), carry))


def _while_program(
    condition: Program, body: Program, test: Sequence[Any], fixed: Sequence[Any], carry: Sequence[Any]
) -> list[Any]:
    closed, of_test = simplified_closed(condition)
    step, of_body = simplified_closed(body)
    return while_p(
        *of_test, *test, *of_body, *fixed, *carry, condition=closed, body=step, tested=len(of_test) + len(test),
        consts=len(of_body) + len(fixed),
    )  # fmt: skip


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, condition: Program, body: Program, tested: int, consts: int
) -> tuple[list[Any], list[Any]]:
    test, fixed, carry = split_at(primals, tested, consts)
    _, t_fixed, t_carry = split_at(tangents, tested, consts)
    live = live_carries(body, consts, len(carry), tuple(t is not None for t in (*t_fixed, *t_carry)))
    moving = [zeros(type_of(x)) if m and t is None else t for x, t, m in zip(carry, t_carry, live)]
    given = [t for t in (*t_fixed, *moving) if t is not None]
    derived, _ = jvp_step(body, consts, len(carry), tuple(t is not None for t in (*t_fixed, *moving)))
    wider = _ignoring(condition, tuple(type_of(t).strong() for t in moving if t is not None))
    found = _while_program(
        wider, derived, test, [*fixed, *[t for t in t_fixed if t is not None]],
        [*carry, *[t for t in moving if t is not None]],
    )  # fmt: skip
    outs, moved = found[: len(carry)], iter(found[len(carry) :])
    if depth(given) > depth(primals):
        # Results must not become values of the tangents' inner context, so a separate loop computes them.
        outs = _while_program(condition, body, test, fixed, carry)
    return outs, [next(moved) if m else None for m in live]


@kept_with_program
def _ignoring(program: Program, more: tuple[ArrayType, ...]) -> Program:
    """The program with additional, unused inputs at the end."""
    n = len(program.inputs)
    return stage(lambda *xs: evaluate(program, xs[:n]), [*program.input_types, *more], name=program.name)


def _vjp(operands: Sequence[Any], needs: Sequence[bool], params: dict[str, Any]) -> tuple[list[Any], Pullback]:
    def refuse(cotangents: Sequence[Any]) -> list[Any]:
        raise NonDifferentiableError(
            f"while_loop has no reverse derivative, for it does not know how many steps to keep; at {here()}. Use "
            "scan, fori_loop between Python integers, or forward mode (jvp, jacfwd)."
        )

    if any(isinstance(x, ArrayType) for x in operands):
        refuse([])
    return while_p(*operands, **params), refuse


# ---------------------------------------------------------------- batching


def _batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, condition: Program, body: Program, tested: int,
    consts: int,
) -> tuple[list[Any], list[int | None]]:  # fmt: skip
    test, fixed, carry = split_at(operands, tested, consts)
    d_test, d_fixed, d_carry = split_at(dims, tested, consts)
    goes_on, step, batched = _batched_programs(
        condition, body, size, tuple(d_test), tuple(d_fixed), tuple(d is not None for d in d_carry),
        tuple(type_of(x) for x in test),
    )  # fmt: skip
    first = [at_axis(x, d, 0, size) if b else x for x, d, b in zip(carry, d_carry, batched)]
    found = _while_program(goes_on, step, test, [*test, *fixed], first)
    return found, [0 if b else None for b in batched]


@kept_with_program
def _batched_programs(
    condition: Program, body: Program, size: int, d_test: tuple[int | None, ...], d_fixed: tuple[int | None, ...],
    moving: Mask, test: tuple[ArrayType, ...],
) -> tuple[Program, Program, Mask]:  # fmt: skip
    """The vectorized condition, the vectorized step with the captured values of both, and which values are batched.

    If batch elements stop at different steps, the loop runs until all have stopped; stopped elements keep their
    carries.
    """
    step, batched, _ = batched_step(body, size, len(d_fixed), len(moving), d_fixed, moving, ())
    each, apart = _batched_condition(condition, size, d_test, batched, test)
    if apart and not all(batched):
        step, batched, _ = batched_step(body, size, len(d_fixed), len(moving), d_fixed, (True,) * len(moving), ())
        each, apart = _batched_condition(condition, size, d_test, batched, test)
    carry = step.input_types[len(d_fixed) :]

    def one(*xs: Any) -> list[Any]:
        (goes_on,) = evaluate(each, xs)
        return [reduce_any(goes_on, axes=(0,)) if apart else goes_on]

    def run(*xs: Any) -> list[Any]:
        tested, fixed, old = split_at(xs, len(test), len(d_fixed))
        new = evaluate(step, [*fixed, *old])
        if not apart:
            return new
        (goes_on,) = evaluate(each, [*tested, *old])
        return [select(broadcast(goes_on, shape=type_of(a).shape, dims=(0,)), a, b) for a, b in zip(new, old)]

    whole = stage(run, [*test, *step.input_types], name=step.name)
    return stage(one, [*test, *carry], name=condition.name), whole, batched


def _batched_condition(
    condition: Program, size: int, dims: tuple[int | None, ...], batched: Mask, test: tuple[ArrayType, ...]
) -> tuple[Program, bool]:
    """The vectorized condition, and whether it is batched."""
    every = [*dims, *[0 if b else None for b in batched]]
    apart: list[bool] = []

    def run(*xs: Any) -> list[Any]:
        outs, found = batch_flat(lambda *a: evaluate(condition, a), size, xs, every)
        apart[:] = [found[0] is not None]
        return outs

    inner = condition.input_types[len(test) :]
    carry = [t.with_shape((size, *t.shape)) if b else t for t, b in zip(inner, batched)]
    return stage(run, [*test, *carry], name=condition.name), apart[0]


while_p = Primitive(
    "while", infer=_infer, lower=_lower, jvp=_jvp, vjp=_vjp, batch=_batch, widen=widen_while, multiple=True
)

# ---------------------------------------------------------------- public functions


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Repeats a step while a condition holds.

    It has a forward derivative (``jvp``, ``jacfwd``) but no reverse one, as the number of steps is unknown.

    Args:
        cond_fun: maps the carry to a scalar bool.
        body_fun: one step, which preserves the carry's structure, shapes and dtypes.
        init_val: the initial carry, a pytree of arrays.

    Returns:
        The first carry for which the condition does not hold.

    Raises:
        TypeError: if a step changes the structure or types of the carry, or the condition is not a scalar bool.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.while_loop(lambda x: x < 100, lambda x: x * 2, 3.0))
        192.0
    """
    validate.function("while_loop", cond_fun, "cond_fun")
    validate.function("while_loop", body_fun, "body_fun")
    first, tree = leaves_of("init_val", init_val, "while_loop")
    step, carry, _ = step_program(
        lambda c, _: (body_fun(c), None), first, tree, [], trees.structure(None), "while_loop"
    )

    def goes_on(*xs: Any) -> list[Any]:
        result = trees.array_of(cond_fun(trees.unflatten(tree, xs)))
        if not is_array(result) or type_of(result).shape or type_of(result).dtype != dtypes.bool_:
            raise TypeError(f"while_loop: the condition must return one bool, got {result!r} at {here()}")
        return [result]

    test = stage(goes_on, [type_of(x) for x in carry], name="condition", description="while_loop")
    return trees.unflatten(tree, _while_program(test, step, [], [], carry))


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool = 1
) -> Any:
    """Repeats ``x = body_fun(i, x)`` for ``i`` from ``lower`` up to but excluding ``upper``.

    With Python integers as bounds it is a ``scan``, differentiable in both modes; otherwise a ``while_loop``.

    Args:
        lower, upper: scalar integers or integer arrays.
        body_fun: one step, from the index and the carry to the next carry.
        init_val: the initial carry, a pytree of arrays.
        unroll: the number of steps per iteration of the compiled loop, for static bounds; True for all.

    Returns:
        The final carry, of the structure, shapes and dtypes of ``init_val``; ``init_val`` itself if there are no steps.

    Raises:
        TypeError: if a step changes the structure or types of the carry, or a leaf of it is not an array.
        ValueError: if ``unroll`` is not positive, or is given for dynamic bounds.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.fori_loop(1, 5, lambda i, x: x * i, 1))
        24
        >>> print(fg.grad(lambda x: fg.fori_loop(0, 3, lambda i, c: c * x, x))(2.0))
        32.0
    """
    validate.function("fori_loop", body_fun, "body_fun")
    for what, bound in (("lower", lower), ("upper", upper)):
        found = trees.array_of(bound)
        if not is_array(found) or type_of(found).shape:
            raise TypeError(f"fori_loop: {what} must be one number, got {kind(bound)}")
    if all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in (lower, upper)):
        length = max(int(upper) - int(lower), 0)
        first = (int(lower), init_val)
        (_, last), _ = scan(lambda c, _: ((c[0] + 1, body_fun(*c)), None), first, length=length, unroll=unroll)
        return last
    if int(unroll) != 1 and unroll is not False:
        raise ValueError(
            "fori_loop: unroll wants Python integers for lower and upper, which say how many steps there are"
        )
    return while_loop(lambda c: c[0] < upper, lambda c: (c[0] + 1, body_fun(*c)), (lower, init_val))[1]
