"""The public differentiation transforms: the interpreters with pytrees, argument numbers and checked arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.arguments.flatten import (
    Argnums,
    Flat,
    abstract,
    check_argnums,
    check_function,
    check_inexact,
    check_leaves,
    kind,
    leaving,
    match,
    partial_of,
    positions_of,
    settled,
    zero_of,
    zero_tangent,
)
from funcgrad.arguments.sharding_constraint import following
from funcgrad.core import dtypes, trees
from funcgrad.core.errors import NonDifferentiableError, explained, here
from funcgrad.core.ir import Program
from funcgrad.core.passes import dead_code
from funcgrad.core.tracing import deferring, restoring, type_of
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.forward import jvp_flat
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.interpreters.staging import stage
from funcgrad.interpreters.transpose import linearize_flat, transpose_program
from funcgrad.primitives.elementwise import stop_gradient as stop_gradient_p

# ---------------------------------------------------------------- reverse mode


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``f`` and its pullback there.

    Args:
        f: takes and returns pytrees of arrays.
        primals: where to evaluate it.
        has_aux: ``f`` returns ``(result, aux)``, and ``aux`` is not differentiated.

    Returns:
        ``(result, pullback)``, or ``(result, pullback, aux)``. ``pullback(cotangent)`` takes a pytree like the result
        and returns a tuple of cotangents, one per primal, of the primals' shapes and dtypes (``float0`` zeros for
        integers).

    Raises:
        TypeError: if a leaf of the primals or of the result is not an array.
        ValueError: from the pullback, if the cotangent does not have the result's structure, shapes or dtypes.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> y, pullback = fg.vjp(lambda x: fnp.sin(x), 0.0)
        >>> print(y, pullback(1.0)[0])
        0.0 1.0
    """
    check_leaves("vjp", [f"primals[{i}]" for i in range(len(primals))], primals)
    leaves, tree = trees.flatten(primals)
    flat = Flat(f, tree, "vjp", has_aux)
    every, pull = vjp_flat(flat, leaves)
    outs, aux = flat.split(every)
    unused = [None] * (len(every) - len(outs))
    out_tree = flat.out_tree
    types = [type_of(o) for o in outs]

    form = (tree, tuple(type_of(x) for x in leaves), out_tree, types)
    follow = following(leaves)
    pullback = Pullback(lambda cts: follow(pull([*cts, *unused])), form)
    result = trees.unflatten(out_tree, settled(outs))
    return (result, pullback, aux) if has_aux else (result, pullback)


class Pullback:
    """The linear function of cotangents that ``vjp`` returns.

    It is a pytree of its residual arrays, so it may be an argument or a result of ``jit``. Flattening it turns the tape
    into a program.

    Attributes:
        pull: maps flat cotangents, None for zero, to those of the primals.
        form: the structure and types of the primals, and those of the results.
    """

    def __init__(self, pull: Callable[[list[Any]], list[Any]], form: tuple[Any, ...]):
        self.pull = pull
        self.form = form
        self.closed: tuple[Program, Sequence[Any]] | None = None
        self.__name__ = "pullback"

    @restoring
    def __call__(self, cotangent: Any) -> Any:
        tree, types, out_tree, out_types = self.form
        cts = match("vjp: the cotangent", cotangent, out_tree, out_types)
        for ct, t in zip(cts, out_types, strict=True):
            if ct is not None and not type_of(ct).varying <= t.varying:
                raise ValueError(
                    f"vjp: the cotangent varies from device to device, {type_of(ct)}, but the result does not, {t}: "
                    "there is one cotangent of it for all; see psum, pmean and pcast"
                )
        with deferring():
            cotangents = self.pull(cts)
        found = [zero_of(t) if ct is None else ct for t, ct in zip(types, cotangents, strict=True)]
        return trees.unflatten(tree, settled(found))

    def parts(self) -> tuple[Sequence[Any], Any]:
        """The residual arrays, and the program that takes them first."""
        if self.closed is None:
            _, types, _, out_types = self.form

            def linear(*moving: Any) -> list[Any]:
                given = iter(moving)
                found = self.pull([next(given) if t.inexact else None for t in out_types])
                return [zero_of(t) if ct is None else ct for t, ct in zip(types, found, strict=True) if t.inexact]

            self.closed = stage(linear, [t.strong() for t in out_types if t.inexact], name="pullback").closed()
        program, kept = self.closed
        return kept, (program, self.form)

    @classmethod
    def of_parts(cls, form: tuple[Program, Any], kept: Sequence[Any]) -> Pullback:
        """Inverse of ``parts``."""
        program, (tree, types, out_tree, out_types) = form

        def pull(cts: list[Any]) -> list[Any]:
            moving = [zero_of(t) if ct is None else ct for ct, t in zip(cts, out_types, strict=True) if t.inexact]
            found = iter(evaluate(program, [*kept, *moving]))
            return [next(found) if t.inexact else None for t in types]

        pullback = cls(pull, (tree, types, out_tree, out_types))
        pullback.closed = program, kept
        return pullback


trees.register_pytree_node(Pullback, Pullback.parts, Pullback.of_parts)


def value_and_grad(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that returns the value of ``f`` and its gradient.

    Args:
        f: returns a scalar (with ``has_aux``, a pair of a scalar and anything else).
        argnums: which positional arguments to differentiate by; each a pytree of floating arrays.
        has_aux: see ``f``.
        holomorphic: whether ``f`` is complex and holomorphic, and so is its derivative. Otherwise ``f`` is real, and
            the gradient with respect to a complex ``x + iy`` is ``df/dx - i df/dy``: step along its conjugate to
            increase ``f``.
        allow_int: whether arguments may be integers or booleans: their gradients are zeros of dtype ``float0``.

    Returns:
        A function of the same arguments that returns ``(value, gradient)``, or ``((value, aux), gradient)``. The
        gradient has the structure, shapes and dtypes of the argument; a tuple of them if ``argnums`` is a sequence.

    Raises:
        TypeError: if ``f`` returns anything but a real scalar, or an argument is not floating.
        ValueError: if ``argnums`` names a missing argument.

    Example:
        >>> import funcgrad as fg
        >>> value, gradient = fg.value_and_grad(lambda x: x * x)(3.0)
        >>> print(value, gradient)
        9.0 6.0
    """

    check_function("value_and_grad", f)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, aux, gradient = _differentiated(f, argnums, has_aux, holomorphic, allow_int, args, kwargs)
        return ((value(), aux) if has_aux else value()), gradient

    return wrapped


@restoring
def _differentiated(
    f: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    args: tuple,
    kwargs: dict[str, Any],
) -> tuple[Callable[[], Any], Any, Any]:
    """A function that returns the value of ``f``, its auxiliary part and its gradient."""
    positions = positions_of("grad", argnums, len(args))
    chosen = [args[p] for p in positions]
    check_inexact("grad", [f"argument {p}" for p in positions], chosen, holomorphic, allow_int)
    leaves, tree = trees.flatten(chosen)
    flat = Flat(partial_of(f, positions, args, kwargs), tree, "grad", has_aux)
    with deferring():
        every, pull = vjp_flat(flat, leaves)
        outs, finish = flat.unfinished(every)
        seed = _scalar_seed(outs, flat.out_tree, holomorphic)
        cotangents = pull([seed, *[None] * (len(every) - 1)])
    value, out_tree = outs[0], flat.out_tree
    # The tape is released before anything is computed, so that its values need not be kept.
    del every, pull, outs
    found = [zero_tangent(p) if ct is None else ct for p, ct in zip(leaves, cotangents, strict=True)]
    gradients = trees.unflatten(tree, settled(following(leaves)(found)))
    whole = lambda: trees.unflatten(out_tree, settled([value]))
    return whole, finish(), gradients[0] if isinstance(argnums, int) else tuple(gradients)


#: The pytree structure of a single array.
_ONE = trees.structure(0)


def _scalar_seed(outs: Sequence[Any], out_tree: Any, holomorphic: bool) -> np.generic:
    if out_tree != _ONE and trees.bare(out_tree) != _ONE:
        message = f"grad: the function must return one scalar, got {out_tree}; see has_aux, vjp and jacrev for others"
        raise explained(TypeError(message), "scalar-output")
    type = type_of(outs[0])
    if type.shape != ():
        got = type.strong()
        message = f"grad: the function must return a scalar, got {got}. Reduce it (sum, mean), or use vjp or jacrev"
        raise explained(TypeError(message), "scalar-output")
    if dtypes.is_complex(type.dtype) != holomorphic or not dtypes.is_inexact(type.dtype):
        wanted = "complex, as holomorphic=True says" if holomorphic else "real and floating"
        message = f"grad: the function must return a scalar that is {wanted}, got dtype {type.dtype}"
        raise explained(TypeError(message), "scalar-output")
    return type.dtype.type(1)


def grad(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of a scalar function.

    Outside ``jit`` the function runs on concrete values: ``if``, ``while``, ``int(x)`` and printing work. A conversion
    that would lose the derivative, such as ``float(x)`` or ``math.sin(x)``, raises a ``DerivativeLostError``.

    Args:
        f, argnums, has_aux, holomorphic, allow_int: as for ``value_and_grad``.

    Returns:
        A function of the same arguments that returns the gradient, or ``(gradient, aux)``.

    Raises:
        TypeError: if ``f`` returns anything but a real scalar, or an argument is not floating.
        ValueError: if ``argnums`` names a missing argument.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.grad(lambda x: x**3)(2.0), fg.grad(fg.grad(lambda x: x**3))(2.0))
        12.0 12.0
    """

    check_function("grad", f)
    check_argnums("grad", argnums)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _, aux, gradient = _differentiated(f, argnums, has_aux, holomorphic, allow_int, args, kwargs)
        return (gradient, aux) if has_aux else gradient

    return wrapped


# ---------------------------------------------------------------- forward mode


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The value of ``f`` and its derivative in the direction of ``tangents``.

    Args:
        f: takes and returns pytrees of arrays.
        primals: a sequence, one entry per argument.
        tangents: the same structure, shapes and dtypes.
        has_aux: ``f`` returns ``(result, aux)``.

    Returns:
        ``(result, tangent)``, or ``(result, tangent, aux)``.

    Raises:
        TypeError: if the primals or the tangents are no tuple or list, or a leaf of the primals or of the result is not
            an array.
        ValueError: if the tangents do not have the primals' structure, shapes or dtypes.

    Example:
        >>> import funcgrad as fg
        >>> print(*fg.jvp(lambda x: x * x, (3.0,), (1.0,)))
        9.0 6.0
    """
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, (tuple, list)):
            raise TypeError(f"jvp: {name} must be a tuple or list, one entry per argument, got {kind(value)}")
    check_leaves("jvp", [f"primals[{i}]" for i in range(len(primals))], primals)
    leaves, tree = trees.flatten(tuple(primals))
    given = match("jvp: tangents", tuple(tangents), tree, [type_of(x) for x in leaves])
    flat = Flat(f, tree, "jvp", has_aux)
    every, found = jvp_flat(flat, leaves, given)
    outs, aux = flat.split(every)
    result = trees.unflatten(flat.out_tree, settled(outs))
    out_tangents = [zero_tangent(o) if t is None else t for o, t in zip(outs, found, strict=False)]
    tangent = trees.unflatten(flat.out_tree, settled(out_tangents))
    return (result, tangent, aux) if has_aux else (result, tangent)


def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``f`` and its derivative there as a linear function of tangents, which may be called many times.

    Args:
        f: takes and returns pytrees of arrays.
        primals: where to evaluate it.
        has_aux: ``f`` returns ``(result, aux)``, and ``aux`` is not differentiated.

    Returns:
        ``(result, pushforward)``, or ``(result, pushforward, aux)``. ``pushforward(*tangents)`` takes one pytree per
        primal and like it, and returns a pytree like the result.

    Raises:
        TypeError: if a leaf of the primals or of the result is not an array.
        ValueError: from the pushforward, if the tangents do not have the primals' structure, shapes or dtypes.

    Example:
        >>> import funcgrad as fg
        >>> y, push = fg.linearize(lambda x: x * x, 3.0)
        >>> print(y, push(1.0), push(2.0))
        9.0 6.0 12.0
    """
    check_leaves("linearize", [f"primals[{i}]" for i in range(len(primals))], primals)
    leaves, tree = trees.flatten(primals)
    flat = Flat(f, tree, "linearize", has_aux)
    needs = [dtypes.is_inexact(type_of(x).dtype) for x in leaves]
    every, program = linearize_flat(flat, leaves, needs)
    outs, aux = flat.split(every)
    program = Program(program.inputs, program.constants, program.equations, program.outputs[: len(outs)], program.name)
    program = dead_code(program)
    out_tree = flat.out_tree
    result = trees.unflatten(out_tree, settled(outs))
    # Computed with the results, so that the pushforward may be staged and keeps only arrays.
    kept = [leaving(x) for _, x in program.constants]
    inputs = [*[v for v, _ in program.constants], *program.inputs]
    linear = Program(inputs, [], program.equations, program.outputs, program.name)
    types = tuple(type_of(x) for x in leaves)
    push = Pushforward(kept, (linear, tree, types, out_tree, tuple(type_of(o) for o in outs)))
    return (result, push, aux) if has_aux else (result, push)


class Pushforward:
    """The linear function of tangents that ``linearize`` returns.

    It is a pytree of its residual arrays, so it may be an argument or a result of ``jit``.

    Attributes:
        kept: the residual arrays.
        form: the program, which takes them first; the structure and types of the primals; those of the results.
    """

    def __init__(self, kept: Sequence[Any], form: tuple[Program, Any, Any, Any, Any]):
        self.kept = kept
        self.form = form
        self.__name__ = "pushforward"

    @restoring
    def __call__(self, *tangents: Any) -> Any:
        program, tree, types, out_tree, out_types = self.form
        given = match("linearize: the tangent", tangents, tree, types)
        with deferring():
            found = evaluate(program, [*self.kept, *[t for t, of in zip(given, types, strict=True) if of.inexact]])
        # If nothing depends on the tangents, the result is a zero without a shape.
        shaped = [
            t if of.inexact and type_of(t).shape == of.shape else zero_of(of)
            for t, of in zip(found, out_types, strict=True)
        ]
        return trees.unflatten(out_tree, settled(shaped))


trees.register_pytree_node(Pushforward, lambda push: (push.kept, push.form), lambda form, kept: Pushforward(kept, form))


def linear_transpose(f: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function: its pullback, which needs no point.

    Args:
        f: linear in its arguments, which are pytrees of floating arrays.
        primals: arguments, of which only shapes and dtypes are used.

    Returns:
        A function from a cotangent, like the result of ``f``, to a tuple of cotangents, one per argument.

    Raises:
        NonDifferentiableError: if ``f`` is not linear.
        TypeError: if an argument is not floating.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> matrix = fnp.array([[1.0, 2.0], [3.0, 4.0]])
        >>> print(fg.linear_transpose(lambda x: matrix @ x, fnp.zeros(2))(fnp.array([1.0, 0.0]))[0])
        [1. 2.]
    """
    leaves, tree = trees.flatten(primals)
    types = [abstract("linear_transpose", x).strong() for x in leaves]
    for type in types:
        if not type.inexact:
            raise TypeError(f"linear_transpose: an argument is of type {type}, in which nothing is linear")
    flat = Flat(f, tree, "linear_transpose")
    program = dead_code(stage(flat, types, description="linear_transpose"))
    out_tree = flat.out_tree

    def transposed(cotangent: Any) -> tuple[Any, ...]:
        cts = match("linear_transpose: the cotangent", cotangent, out_tree, program.output_types)
        with deferring():
            try:
                found = transpose_program(program, cts)
            except TypeError as error:
                raise NonDifferentiableError(
                    f"linear_transpose: the function is not linear in its arguments; at {here()}: {error}"
                ) from None
        return trees.unflatten(
            tree, settled([zero_of(t) if ct is None else ct for ct, t in zip(found, types, strict=True)])
        )

    return transposed


def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The product of the Hessian of a scalar function with a vector, without the Hessian: forward over reverse mode.

    Args:
        f: takes pytrees of floating arrays, returns a scalar; with ``has_aux``, a pair of a scalar and anything else.
        primals: a sequence, one entry per argument.
        tangents: the vector: the same structure, shapes and dtypes.

    Returns:
        A tuple, one entry per argument and like it; with ``has_aux``, a pair of that and ``aux``.

    Raises:
        TypeError: if ``f`` returns anything but a real scalar, or a leaf of the primals is not an array.
        ValueError: if the tangents do not have the primals' structure, shapes or dtypes; for integers they cannot.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> x, v = fnp.array([1.0, 2.0]), fnp.array([1.0, 0.0])
        >>> print(fg.hvp(lambda x: fnp.prod(x) ** 2, (x,), (v,))[0])
        [8. 8.]
    """
    every = tuple(range(len(primals)))
    found = jvp(grad(f, argnums=every, has_aux=has_aux), primals, tangents, has_aux=has_aux)
    return (found[1], found[2]) if has_aux else found[1]


# ---------------------------------------------------------------- constants


def stop_gradient(x: Any) -> Any:
    """``x`` as a constant for differentiation; applied to each leaf of a pytree.

    Args:
        x: a pytree of arrays or numbers.

    Returns:
        A pytree like ``x``, of its shapes, dtypes and values.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.grad(lambda x: x * fg.stop_gradient(x))(3.0))
        3.0
    """
    return trees.map(lambda leaf: stop_gradient_p(leaf) if dtypes.is_inexact(type_of(leaf).dtype) else leaf, x)
