"""Random vectors and matrices."""

from __future__ import annotations

from typing import Any

from funcgrad import linalg
from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.einsum import einsum
from funcgrad.numpy.reductions import softmax
from funcgrad.numpy.shape import broadcast_to, expand_dims, swapaxes
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.reductions import reduce_sum
from funcgrad.random.basic import Shape, check_key, fits, floating, given, normal, row, shape_of, split
from funcgrad.random.continuous import exponential
from funcgrad.random.gammas import generalized_normal, loggamma
from funcgrad.runtime.call_cache import compiled

__all__ = ["dirichlet", "multivariate_normal", "orthogonal", "ball"]


@compiled
def dirichlet(key: Any, alpha: Any, shape: Shape | None = None, dtype: Any = float) -> Any:
    """Probability vectors from the Dirichlet distribution; differentiable in ``alpha``.

    Args:
        key, dtype: a key (uint32[2]), and the floating dtype of the sample.
        alpha: the parameters, a real array with at least one axis, the last; positive.
        shape: of the result without the last axis; by default that of ``alpha``.

    Returns:
        An array of ``dtype``, float32 by default, of ``shape`` and the size of the last axis of ``alpha``.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or a dtype that is not floating.
        ValueError: if ``alpha`` is 0-d, or does not broadcast to ``shape``; for a negative size.

    Example:
        >>> import numpy as np
        >>> from funcgrad.random import key
        >>> print(dirichlet(key(0), np.ones(3, "float32"), (2,)).sum(-1).round(4))
        [1. 1.]
    """
    check_key("dirichlet", key)
    kind, found = floating("dirichlet", dtype), given("dirichlet", "alpha", alpha)
    if not found.ndim or not found.shape[-1]:
        raise ValueError(f"dirichlet: alpha must have at least one number along its last axis, got {found}")
    wanted = found.shape[:-1] if shape is None else shape_of("dirichlet", shape)
    fits("dirichlet", "alpha without the last axis", found.shape[:-1], wanted)
    whole = (*wanted, found.shape[-1])
    return softmax(loggamma(key, broadcast_to(e.cast(alpha, dtype=kind), whole), whole, kind), axis=-1)


@compiled
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Shape | None = None, dtype: Any = None, method: str = "cholesky"
) -> Any:
    """Normal vectors with a mean and a covariance; differentiable in both.

    Args:
        key: a key, uint32[2].
        mean: vectors, along the last axis of a floating array.
        cov: positive definite matrices, along the last two; semi-definite ones for the other methods.
        shape: of the result without the last axis; by default their broadcast shape.
        dtype: float32 or float64; by default that of ``mean``.
        method: how ``cov`` is factored: ``"cholesky"``, ``"eigh"`` or ``"svd"``.

    Returns:
        An array of ``dtype``, of ``shape`` and the size of the vectors.

    Raises:
        TypeError: for arguments that are not keys or arrays (a list is neither), or another dtype.
        ValueError: for incompatible shapes, a negative size, or an unknown ``method``.
        LinAlgError: if ``cov`` is concrete and not positive definite, for ``"cholesky"``.

    Example:
        >>> import numpy as np
        >>> from funcgrad.random import key
        >>> multivariate_normal(key(0), np.zeros(2), np.eye(2), (3,)).shape
        (3, 2)
    """
    check_key("multivariate_normal", key)
    first, second = given("multivariate_normal", "mean", mean), given("multivariate_normal", "cov", cov)
    kind = floating("multivariate_normal", dtype or (first.dtype if first.ndim else second.dtype))
    n = first.shape[-1] if first.ndim else 0
    if not first.ndim or second.ndim < 2 or second.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal: wants vectors and square matrices of their size, got {first}, {second}")
    _factored("multivariate_normal", kind)
    together = e.broadcast_shapes("multivariate_normal", first.shape[:-1], second.shape[:-2])
    wanted = together if shape is None else shape_of("multivariate_normal", shape)
    fits("multivariate_normal", "the parameters", together, wanted)
    mean, cov = e.cast(mean, dtype=kind), e.cast(cov, dtype=kind)
    x = normal(key, (*wanted, n), kind)
    return e.add(mean, einsum("...ij,...j->...i", _root(cov, method), x))


def _factored(name: str, dtype: Any) -> None:
    """Raises for a dtype without factorizations."""
    kind = dtypes.canonical(dtype)
    if not dtypes.is_inexact(kind) or kind.itemsize < 4:
        raise TypeError(f"{name}: dtype must be float32, float64, complex64 or complex128, got {kind}")


def _root(cov: Any, method: str) -> Any:
    if method == "cholesky":
        return linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = linalg.eigh(cov)
    elif method == "svd":
        vectors, values, _ = linalg.svd(cov)
    else:
        raise ValueError(f'multivariate_normal: method must be "cholesky", "eigh" or "svd", got {method!r}')
    return e.mul(vectors, expand_dims(e.sqrt(values), -2))


@compiled
def orthogonal(key: Any, n: int, shape: Shape = (), dtype: Any = float, m: int | None = None) -> Any:
    """Uniformly distributed matrices with orthonormal rows or columns.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups", 2007.

    Args:
        key: a key, uint32[2].
        n: the number of rows.
        shape: the number of matrices: an int, or several.
        dtype: float32, float64, complex64 or complex128.
        m: the number of columns; by default ``n``.

    Returns:
        An array of shape ``(*shape, n, m)`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for an argument that is not a key, or another dtype.
        ValueError: for a negative size.

    Example:
        >>> import numpy as np
        >>> from funcgrad.random import key
        >>> q = orthogonal(key(0), 3)
        >>> bool((abs(q @ q.T - np.eye(3)) < 1e-5).all())
        True
    """
    check_key("orthogonal", key)
    n = validate.integer("orthogonal", "n", n, least=0)
    m = n if m is None else validate.integer("orthogonal", "m", m, least=0)
    _factored("orthogonal", dtype)
    z = normal(key, (*shape_of("orthogonal", shape), max(n, m), min(n, m)), dtype)
    q, r = linalg.qr(z)
    signs = e.sign(linalg.diagonal(r)) if type_of(r).dtype.kind != "c" else e.complex_sign(linalg.diagonal(r))
    q = e.mul(q, expand_dims(signs, -2))
    return swapaxes(q, -1, -2) if n < m else q


@compiled
def ball(key: Any, d: int, p: float = 2, shape: Shape = (), dtype: Any = float) -> Any:
    """Uniformly distributed points of the unit ball.

    Source: Barthe, Guédon, Mendelson, Naor, "A probabilistic approach to the geometry of the l_p^n-ball", 2005.

    Args:
        key, shape, dtype: a key (uint32[2]), the number of points, and their floating dtype.
        d: the dimension of the ball.
        p: the order of the norm; a positive number.

    Returns:
        An array of shape ``(*shape, d)`` and ``dtype``, float32 by default.

    Raises:
        TypeError: for an argument that is not a key, or a dtype that is not floating.
        ValueError: for a negative size, or a ``p`` that is not a positive number.

    Example:
        >>> from funcgrad.random import key
        >>> bool(((ball(key(0), 3, shape=(9,)) ** 2).sum(-1) <= 1).all())
        True
    """
    check_key("ball", key)
    kind, wanted = floating("ball", dtype), shape_of("ball", shape)
    d = validate.integer("ball", "d", d, least=0)
    if given("ball", "p", p).shape or not float(p) > 0:
        raise ValueError(f"ball: p must be a positive number, got {p!r}")
    keys = split(key)
    power = kind.type(p)
    g = generalized_normal(row(keys, 0), float(p), (*wanted, d), kind)
    length = reduce_sum(e.power(e.absolute(g), power), axes=(len(wanted),))
    length = e.power(e.add(length, exponential(row(keys, 1), wanted, kind)), kind.type(1 / p))
    return e.div(g, expand_dims(length, -1))
