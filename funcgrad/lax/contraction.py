"""Matrix products and tensor contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of, typed
from funcgrad.lax.operands import axes_of, checked
from funcgrad.numpy.promotion import astype, promoted_pair
from funcgrad.primitives import contraction as c
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import reductions as r
from funcgrad.primitives import shape as s

__all__ = ["batch_matmul", "dot", "dot_general", "ragged_dot"]

Axes = Sequence[int]
Dimensions = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]


def preferred(name: str, x: Any, y: Any, dtype: Any) -> tuple[Any, Any]:
    """Both operands in the dtype in which products are summed.

    Raises:
        TypeError: for operands that are not arrays.
    """
    x, y = promoted_pair(typed(checked(name, x)), typed(checked(name, y)))
    if dtype is None:
        return x, y
    wanted = dtypes.canonical(dtype)
    return astype(x, wanted), astype(y, wanted)


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Dimensions, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """Contracts some axes of two arrays, batched over others.

    Args:
        lhs, rhs: arrays; promoted if dtypes differ.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, axes of equal sizes.
        precision: ignored: the precision is that of the process, by default the highest.
        preferred_element_type: the dtype of products, sums and the result.

    Returns:
        An array with the batch axes, the remaining axes of ``lhs``, and those of ``rhs``.

    Raises:
        TypeError: for operands that are not arrays, or axes that are not integers.
        ValueError: for axes out of range or repeated, or of different sizes.

    Example:
        >>> import numpy as np
        >>> x = np.array([[1, 2], [3, 4]], np.int8)
        >>> print(dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type="int32"))
        [[ 5 11]
         [11 25]]
    """
    x, y = preferred("dot_general", lhs, rhs, preferred_element_type)
    (cx, cy), (bx, by) = dimension_numbers
    kinds = type_of(x), type_of(y)
    contract = axes_of("dot_general", cx, kinds[0].ndim), axes_of("dot_general", cy, kinds[1].ndim)
    batch = axes_of("dot_general", bx, kinds[0].ndim), axes_of("dot_general", by, kinds[1].ndim)
    for mine, shared in zip(contract, batch, strict=True):
        if set(mine) & set(shared):
            raise ValueError(f"dot_general: axes {mine} are contracted, and {shared} batched: one is in both")
    return c.dot(x, y, contract=contract, batch=batch)


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Dimensions | None = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The product of vectors and matrices; or, with ``dimension_numbers``, ``dot_general``.

    Args:
        lhs, rhs: arrays of one or two axes; promoted if dtypes differ.
        dimension_numbers, precision, preferred_element_type: as for ``dot_general``.

    Returns:
        An array.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for another number of axes, or incompatible sizes.

    Example:
        >>> import numpy as np
        >>> print(dot(np.array([[1.0, 2.0]]), np.array([3.0, 4.0])))
        [11.]
    """
    if dimension_numbers is None:
        ndims = type_of(checked("dot", lhs)).ndim, type_of(checked("dot", rhs)).ndim
        if not all(1 <= n <= 2 for n in ndims):
            raise ValueError(f"dot: takes vectors and matrices, got {type_of(lhs)} and {type_of(rhs)}; see dot_general")
        dimension_numbers = (((ndims[0] - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """Batched matrix products.

    Args:
        lhs, rhs: arrays of as many axes, three at least, the leading ones of equal sizes.
        precision: as for ``dot_general``.

    Returns:
        An array.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for another number of axes, or incompatible sizes.

    Example:
        >>> import numpy as np
        >>> batch_matmul(np.ones((2, 3, 4)), np.ones((2, 4, 5))).shape
        (2, 3, 5)
    """
    n = type_of(checked("batch_matmul", lhs)).ndim
    if n < 3 or type_of(checked("batch_matmul", rhs)).ndim != n:
        raise ValueError(f"batch_matmul: wants as many axes, three at least, got {type_of(lhs)} and {type_of(rhs)}")
    lead = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (lead, lead)), precision)


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
) -> Any:
    """The product of groups of rows with a matrix per group, as in a mixture of experts.

    Args:
        lhs: ``(m, k)``, rows in the order of their groups.
        rhs: ``(groups, k, n)``.
        group_sizes: ``(groups,)``, integers: the number of rows of each group. Rows beyond their sum give zeros.
        precision, preferred_element_type: as for ``dot_general``.
        group_offset: must be None.

    Returns:
        ``(m, n)``.

    Raises:
        TypeError: for operands that are not arrays, or sizes that are not integers.
        ValueError: for incompatible shapes, or an offset.

    Example:
        >>> import numpy as np
        >>> x, w = np.ones((3, 2)), np.stack([np.ones((2, 1)), 5 * np.ones((2, 1))])
        >>> print(ragged_dot(x, w, np.array([1, 2])).ravel())
        [ 2. 10. 10.]
    """
    if group_offset is not None:
        raise ValueError("ragged_dot: all groups must be there, so group_offset must be None")
    x, y = preferred("ragged_dot", lhs, rhs, preferred_element_type)
    sizes = typed(checked("ragged_dot", group_sizes))
    a, b, g = type_of(x), type_of(y), type_of(sizes)
    if not dtypes.is_integer(g.dtype):
        raise TypeError(f"ragged_dot: group_sizes must be integers, got {g}")
    if (a.ndim, b.ndim, g.shape) != (2, 3, b.shape[:1]) or a.shape[1] != b.shape[1]:
        raise ValueError(f"ragged_dot: wants (m, k), (groups, k, n) and (groups,), got {a}, {b} and {g}")
    # Each row is placed in the columns of its group, so that one product with all stacked matrices suffices.
    ends = r.cumulative_sum(sizes, axis=0, reverse=False)
    shape = (a.shape[0], b.shape[0])
    row = s.iota(shape=shape, axis=0, dtype=g.dtype)
    starts, ends = (s.broadcast(v, shape=shape, dims=(1,)) for v in (p.sub(ends, sizes), ends))
    member = p.cast(p.bitwise_and(p.ge(row, starts), p.lt(row, ends)), dtype=a.dtype)
    apart = p.mul(s.expanded(x, 1), s.expanded(member, 2))
    return c.dot(apart, y, contract=((1, 2), (0, 1)), batch=((), ()))
