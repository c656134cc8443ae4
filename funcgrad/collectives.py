"""Functions of all examples of a ``vmap`` at once, by the name of its axis: sums, gathers, exchanges.

``vmap(f, axis_name="i")`` gives its axis a name. Within ``f`` that name stands for an array: each example's number,
traced by that ``vmap`` like any value. A collective is a primitive with that array as an operand, and where *it* is
batched, the primitive's batching rule sees all examples and does its work. So no other part knows of names: ``jit``,
``scan`` and derivatives carry the array along as they carry any value that is closed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import checks, dtypes, trees
from funcgrad import numpy as fnp
from funcgrad.interpreters.batching import axis_called
from funcgrad.primitive import Primitive
from funcgrad.primitives.collectives import all_gather_p, all_to_all_p, ppermute_p, psum_p, psum_scatter_p
from funcgrad.primitives.elementwise import cast
from funcgrad.primitives.reductions import reduce_max, reduce_min
from funcgrad.tracing import type_of

AxisName = Any
"""What ``vmap`` calls an axis: any hashable value, usually a string."""


def _names(axis_name: AxisName) -> tuple[AxisName, ...]:
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


def _each(f: Callable[[Any], Any], x: Any) -> Any:
    return trees.map(lambda leaf: f(fnp.asarray(leaf)), x)


def _countable(leaf: Any) -> Any:
    """Booleans as numbers that have a sum."""
    return cast(leaf, dtype=dtypes.int32) if leaf.dtype == dtypes.bool_ else leaf


def axis_size(axis_name: AxisName) -> int:
    """How many examples there are along an axis, or along several, named by a tuple.

    Args:
        axis_name: as ``vmap`` was given it, or a tuple of such names.

    Returns:
        A Python integer, 1 for no names.

    Raises:
        NameError: if no surrounding ``vmap`` has an axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: x / axis_size("i"), axis_name="i")(fnp.array([2.0, 4.0])))
        [1. 2.]
    """
    size = 1
    for name in _names(axis_name):
        size *= axis_called(name)[1]
    return size


def axis_index(axis_name: AxisName) -> Any:
    """The number of the example along an axis, an int32; along several, named by a tuple, the last one counts fastest.

    Args:
        axis_name: as ``vmap`` was given it, or a tuple of such names.

    Returns:
        An int32 of no axes; None for no names.

    Raises:
        NameError: if no surrounding ``vmap`` has an axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: x * axis_index("i"), axis_name="i")(fnp.array([2, 2, 2])))
        [0 2 4]
    """
    total: Any = None
    for name in _names(axis_name):
        index, size = axis_called(name)
        total = index if total is None else total * size + index
    return total


def psum(x: Any, axis_name: AxisName) -> Any:
    """The sum over all examples along an axis, or along several, named by a tuple.

    Args:
        x: a pytree of arrays; booleans are counted.
        axis_name: as given to a surrounding ``vmap``, or a tuple of such names.

    Returns:
        A pytree like ``x``, of its shapes and dtypes, the same for every example; of booleans int32.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if no surrounding ``vmap`` has an axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: x / psum(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [0.25 0.75]
    """
    axes = [axis_called(name)[0] for name in _names(axis_name)]

    def one(leaf: Any) -> Any:
        leaf = _countable(leaf)
        for index in axes:
            leaf = psum_p(leaf, index)
        return leaf

    return _each(one, x)


def pmean(x: Any, axis_name: AxisName) -> Any:
    """The mean over all examples along an axis, or along several; see ``psum``.

    Args:
        x, axis_name: as for ``psum``.

    Returns:
        A pytree like ``x``, of its shapes and dtypes, the same for every example; of integers and booleans float32.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if no surrounding ``vmap`` has an axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [-1.  1.]
    """
    size = axis_size(axis_name)
    return trees.map(lambda total: total / size, psum(x, axis_name))


def _extreme(x: Any, axis_name: AxisName, reduce: Primitive) -> Any:
    axes = [axis_called(name) for name in _names(axis_name)]

    def one(leaf: Any) -> Any:
        for index, size in axes:
            leaf = reduce(all_gather_p(leaf, index, axis=0, count=size), axes=(0,))
        return leaf

    return _each(one, x)


def pmax(x: Any, axis_name: AxisName) -> Any:
    """The largest over all examples along an axis, or along several; see ``psum``.

    Args:
        x, axis_name: as for ``psum``; booleans stay such.

    Returns:
        A pytree like ``x``, of its shapes and dtypes, the same for every example.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if no surrounding ``vmap`` has an axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: pmax(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [3. 3.]
    """
    return _extreme(x, axis_name, reduce_max)


def pmin(x: Any, axis_name: AxisName) -> Any:
    """The smallest over all examples along an axis, or along several; see ``psum``.

    Args:
        x, axis_name: as for ``psum``; booleans stay such.

    Returns:
        A pytree like ``x``, of its shapes and dtypes, the same for every example.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if no surrounding ``vmap`` has an axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: pmin(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [1. 1.]
    """
    return _extreme(x, axis_name, reduce_min)


def all_gather(x: Any, axis_name: AxisName, *, axis: int = 0, tiled: bool = False) -> Any:
    """What all examples have, for each of them.

    Args:
        x: a pytree of arrays.
        axis_name: one name, as given to a surrounding ``vmap``.
        axis: where the result has the examples: a new axis, or, if ``tiled``, one along which they are concatenated.
        tiled: concatenate, of which every array has to have an axis.

    Returns:
        A pytree like ``x``, of its dtypes; with an axis more, or with that axis as many times longer as there are
        examples.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if no surrounding ``vmap`` has an axis of that name.
        ValueError: if there is no such axis.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: all_gather(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [[1. 3.]
         [1. 3.]]
    """
    index, size = axis_called(axis_name)

    def one(leaf: Any) -> Any:
        at = checks.axis("all_gather", axis, leaf.ndim + (not tiled))
        out = all_gather_p(leaf, index, axis=at, count=size)
        return _merged(out, at) if tiled else out

    return _each(one, x)


def _merged(x: Any, axis: int) -> Any:
    """``x`` with an axis and the next one as one."""
    shape = x.shape
    return fnp.reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _divided(caller: str, x: Any, axis: int, size: int, tiled: bool) -> Any:
    """``x`` with an axis of ``size`` parts: that axis itself, or, if ``tiled``, what it is divided into."""
    shape = x.shape
    if not tiled:
        if shape[axis] != size:
            raise ValueError(f"{caller}: axis {axis} of {type_of(x)} must have as many elements as examples: {size}")
        return x
    if shape[axis] % size:
        raise ValueError(f"{caller}: axis {axis} of {type_of(x)} cannot be divided among {size} examples")
    return fnp.reshape(x, (*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))


def psum_scatter(x: Any, axis_name: AxisName, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """Each example's part of the sum over all of them: ``psum``, of which the first example has the first part.

    Args:
        x: a pytree of arrays, of one axis at least; booleans are counted.
        axis_name: one name, as given to a surrounding ``vmap``.
        scatter_dimension: the axis along which the sum is divided; the result does not have it, unless ``tiled``.
        tiled: keep the axis, which may be a multiple of the number of examples.

    Returns:
        A pytree like ``x``, of its dtypes, int32 of booleans; without that axis, or with one as many times shorter as
        there are examples.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if no surrounding ``vmap`` has an axis of that name.
        ValueError: if there is no such axis, or it cannot be divided among the examples.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(fnp.array([[1.0, 2.0], [10.0, 20.0]])))
        [11. 22.]
    """
    index, size = axis_called(axis_name)

    def one(leaf: Any) -> Any:
        leaf = _countable(leaf)
        at = checks.axis("psum_scatter", scatter_dimension, leaf.ndim, "scatter_dimension")
        return psum_scatter_p(_divided("psum_scatter", leaf, at, size, tiled), index, axis=at, count=size)

    return _each(one, x)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """What another example has, by a fixed plan.

    Args:
        x: a pytree of arrays.
        axis_name: one name, as given to a surrounding ``vmap``.
        perm: pairs of the number of an example that gives and of one that receives; none gives or receives twice. Who
            receives nothing has zeros.

    Returns:
        A pytree like ``x``, of its shapes and dtypes.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if no surrounding ``vmap`` has an axis of that name.
        ValueError: if ``perm`` is no such plan.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> around = [(0, 1), (1, 2), (2, 0)]
        >>> print(fg.vmap(lambda x: ppermute(x, "i", around), axis_name="i")(fnp.array([1.0, 2.0, 3.0])))
        [3. 1. 2.]
    """
    index, size = axis_called(axis_name)
    pairs = []
    for ends in checks.sequence("ppermute", "perm", perm):
        source, target = checks.pair("ppermute", "each of perm", ends, "two numbers of examples")
        pairs.append(checks.integers("ppermute", "each of perm", (source, target)))
    for ends in zip(*pairs):
        if len(set(ends)) != len(ends) or not all(0 <= n < size for n in ends):
            raise ValueError(f"ppermute: perm {pairs} must name each of {size} examples at most once on each side")
    return _each(lambda leaf: ppermute_p(leaf, index, perm=tuple(pairs)), x)


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """What example ``perm[i]`` has, for each example ``i``.

    Args:
        x: a pytree of arrays.
        axis_name: one axis.
        perm: the examples' numbers in another order.

    Returns:
        A pytree like ``x``, of its shapes and dtypes.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if no surrounding ``vmap`` has an axis of that name.
        ValueError: where ``perm`` is no permutation of the examples.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(fnp.array([1.0, 2.0, 3.0])))
        [3. 1. 2.]
    """
    perm = checks.integers("pshuffle", "perm", perm)
    if sorted(perm) != list(range(axis_size(axis_name))):
        raise ValueError(f"pshuffle: perm {list(perm)} is no permutation of {axis_size(axis_name)} examples")
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(perm)])


def all_to_all(x: Any, axis_name: AxisName, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Each example gives a part of what it has to each other one.

    Args:
        x: a pytree of arrays, of one axis at least.
        axis_name: one name, as given to a surrounding ``vmap``.
        split_axis: the axis along which ``x`` is divided among the examples; as many elements as there are examples,
            and gone in the result, unless ``tiled``.
        concat_axis: where the result has what was received: a new axis, unless ``tiled``.
        tiled: keep both axes: the first as many times shorter as there are examples, the second longer.

    Returns:
        A pytree like ``x``, of its dtypes, and as many elements.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if no surrounding ``vmap`` has an axis of that name.
        ValueError: if there is no such axis, or it cannot be divided among the examples.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(fnp.array([[1, 2], [3, 4]])))
        [[1 3]
         [2 4]]
    """
    index, size = axis_called(axis_name)

    def one(leaf: Any) -> Any:
        split = checks.axis("all_to_all", split_axis, leaf.ndim, "split_axis")
        concat = checks.axis("all_to_all", concat_axis, leaf.ndim, "concat_axis")
        parts = _divided("all_to_all", leaf, split, size, tiled)
        out = all_to_all_p(parts, index, split=split, concat=concat, count=size)
        return _merged(out, concat) if tiled else out

    return _each(one, x)
