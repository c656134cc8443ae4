"""The primitives of linear algebra: factorizations and solvers, compared with JAX's autodiff and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.errors import NonDifferentiableError
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import equations
from funcgrad.primitives.linalg import factorizations as factors
from funcgrad.primitives.linalg import solve as solving
from funcgrad.primitives.linalg import svd_eig as spectral
from tests.funcgrad.oracle import Case, Draw, Ours, Sampler, check, check_eager, examples, normal
from tests.funcgrad.tolerances import CONDITIONED, FEW, MANY

Theirs = Callable[..., Any]


def a_dtype(draw: Draw) -> np.dtype:
    return np.dtype(draw(st.sampled_from([np.float64, np.complex128])))


def a_batch(draw: Draw) -> tuple[int, ...]:
    return draw(st.sampled_from([(), (2,), (2, 1)]))


def a_size(draw: Draw) -> int:
    return draw(st.sampled_from([3, 2, 1]))


def regular(shape: tuple[int, ...], dtype: np.dtype) -> Sampler:
    """Square matrices far from singular."""

    def sample(rng: np.random.Generator) -> np.ndarray:
        return normal(shape, dtype)(rng) + (2 * shape[-1] * np.eye(shape[-1])).astype(dtype)

    return sample


def adj(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def turned(x: Any) -> Any:
    return jnp.swapaxes(x, -1, -2)


def one_matrix(ours: Theirs, theirs: Theirs, *, tall: Any = ((3, 3),), **options: Any) -> Any:
    """A case of matrices of one of several sizes."""

    def case(draw: Draw) -> Case:
        m, n = draw(st.sampled_from(list(tall)))
        dtype = a_dtype(draw)
        shape = (*a_batch(draw), m, n)
        sample = regular(shape, dtype) if m == n else normal(shape, dtype)
        return Case(ours, theirs, [sample], **options)

    return case


# ---------------------------------------------------------------- functions of matrices that do not depend on the
# arbitrary part of a factorization, such as the phase of a vector


def _hermitian(x: Any) -> Any:
    return p.product(x, p.adjoint(x))


def _cholesky(x: Any) -> Any:
    return factors.cholesky(_hermitian(x))[0]


def _lu(x: Any) -> Any:
    return factors.lu(x)[0]


def _permutation(draw: Draw) -> Case:
    n, batch = a_size(draw) + 1, a_batch(draw)

    def sample(rng: np.random.Generator) -> np.ndarray:
        low = np.arange(1, n)
        return rng.integers(low, n + 1, (*batch, n - 1)).astype(np.int32)

    return Case(
        lambda pivots: factors.permutation(pivots, length=n),
        lambda pivots: lax.linalg.lu_pivots_to_permutation(pivots - 1, n),
        [sample],
    )


def _solved(draw: Draw) -> Case:
    n, batch, dtype, transposed = a_size(draw), a_batch(draw), a_dtype(draw), draw(st.booleans())
    k = draw(st.sampled_from([2, 1]))

    def ours(a: Any, b: Any) -> Any:
        packed, _, order = solving.factors(a)
        return solving.factored_solve(a, packed, order, b, transposed=transposed)

    return Case(
        ours,
        lambda a, b: jnp.linalg.solve(turned(a) if transposed else a, b),
        [regular((*batch, n, n), dtype), normal((*batch, n, k), dtype)],
    )


def _triangular(draw: Draw) -> Case:
    n, batch, dtype = a_size(draw), a_batch(draw), a_dtype(draw)
    left, lower, transposed, unit = (draw(st.booleans()) for _ in range(4))
    b = (*batch, n, 2) if left else (*batch, 2, n)
    return Case(
        lambda a, b: p.triangular_solve(a, b, left=left, lower=lower, transposed=transposed, unit=unit),
        lambda a, b: lax.linalg.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit
        ),
        [regular((*batch, n, n), dtype), normal(b, dtype)],
    )


def _definite(draw: Draw) -> Case:
    n, batch, dtype = a_size(draw), a_batch(draw), a_dtype(draw)

    def sample(rng: np.random.Generator) -> np.ndarray:
        return np.tril(regular((*batch, n, n), dtype)(rng))

    return Case(
        lambda a, b: solving.definite_solve(p.lower_part(a), b),
        lambda a, b: jnp.linalg.solve(jnp.tril(a) @ adj(jnp.tril(a)), b),
        [sample, normal((*batch, n, 2), dtype)],
    )


def _pseudo(x: Any) -> Any:
    none = np.zeros(np.shape(x)[:-2], dtypes.real_of(np.dtype(x.dtype)))
    return solving.pseudoinverse(x, none, none + 1e-12, hermitian=False)


def _their_pseudo(x: Any) -> Any:
    # By the normal equations: JAX's own derivative uses the singular vectors.
    if x.shape[-2] >= x.shape[-1]:
        return jnp.linalg.solve(adj(x) @ x, adj(x))
    return adj(x) @ jnp.linalg.inv(x @ adj(x))


def _logdet(x: Any) -> Any:
    packed, pivots, _ = solving.factors(x)
    return list(solving.factored_logdet(x, packed, pivots))


def _determinant(x: Any) -> Any:
    packed, pivots, _ = solving.factors(x)
    return solving.factored_determinant(x, packed, pivots)


def _series(x: Any) -> Any:
    """The exponential, as the sum of its series."""
    one = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)

    def step(state: Any, k: Any) -> Any:
        term, total = state
        term = term @ x / k
        return (term, total + term), None

    return lax.scan(step, (one, one), jnp.arange(1.0, 60.0))[0][1]


def _tangent(draw: Draw) -> Case:
    n, batch, dtype = a_size(draw), a_batch(draw), a_dtype(draw)
    shape = (*batch, n, n)
    theirs = lambda x, t: jax.jvp(_series, (x,), (t,))[1]
    return Case(spectral.exponential_tangent, theirs, [normal(shape, dtype), normal(shape, dtype)], order=1)


def _absolute_r(r: Any) -> Any:
    """A part of R that does not depend on the signs of its rows."""
    return p.product(p.adjoint(r), r)


def _qr(full: bool) -> Theirs:
    def ours(x: Any) -> list[Any]:
        q, r = factors.qr(x, full=full)
        return [p.product(q, r), q]

    return ours


SQUARE, ANY = ((3, 3), (2, 2), (1, 1)), ((3, 3), (4, 2), (2, 4), (1, 3))


def _sylvester(draw: Draw) -> Case:
    lead, dtype = a_batch(draw), a_dtype(draw)
    m, n = draw(st.sampled_from([(3, 2), (2, 2), (1, 3)]))

    def theirs(a: Any, b: Any, q: Any) -> Any:
        one, other = jnp.eye(n), jnp.eye(m)
        whole = jnp.einsum("...ij,kl->...ikjl", a, one) + jnp.einsum("ij,...lk->...ikjl", other, b)
        x = jnp.linalg.solve(whole.reshape(*lead, m * n, m * n), q.reshape(*lead, m * n, 1))
        return x.reshape(q.shape)

    operands = [regular((*lead, m, m), dtype), regular((*lead, n, n), dtype), normal((*lead, m, n), dtype)]
    return Case(equations.sylvester, theirs, operands)


def _their_root(x: Any) -> Any:
    values, vectors = jnp.linalg.eigh(x @ adj(x))
    return ((vectors * jnp.sqrt(values)[..., None, :]) @ adj(vectors)).astype(np.complex128)


def _three_diagonals(draw: Draw) -> Case:
    shape, dtype = (*a_batch(draw), a_size(draw)), a_dtype(draw)
    beside, on = normal(shape, dtype), lambda rng: normal(shape, dtype)(rng) + 5
    return Case(solving.tridiagonal_solve, _their_three_diagonals, [beside, on, beside, normal((*shape, 2), dtype)])


def _their_three_diagonals(below: Any, on: Any, above: Any, b: Any) -> Any:
    one = jnp.eye(on.shape[-1])
    matrix = on[..., None] * one + below[..., None] * jnp.roll(one, -1, 1).at[0].set(0)
    return jnp.linalg.solve(matrix + above[..., None] * jnp.roll(one, 1, 1).at[-1].set(0), b)


CASES = {
    "tridiagonal_solve": _three_diagonals,
    "hessenberg": one_matrix(factors.hessenberg, lax.linalg.hessenberg, order=0),
    "tridiagonal": one_matrix(
        lambda x: factors.tridiagonal(_hermitian(x), lower=True),
        lambda x: lax.linalg.tridiagonal(x @ adj(x), lower=True),
        order=0,
    ),
    "sylvester": _sylvester,
    "matrix_root": one_matrix(lambda x: equations.matrix_root(_hermitian(x)), _their_root, tall=SQUARE),
    "triangular_solve": _triangular,
    "cholesky": one_matrix(_cholesky, lambda x: jnp.linalg.cholesky(x @ adj(x)), tall=SQUARE),
    "lu": one_matrix(_lu, lambda x: lax.linalg.lu(x)[0], tall=ANY),
    "permutation": _permutation,
    "qr": one_matrix(_qr(False), lambda x: [jnp.matmul(*lax.linalg.qr(x, full_matrices=False)),
                     lax.linalg.qr(x, full_matrices=False)[0]], tall=((3, 3), (4, 2), (2, 2))),
    "factored_solve": _solved,
    "definite_solve": _definite,
    "inverse": one_matrix(lambda x: solving.inverse(x)[0], jnp.linalg.inv, tall=SQUARE),
    "first_zero_pivot": one_matrix(solving.first_zero_pivot, lambda x: jnp.zeros(x.shape[:-2], np.int32), order=0),
    "factored_determinant": one_matrix(_determinant, jnp.linalg.det, tall=SQUARE),
    "factored_logdet": one_matrix(_logdet, lambda x: list(jnp.linalg.slogdet(x)), tall=SQUARE),
    "pseudoinverse": one_matrix(_pseudo, _their_pseudo, tall=((3, 3), (4, 2), (2, 4))),
    "eigh": one_matrix(
        lambda x: spectral.eigh(_hermitian(x), lower=True)[0], lambda x: jnp.linalg.eigvalsh(x @ adj(x)), tall=SQUARE,
    ),
    "eig": one_matrix(lambda x: spectral.eig(x, vectors=False)[0], jnp.linalg.eigvals, tall=SQUARE, order=1),
    "svd": one_matrix(
        lambda x: spectral.svd(x, full=False, vectors=False)[0], lambda x: jnp.linalg.svd(x, compute_uv=False), tall=ANY
    ),
    "matrix_exponential": one_matrix(
        lambda x: spectral.matrix_exponential(e.scale(x, 0.5)), lambda x: _series(x / 2), tall=SQUARE
    ),
    "exponential_tangent": _tangent,
    "reflectors": one_matrix(
        lambda x: _absolute_r(p.upper_part(factors.reflectors(x)[0])), lambda x: adj(x) @ x, tall=SQUARE, order=0
    ),
}  # fmt: skip


def _function_of_hermitian(x: Any) -> Any:
    values, vectors = spectral.eigh(_hermitian(x), lower=True)
    return p.product(p.scaled_columns(vectors, values), p.product(p.scaled_rows(p.adjoint(vectors), values), x))


def _middle(x: Any, full: bool) -> Any:
    u, s, vh = spectral.svd(x, full=full, vectors=True)
    k = s.shape[-1]
    return p.product(p.scaled_columns(factors.columns(u, 0, k), s), p.scaled_rows(factors.rows(vh, 0, k), s))


def _their_middle(x: Any) -> Any:
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return (u * (s**2)[..., None, :]) @ vh


def _first_left_projector(x: Any, full: bool) -> Any:
    u = factors.columns(spectral.svd(x, full=full, vectors=True)[0], 0, 1)
    return p.product(u, p.adjoint(u))


def _their_first_left_projector(x: Any) -> Any:
    u = jnp.linalg.svd(x, full_matrices=False)[0][..., :1]
    return u @ adj(u)


#: Functions of vectors that do not depend on the choice of vectors.
VECTORS = {
    "eigh": one_matrix(_function_of_hermitian, lambda x: x @ adj(x) @ x @ adj(x) @ x, tall=((3, 3), (2, 2))),
    "svd": one_matrix(lambda x: _middle(x, False), _their_middle, tall=((3, 3), (4, 2), (2, 4))),
    "svd, full": one_matrix(lambda x: _middle(x, True), _their_middle, tall=((4, 2), (2, 4))),
    "svd, left": one_matrix(
        lambda x: _first_left_projector(x, True), _their_first_left_projector, tall=((4, 2), (2, 4), (3, 3)),
    ),
    "qr, wide": one_matrix(
        lambda x: factors.qr(x, full=True)[1],
        lambda x: adj(jnp.linalg.qr(x[..., :2])[0]) @ x,
        tall=((2, 3),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@given(st.data())
@examples(3)
def test_against_jax(name: str, data: Any) -> None:
    check(CASES[name](data.draw), data.draw(st.integers(0, 99)), tolerance=CONDITIONED)


@pytest.mark.parametrize("name", VECTORS)
@given(st.data())
@examples(2)
def test_vectors_against_jax(name: str, data: Any) -> None:
    check(VECTORS[name](data.draw), data.draw(st.integers(0, 99)), tolerance=CONDITIONED)


@pytest.mark.parametrize("name", ["cholesky", "factored_solve", "svd"])
@given(st.data())
@examples(1)
def test_operation_by_operation(name: str, data: Any) -> None:
    check_eager(CASES[name](data.draw))


# ---------------------------------------------------------------- numerical accuracy


def gradient(f: Callable[..., Any], x: Any) -> np.ndarray:
    outs, pullback = Ours.vjp(lambda x: [f(x)], [jnp.asarray(x)])
    return np.asarray(pullback([jnp.ones_like(outs[0])])[0])


def test_eigenvectors_of_general_matrices_give_their_functions_back() -> None:
    # v diag(w) inv(v) is the matrix itself, so its derivative is the tangent.
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))

    def whole(x: Any) -> list[Any]:
        values, vectors = spectral.eig(x, vectors=True)
        return [p.product(p.scaled_columns(vectors, values), solving.inverse(vectors)[0])]

    (value,), (tangent,) = Ours.jvp(whole, [x], [t])
    np.testing.assert_allclose(np.asarray(value), x, atol=MANY)
    np.testing.assert_allclose(np.asarray(tangent), t, atol=CONDITIONED)


def test_eigenvectors_keep_their_length() -> None:
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    (_, vectors), (_, tangent) = Ours.jvp(lambda x: spectral.eig(x, vectors=True), [x], [t])
    along = np.real(np.sum(np.conj(vectors) * np.asarray(tangent), axis=0))
    np.testing.assert_allclose(along, 0, atol=MANY)


def test_equal_values_have_derivatives_and_their_vectors_have_none() -> None:
    np.testing.assert_array_equal(gradient(lambda x: spectral.eigh(x, lower=True)[0], np.eye(2)), np.eye(2))
    np.testing.assert_array_equal(
        gradient(lambda x: spectral.svd(x, full=False, vectors=True)[1], np.eye(2)), np.eye(2)
    )
    assert not np.isfinite(gradient(lambda x: spectral.eigh(x, lower=True)[1], np.eye(2))).all()


def test_singular_matrices_have_determinants_with_derivatives() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(gradient(_determinant, x), [[4, -2], [-2, 1]], rtol=FEW)
    assert np.abs(gradient(_determinant, np.zeros((3, 3)))).max() < 1e-15


@pytest.mark.parametrize(("x", "wanted"), [(np.eye(2), 0), (np.diag([1.0, -1.0]), 2), (np.zeros((2, 2)), 1)])
def test_cholesky_info_is_the_leading_minor(x: np.ndarray, wanted: int) -> None:
    factor, info = factors.cholesky(x)
    assert int(info) == wanted
    assert np.isfinite(np.asarray(factor)).all() == (wanted == 0)


def test_minors_are_counted_for_each_matrix() -> None:
    x = np.stack([np.eye(3), np.diag([1.0, 1.0, -1.0]), np.diag([1.0, 0.0, 1.0])])
    assert np.asarray(factors.cholesky(x)[1]).tolist() == [0, 3, 2]


def test_the_first_pivot_that_is_zero() -> None:
    x = np.stack([np.eye(2), np.zeros((2, 2)), np.ones((2, 2))])
    assert np.asarray(solving.inverse(x)[1]).tolist() == [0, 1, 2]


def test_the_exponential_of_large_and_of_infinite_matrices() -> None:
    x = np.array([[0.0, 40.0], [-40.0, 0.0]])
    wanted = [[np.cos(40), np.sin(40)], [-np.sin(40), np.cos(40)]]
    np.testing.assert_allclose(np.asarray(spectral.matrix_exponential(x)), wanted, atol=MANY)
    assert not np.isfinite(np.asarray(spectral.matrix_exponential(np.full((2, 2), np.inf)))).any()


def test_reflections_multiply_to_q() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.complex128):
        x = normal((2, 4, 3), np.dtype(dtype))(rng)
        packed, taus = factors.reflectors(x)
        q = np.asarray(factors.reflected(packed, taus, p.identity((2, 4, 4), np.dtype(dtype))))
        back = np.asarray(factors.reflected(packed, taus, q, adjoint_of_product=True))
        np.testing.assert_allclose(q[..., :3] @ np.triu(packed)[..., :3, :], x, atol=MANY)
        np.testing.assert_allclose(back, np.broadcast_to(np.eye(4), (2, 4, 4)), atol=MANY)


def test_undetermined_columns_of_q_have_no_derivative() -> None:
    with pytest.raises(NonDifferentiableError, match="columns of q beyond the 2th"):
        gradient(lambda x: factors.qr(x, full=True)[0], np.ones((3, 2)))


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
def test_matrices_without_elements(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    assert factors.cholesky(x)[0].shape == shape
    assert solving.inverse(x)[0].shape == shape
    assert spectral.eigh(x, lower=True)[1].shape == shape
    np.testing.assert_array_equal(np.asarray(_determinant(x)), np.ones(shape[:-2]))
    assert [np.asarray(v).tolist() for v in _logdet(x)] == [np.ones(shape[:-2]).tolist(), np.zeros(shape[:-2]).tolist()]


def test_orthogonal_factors_of_empty_matrices_are_the_identity() -> None:
    q, r = factors.qr(np.zeros((3, 0)), full=True)
    np.testing.assert_array_equal(np.asarray(q), np.eye(3))
    assert r.shape == (3, 0)
    u, s, vh = spectral.svd(np.zeros((0, 2)), full=True, vectors=True)
    assert (u.shape, s.shape) == ((0, 0), (0,))
    np.testing.assert_array_equal(np.asarray(vh), np.eye(2))
    assert np.asarray(factors.permutation(np.zeros(0, np.int32), length=3)).tolist() == [0, 1, 2]


X, SQUARE_TYPE = ArrayType((2, 3), dtypes.float32), ArrayType((3, 3), dtypes.float32)


@pytest.mark.parametrize(
    ("primitive", "operands", "params", "error", "message"),
    [
        (factors.cholesky, [X], {}, ValueError, r"^cholesky: takes square matrices, got f32\[2,3\]"),
        (factors.lu, [X.with_shape((3,))], {}, ValueError, r"^lu: takes matrices"),
        (factors.qr, [X.with_dtype(dtypes.float16)], {"full": True}, TypeError, r"^qr: takes float32, .*f16\[2,3\]"),
        (spectral.svd, [X.with_dtype(dtypes.int32)], {"full": True, "vectors": True}, TypeError, "^svd: takes float32"),
        (factors.permutation, [X.with_dtype(dtypes.int32)], {"length": 2}, TypeError, "^permutation: wants at most 2"),
        (
            solving.definite_solve, [SQUARE_TYPE, X], {}, TypeError, r"^definite_solve: the factor f32\[3,3\]",
        ),
        (
            equations.sylvester, [SQUARE_TYPE, SQUARE_TYPE, X], {}, ValueError, r"^sylvester: .* f32\[2,3\] do not fit",
        ),
        (
            p.triangular_solve, [SQUARE_TYPE, X], dict(left=True, lower=True, transposed=False, unit=False), ValueError,
            r"^triangular_solve: f32\[3,3\] and the right-hand side f32\[2,3\] do not fit",
        ),
        (
            spectral.exponential_tangent, [SQUARE_TYPE, X], {}, TypeError, "^exponential_tangent: wants two operands",
        ),
    ],
)  # fmt: skip
def test_invalid_operands_are_named(
    primitive: Any, operands: list[ArrayType], params: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        primitive.output_types(operands, params)
