"""Rules of linear algebra, by the LAPACK routines that XLA also uses, from SciPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.runtime.numpy_backend.scipy_functions import blas, lapack
from funcgrad.runtime.numpy_backend.table import RULES, NotEquivalent, rule

#: The primitives below that work matrix by matrix, and what one matrix takes, in elements as ``evaluate`` counts them:
#: always, and as a part of its rows times its columns times the larger of the two, or times the columns of the other
#: side where a system is solved. Fitted to matrices of 3 to 200 rows, on one thread.
ON_MATRICES: dict[str, tuple[int, float]] = {}


def _lapack(name: str, x: Any) -> Callable[..., Any]:
    return lapack(name, x.dtype)


def _by_matrix(name: str, always: int, part: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that registers a function of one matrix (and one slice of each other operand) as the rule for batches.

    Args:
        name: the primitive.
        always, part: as in ``ON_MATRICES``.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*xs: Any, **params: Any) -> Any:
            if any(0 in x.shape for x in xs):
                raise NotEquivalent
            lead = xs[0].shape[:-2]
            each = [function(*one, **params) for one in zip(*[x.reshape(-1, *x.shape[len(lead) :]) for x in xs])]
            if not isinstance(each[0], list):
                return np.stack(each).reshape((*lead, *each[0].shape))
            return [np.stack(made).reshape((*lead, *np.shape(made[0]))) for made in zip(*each)]

        RULES[name] = run
        ON_MATRICES[name] = always, part
        return function

    return enter


def _unless(info: int, *found: Any) -> list[Any]:
    """A routine's result, or NaN throughout if it reports a failure."""
    return [np.full_like(x, np.nan) for x in found] if info else list(found)


def _solved(a: Any, b: Any, *, left: bool, lower: bool, turn: int = 0, unit: bool = False) -> Any:
    """A triangular system; of ``a`` (0), its transpose (1) or its adjoint (2)."""
    return blas("trsm", a.dtype)(1, a, b, side=not left, lower=lower, trans_a=turn, diag=unit)


# ---------------------------------------------------------------- triangular


@_by_matrix("triangular_solve", 12_000, 0.03)
def _triangular_solve(a: Any, b: Any, *, left: bool, lower: bool, transposed: bool, unit: bool) -> Any:
    return _solved(a, b, left=left, lower=lower, turn=int(transposed), unit=unit)


@_by_matrix("cholesky", 30_000, 0.03)
def _cholesky(x: Any) -> list[Any]:
    factor, info = _lapack("potrf", x)(x, lower=True, clean=True)
    return [np.tril(*_unless(info, factor)), np.int32(info)]


@_by_matrix("definite_solve", 14_000, 0.06)
def _definite_solve(factor: Any, b: Any) -> Any:
    half = _solved(factor, b, left=True, lower=True)
    return _solved(factor, half, left=True, lower=True, turn=2)


# ---------------------------------------------------------------- LU


@_by_matrix("lu", 17_000, 0.04)
def _lu(x: Any) -> list[Any]:
    packed, pivots, _ = _lapack("getrf", x)(x)
    return [packed, pivots.astype(np.int32) + np.int32(1)]


def _order(pivots: Any, length: int) -> Any:
    order = np.arange(length, dtype=np.int32)
    for i, j in enumerate(pivots - 1):
        order[[i, j]] = order[[j, i]]
    return order


@rule("permutation")
def _permutation(pivots: Any, *, length: int) -> Any:
    if not pivots.size:
        raise NotEquivalent
    found = [_order(p, length) for p in pivots.reshape(-1, pivots.shape[-1])]
    return np.stack(found).reshape((*pivots.shape[:-1], length))


@_by_matrix("factored_solve", 20_000, 0.06)
def _factored_solve(a: Any, packed: Any, order: Any, b: Any, *, transposed: bool) -> Any:
    solved = functools.partial(_solved, packed, left=True, turn=int(transposed))
    if transposed:
        return solved(solved(b, lower=False), lower=True, unit=True)[np.argsort(order)]
    return solved(solved(b[order], lower=True, unit=True), lower=False)


@_by_matrix("first_zero_pivot", 5_000, 0.0)
def _first_zero(packed: Any) -> Any:
    zero = np.diagonal(packed) == 0
    return np.int32(np.argmax(zero) + 1 if zero.any() else 0)


@_by_matrix("inverse", 60_000, 0.2)
def _inverse(x: Any) -> list[Any]:
    packed, pivots = _lu(x)
    one = np.eye(len(x), dtype=x.dtype)
    return [_factored_solve(x, packed, _order(pivots, len(x)), one, transposed=False), _first_zero(packed)]


def _sign_of(pivots: Any) -> int:
    return 1 - 2 * (int(np.count_nonzero(pivots != np.arange(1, len(pivots) + 1))) % 2)


@_by_matrix("factored_determinant", 20_000, 0.0)
def _factored_determinant(a: Any, packed: Any, pivots: Any) -> Any:
    return np.prod(np.diagonal(packed)) * packed.dtype.type(_sign_of(pivots))


@_by_matrix("factored_logdet", 20_000, 0.0)
def _factored_logdet(a: Any, packed: Any, pivots: Any) -> list[Any]:
    pivot = np.diagonal(packed)
    return [np.prod(np.sign(pivot)) * packed.dtype.type(_sign_of(pivots)), np.sum(np.log(np.abs(pivot)))]


# ---------------------------------------------------------------- orthogonal


@_by_matrix("reflectors", 14_000, 0.13)
def _reflectors(x: Any) -> list[Any]:
    packed, factors, _, _ = _lapack("geqrf", x)(x)
    return [packed, factors]


@_by_matrix("qr", 34_000, 0.3)
def _qr(x: Any, *, full: bool) -> list[Any]:
    packed, factors = _reflectors(x)
    m, n = x.shape
    k = m if full else min(m, n)
    vectors = np.zeros((m, k), x.dtype)
    vectors[:, :n] = packed[:, :k]
    made = _lapack("ungqr" if x.dtype.kind == "c" else "orgqr", x)(vectors, factors)[0]
    return [made, np.triu(packed[:k])]


@_by_matrix("eigh", 18_000, 0.7)
def _eigh(x: Any, *, lower: bool) -> list[Any]:
    name = "heevd" if x.dtype.kind == "c" else "syevd"
    values, vectors, info = _lapack(name, x)(x, lower=lower)
    return _unless(info, values, vectors)


@_by_matrix("svd", 24_000, 1.1)
def _svd(x: Any, *, full: bool, vectors: bool) -> list[Any]:
    left, values, right, info = _lapack("gesdd", x)(x, full_matrices=full, compute_uv=vectors)
    return _unless(info, left, values, right) if vectors else _unless(info, values)


@_by_matrix("pseudoinverse", 60_000, 1.3)
def _pseudoinverse(x: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    if hermitian:
        values, left = _eigh(x, lower=True)
        right = left.conj().T
    else:
        left, values, right = _svd(x, full=False, vectors=True)
    size = np.abs(values)
    counts = size > max(atol, rtol * size.max())
    inverted = np.where(counts, 1 / np.where(counts, values, 1), 0).astype(values.dtype)
    return (right.conj().T * inverted) @ left.conj().T


# ---------------------------------------------------------------- the exponential


@_by_matrix("matrix_exponential", 90_000, 5.0)
def _matrix_exponential(x: Any) -> Any:
    from funcgrad.primitives.linalg.svd_eig import PADE, pade_weights  # loaded where the primitive is

    bound, m = PADE[dtypes.real_of(x.dtype)]
    size = float(np.abs(x).sum(-2).max())
    halvings = math.ceil(math.log2(size / bound)) if bound < size < math.inf else 0
    found = _pade(x * x.dtype.type(0.5**halvings), pade_weights(m))
    for _ in range(halvings):
        found = found @ found
    return found


def _pade(x: Any, weights: Sequence[float]) -> Any:
    one = power = np.eye(len(x), dtype=x.dtype)
    even, odd, squared = weights[0] * one, weights[1] * one, x @ x
    for j in range(2, len(weights), 2):
        power = power @ squared
        even = even + weights[j] * power
        if j + 1 < len(weights):
            odd = odd + weights[j + 1] * power
    odd = x @ odd
    packed, pivots = _lu(even - odd)
    return _factored_solve(x, packed, _order(pivots, len(x)), even + odd, transposed=False)


@_by_matrix("exponential_tangent", 120_000, 40.0)
def _exponential_tangent(x: Any, t: Any) -> Any:
    n = len(x)
    return _matrix_exponential(np.block([[x, t], [np.zeros_like(x), x]]))[:n, n:]


# ---------------------------------------------------------------- Fourier transforms


@rule("fft")
def _fft(x: Any, *, axes: Sequence[int], inverse: bool) -> Any:
    if not x.size:
        return x
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes)


@rule("rfft")
def _rfft(x: Any, *, axis: int) -> Any:
    return np.fft.rfft(x, axis=axis)


@rule("irfft")
def _irfft(x: Any, *, axis: int, n: int) -> Any:
    return np.fft.irfft(x, n=n, axis=axis)
