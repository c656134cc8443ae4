"""Products of vectors, matrices and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy import reductions as r
from funcgrad.numpy.promotion import asoperand, astype, promoted_pair
from funcgrad.numpy.shape import ravel, reshape
from funcgrad.primitives import contraction
from funcgrad.primitives.elementwise import conj, mul
from funcgrad.runtime.call_cache import composite


def _promoted(name: str, x: Any, y: Any, dtype: Any) -> tuple[Any, Any]:
    """Both operands in the common dtype, or in the dtype of sums if given."""
    x, y = promoted_pair(asoperand(x, name), asoperand(y, name))
    return (x, y) if dtype is None else (astype(x, dtype), astype(y, dtype))


def matmul(x: Any, y: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The matrix product; leading axes broadcast, a 1-d operand is a row on the left and a column on the right.

    Args:
        x, y: arrays of any dtype, of at least one axis; the last axis of ``x`` has the size of the last but one, or
            only, axis of ``y``.
        precision: ignored: the precision is that of the process, by default the highest.
        preferred_element_type: the dtype of products, sums and the result.

    Returns:
        An array of the promoted dtype, of the leading axes, the rows of ``x`` and the columns of ``y``; a 1-d operand
        adds none.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: naming both operands, if their shapes are incompatible.

    Example:
        >>> matmul(np.ones((2, 3)), np.ones((3, 4))).shape
        (2, 4)
    """
    x, y = _promoted("matmul", x, y, preferred_element_type)
    return contraction.matmul(x, y)


def dot(x: Any, y: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """NumPy's ``dot``: the sum over the last axis of ``x`` and the last but one of ``y``; scalars multiply.

    Args:
        x, y: arrays or numbers of any dtype.
        precision: ignored: the precision is that of the process, by default the highest.
        preferred_element_type: the dtype of products, sums and the result.

    Returns:
        An array of the promoted dtype, of the axes of ``x`` that remain, then those of ``y``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: if the contracted sizes differ.

    Example:
        >>> print(dot([1, 2], [3, 4]))
        11
    """
    x, y = _promoted("dot", x, y, preferred_element_type)
    a, b = type_of(x), type_of(y)
    if a.ndim == 0 or b.ndim == 0:
        return mul(x, y)
    axis = b.ndim - 2 if b.ndim > 1 else 0
    if a.shape[-1] != b.shape[axis]:
        raise ValueError(f"dot: the last axis of {a} and axis {axis} of {b} differ in size")
    return contraction.dot(x, y, contract=((a.ndim - 1,), (axis,)), batch=((), ()))


def tensordot(x: Any, y: Any, /, axes: Any = 2, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of products over pairs of axes.

    Args:
        x, y: arrays of any dtype, as long as each other along each pair of axes.
        axes: a number of axes, the last of ``x`` and the first of ``y``; or a pair of sequences of axes.
        precision: ignored: the precision is that of the process, by default the highest.
        preferred_element_type: the dtype of products, sums and the result.

    Returns:
        An array of the promoted dtype, of the axes of ``x`` that remain, then those of ``y``.

    Raises:
        TypeError: for operands that are not arrays, and axes that are not ints or no pair.
        ValueError: if the sizes or the numbers of axes differ, and for an axis out of range or repeated.

    Example:
        >>> print(tensordot([[1, 2], [3, 4]], [1, 1], axes=1))
        [3 7]
    """
    x, y = _promoted("tensordot", x, y, preferred_element_type)
    n, m = type_of(x).ndim, type_of(y).ndim
    if not isinstance(axes, (tuple, list)) and np.ndim(axes) == 0:
        count = validate.integer("tensordot", "axes", axes, 0)
        if count > min(n, m):
            raise ValueError(f"tensordot: {type_of(x)} and {type_of(y)} do not both have {count} axes to sum over")
        left, right = tuple(range(n - count, n)), tuple(range(count))
    else:
        first, second = validate.pair("tensordot", "axes", axes, "those of the one and those of the other")
        left = validate.axes("tensordot", validate.integers("tensordot", "axes", first), n)
        right = validate.axes("tensordot", validate.integers("tensordot", "axes", second), m)
    if len(left) != len(right):
        raise ValueError(f"tensordot: axes must be as many of the one as of the other, got {axes}")
    return contraction.dot(x, y, contract=(left, right), batch=((), ()))


def inner(x: Any, y: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of products over the last axes.

    Args:
        x, y: arrays of any dtype, with last axes of one length; or numbers, which multiply.
        precision: ignored: the precision is that of the process, by default the highest.
        preferred_element_type: the dtype of products, sums and the result.

    Returns:
        An array of the promoted dtype, of the other axes of ``x``, then those of ``y``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: where the last axes differ in size.

    Example:
        >>> print(inner([1, 2], [3, 4]))
        11
    """
    if type_of(asoperand(x)).ndim == 0 or type_of(asoperand(y)).ndim == 0:
        return mul(*_promoted("inner", x, y, preferred_element_type))
    return tensordot(x, y, axes=(-1, -1), preferred_element_type=preferred_element_type)


def outer(x: Any, y: Any, /) -> Any:
    """All products of an element of ``x`` and one of ``y``.

    Args:
        x, y: arrays or numbers of any dtype; they are flattened.

    Returns:
        A matrix of the promoted dtype, a row for each element of ``x``, a column for each of ``y``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(outer([1, 2], [3, 4]))
        [[3 4]
         [6 8]]
    """
    x, y = promoted_pair(asoperand(x, "outer"), asoperand(y, "outer"))
    return mul(reshape(ravel(x), (-1, 1)), reshape(ravel(y), (1, -1)))


def vdot(x: Any, y: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of products of all elements, with ``x`` conjugated.

    Args:
        x, y: arrays or numbers of any dtype, with equal numbers of elements; they are flattened.
        precision: ignored: the precision is that of the process, by default the highest.
        preferred_element_type: the dtype of products, sums and the result.

    Returns:
        A scalar of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: where the numbers of elements differ.

    Example:
        >>> print(vdot([1j, 2], [1j, 1]))
        (3+0j)
    """
    x, y = _promoted("vdot", ravel(asoperand(x, "vdot")), ravel(asoperand(y, "vdot")), preferred_element_type)
    return dot(conj(x) if type_of(x).dtype.kind == "c" else x, y)


def vecdot(x: Any, y: Any, /, *, axis: int = -1) -> Any:
    """The sum of products along an axis, with ``x`` conjugated; the other axes broadcast.

    Args:
        x, y: arrays of any dtype but both bool, of at least one axis.
        axis: a negative integer; the axis must have the same size in both.

    Returns:
        An array of the promoted dtype, of the broadcast axes without that one.

    Raises:
        TypeError: for operands that are not arrays, or two arrays of bools.
        ValueError: if the sizes along the axis differ, it is out of range, or the other axes do not broadcast.

    Example:
        >>> print(vecdot([[1, 2], [3, 4]], [1, 1]))
        [3 7]
    """
    x, y = promoted_pair(asoperand(x, "vecdot"), asoperand(y, "vecdot"))
    shapes = type_of(x).shape, type_of(y).shape
    lengths = [shape[validate.axis("vecdot", axis, len(shape))] for shape in shapes]
    if lengths[0] != lengths[1]:
        raise ValueError(f"vecdot: operands of shapes {shapes[0]} and {shapes[1]} differ along axis {axis}")
    return r.sum(mul(conj(x) if type_of(x).dtype.kind == "c" else x, y), axis, dtype=type_of(x).dtype)


def matvec(x: Any, y: Any, /) -> Any:
    """Products of matrices and vectors, over the last axes; leading axes broadcast.

    Args:
        x: matrices, an array of at least two axes and any dtype.
        y: vectors, an array as long along its last axis as ``x``.

    Returns:
        Vectors, of the promoted dtype: the broadcast leading axes, then the rows of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: if the shapes are incompatible.

    Example:
        >>> print(matvec([[1, 2], [3, 4]], [1, 1]))
        [3 7]
    """
    x, y = asoperand(x, "matvec"), asoperand(y, "matvec")
    if type_of(x).ndim < 2 or type_of(y).ndim < 1:
        raise ValueError(f"matvec: wants matrices and vectors, got {type_of(x)} and {type_of(y)}")
    return matmul(x, reshape(y, (*type_of(y).shape, 1)))[..., 0]


@composite
def vecmat(x: Any, y: Any, /) -> Any:
    """Products of conjugated vectors and matrices, over the vectors' axis; leading axes broadcast.

    Args:
        x: vectors, an array of at least one axis and any dtype.
        y: matrices, an array of at least two axes, with as many rows as ``x`` is long.

    Returns:
        Vectors, of the promoted dtype: the broadcast leading axes, then the columns of ``y``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for a number, vectors for matrices, and incompatible shapes.

    Example:
        >>> print(vecmat([1, 1], [[1, 2], [3, 4]]))
        [4 6]
    """
    x, y = asoperand(x, "vecmat"), asoperand(y, "vecmat")
    if type_of(x).ndim < 1 or type_of(y).ndim < 2:
        raise ValueError(f"vecmat: wants vectors and matrices, got {type_of(x)} and {type_of(y)}")
    x = conj(x) if type_of(x).dtype.kind == "c" else x
    return matmul(reshape(x, (*type_of(x).shape[:-1], 1, type_of(x).shape[-1])), y)[..., 0, :]


__all__ = ["dot", "inner", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot", "vecmat"]
