"""``scan``: a loop with a carry, an equation that carries the program of one step.

Its rules run the interpreters once over that program, whatever the number of steps. Reverse mode stacks the residuals
of each step, except loop-invariant ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jax import lax

from funcgrad.arguments import validate
from funcgrad.control.loop_rules import loop_batch, loop_jvp, loop_vjp, repeated_number, strong
from funcgrad.control.widening import raised, widen_scan
from funcgrad.core import dtypes, trees
from funcgrad.core.errors import explained, here
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.passes import simplified_closed
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import is_array, type_of, typed
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.elementwise import cast
from funcgrad.primitives.shape import full

# ---------------------------------------------------------------- the primitive


def _stacked(type: ArrayType, length: int) -> ArrayType:
    return type.with_shape((length, *type.shape)).strong()


def _infer(*types: ArrayType, program: Program, consts: int, carries: int, length: int, **_: Any) -> list[ArrayType]:
    fixed = consts + carries
    inner, outer = [t.strong() for t in program.input_types], program.output_types
    wanted = [*inner[:fixed], *[_stacked(t, length) for t in inner[fixed:]]]
    if [t.strong() for t in types] != wanted:
        raise TypeError(f"scan: operands of types {list(types)}, but its program wants {wanted}")
    carried = [t.strong() for t in outer[:carries]]
    if carried != inner[consts:fixed]:
        raise TypeError(f"scan: the carry is {inner[consts:fixed]} before a step and {carried} after it")
    return [*carried, *[_stacked(t, length) for t in outer[carries:]]]


def _lower(
    *operands: Any, program: Program, consts: int, carries: int, length: int, reverse: bool, unroll: int
) -> list[Any]:
    step = lowered(program)
    fixed = operands[:consts]

    def body(carry: Sequence[Any], slices: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs = step(*fixed, *carry, *slices)
        return outs[:carries], outs[carries:]

    carry, xs = list(operands[consts : consts + carries]), list(operands[consts + carries :])
    final, ys = lax.scan(body, carry, xs, length=length, reverse=reverse, unroll=unroll)
    return [*final, *ys]


scan_p = Primitive(
    "scan",
    infer=_infer,
    lower=_lower,
    jvp=lambda primals, tangents, **params: loop_jvp(scan_program, primals, tangents, **params),
    vjp=lambda operands, needs, params: loop_vjp(scan_program, operands, needs, **params),
    batch=lambda size, operands, dims, **params: loop_batch(scan_program, size, operands, dims, **params),
    widen=widen_scan,
    multiple=True,
)


def scan_program(
    program: Program, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], *, length: int,
    reverse: bool = False, unroll: int = 1,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Repeats a program of ``(*consts, *carry, *slices)``, which returns ``(*carry, *results)``; flat, without checks.

    Returns:
        The final carry, and the stacked results of all steps.
    """
    closed, constants = simplified_closed(program)
    results = scan_p(
        *constants, *consts, *carry, *xs, program=closed, consts=len(constants) + len(consts), carries=len(carry),
        length=length, reverse=reverse, unroll=unroll,
    )  # fmt: skip
    return results[: len(carry)], results[len(carry) :]


# ---------------------------------------------------------------- public functions


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """A loop with a carry over the leading axis of arrays.

    It is traced once and compiled to one loop, whatever its length. It may close over arrays and tracers. It is
    differentiable in both modes to any order, and can be batched.

    Args:
        f: ``(carry, x) -> (carry, y)``, one step; the carry keeps its structure, shapes and dtypes.
        init: the initial carry, a pytree of arrays.
        xs: a pytree of arrays of shape (length, ...), whose slices the steps receive; None if only ``length`` is given.
        length: the number of steps; must match ``xs``.
        reverse: from the last slice to the first; the results are stacked in the order of the slices.
        unroll: the number of steps per iteration of the compiled loop; True for all.

    Returns:
        The final carry, and the results ``y`` of all steps, stacked along a new leading axis.

    Raises:
        TypeError: if a step changes the structure or types of the carry, or a leaf is not an array.
        ValueError: if lengths differ, or none is given.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> total, sums = fg.scan(lambda c, x: (c + x, c + x), 0.0, fnp.array([1.0, 2.0, 3.0]))
        >>> print(total, sums)
        6.0 [1. 3. 6.]
        >>> print(fg.grad(lambda x: fg.scan(lambda c, _: (c * x, None), 1.0, length=3)[0])(2.0))
        12.0
    """
    validate.function("scan", f)
    first, carry_tree = leaves_of("init", init)
    slices, tree = leaves_of("xs", xs)
    count = _length(xs, slices, length)
    if isinstance(unroll, bool):
        unroll = max(count, 1) if unroll else 1
    if not isinstance(unroll, int) or unroll < 1:
        raise ValueError(f"scan: unroll must be a positive integer or a bool, got {unroll!r}")
    parts = [_part(x) for x in slices]
    program, first, y_tree = step_program(f, first, carry_tree, parts, tree)
    looped = [x for x, part in zip(slices, parts) if isinstance(part, ArrayType)]
    final, ys = scan_program(program, [], first, looped, length=count, reverse=bool(reverse), unroll=unroll)
    return trees.unflatten(carry_tree, final), trees.unflatten(y_tree, ys)


def leaves_of(name: str, value: Any, caller: str = "scan") -> tuple[list[Any], Any]:
    """The leaves as arrays of strong types, and the structure."""
    leaves, tree = trees.flatten(value)
    for path, leaf in trees.tree_flatten_with_path(value)[0] if not all(map(is_array, leaves)) else ():
        if not is_array(leaf):
            raise TypeError(
                f"{caller}: {name}{trees.keystr(path)} is {leaf!r} of type {type(leaf).__name__}, not an array"
            )
    return [strong(x) for x in leaves] if name == "xs" else leaves, tree


def _length(xs: Any, leaves: Sequence[Any], length: int | None) -> int:
    sizes = {} if length is None else {validate.integer("scan", "length", length, least=0): "length"}
    for (path, leaf), type in zip(trees.tree_flatten_with_path(xs)[0], map(type_of, leaves), strict=True):
        if not type.ndim:
            raise ValueError(f"scan: xs{trees.keystr(path)} is {leaf!r}, which has no axis to loop over")
        sizes.setdefault(type.shape[0], f"xs{trees.keystr(path)} of type {type}")
    if len(sizes) > 1:
        raise ValueError(f"scan: lengths differ: {', '.join(f'{n} ({what})' for n, what in sizes.items())}")
    if not sizes:
        raise ValueError("scan: there are no arrays in xs, so the number of steps must be given as length")
    return next(iter(sizes))


def _part(x: Any) -> Any:
    """The type of a slice; or the slice itself, if all slices are known to be filled with one number.

    The gradients of unused results are: a step that starts from the number reads no array.
    """
    type = type_of(x)
    number = repeated_number(x)
    return type.with_shape(type.shape[1:]).strong() if number is None else (number, type.shape[1:])


def step_program(
    f: Callable[..., Any],
    first: list[Any],
    carry_tree: Any,
    parts: Sequence[Any],
    tree: Any,
    name: str = "scan",
) -> tuple[Program, list[Any], Any]:
    """The program of a step, the initial carry with its final types, and the structure of a step's results.

    A carry that starts as a Python number takes the dtype of the first step's result.
    """
    structure: list[Any] = []
    looped = [p for p in parts if isinstance(p, ArrayType)]

    def step(*args: Any) -> list[Any]:
        given = iter(args[len(first) :])
        slices = [next(given) if isinstance(p, ArrayType) else full(*p) for p in parts]
        result = f(trees.unflatten(carry_tree, args[: len(first)]), trees.unflatten(tree, slices))
        if not (isinstance(result, tuple) and len(result) == 2):
            message = f"{name}: a step must return (carry, y), got {result!r} at {here()}"
            raise explained(TypeError(message), "loop-carry")
        after, found = trees.flatten(result[0])
        if found != carry_tree:
            message = f"{name}: a step gets a carry of structure {carry_tree} and returns one of {found}; at {here()}"
            raise explained(TypeError(message), "loop-carry")
        ys, y_tree = trees.flatten(result[1])
        if not all(map(is_array, [*after, *ys])):
            raise TypeError(f"{name}: a step must return arrays, got {result!r} at {here()}")
        structure[:] = [y_tree]
        return [typed(x) for x in (*after, *ys)]

    types = [type_of(x) for x in first]
    program = stage(step, [*types, *looped], name="step", description=name)
    settled = [_joined(b, a) for b, a in zip(types, program.output_types)]
    while settled != types or any(t.weak for t in program.output_types):
        program = stage(lambda *xs: [strong(x) for x in step(*xs)], [*settled, *looped], name="step", description=name)
        types, settled = settled, [_joined(b, a) for b, a in zip(settled, program.output_types)]
    _check_carry(settled, program.output_types, carry_tree, name)
    carried = [
        raised(x if type_of(x).with_varying(t.varying) == t else cast(typed(x), dtype=t.dtype), t.varying)
        for x, t in zip(first, settled)
    ]
    return program, carried, structure[0]


def _joined(before: ArrayType, after: ArrayType) -> ArrayType:
    """The type of a carry from its types before and after a step: weak dtypes are promoted, varying axes are joined."""
    dtype = before.dtype
    if before.weak:
        dtype, _ = dtypes.promote_weak(dtype, True, after.dtype, after.weak)
    return before.with_dtype(dtype).with_varying(before.varying | after.varying)


def _check_carry(before: Sequence[ArrayType], after: Sequence[ArrayType], tree: Any, name: str) -> None:
    paths = [trees.keystr(p) for p, _ in trees.tree_flatten_with_path(trees.unflatten(tree, range(len(before))))[0]]
    for path, b, a in zip(paths, before, after):
        if b != a.strong().with_varying(b.varying):
            message = (
                f"{name}: the carry must keep its type, but carry{path} is {b} before a step and {a.strong()} after "
                f"it; convert it in the step, or begin with that; at {here()}"
            )
            raise explained(TypeError(message), "loop-carry")
