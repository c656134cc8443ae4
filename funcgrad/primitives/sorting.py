"""Sorting: of several arrays by the first of them, and the largest elements.

Both are permutations, so the derivative permutes the tangents the same way, for equal elements too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.primitives.indexing import take_along
from funcgrad.primitives.shape import broadcast, check_axis, iota, moved, reverse

# ---------------------------------------------------------------- sort


def _sort_infer(*types: ArrayType, axis: int, keys: int, stable: bool) -> list[ArrayType]:
    first = types[0]
    if any(t.shape != first.shape for t in types):
        raise ValueError(f"sort: operands must have one shape, got {', '.join(map(str, types))}")
    check_axis("sort", axis, first)
    if not 1 <= keys <= len(types):
        raise ValueError(f"sort: keys must be between 1 and the number of operands, {len(types)}, got {keys}")
    return list(types)


def _sort_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, keys: int, stable: bool
) -> tuple[list[Any], list[Any]]:
    shape = type_of(primals[0]).shape
    place = iota(shape=shape, axis=axis, dtype=dtypes.int32 if shape[axis] < 2**31 else dtypes.int64)
    *outs, order = sort(*primals, place, axis=axis, keys=keys, stable=stable)
    return outs, [None if t is None else take_along(t, order, axis=axis, mode="promise", unique=True) for t in tangents]


def _sort_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, axis: int, keys: int, stable: bool
) -> tuple[list[Any], list[int]]:
    dim = next(d for d in dims if d is not None)
    aligned = []
    for x, d in zip(operands, dims, strict=True):
        if d is None:
            shape = type_of(x).shape
            whole = (*shape[:dim], size, *shape[dim:])
            aligned.append(broadcast(x, shape=whole, dims=tuple(i for i in range(len(whole)) if i != dim)))
        else:
            aligned.append(moved(x, d, dim))
    return sort(*aligned, axis=axis + (axis >= dim), keys=keys, stable=stable), [dim] * len(operands)


# All operands in ascending order of the first ``keys`` of them; NaN is last, and -0.0 equals 0.0.
sort = Primitive(
    "sort",
    infer=_sort_infer,
    lower=lambda *xs, axis, keys, stable: list(lax.sort(xs, dimension=axis, is_stable=stable, num_keys=keys)),
    jvp=_sort_jvp,
    batch=_sort_batch,
    multiple=True,
)


def sorted_with_order(x: Any, *, axis: int, descending: bool = False, stable: bool = True) -> tuple[Any, Any]:
    """``x`` sorted along an axis, and the source positions (int64).

    NaN is larger than all numbers. A descending stable sort keeps the order of equal elements too.

    Example:
        >>> import numpy as np
        >>> values, order = sorted_with_order(np.array([3.0, 1.0, 3.0, 2.0]), axis=0, descending=True)
        >>> values.tolist(), order.tolist()
        ([3.0, 3.0, 2.0, 1.0], [0, 2, 3, 1])
    """
    place = iota(shape=type_of(x).shape, axis=axis, dtype=dtypes.int64)
    if not descending:
        values, order = sort(x, place, axis=axis, keys=1, stable=stable)
        return values, order
    # Reversed before and after, so that equal elements keep their order.
    backwards = [reverse(v, axes=(axis,)) for v in (x, place)]
    values, order = (reverse(v, axes=(axis,)) for v in sort(*backwards, axis=axis, keys=1, stable=stable))
    return values, order


def argsort(x: Any, *, axis: int, descending: bool = False, stable: bool = True) -> Any:
    """The positions (int64) of the elements of ``x`` in sorted order along an axis.

    Example:
        >>> import numpy as np
        >>> argsort(np.array([3.0, 1.0, 2.0]), axis=0).tolist()
        [1, 2, 0]
    """
    return sorted_with_order(x, axis=axis, descending=descending, stable=stable)[1]


# ---------------------------------------------------------------- top k


def _top_infer(x: ArrayType, *, k: int) -> list[ArrayType]:
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"top_k: takes real arrays, got {x}")
    if x.ndim == 0 or not 0 <= k <= x.shape[-1]:
        raise ValueError(f"top_k: cannot take {k} elements of the last axis of {x}")
    out = x.with_shape((*x.shape[:-1], k))
    return [out, ArrayType(out.shape, dtypes.int32)]


def _top_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, k: int) -> tuple[list[Any], list[Any]]:
    (x,), (t,) = primals, tangents
    values, places = top_k(x, k=k)
    return [values, places], [take_along(t, places, axis=type_of(x).ndim - 1, mode="promise", unique=True), None]


def _top_batch(size: int, operands: Sequence[Any], dims: Sequence[int], *, k: int) -> tuple[list[Any], list[int]]:
    return top_k(moved(operands[0], dims[0], 0), k=k), [0, 0]


def _top_lower(x: Any, *, k: int) -> list[Any]:
    if dtypes.is_floating(x.dtype):
        # XLA orders NaNs by sign bit; here all NaNs are largest.
        x = lax.select(lax.ne(x, x), lax.full_like(x, np.nan), x)
    return list(lax.top_k(x, k))


# The k largest elements along the last axis in descending order, and their positions (int32); the first one of equal
# elements. NaN is larger than all numbers.
top_k = Primitive(
    "top_k",
    infer=_top_infer,
    lower=_top_lower,
    jvp=_top_jvp,
    batch=_top_batch,
    multiple=True,
)
