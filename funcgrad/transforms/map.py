"""``map``, a loop without a carry, and ``associative_scan``, a parallel prefix scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import kind
from funcgrad.control.scan import scan
from funcgrad.core import trees
from funcgrad.core.tracing import is_array, type_of, typed
from funcgrad.primitives.shape import concatenate, cut, reshape
from funcgrad.primitives.shape import reverse as reversed_along
from funcgrad.transforms.vmap import vmap


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """``f`` of each slice of ``xs`` along the leading axis, sequentially; ``vmap`` does the same in parallel.

    Args:
        f: takes and returns pytrees of arrays.
        xs: a pytree of arrays of shapes (length, ...).
        batch_size: how many slices are processed at a time by ``vmap``, and the remainder at the end.

    Returns:
        The results, stacked along a new leading axis.

    Raises:
        ValueError: if lengths differ, or ``batch_size`` is not positive.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.map(lambda x: x * x, fnp.array([1.0, 2.0, 3.0]), batch_size=2))
        [1. 4. 9.]
    """
    validate.function("map", f)
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    batch_size = validate.integer("map", "batch_size", batch_size, least=1)
    length = _length("map", xs)
    whole, rest = divmod(length, batch_size)
    parts = []
    if whole:

        def batched(x: Any) -> Any:
            head = _cut(x, 0, 0, whole * batch_size)
            return reshape(head, shape=(whole, batch_size, *type_of(x).shape[1:]))

        _, ys = scan(lambda _, x: (None, vmap(f)(x)), None, trees.map(batched, xs))
        parts.append(trees.map(lambda y: reshape(y, shape=(whole * batch_size, *type_of(y).shape[2:])), ys))
    if rest or not whole:
        parts.append(vmap(f)(trees.map(lambda x: _cut(x, 0, whole * batch_size, length), xs)))
    return parts[0] if len(parts) == 1 else trees.map(lambda *ys: concatenate(*ys, axis=0), *parts)


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefix combinations of elements along an axis, in a logarithmic number of steps.

    Args:
        fn: combines two pytrees like ``elems``, slice by slice along ``axis``; associative: ``fn(fn(a, b), c)``
            is ``fn(a, fn(b, c))``.
        elems: a pytree of arrays with as many elements along ``axis``.
        reverse: combine from the end.
        axis: along which to combine.

    Returns:
        A pytree like ``elems``; the first slice is the first of ``elems``, the second one the first two combined, ...

    Raises:
        ValueError: if lengths differ.
        TypeError: if ``fn`` returns another structure.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.associative_scan(fnp.multiply, fnp.array([1.0, 2.0, 3.0, 4.0])))
        [ 1.  2.  6. 24.]
    """
    validate.function("associative_scan", fn, "fn")
    axis = validate.integer("associative_scan", "axis", axis)
    tree: Any
    leaves, tree = trees.flatten(elems)
    _length("associative_scan", elems, axis)
    leaves = [typed(x) for x in leaves]
    axes = [axis % type_of(x).ndim for x in leaves]

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        found, structure = trees.flatten(fn(trees.unflatten(tree, a), trees.unflatten(tree, b)))
        if structure != tree:
            raise TypeError(f"associative_scan: fn combines elements of structure {tree} to one of {structure}")
        for path, leaf in trees.tree_flatten_with_path(trees.unflatten(tree, found))[0]:
            if not is_array(leaf):
                raise TypeError(
                    f"associative_scan: fn returned {kind(leaf)} at result{trees.keystr(path)}, wanted arrays"
                )
        return found

    if reverse:
        leaves = [reversed_along(x, axes=(a,)) for x, a in zip(leaves, axes, strict=True)]
    found = _running(combine, leaves, axes)
    if reverse:
        found = [reversed_along(x, axes=(a,)) for x, a in zip(found, axes, strict=True)]
    return trees.unflatten(tree, found)


def _running(combine: Callable[[list, list], list], xs: list[Any], axes: list[int]) -> list[Any]:
    """Combines pairs of neighbours, scans these recursively, and combines once more for the elements in between."""
    count = type_of(xs[0]).shape[axes[0]] if xs else 0
    if count < 2:
        return xs

    def each(start: int, stop: int, step: int, values: list[Any]) -> list[Any]:
        return [_cut(x, a, start, stop, step) for x, a in zip(values, axes, strict=True)]

    pairs = combine(each(0, count - 1, 2, xs), each(1, count, 2, xs))
    odd = _running(combine, pairs, axes)
    between = odd if count % 2 else each(0, count // 2 - 1, 1, odd)
    first = each(0, 1, 1, xs)
    if count == 2:
        even = first
    else:
        later = combine(between, each(2, count, 2, xs))
        even = [concatenate(a, b, axis=axis) for a, b, axis in zip(first, later, axes, strict=True)]
    return [_interleaved(a, b, axis) for a, b, axis in zip(even, odd, axes, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """Interleaves two arrays; the second may have one element less."""
    shape = type_of(odd).shape
    pairs = type_of(odd).shape[axis]
    columns = [reshape(_cut(x, axis, 0, pairs), shape=(*shape[: axis + 1], 1, *shape[axis + 1 :])) for x in (even, odd)]
    joined = reshape(concatenate(*columns, axis=axis + 1), shape=(*shape[:axis], 2 * pairs, *shape[axis + 1 :]))
    last = type_of(even).shape[axis]
    return joined if last == pairs else concatenate(joined, _cut(even, axis, pairs, last), axis=axis)


def _cut(x: Any, axis: int, start: int, stop: int, step: int = 1) -> Any:
    """A slice along one axis."""
    whole = (start, stop, step) == (0, type_of(x).shape[axis], 1)
    return x if whole else cut(x, axis, start, stop, step)


def _length(caller: str, xs: Any, axis: int = 0) -> int:
    sizes: dict[int, str] = {}
    for path, leaf in trees.tree_flatten_with_path(xs)[0]:
        if not is_array(leaf) or not -type_of(leaf).ndim <= axis < type_of(leaf).ndim:
            raise ValueError(f"{caller}: argument{trees.keystr(path)} is {leaf!r}, which has no axis {axis}")
        sizes.setdefault(type_of(leaf).shape[axis], f"argument{trees.keystr(path)} of type {type_of(leaf)}")
    if len(sizes) != 1:
        raise ValueError(f"{caller}: lengths differ, or there are no arrays: {', '.join(sizes.values())}")
    return next(iter(sizes))
