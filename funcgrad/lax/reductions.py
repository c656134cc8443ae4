"""Reductions over axes by known or arbitrary associative functions, and cumulative reductions."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes, trees
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of, typed
from funcgrad.interpreters.staging import stage
from funcgrad.lax.operands import axes_of, checked, same_dtype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import reductions as r
from funcgrad.primitives import shape as s
from funcgrad.transforms.vmap import vmap

__all__ = [
    "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "reduce", "reduce_and", "reduce_max", "reduce_min",
    "reduce_or", "reduce_prod", "reduce_sum", "reduce_xor",
]  # fmt: skip

# ---------------------------------------------------------------- known operations

_DOCUMENT = """{what}

Args:
    operand: an array: {kinds}.
    axes: the axes to reduce, without duplicates; without axes the array is unchanged.

Returns:
    An array without these axes, of the same dtype.

Raises:
    TypeError: for operands that are not arrays, or another dtype, or axes that are not integers.
    ValueError: for axes out of range, or repeated.

Example:
    >>> print({name}(np.array({example}), (1,)))
    {shown}
"""


def _lowest(dtype: np.dtype) -> Any:
    return dtype.type(False if dtype == dtypes.bool_ else -np.inf if dtypes.is_inexact(dtype) else np.iinfo(dtype).min)


def _highest(dtype: np.dtype) -> Any:
    return dtype.type(True if dtype == dtypes.bool_ else np.inf if dtypes.is_inexact(dtype) else np.iinfo(dtype).max)


def _or_neutral(primitive: Primitive, neutral: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    """A reduction without a value for empty arrays, extended by its neutral element."""

    def body(x: Any, axes: tuple[int, ...]) -> Any:
        kind = type_of(x)
        if all(kind.shape[a] for a in axes):
            return primitive(x, axes=axes)
        return s.full(neutral(kind.dtype), tuple(kind.shape[d] for d in s.kept(kind.shape, axes)))

    return body


def _of_bits(of_bools: Primitive, pairwise: Primitive, neutral: int) -> Callable[..., Any]:
    """A reduction of bools, applied to the bits of integers."""

    def body(x: Any, axes: tuple[int, ...]) -> Any:
        kind = type_of(x)
        if kind.dtype == dtypes.bool_:
            return of_bools(x, axes=axes)
        return fold(lambda a, b: [pairwise(*a, *b)], [x], [p.number(neutral, x)], axes)[0]

    return body


def _parity(x: Any, axes: tuple[int, ...]) -> Any:
    return fold(lambda a, b: [p.bitwise_xor(*a, *b)], [x], [p.number(0, x)], axes)[0]


def _of_numbers(primitive: Primitive) -> Callable[..., Any]:
    return lambda x, axes: primitive(x, axes=axes)


def _reduction(
    name: str, body: Callable[..., Any], accepts: Callable[[np.dtype], bool], kinds: str, what: str, *example: str
) -> Callable[..., Any]:
    def function(operand: Any, axes: Sequence[int]) -> Any:
        x = typed(checked(name, operand))
        if not accepts(type_of(x).dtype):
            raise TypeError(f"{name}: takes {kinds}, got {type_of(x)}")
        return body(x, axes_of(name, axes, type_of(x).ndim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOCUMENT.format(what=what, name=name, kinds=kinds, example=example[0], shown=example[1])
    return function


def _is_number(dtype: np.dtype) -> bool:
    return dtype != dtypes.bool_


def _is_ordered(dtype: np.dtype) -> bool:
    return not dtypes.is_complex(dtype)


def _is_bits(dtype: np.dtype) -> bool:
    return not dtypes.is_inexact(dtype)


reduce_sum = _reduction(
    "reduce_sum", _of_numbers(s.reduce_sum), _is_number, "numbers", "The sum over axes.", "[[1, 2], [3, 4]]", "[3 7]"
)
reduce_prod = _reduction(
    "reduce_prod", _of_numbers(r.reduce_prod), _is_number, "numbers", "The product over axes.",
    "[[1, 2], [3, 4]]", "[ 2 12]",
)  # fmt: skip
reduce_max = _reduction(
    "reduce_max", _or_neutral(r.reduce_max, _lowest), _is_ordered, "real numbers or bools",
    "The largest over axes; the smallest number of all over nothing.", "[[1, 2], [3, 4]]", "[2 4]",
)  # fmt: skip
reduce_min = _reduction(
    "reduce_min", _or_neutral(r.reduce_min, _highest), _is_ordered, "real numbers or bools",
    "The smallest over axes; the largest number of all over nothing.", "[[1, 2], [3, 4]]", "[1 3]",
)  # fmt: skip
reduce_and = _reduction(
    "reduce_and", _of_bits(r.reduce_all, p.bitwise_and, -1), _is_bits, "bools or integers",
    "Whether all are true over axes; of integers, bit by bit.", "[[6, 3], [1, 1]]", "[2 1]",
)  # fmt: skip
reduce_or = _reduction(
    "reduce_or", _of_bits(r.reduce_any, p.bitwise_or, 0), _is_bits, "bools or integers",
    "Whether any is true over axes; of integers, bit by bit.", "[[6, 3], [1, 1]]", "[7 1]",
)  # fmt: skip
reduce_xor = _reduction(
    "reduce_xor", _parity, _is_bits, "bools or integers",
    "Whether an odd number is true over axes; of integers, bit by bit.", "[[6, 3], [1, 1]]", "[5 0]",
)  # fmt: skip

# ---------------------------------------------------------------- any associative function

Combine = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]

#: The reduction for a binary function, by the function's primitive; and its identity.
MONOIDS: dict[str, tuple[Callable[..., Any], Callable[[np.dtype], Any]]] = {
    "add": (_of_numbers(s.reduce_sum), lambda dtype: dtype.type(0)),
    "mul": (_of_numbers(r.reduce_prod), lambda dtype: dtype.type(1)),
    "max": (_or_neutral(r.reduce_max, _lowest), _lowest),
    "min": (_or_neutral(r.reduce_min, _highest), _highest),
}


def monoid(name: str, computation: Callable[..., Any], dtype: np.dtype) -> str | None:
    """The reduction primitive for a function of two scalars, if it is one of ``MONOIDS``; else None.

    Raises:
        TypeError: if the function does not map two scalars to one scalar of that dtype.
    """
    scalar = ArrayType((), dtype)
    program = stage(lambda x, y: trees.leaves(computation(x, y)), [scalar, scalar], name=name)
    if [t.strong() for t in program.output_types] != [scalar]:
        raise TypeError(f"{name}: the function must make one {scalar} of two, got {list(program.output_types)}")
    if len(program.equations) != 1 or program.constants:
        return None
    (equation,) = program.equations
    whole = set(equation.inputs) == set(program.inputs) and list(equation.outputs) == list(program.outputs)
    known = equation.primitive.name in MONOIDS and dtype != dtypes.bool_
    return equation.primitive.name if whole and known else None


def fold(combine: Combine, xs: Sequence[Any], initial: Sequence[Any], axes: tuple[int, ...]) -> list[Any]:
    """Reduces arrays of one shape over axes by recursive halving: log2(n) steps of whole-array arithmetic.

    Args:
        combine: combines the parts of two arrays elementwise; associative.
        initial: scalars to combine with the result.
    """
    shape = type_of(xs[0]).shape
    left = s.kept(shape, axes)
    outer = tuple(shape[d] for d in left)
    count = math.prod(shape[a] for a in axes)
    flat = (count, math.prod(outer))
    parts = [s.reshape(s.transpose(x, permutation=(*axes, *left)), shape=flat) for x in xs]

    def rows(start: int, limit: int) -> list[Any]:
        return [s.slice_(x, start=(start, 0), limit=(limit, flat[1]), strides=(1, 1)) for x in parts]

    while count > 1:
        half = count // 2
        joined = combine(rows(0, half), rows(half, 2 * half))
        rest = rows(2 * half, count)
        parts = [s.concatenate(a, b, axis=0) for a, b in zip(joined, rest, strict=True)] if count % 2 else list(joined)
        count -= half
    first = [s.broadcast(typed(i), shape=(1, flat[1]), dims=()) for i in initial]
    found = combine(first, parts) if count else first
    return [s.reshape(x, shape=outer) for x in found]


def elementwise_of(computation: Callable[..., Any], several: bool) -> Combine:
    """A function of two scalars, or of two tuples of them, vectorized for arrays: it may branch and loop."""

    def combine(xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        kinds = [type_of(x) for x in xs]
        size = kinds[0].size
        if not size:
            return list(xs)

        def one(a: Any, b: Any) -> Any:
            found = trees.leaves(computation(a, b) if several else computation(a[0], b[0]))
            made, wanted = [type_of(x) for x in found], [ArrayType((), k.dtype) for k in kinds]
            if [t.strong() for t in made] != wanted and [t.shape for t in made] != [()] * len(kinds):
                raise TypeError(f"reduce: the function must make {wanted} of two of them, got {made}")
            return [p.cast(typed(x), dtype=k.dtype) for x, k in zip(found, kinds, strict=True)]

        flat = [tuple(s.reshape(v, shape=(size,)) for v in side) for side in (xs, ys)]
        return [s.reshape(v, shape=k.shape) for v, k in zip(vmap(one)(*flat), kinds, strict=True)]

    return combine


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
) -> Any:
    """Reduces arrays over axes with a binary function.

    The order is unspecified, so the function must be associative. ``add``, ``mul``, ``max`` and ``min`` are compiled to
    their own reductions.

    Args:
        operands: an array, or a pytree of arrays of one shape.
        init_values: a number for each, of its dtype, which is combined with the result once.
        computation: combines two elements, or two pytrees of elements, to one.
        dimensions: the axes to reduce.

    Returns:
        An array without these axes, or a pytree of such, of the same dtypes.

    Raises:
        TypeError: for operands that are not arrays, other dtypes, or a function with other result types.
        ValueError: for different shapes, axes out of range, or non-scalar initial values.

    Example:
        >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> print(reduce(x, 0.0, lambda a, b: a + b, (1,)), reduce(x, 2.0, lambda a, b: a * b, (0, 1)))
        [3. 7.] 48.0
    """
    tree: Any
    xs, tree = trees.flatten(operands)
    initial, found = trees.flatten(init_values)
    if tree != found or not xs:
        raise TypeError(f"reduce: operands have the structure {tree}, but init_values {found}")
    pairs = [same_dtype("reduce", x, i) for x, i in zip(xs, initial, strict=True)]
    kinds = [type_of(x) for x, _ in pairs]
    if len({k.shape for k in kinds}) > 1 or builtins.any(type_of(i).shape for _, i in pairs):
        raise ValueError(f"reduce: operands must have one shape and init_values none, got {kinds}")
    axes = axes_of("reduce", dimensions, kinds[0].ndim)
    several = xs[0] is not operands
    if not several:
        x, start = pairs[0]
        kind = monoid("reduce", computation, kinds[0].dtype)
        if kind is not None:
            return computation(start, MONOIDS[kind][0](x, axes))

    def whole(a: Any, b: Any) -> Any:
        return computation(trees.unflatten(tree, a), trees.unflatten(tree, b))

    combine = elementwise_of(whole, True) if several else elementwise_of(computation, False)
    reduced = fold(combine, [x for x, _ in pairs], [i for _, i in pairs], axes)
    return trees.unflatten(tree, reduced)


# ---------------------------------------------------------------- cumulative

_RUNNING = """{what}

Args:
    operand: an array: {kinds}.
    axis: the axis.
    reverse: whether to start from the end.

Returns:
    An array of the same shape and dtype.

Raises:
    TypeError: for operands that are not arrays, or another dtype.
    ValueError: for an axis out of range.

Example:
    >>> print({name}(np.array({example})))
    {shown}
"""


def _running(
    name: str, body: Callable[..., Any], accepts: Callable[[np.dtype], bool], kinds: str, what: str, *example: str
) -> Callable[..., Any]:
    def function(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        x = checked(name, operand)
        if not accepts(type_of(x).dtype):
            raise TypeError(f"{name}: takes {kinds}, got {type_of(x)}")
        return body(x, axis=validate.axis(name, axis, type_of(x).ndim), reverse=bool(reverse))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _RUNNING.format(what=what, name=name, kinds=kinds, example=example[0], shown=example[1])
    return function


def _running_logsumexp(x: Any, *, axis: int, reverse: bool) -> Any:
    """By doubling, each pair of sums shifted by its maximum."""
    n = type_of(x).shape[axis]
    x = s.reverse(x, axes=(axis,)) if reverse else x
    step = 1
    while step < n:
        head, early, late = (s.cut(x, axis, *ends) for ends in ((0, step), (0, n - step), (step, n)))
        x = s.concatenate(head, _logaddexp(early, late), axis=axis)
        step *= 2
    return s.reverse(x, axes=(axis,)) if reverse else x


def _logaddexp(x: Any, y: Any) -> Any:
    most = p.stop_gradient(p.maximum(x, y))
    base = p.select(p.is_finite(most), most, p.number(0, most))
    return p.add(p.log(p.add(p.exp(p.sub(x, base)), p.exp(p.sub(y, base)))), base)


cumsum = _running("cumsum", r.cumulative_sum, _is_number, "numbers", "Running sums.", "[1, 2, 3]", "[1 3 6]")
cumprod = _running("cumprod", r.cumulative_prod, _is_number, "numbers", "Running products.", "[1, 2, 3]", "[1 2 6]")
cummax = _running(
    "cummax", r.cumulative_max, _is_ordered, "real numbers", "The largest so far.", "[1, 3, 2]", "[1 3 3]"
)
cummin = _running(
    "cummin", r.cumulative_min, _is_ordered, "real numbers", "The smallest so far.", "[2, 3, 1]", "[2 2 1]"
)
cumlogsumexp = _running(
    "cumlogsumexp", _running_logsumexp, dtypes.is_floating, "floating numbers",
    "The logarithm of running sums of exponentials.", "[0.0, 0.0]", "[0.         0.69314718]",
)  # fmt: skip
