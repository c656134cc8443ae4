"""Averages, covariances and correlation coefficients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.indexing.getitem import take
from funcgrad.numpy.products import matmul
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import broadcast_to, concatenate, ravel, reshape, shape
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import full, transpose
from funcgrad.runtime.call_cache import composite


@composite
def average(x: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The weighted mean over axes.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        weights: of the shape of ``x``, or of its axes ``axis``.
        returned: whether to return the sums of the weights too.
        keepdims: whether to keep the axes, with size 1.

    Returns:
        An array of the remaining axes, of the promoted dtype, float32 of bools and integers; with ``returned`` a pair
        of it and one like it.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for weights of another shape, or an axis out of range or repeated.

    Example:
        >>> print(average(np.array([1.0, 4.0]), weights=np.array([2.0, 1.0])))
        2.0
    """
    if weights is None:
        mean = r.mean(x, axis, keepdims=keepdims)
        count = math.prod(shape(x)[a] for a in validate.axes("average", axis, len(shape(x))))
        return (mean, full(p.number(count, mean), type_of(mean).shape)) if returned else mean
    x, weights = promoted(asoperand(x, "average"), asoperand(weights, "average"), floating=True)
    mine = type_of(x).shape
    if type_of(weights).shape != mine:
        axes = validate.axes("average", axis, len(mine))
        if axis is None or type_of(weights).shape != tuple(mine[a] for a in axes):
            raise ValueError(
                f"average: weights {type_of(weights)} must be like {type_of(x)}, or like its axes axis={axis}"
            )
        order = sorted(range(len(axes)), key=axes.__getitem__)
        weights = transpose(weights, permutation=tuple(order))
        weights = broadcast_to(reshape(weights, [n if i in axes else 1 for i, n in enumerate(mine)]), mine)
    total = r.sum(weights, axis, keepdims=keepdims)
    mean = p.div(r.sum(p.mul(x, weights), axis, keepdims=keepdims), total)
    return (mean, total) if returned else mean


@composite
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: float | None = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    """The covariance matrix of variables.

    Args:
        m: variables as rows and observations as columns; or a vector of observations of one variable.
        y: more variables.
        rowvar: False if variables are columns.
        bias: whether to divide by the number of observations instead of one less; ``ddof`` overrides it.
        fweights, aweights: the frequency and the weight of each observation.

    Returns:
        A square matrix, or a scalar for one variable; of the promoted dtype, float32 for bools and integers, or of
        ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, or an unknown dtype.
        ValueError: for more than two axes, or different numbers of observations or weights.

    Example:
        >>> print(cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        [[ 1. -1.]
         [-1.  1.]]
    """
    parts = promoted(*[asoperand(v, "cov") for v in ((m,) if y is None else (m, y))], floating=True)
    if any(type_of(v).ndim > 2 for v in parts):
        raise ValueError(f"cov: wants at most two axes, got {', '.join(str(type_of(v)) for v in parts)}")
    rows = concatenate([_variables(v, rowvar) for v in parts], 0)
    rows = rows if dtype is None else astype(rows, dtypes.canonical(dtype))
    weights = _weights(fweights, aweights, rows)
    freedom = (0 if bias else 1) if ddof is None else ddof
    count = p.number(type_of(rows).shape[1], rows) if weights is None else r.sum(weights)
    mean = (
        r.mean(rows, 1, keepdims=True)
        if weights is None
        else p.div(r.sum(p.mul(rows, weights), 1, keepdims=True), count)
    )
    centred = p.sub(rows, mean)
    taken = freedom if aweights is None else e.multiply(freedom, p.div(r.sum(e.multiply(weights, aweights)), count))
    weighed = centred if weights is None else p.mul(centred, weights)
    products = matmul(weighed, transpose(e.conj(centred), permutation=(1, 0)))
    return _scalar_if_one(e.divide(products, e.maximum(e.real(e.subtract(count, taken)), 0)))


def _variables(v: Any, rowvar: bool) -> Any:
    if type_of(v).ndim < 2:
        return reshape(v, (1, -1) if type_of(v).size else (1, 0))
    return v if rowvar or type_of(v).shape[0] == 1 else transpose(v, permutation=(1, 0))


def _weights(fweights: Any, aweights: Any, rows: Any) -> Any:
    given = [astype(asoperand(w, "cov"), type_of(rows).dtype) for w in (fweights, aweights) if w is not None]
    for w in given:
        if type_of(w).shape != type_of(rows).shape[1:]:
            raise ValueError(
                f"cov: weights {type_of(w)} must be a vector, one for each of {type_of(rows).shape[1]} observations"
            )
    return None if not given else given[0] if len(given) == 1 else p.mul(*given)


def _scalar_if_one(matrix: Any) -> Any:
    return reshape(matrix, ()) if type_of(matrix).size == 1 else matrix


@composite
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The correlation matrix of variables: covariances divided by both standard deviations.

    Args:
        x, y, rowvar, dtype: as for ``cov``.

    Returns:
        A square matrix, or a scalar for one variable; of the promoted dtype, float32 for bools and integers, or of
        ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, or an unknown dtype.
        ValueError: for more than two axes, or different numbers of observations in ``x`` and ``y``.

    Example:
        >>> print(corrcoef([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        [[ 1. -1.]
         [-1.  1.]]
    """
    matrix = cov(x, y, rowvar, dtype=dtype)
    if not type_of(matrix).ndim:
        return p.div(matrix, matrix)
    n = type_of(matrix).shape[0]
    variances = take(ravel(matrix), np.arange(n) * (n + 1))
    deviations = e.sqrt(e.real(variances))
    found = e.divide(e.divide(matrix, reshape(deviations, (n, 1))), deviations)
    if dtypes.is_complex(type_of(found).dtype):
        return p.make_complex(e.clip(p.real(found), -1, 1), e.clip(p.imag(found), -1, 1))
    return e.clip(found, -1, 1)


__all__ = ["average", "corrcoef", "cov"]
