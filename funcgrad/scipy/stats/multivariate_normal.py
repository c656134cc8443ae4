"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import linalg
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as n
from funcgrad.numpy.einsum import einsum
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.numpy.reductions import max as largest
from funcgrad.numpy.reductions import sum
from funcgrad.numpy.shape import reshape
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.runtime.call_cache import composite


def _given(name: str, x: Any, mean: Any, cov: Any) -> tuple[Any, Any]:
    """``x - mean``, and the covariance as a matrix."""
    x, mean, cov = promoted(*[asoperand(v, name) for v in (x, mean, cov)], floating=True)
    deviation = n.subtract(x, mean)
    size = type_of(deviation).shape[-1] if type_of(deviation).ndim else 1
    deviation = deviation if type_of(deviation).ndim else reshape(deviation, (1,))
    if type_of(cov).shape in ((), (size,)):
        cov = n.multiply(
            cov if not type_of(cov).ndim else reshape(cov, (size, 1)), np.eye(size, dtype=type_of(cov).dtype)
        )
    if type_of(cov).shape != (size, size):
        raise ValueError(f"{name}: the covariance {type_of(cov)} does not fit vectors of {size}")
    return deviation, cov


@composite
def logpdf(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The logarithm of the density.

    Args:
        x: vectors along the last axis.
        mean: a vector.
        cov: a positive definite matrix, its diagonal, or a number.
        allow_singular: whether the matrix may be semi-definite; the density is then that on its range, with only a
            first derivative with respect to ``cov``.

    Returns:
        ``x.shape[:-1]``, of the promoted floating dtype; a scalar for a single covariance.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        ValueError: for incompatible shapes.
        LinAlgError: for a matrix that is not positive definite, unless ``allow_singular`` or under ``jit``.

    Example:
        >>> print(logpdf(np.zeros(2), np.zeros(2), np.eye(2)).round(4))
        -1.8379
    """
    deviation, cov = _given("multivariate_normal.logpdf", x, mean, cov)
    if allow_singular:
        inverse, logdet, rank = _on_range(cov)
    else:
        # A matrix that is not positive definite has no Cholesky factor: the result is NaN.
        root = linalg.cholesky(cov)
        inverse = linalg.inv(cov)
        logdet = n.multiply(sum(n.log(linalg.diagonal(root))), 2)
        rank = type_of(cov).shape[0]
    distance = einsum("...i,ij,...j->...", deviation, inverse, deviation)
    return n.multiply(n.add(n.add(distance, logdet), rank * math.log(2 * math.pi)), -0.5)


def _on_range(cov: Any) -> tuple[Any, Any, Any]:
    """The pseudoinverse, the log determinant on the range, and the rank.

    With the pseudoinverse as a constant, both have the correct first derivative among matrices of that rank.
    """
    fixed = stop_gradient(cov)
    values, vectors = linalg.eigh(fixed)
    least = n.multiply(largest(n.abs(values)), 1e6 * np.finfo(type_of(cov).dtype).eps)
    kept = n.greater(values, least)
    safe = n.where(kept, values, 1.0)
    inverse = einsum("ij,j,kj->ik", vectors, n.where(kept, n.divide(1.0, safe), 0.0), vectors)
    change = n.subtract(cov, fixed)
    logdet = n.add(sum(n.log(safe)), einsum("ij,ji->", inverse, change))
    moved = n.subtract(inverse, einsum("ij,jk,kl->il", inverse, change, inverse))
    return moved, logdet, sum(n.where(kept, 1.0, 0.0))


@composite
def pdf(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The density.

    Args:
        x, mean, cov, allow_singular: as for ``logpdf``.

    Returns:
        ``x.shape[:-1]``, of the promoted floating dtype; a scalar for a single covariance.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        ValueError: for incompatible shapes.
        LinAlgError: for a matrix that is not positive definite, unless ``allow_singular`` or under ``jit``.

    Example:
        >>> print(pdf(np.zeros(2), np.zeros(2), np.eye(2)).round(4))
        0.1592
    """
    return n.exp(logpdf(x, mean, cov, allow_singular))


@composite
def entropy(mean: Any = 0.0, cov: Any = 1.0) -> Any:
    """The differential entropy.

    Args:
        mean, cov: as for ``logpdf``.

    Returns:
        A number of the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        ValueError: for incompatible shapes.

    Example:
        >>> print(entropy(np.zeros(2), np.eye(2)).round(4))
        2.8379
    """
    deviation, cov = _given("multivariate_normal.entropy", mean, mean, cov)
    size = type_of(deviation).shape[-1]
    return n.multiply(n.add(linalg.slogdet(cov)[1], size * (1 + math.log(2 * math.pi))), 0.5)
