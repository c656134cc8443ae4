"""Collectives over the batch elements of a ``vmap``, or the devices of a mesh, by axis name.

``vmap(f, axis_name="i")`` names its axis. Within ``f`` the name refers to an array: each element's index, traced by
that ``vmap``. A collective is a primitive with that array as an operand, and if *it* is batched, the primitive's
batching rule sees all elements and computes the result. So nothing else knows names: ``jit``, ``scan`` and derivatives
treat the array like any captured value.

Within ``shard_map`` the mesh axes are named, and the names are a parameter of the primitives: each device runs the
program, and at a collective the devices communicate. The functions are the same for both; several axes, of ``vmap``s
and of a mesh, are named together by a tuple.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import numpy as fnp
from funcgrad.arguments import validate
from funcgrad.core import dtypes, trees
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.batching import axis_called
from funcgrad.primitives.collectives import (
    MeshAxis,
    Over,
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    psum_scatter_p,
    pvary_p,
)
from funcgrad.primitives.elementwise import cast

AxisName = Any
"""What ``vmap`` calls an axis, any hashable value, usually a string; or the name of an axis of a mesh."""


def _names(axis_name: AxisName) -> tuple[AxisName, ...]:
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


class _Axes:
    """Resolved axis names.

    Attributes:
        over: the parameters for all mesh axes together; one dict, or none.
        indices: for each ``vmap`` axis, the traced indices.
        size: the product of all axis sizes.
    """

    def __init__(self, axis_name: AxisName):
        found = [(name, *axis_called(name)) for name in _names(axis_name)]
        self.size = math.prod(size for _, _, size in found)
        self.indices = [index for _, index, _ in found if not isinstance(index, MeshAxis)]
        self.over: list[dict[str, Any]] = []
        mesh = [(name, axis.checked) for name, axis, _ in found if isinstance(axis, MeshAxis)]
        for checked in dict.fromkeys(c for _, c in mesh):
            self.over.append({"over": Over(tuple(n for n, c in mesh if c is checked), checked)})

    def reduced(self, primitive: Primitive, x: Any) -> Any:
        """``x`` reduced along all axes."""
        for over in self.over:
            x = primitive(x, **over)
        for index in self.indices:
            x = primitive(x, index)
        return x

    def single(self, caller: str, primitive: Primitive, x: Any, **params: Any) -> Any:
        """Applies a primitive along a single axis, of a ``vmap`` or a mesh, to ``x``."""
        if len(self.over) + len(self.indices) != 1:
            raise ValueError(f"{caller}: wants one axis, or several of one mesh")
        return primitive(x, *self.indices, **params, **(self.over[0] if self.over else {}))


def _each(f: Callable[[Any], Any], x: Any) -> Any:
    return trees.map(lambda leaf: f(fnp.asarray(leaf)), x)


def _countable(leaf: Any) -> Any:
    """Booleans as integers, for sums."""
    return cast(leaf, dtype=dtypes.int32) if leaf.dtype == dtypes.bool_ else leaf


def axis_size(axis_name: AxisName) -> int:
    """The size of a named axis, or the product of the sizes of several, named by a tuple.

    Args:
        axis_name: as a surrounding ``vmap`` was given it, or of the mesh in ``shard_map``; or a tuple of such.

    Returns:
        A Python integer, 1 for no names.

    Raises:
        NameError: if there is no axis of that name.

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
    """The index along a named axis, an int32; along several, named by a tuple, the last one varies fastest.

    Args:
        axis_name: as a surrounding ``vmap`` was given it, or of the mesh in ``shard_map``; or a tuple of such.

    Returns:
        A 0-d int32; None for no names.

    Raises:
        NameError: if there is no axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: x * axis_index("i"), axis_name="i")(fnp.array([2, 2, 2])))
        [0 2 4]
    """
    total: Any = None
    for name in _names(axis_name):
        index, size = axis_called(name)
        if isinstance(index, MeshAxis):
            index = axis_index_p(over=Over((name,), index.checked))
        total = index if total is None else total * size + index
    return total


def psum(x: Any, axis_name: AxisName) -> Any:
    """The sum over a named axis, or over several, named by a tuple.

    Args:
        x: a pytree of arrays; booleans are counted.
        axis_name: as given to a surrounding ``vmap``, or of the mesh in ``shard_map``; or a tuple of such.

    Returns:
        A pytree like ``x``, of its shapes and dtypes, the same at all indices of the axis; of booleans int32.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: x / psum(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [0.25 0.75]
    """
    axes = _Axes(axis_name)
    return _each(lambda leaf: axes.reduced(psum_p, _countable(leaf)), x)


def pmean(x: Any, axis_name: AxisName) -> Any:
    """The mean over a named axis, or over several; see ``psum``.

    Args:
        x, axis_name: as for ``psum``.

    Returns:
        A pytree like ``x``, of its shapes and dtypes, the same at all indices of the axis; of integers and booleans
        float32.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [-1.  1.]
    """
    size = axis_size(axis_name)
    return trees.map(lambda total: total / size, psum(x, axis_name))


def _extreme(x: Any, axis_name: AxisName, primitive: Primitive) -> Any:
    axes = _Axes(axis_name)

    def one(leaf: Any) -> Any:
        if axes.over and leaf.dtype == dtypes.bool_:  # devices compare numbers only
            return cast(axes.reduced(primitive, cast(leaf, dtype=dtypes.int32)), dtype=dtypes.bool_)
        return axes.reduced(primitive, leaf)

    return _each(one, x)


def pmax(x: Any, axis_name: AxisName) -> Any:
    """The maximum over a named axis, or over several; see ``psum``.

    Args:
        x, axis_name: as for ``psum``; booleans stay such.

    Returns:
        A pytree like ``x``, of its shapes and dtypes, the same at all indices of the axis.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: pmax(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [3. 3.]
    """
    return _extreme(x, axis_name, pmax_p)


def pmin(x: Any, axis_name: AxisName) -> Any:
    """The minimum over a named axis, or over several; see ``psum``.

    Args:
        x, axis_name: as for ``psum``; booleans stay such.

    Returns:
        A pytree like ``x``, of its shapes and dtypes, the same at all indices of the axis.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: pmin(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [1. 1.]
    """
    return _extreme(x, axis_name, pmin_p)


def all_gather(x: Any, axis_name: AxisName, *, axis: int = 0, tiled: bool = False) -> Any:
    """Gathers the values of all indices of a named axis, at each of them.

    Args:
        x: a pytree of arrays.
        axis_name: one name, as given to a surrounding ``vmap``, or some of the mesh in ``shard_map``.
        axis: the result's axis for them: a new one, or, if ``tiled``, one along which they are concatenated.
        tiled: concatenate along ``axis``, which every array must have.

    Returns:
        A pytree like ``x``, of its dtypes; with an axis more, or with that axis longer by the named axis's size.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.
        ValueError: if there is no such axis.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: all_gather(x, "i"), axis_name="i")(fnp.array([1.0, 3.0])))
        [[1. 3.]
         [1. 3.]]
    """
    axes = _Axes(axis_name)

    def one(leaf: Any) -> Any:
        at = validate.axis("all_gather", axis, leaf.ndim + (not tiled))
        out = axes.single("all_gather", all_gather_p, leaf, axis=at, count=axes.size)
        return _merged(out, at) if tiled else out

    return _each(one, x)


def _merged(x: Any, axis: int) -> Any:
    """``x`` with an axis and the next one merged."""
    shape = x.shape
    return fnp.reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _divided(caller: str, x: Any, axis: int, size: int, tiled: bool) -> Any:
    """``x`` with an axis of ``size`` parts: that axis itself, or, if ``tiled``, the axis split."""
    shape = x.shape
    if not tiled:
        if shape[axis] != size:
            raise ValueError(f"{caller}: axis {axis} of {type_of(x)} must have the size of the named axis: {size}")
        return x
    if shape[axis] % size:
        raise ValueError(f"{caller}: axis {axis} of {type_of(x)} cannot be divided into {size} parts")
    return fnp.reshape(x, (*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))


def psum_scatter(x: Any, axis_name: AxisName, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """The sum over a named axis, scattered: index ``i`` of the axis gets part ``i`` of ``psum``.

    Args:
        x: a pytree of arrays, of one axis at least; booleans are counted.
        axis_name: one name, as given to a surrounding ``vmap``, or some of the mesh in ``shard_map``.
        scatter_dimension: the axis along which the sum is divided; the result does not have it, unless ``tiled``.
        tiled: keep the axis, whose size may be a multiple of the named axis's.

    Returns:
        A pytree like ``x``, of its dtypes, int32 of booleans; without that axis, or with one shorter by the named
        axis's size.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.
        ValueError: if there is no such axis, or it cannot be divided by the named axis's size.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(fnp.array([[1.0, 2.0], [10.0, 20.0]])))
        [11. 22.]
    """
    axes = _Axes(axis_name)

    def one(leaf: Any) -> Any:
        leaf = _countable(leaf)
        at = validate.axis("psum_scatter", scatter_dimension, leaf.ndim, "scatter_dimension")
        parts = _divided("psum_scatter", leaf, at, axes.size, tiled)
        return axes.single("psum_scatter", psum_scatter_p, parts, axis=at, count=axes.size)

    return _each(one, x)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """The value at another index of a named axis, by a fixed permutation.

    Args:
        x: a pytree of arrays.
        axis_name: one name, as given to a surrounding ``vmap``, or some of the mesh in ``shard_map``.
        perm: pairs of a source and a target index; no index is source or target twice. An index that is no target gets
            zeros.

    Returns:
        A pytree like ``x``, of its shapes and dtypes.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.
        ValueError: if an index in ``perm`` is out of range, or twice a source or a target.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> around = [(0, 1), (1, 2), (2, 0)]
        >>> print(fg.vmap(lambda x: ppermute(x, "i", around), axis_name="i")(fnp.array([1.0, 2.0, 3.0])))
        [3. 1. 2.]
    """
    axes = _Axes(axis_name)
    size = axes.size
    pairs = []
    for ends in validate.sequence("ppermute", "perm", perm):
        source, target = validate.pair("ppermute", "each of perm", ends, "two indices")
        pairs.append(validate.integers("ppermute", "each of perm", (source, target)))
    for ends in zip(*pairs):
        if len(set(ends)) != len(ends) or not all(0 <= n < size for n in ends):
            raise ValueError(f"ppermute: perm {pairs} must name each of {size} indices at most once on each side")
    return _each(lambda leaf: axes.single("ppermute", ppermute_p, leaf, perm=tuple(pairs)), x)


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """The value at index ``perm[i]`` of a named axis, at each index ``i``.

    Args:
        x: a pytree of arrays.
        axis_name: one axis.
        perm: a permutation of the axis's indices.

    Returns:
        A pytree like ``x``, of its shapes and dtypes.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.
        ValueError: where ``perm`` is not a permutation of the indices.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(fnp.array([1.0, 2.0, 3.0])))
        [3. 1. 2.]
    """
    perm = validate.integers("pshuffle", "perm", perm)
    if sorted(perm) != list(range(axis_size(axis_name))):
        raise ValueError(f"pshuffle: perm {list(perm)} is no permutation of {axis_size(axis_name)} indices")
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(perm)])


def all_to_all(x: Any, axis_name: AxisName, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Each index of a named axis sends a part of its value to each other index.

    Args:
        x: a pytree of arrays, of one axis at least.
        axis_name: one name, as given to a surrounding ``vmap``, or some of the mesh in ``shard_map``.
        split_axis: the axis along which ``x`` is divided; its size is the named axis's, and the result does not have
            it, unless ``tiled``.
        concat_axis: the result's axis for the received parts: a new one, unless ``tiled``.
        tiled: keep both axes: the first shorter by the named axis's size, the second longer.

    Returns:
        A pytree like ``x``, of its dtypes, and as many elements.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.
        ValueError: if there is no such axis, or it cannot be divided by the named axis's size.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(fnp.array([[1, 2], [3, 4]])))
        [[1 3]
         [2 4]]
    """
    axes = _Axes(axis_name)
    size = axes.size

    def one(leaf: Any) -> Any:
        split = validate.axis("all_to_all", split_axis, leaf.ndim, "split_axis")
        concat = validate.axis("all_to_all", concat_axis, leaf.ndim, "concat_axis")
        parts = _divided("all_to_all", leaf, split, size, tiled)
        out = axes.single("all_to_all", all_to_all_p, parts, split=split, concat=concat, count=size)
        return _merged(out, concat) if tiled else out

    return _each(one, x)


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """``x`` treated as varying along a mesh axis, though it is replicated.

    An operation on a replicated and a varying value does this implicitly. It decides where the gradient is summed over
    the devices: here, and not at each use of ``x``. Inside ``grad`` it keeps a parameter's gradient local to the
    device.

    Args:
        x: a pytree of arrays.
        axis_name: of the mesh, inside ``shard_map``, or a tuple of such names.
        to: ``"varying"``.

    Returns:
        A pytree like ``x``, of its shapes, dtypes and values.

    Raises:
        TypeError: if a leaf of ``x`` is not an array.
        NameError: if there is no axis of that name.
        ValueError: for another value of ``to``: a varying value cannot be treated as replicated.

    Example:
        >>> import jax, funcgrad as fg, funcgrad.numpy as fnp
        >>> from funcgrad.parallel import PartitionSpec as P, shard_map
        >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("i",))
        >>> own = lambda w, x: fg.grad(lambda w: fnp.sum(w * x))(pcast(w, "i", to="varying"))[None]
        >>> print(shard_map(own, mesh=mesh, in_specs=(P(), P("i")), out_specs=P("i"))(1.0, fnp.ones(2)))
        [2.]
    """
    if to != "varying":
        raise ValueError(f"pcast: to must be 'varying', got {to!r}; psum, pmean, pmax make values the same everywhere")
    axes = _Axes(axis_name)

    def one(leaf: Any) -> Any:
        for each in axes.over:
            missing = tuple(n for n in each["over"].names if n not in type_of(leaf).varying)
            if missing and each["over"].checked:
                leaf = pvary_p(leaf, over=Over(missing, True))
        return leaf

    return _each(one, x)
