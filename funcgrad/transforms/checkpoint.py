"""``checkpoint``: a function whose intermediate values are recomputed in the backward pass instead of stored.

The function is one equation that carries its program. For a derivative the program is split; the residuals of the
forward part are the values that the backward pass needs. Only those that a policy selects are stored; the others are
recomputed from the operands by the forward part's own equations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from funcgrad.arguments.flatten import Flat, check_function, check_leaves
from funcgrad.control.call import batched_program, jvp_program
from funcgrad.control.split import depth, split_for_forward, split_for_reverse
from funcgrad.control.widening import widen_call
from funcgrad.core import trees
from funcgrad.core.ir import ArrayType, Equation, Program, Var, kept_with_program
from funcgrad.core.passes import dead_code, inlined, used_inputs
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import state, traced, type_of, typed
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.reverse import Pullback
from funcgrad.interpreters.staging import stage
from funcgrad.interpreters.transpose import transpose_call
from funcgrad.primitives.markers import barrier_p, name_p
from funcgrad.transforms.checkpoint_policies import Policy, nothing_saveable


def checkpoint_name(x: Any, name: str) -> Any:
    """``x``, named so that policies of ``checkpoint`` can select it.

    Args:
        x: a pytree of arrays.
        name: any hashable value, usually a string.

    Returns:
        A pytree like ``x``, of its shapes and dtypes.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.

    Example:
        >>> print(checkpoint_name(2.0, "hidden"))
        2.0
    """
    return trees.map(lambda leaf: name_p(typed(leaf), name=name), x)


# ---------------------------------------------------------------- residuals


class _Kept:
    """The forward part of a split program, of whose residuals only those that a policy selects are stored.

    Attributes:
        forward: maps the operands to the results and the stored residuals.
        again: maps the operands and the stored residuals to all residuals.
    """

    def __init__(self, whole: Program, outs: int, policy: Policy):
        results, residuals = whole.outputs[:outs], whole.outputs[outs:]
        known = {*whole.inputs, *[v for v, _ in whole.constants]}
        chosen: dict[Var, None] = {}
        for equation in whole.equations:
            if policy(equation.primitive, *[a.type for a in equation.inputs], **equation.params):
                # The named value itself, rather than the operand of ``name``.
                values = equation.inputs if equation.primitive is name_p else equation.outputs
                chosen.update(dict.fromkeys(v for v in values if isinstance(v, Var) and v not in known))
        equations = [
            _without(e, chosen) for e in whole.equations if not e.outputs or any(v not in chosen for v in e.outputs)
        ]
        cut = Program([*whole.inputs, *chosen], whole.constants, equations, residuals, f"again_{whole.name}")
        again = dead_code(cut)
        used = used_inputs(again)[len(whole.inputs) :]
        saved = [v for v, u in zip(chosen, used, strict=True) if u]
        self.again = Program([*whole.inputs, *saved], again.constants, again.equations, residuals, again.name)
        kept = [*results, *saved]
        self.forward = dead_code(Program(whole.inputs, whole.constants, whole.equations, kept, whole.name))


def _without(equation: Equation, given: Container[Var]) -> Equation:
    """The equation without definitions of the given variables."""
    if not any(v in given for v in equation.outputs):
        return equation
    outputs = [Var(v.type) if v in given else v for v in equation.outputs]
    return Equation(equation.primitive, equation.inputs, outputs, equation.params, equation.source)


@kept_with_program
def _reverse(program: Program, needs: tuple[bool, ...], policy: Policy) -> tuple[_Kept, Any]:
    whole, derive = split_for_reverse(inlined(program), needs)
    return _Kept(whole, len(program.outputs), policy), derive


@kept_with_program
def _forward(program: Program, mask: tuple[bool, ...], policy: Policy) -> tuple[_Kept, Program, list[bool]]:
    whole, linear, nonzero = split_for_forward(inlined(program), mask)
    return _Kept(whole, len(program.outputs), policy), linear, nonzero


def _behind_barrier(values: Sequence[Any], prevent_cse: bool) -> Sequence[Any]:
    """The values behind an optimization barrier, so that XLA does not merge the recomputation with the first
    computation."""
    return barrier_p(*values) if prevent_cse and values else values


# ---------------------------------------------------------------- the primitive


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, program: Program, **how: Any) -> Any:
    mask = tuple(t is not None for t in tangents)
    given = [t for t in tangents if t is not None]
    if depth(given) > depth(primals):
        # In one program with their tangents, results would become values of the inner context too.
        kept, linear, moving = _forward(program, mask, how["policy"])
        known = evaluate(kept.forward, primals)
        outs, saved = known[: len(program.outputs)], known[len(program.outputs) :]
        residuals = evaluate(kept.again, _behind_barrier([*primals, *saved], how["prevent_cse"]))
        found = iter(evaluate(linear, [*residuals, *given]))
        return outs, [next(found) if n else None for n in moving]
    derived, nonzero = jvp_program(program, mask)
    closed, constants = derived.closed()
    results = iter(checkpoint_p(*constants, *primals, *given, program=closed, **how))
    outs = [next(results) for _ in program.outputs]
    return outs, [next(results) if n else None for n in nonzero]


def _vjp(operands: Sequence[Any], needs: Sequence[bool], params: dict[str, Any]) -> tuple[list[Any], Pullback]:
    program: Program = params["program"]
    if any(isinstance(x, ArrayType) for x in operands):
        return [], lambda cts: transpose_call(program, operands, cts)
    kept, derive = _reverse(program, tuple(needs), params["policy"])
    results = evaluate(kept.forward, operands)
    outs, saved = results[: len(program.outputs)], results[len(program.outputs) :]

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        derived, nonzero = derive(tuple(ct is not None for ct in cotangents))
        residuals = evaluate(kept.again, _behind_barrier([*operands, *saved], params["prevent_cse"]))
        found = iter(evaluate(derived, [*residuals, *[ct for ct in cotangents if ct is not None]]))
        return [next(found) if n else None for n in nonzero]

    return outs, pullback


def _batch(size: int, operands: Sequence[Any], dims: Sequence[int | None], *, program: Program, **how: Any) -> Any:
    derived, out_dims = batched_program(program, size, tuple(type_of(x) for x in operands), tuple(dims))
    closed, constants = derived.closed()
    return checkpoint_p(*constants, *operands, program=closed, **how), out_dims


checkpoint_p = Primitive(
    "checkpoint",
    infer=lambda *types, program, policy, prevent_cse: program.output_types,
    lower=lambda *xs, program, policy, prevent_cse: lowered(program)(*xs),
    jvp=_jvp,
    vjp=_vjp,
    batch=_batch,
    widen=widen_call,
    multiple=True,
)

# ---------------------------------------------------------------- public functions


def checkpoint(
    f: Callable[..., Any] | None = None,
    *,
    policy: Policy | None = None,
    prevent_cse: bool = True,
    static_argnums: int | Iterable[int] = (),
) -> Callable[..., Any]:
    """``f``, with its intermediate values recomputed when its derivative needs them.

    The result is the same; time is traded for memory. Use it around a layer of a deep network, or around the step of a
    ``scan``, so that only each step's carry is stored.

    Args:
        f: takes and returns pytrees of arrays; it may close over anything.
        policy: which values are stored; see ``checkpoint_policies``. None stores only the arguments.
        prevent_cse: keeps XLA from merging the recomputation with the first computation. Inside ``scan`` that cannot
            happen, and False gives faster code.
        static_argnums: arguments that are Python values.

    Returns:
        A function of the same arguments and results; without ``f``, a decorator.

    Raises:
        TypeError: from the function, if it is differentiated, batched or compiled and a leaf of its arguments (other
            than static ones) or results is not an array.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> f = fg.checkpoint(lambda x: fnp.sin(fnp.sin(x)))
        >>> print(fg.grad(f)(0.0), fg.grad(lambda x: fg.scan(lambda c, _: (f(c), None), x, length=9)[0])(0.0))
        1.0 1.0
    """
    if f is None:
        return functools.partial(checkpoint, policy=policy, prevent_cse=prevent_cse, static_argnums=static_argnums)
    fixed_numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    function = f

    check_function("checkpoint", f)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        skipped = {n % len(args) for n in fixed_numbers if -len(args) <= n < len(args)}
        dynamic = tuple(None if i in skipped else a for i, a in enumerate(args))
        leaves, tree = trees.flatten((dynamic, kwargs))

        def of_dynamic(given: tuple, named: dict[str, Any]) -> Any:
            return function(*[args[i] if i in skipped else a for i, a in enumerate(given)], **named)

        if state.floor is None and not state.depth:
            return function(*args, **kwargs)
        check_leaves("checkpoint", ["arguments", "keyword arguments"], (dynamic, kwargs))
        flat = Flat(of_dynamic, tree, "checkpoint")
        name = getattr(function, "__name__", "function")
        program = stage(flat, [type_of(x) for x in leaves], name=name, description="checkpoint")
        closed, constants = dead_code(program).closed()
        operands = [*constants, *[typed(x) for x in leaves]]
        if state.floor is None and not any(map(traced, operands)):
            return function(*args, **kwargs)
        outs = checkpoint_p(*operands, program=closed, policy=policy or nothing_saveable, prevent_cse=bool(prevent_cse))
        return trees.unflatten(flat.out_tree, outs)

    return wrapped


#: Another name of ``checkpoint``.
remat = checkpoint
