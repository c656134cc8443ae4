"""Conversion from and to JAX functions: ``from_jax`` and ``to_jax``.

A JAX function inside a funcgrad one is a single primitive, which JAX itself differentiates and batches: the derived
functions are parameters of the same primitive. A funcgrad function inside a JAX one is the JAX primitive that carries a
program; this module defines its JAX rules, whose programs funcgrad derives.

This is the one module that calls JAX's autodiff.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from typing import Any

import jax
from jax.interpreters import ad, batching

from funcgrad.arguments import validate
from funcgrad.control.call import batched_program
from funcgrad.control.split import split_for_forward
from funcgrad.core import trees
from funcgrad.core.caching import Cache, Group
from funcgrad.core.ir import ArrayType, Code, Program, kept_with_program
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import is_array, state, traced, type_of, typed
from funcgrad.interpreters.lower import lowered, program_p
from funcgrad.interpreters.reverse import Pullback
from funcgrad.interpreters.staging import stage
from funcgrad.interpreters.transpose import transpose_call
from funcgrad.transforms.jit import Jitted, jit

try:
    # Not public API: without it JAX evaluates constants of its functions while tracing.
    from jax._src.config import eager_constant_folding as _folding
except ImportError:
    _folding = nullcontext  # type: ignore[assignment]

Arrays = Sequence[Any]
Mask = tuple[bool, ...]

# ---------------------------------------------------------------- JAX functions in funcgrad


_TYPES = Group("types of JAX's functions", 2048)
_FUNCTIONS = Group("JAX's functions", 1024)


class Foreign(Code):
    """A JAX function of flat arrays, and the functions that JAX derives from it, which are cached.

    Attributes:
        function: takes arrays, returns a pytree of them.
    """

    __slots__ = ("function", "_types", "_derived", "__weakref__")

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.cache = {}
        self._types: Cache[tuple[ArrayType, ...], tuple[list[ArrayType], Any]] = Cache(_TYPES)
        self._derived: Cache[Hashable, Foreign] = Cache(_FUNCTIONS)

    def __call__(self, *operands: Any) -> list[Any]:
        return trees.leaves(self.function(*operands))

    def results(self, types: Sequence[ArrayType]) -> tuple[list[ArrayType], Any]:
        """The types of the results, and their structure."""
        key = tuple(types)
        found = self._types.get(key) or self._types.again(key)
        if found is None:
            given = [jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak) for t in types]
            with jax.core.eval_context(), _folding(False):
                leaves, tree = trees.flatten(jax.eval_shape(self.function, *given))
            found = self._types[key] = [ArrayType(x.shape, x.dtype) for x in leaves], tree
        return found

    def derived(self, key: Hashable, make: Callable[[], Callable[..., Any]]) -> Foreign:
        """The function that ``make`` creates, cached by key."""
        found = self._derived.get(key) or self._derived.again(key)
        if found is None:
            found = self._derived[key] = Foreign(make())
        return found

    def of_chosen(self, mask: Mask, rest: Arrays) -> Callable[..., list[Any]]:
        """The function of the operands that ``mask`` marks, with the others fixed."""

        def function(*chosen: Any) -> list[Any]:
            mine, others = iter(chosen), iter(rest)
            return self(*[next(mine) if m else next(others) for m in mask])

        return function

    # The derived functions take the unmarked operands followed by the marked ones.

    def pushed(self, mask: Mask, inexact: Mask) -> Foreign:
        """Maps ``(*operands, *tangents)`` to the tangents of the results that have one."""

        def push(*args: Any) -> list[Any]:
            primals, tangents = args[: len(mask)], args[len(mask) :]
            chosen, rest = _parted(primals, mask)
            _, found = jax.jvp(self.of_chosen(mask, rest), tuple(chosen), tuple(tangents))
            return [t for t, i in zip(found, inexact, strict=True) if i]

        return self.derived(("push", mask, inexact), lambda: push)

    def forward(self, mask: Mask) -> Foreign:
        """Maps ``operands`` to the results and JAX's pullback, which is a pytree of its residuals."""

        def run(*operands: Any) -> Any:
            chosen, rest = _parted(operands, mask)
            return jax.vjp(self.of_chosen(mask, rest), *chosen)

        return self.derived(("forward", mask), lambda: run)

    def backward(self, pullback: Any, kept: int, types: Sequence[ArrayType], given: Mask) -> Foreign:
        """Maps ``(*kept, *cotangents)`` to the cotangents of the operands: a pullback with that structure."""

        def pull(*args: Any) -> Any:
            cts = iter(args[kept:])
            filled = [next(cts) if g else _zero(t) for t, g in zip(types, given, strict=True)]
            return jax.tree_util.tree_unflatten(pullback, args[:kept])(filled)

        return self.derived(("backward", pullback, given), lambda: pull)

    def transposed(self, mask: Mask, types: Sequence[ArrayType], given: Mask) -> Foreign:
        """Maps ``(*others, *cotangents)`` to the cotangents of the marked operands, in which it is linear."""
        linear = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t, m in zip(types, mask, strict=True) if m]
        count = len(mask) - len(linear)
        results = self.results(types)[0]

        def pull(*args: Any) -> Any:
            cts = iter(args[count:])
            filled = [next(cts) if g else _zero(t) for t, g in zip(results, given, strict=True)]
            return jax.linear_transpose(self.of_chosen(mask, args[:count]), *linear)(filled)

        return self.derived(("transpose", mask, tuple(types), given), lambda: pull)

    def batched(self, dims: tuple[int | None, ...], size: int) -> Foreign:
        """Vectorized, with the batch axis of each result first."""
        return self.derived(("batch", dims, size), lambda: jax.vmap(self.__call__, dims, 0, axis_size=size))


def _parted(values: Arrays, mask: Mask) -> tuple[list[Any], list[Any]]:
    """Partitions values by a mask."""
    return (
        [v for v, m in zip(values, mask, strict=True) if m],
        [v for v, m in zip(values, mask, strict=True) if not m],
    )


def _zero(type: ArrayType) -> Any:
    return jax.numpy.zeros(type.shape, type.dtype if type.inexact else jax.dtypes.float0)


def _jvp(primals: Arrays, tangents: Arrays, *, function: Foreign) -> tuple[list[Any], list[Any]]:
    mask = tuple(t is not None for t in tangents)
    types, _ = function.results([type_of(x) for x in primals])
    inexact = tuple(t.inexact for t in types)
    outs = jax_p(*primals, function=function)
    push = function.pushed(mask, inexact)
    found = iter(jax_p(*primals, *[t for t in tangents if t is not None], function=push))
    return outs, [next(found) if i else None for i in inexact]


def _vjp(operands: Arrays, needs: Sequence[bool], params: dict[str, Any]) -> tuple[list[Any], Pullback]:
    function: Foreign = params["function"]
    mask = tuple(isinstance(x, ArrayType) for x in operands)
    if any(mask):
        return [], _transposition(function, operands, mask)
    mask = tuple(needs)
    types = [type_of(x) for x in operands]
    results, _ = function.results(types)
    forward = function.forward(mask)
    _, pullback = forward.results(types)[1].children()
    found = jax_p(*operands, function=forward)
    outs, kept = found[: len(results)], found[len(results) :]

    def pull(cotangents: Arrays) -> list[Any]:
        given = tuple(ct is not None for ct in cotangents)
        backward = function.backward(pullback, len(kept), results, given)
        cts = iter(jax_p(*kept, *[ct for ct in cotangents if ct is not None], function=backward))
        return [next(cts) if n else None for n in needs]

    return outs, pull


def _transposition(function: Foreign, operands: Arrays, mask: Mask) -> Pullback:
    types = [x if isinstance(x, ArrayType) else type_of(x) for x in operands]
    known = [x for x in operands if not isinstance(x, ArrayType)]

    def pull(cotangents: Arrays) -> list[Any]:
        transposed = function.transposed(mask, types, tuple(ct is not None for ct in cotangents))
        cts = iter(jax_p(*known, *[ct for ct in cotangents if ct is not None], function=transposed))
        return [next(cts) if m else None for m in mask]

    return pull


def _batch(
    size: int, operands: Arrays, dims: Sequence[int | None], *, function: Foreign
) -> tuple[list[Any], list[int | None]]:
    outs = jax_p(*operands, function=function.batched(tuple(dims), size))
    return outs, [0] * len(outs)


jax_p = Primitive(
    "jax",
    infer=lambda *types, function: function.results(types)[0],
    lower=lambda *xs, function: function(*xs),
    jvp=_jvp,
    vjp=_vjp,
    batch=_batch,
    multiple=True,
)


def from_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """A JAX function, for use inside funcgrad functions.

    It is traced by JAX alone, as one operation here, and JAX differentiates it, with its custom rules if any: to any
    order, in both modes, batched, inside and outside ``jit``. Wrap a function once and keep it: JAX's compiled
    functions are cached with the wrapper.

    Args:
        f: takes and returns pytrees of arrays; other arguments are passed unchanged.

    Returns:
        A function of the same arguments.

    Raises:
        TypeError: for an argument that is not a function.

    Example:
        >>> import jax.scipy, funcgrad as fg, funcgrad.numpy as fnp
        >>> logit = from_jax(jax.scipy.special.logit)
        >>> print(fg.grad(lambda p: fnp.sum(logit(p) * 2.0))(fnp.array([0.5, 0.2])))
        [ 8.  12.5]
    """
    validate.function("from_jax", f)
    functions: Cache[Hashable, Foreign] = Cache(_FUNCTIONS)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = trees.flatten((args, kwargs))
        if state.floor is None and not any(map(traced, leaves)):
            return f(*args, **kwargs)
        dynamic = tuple(map(is_array, leaves))
        arrays, others = _parted(leaves, dynamic)

        def of_arrays(*xs: Any) -> Any:
            given, rest = iter(xs), iter(others)
            a, k = trees.unflatten(tree, [next(given) if d else next(rest) for d in dynamic])
            return f(*a, **k)

        key = (tree, dynamic, tuple(others))
        try:
            function = functions.setdefault(key, Foreign(of_arrays))
        except TypeError:  # an unhashable key is not cached
            function = Foreign(of_arrays)
        out_tree = function.results([type_of(x) for x in arrays])[1]
        return trees.unflatten(out_tree, jax_p(*[typed(x) for x in arrays], function=function))

    wrapped.__name__ = wrapped.__qualname__ = getattr(f, "__name__", type(f).__name__)
    wrapped.__doc__ = f.__doc__
    return wrapped


# ---------------------------------------------------------------- funcgrad functions in JAX


def to_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """A funcgrad function, for use inside JAX functions.

    It is compiled as by ``jit``, and supports all of JAX's transforms: ``jax.jit``, ``jax.grad``, ``jax.jvp``,
    ``jax.vmap``, ``jax.hessian``, ``jax.checkpoint``, and JAX's loops. Their derivatives are those that funcgrad
    derives.

    Args:
        f: takes and returns pytrees of arrays; or the result of ``jit``.

    Returns:
        A function of the same arguments, compiled by ``jax.jit``.

    Raises:
        TypeError: for an argument that is not a function.

    Example:
        >>> import jax, funcgrad as fg, funcgrad.numpy as fnp
        >>> f = to_jax(lambda x: fnp.sum(x**3))
        >>> print(jax.grad(f)(fnp.array([0.5, 1.0])))
        [0.75 3.  ]
    """
    jitted: Any = f if isinstance(f, Jitted) else jit(validate.function("to_jax", f))
    return jitted.compiled


def _jax_jvp(primals: Arrays, tangents: Arrays, *, program: Program) -> tuple[list[Any], list[Any]]:
    """JAX's forward rule, with results computed separately from tangents, so that JAX can use either alone."""
    mask = tuple(not isinstance(t, ad.Zero) and v.type.inexact for v, t in zip(program.inputs, tangents, strict=True))
    whole, linear, nonzero = split_for_forward(program, mask)
    found = lowered(whole)(*primals)
    outs, residuals = found[: len(program.outputs)], found[len(program.outputs) :]
    given = [ad.instantiate_zeros(t) for t, m in zip(tangents, mask, strict=True) if m]
    moved = iter(lowered(linear)(*residuals, *given))
    return outs, [
        next(moved) if n else ad.Zero(jax.typeof(o).to_tangent_aval()) for o, n in zip(outs, nonzero, strict=True)
    ]


def _jax_transpose(cotangents: Arrays, *operands: Any, program: Program) -> list[Any]:
    mask = tuple(ad.is_undefined_primal(x) for x in operands)
    given = tuple(not isinstance(ct, ad.Zero) for ct in cotangents)
    derived, nonzero = _transposed(program, mask, given)
    known = [x for x, m in zip(operands, mask, strict=True) if not m]
    found = iter(lowered(derived)(*known, *[ct for ct, g in zip(cotangents, given, strict=True) if g]))
    zeros = [ad.Zero(x.aval.to_tangent_aval()) if m else None for x, m in zip(operands, mask, strict=True)]
    return [next(found) if n else z for n, z in zip(nonzero, zeros, strict=True)]


@kept_with_program
def _transposed(program: Program, mask: Mask, given: Mask) -> tuple[Program, list[bool]]:
    """The program from the known operands and the cotangents to the cotangents of the operands that ``mask`` marks."""
    types = program.input_types
    nonzero: list[bool] = []

    def run(*args: Any) -> list[Any]:
        known, cts = iter(args[: len(mask) - sum(mask)]), iter(args[len(mask) - sum(mask) :])
        operands = [t.strong() if m else next(known) for t, m in zip(types, mask, strict=True)]
        found = transpose_call(program, operands, [next(cts) if g else None for g in given])
        nonzero[:] = [ct is not None for ct in found]
        return [ct for ct in found if ct is not None]

    inputs = [t for t, m in zip(types, mask, strict=True) if not m]
    inputs += [t.strong() for t, g in zip(program.output_types, given, strict=True) if g]
    return stage(run, inputs, name=f"transpose_{program.name}"), nonzero


def _jax_batch(operands: Arrays, dims: Arrays, *, program: Program) -> tuple[list[Any], list[Any]]:
    size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    derived, found = batched_program(program, size, tuple(type_of(x) for x in operands), tuple(dims))
    return lowered(derived)(*operands), list(found)


ad.primitive_jvps[program_p] = _jax_jvp
ad.primitive_transposes[program_p] = _jax_transpose
batching.primitive_batchers[program_p] = _jax_batch
