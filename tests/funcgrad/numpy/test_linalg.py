"""``numpy.linalg`` of funcgrad: NumPy's values and errors; derivatives, batches and ``jit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad.numpy import linalg
from tests.funcgrad.tolerances import CONDITIONED, CONDITIONED32, DIFFERENCED, MANY, MANY32

Array = np.ndarray


def random(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def positive(shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    x = random(shape, dtype)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1], dtype=dtype)


def assert_same(got: Any, wanted: Any) -> None:
    """Equal results, by position and by name."""
    if isinstance(wanted, tuple):
        assert len(got) == len(wanted)
        assert getattr(got, "_fields", None) == getattr(wanted, "_fields", None)
        for g, w in zip(got, wanted, strict=True):
            assert_same(g, w)
        return
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    tolerance = CONDITIONED32 if wanted.dtype in (np.float32, np.complex64) else CONDITIONED
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def both(call: Callable[[Any], Any]) -> None:
    assert_same(call(linalg), call(np.linalg))


DTYPES = [np.float64, np.complex128, np.float32]
SHAPES = [(3, 3), (4, 2), (2, 1, 2, 3), (0, 2, 2)]
ORDERS = ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
class TestAnyMatrices:
    def test_factors(self, shape: tuple[int, ...], dtype: Any) -> None:
        x = random(shape, dtype)
        for mode in ("reduced", "complete", "r"):
            both(lambda m, mode=mode: m.qr(x, mode=mode))
        both(lambda m: m.svd(x, compute_uv=False))
        both(lambda m: m.svdvals(x))
        u, s, vh = linalg.svd(x, full_matrices=False)
        np.testing.assert_allclose((np.asarray(u) * np.asarray(s)[..., None, :]) @ np.asarray(vh), x, atol=MANY32)
        p, low, up = linalg.lu(x)
        np.testing.assert_allclose(np.asarray(p) @ np.asarray(low) @ np.asarray(up), x, atol=MANY32)

    def test_functions_of_singular_values(self, shape: tuple[int, ...], dtype: Any) -> None:
        x = random(shape, dtype)
        both(lambda m: m.pinv(x))
        both(lambda m: m.pinv(x, 0.5))
        both(lambda m: m.matrix_rank(x))
        both(lambda m: m.matrix_rank(x, tol=1.0))
        both(lambda m: m.matrix_rank(x, rtol=0.5))
        both(lambda m: m.cond(x))
        both(lambda m: m.cond(x, -2))

    def test_norms(self, shape: tuple[int, ...], dtype: Any) -> None:
        x = random(shape, dtype)
        for order in ORDERS:
            both(lambda m, order=order: m.matrix_norm(x, ord=order, keepdims=True))
            both(lambda m, order=order: m.norm(x, order, axis=(-1, -2)))
        for order in (0, 0.5, 1, 2, 3, -1, np.inf, -np.inf):
            both(lambda m, order=order: m.vector_norm(x, ord=order, axis=-1))
        both(lambda m: m.norm(x, keepdims=True))
        both(lambda m: m.vector_norm(x, keepdims=True))

    def test_parts(self, shape: tuple[int, ...], dtype: Any) -> None:
        x = random(shape, dtype)
        both(lambda m: m.diagonal(x, offset=1))
        both(lambda m: m.trace(x, offset=-1))
        both(lambda m: m.matrix_transpose(x))
        both(lambda m: m.vecdot(x, x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2)])
class TestSquareMatrices:
    def test_factors(self, shape: tuple[int, ...], dtype: Any) -> None:
        x = positive(shape, dtype)
        both(lambda m: m.cholesky(x))
        both(lambda m: m.cholesky(x, upper=True))
        both(lambda m: m.eigvalsh(x))
        both(lambda m: m.eigh(x, "U").eigenvalues)
        values, vectors = linalg.eigh(x)
        back = np.asarray(vectors) * np.asarray(values)[..., None, :]
        np.testing.assert_allclose(back @ np.conj(np.swapaxes(np.asarray(vectors), -1, -2)), x, atol=CONDITIONED32)

    def test_eigenvalues(self, shape: tuple[int, ...], dtype: Any) -> None:
        x = random(shape, dtype)
        values, vectors = linalg.eig(x)
        vectors = np.asarray(vectors)
        np.testing.assert_allclose(x @ vectors, vectors * np.asarray(values)[..., None, :], atol=MANY32)
        np.testing.assert_allclose(np.asarray(linalg.eigvals(x)), np.asarray(values), atol=MANY32)
        assert vectors.dtype.kind == "c"

    def test_solving(self, shape: tuple[int, ...], dtype: Any) -> None:
        x, b = random(shape, dtype), random((shape[-1], 2), dtype, 1)
        both(lambda m: m.solve(x, b))
        both(lambda m: m.solve(x, b[:, 0]))
        both(lambda m: m.inv(x))
        both(lambda m: m.det(x))
        both(lambda m: m.slogdet(x))
        triangular = np.triu(x)
        got = linalg.solve_triangular(x, b)
        assert_same(got, np.linalg.solve(triangular, np.broadcast_to(b, (*shape[:-2], *b.shape))))

    def test_powers_and_conditions(self, shape: tuple[int, ...], dtype: Any) -> None:
        x = random(shape, dtype)
        for n in (0, 1, 3, 6, -2):
            both(lambda m, n=n: m.matrix_power(x, n))
        for order in ("fro", "nuc", 1, np.inf):
            both(lambda m, order=order: m.cond(x, order))

    def test_hermitian_ones(self, shape: tuple[int, ...], dtype: Any) -> None:
        x = positive(shape, dtype) - 2 * np.eye(shape[-1], dtype=dtype)
        both(lambda m: m.svd(x, compute_uv=False, hermitian=True))
        both(lambda m: m.pinv(x, hermitian=True))
        both(lambda m: m.matrix_rank(x, hermitian=True))
        u, s, vh = linalg.svd(x, hermitian=True)
        np.testing.assert_allclose(
            (np.asarray(u) * np.asarray(s)[..., None, :]) @ np.asarray(vh), x, atol=CONDITIONED32
        )


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("k", [(), (2,)])
def test_least_squares(shape: tuple[int, int], k: tuple[int, ...]) -> None:
    for dtype in (np.float64, np.complex128):
        both(lambda m, dtype=dtype: m.lstsq(random(shape, dtype), random((shape[0], *k), dtype, 1)))
    low = np.outer(random((shape[0],)), random((shape[1],)))
    both(lambda m: m.lstsq(low, random((shape[0], *k))))


def test_tensors_and_chains() -> None:
    a, b, c, d = random((3,)), random((3, 4)), random((4, 2)), random((2,))
    both(lambda m: m.multi_dot([a, b, c, d]))
    both(lambda m: m.multi_dot([b, c]))
    both(lambda m: m.tensorinv(random((4, 2, 2)), ind=1))
    both(lambda m: m.tensorsolve(random((2, 3, 6)), random((2, 3))))
    both(lambda m: m.tensorsolve(random((2, 6, 3)), random((2, 3)), axes=(1,)))
    both(lambda m: m.outer(a, d))
    both(lambda m: m.cross(a, a[::-1]))
    both(lambda m: m.matrix_power(np.array([[1, 1], [0, 1]]), 5))


@given(n=st.integers(1, 5), seed=st.integers(0, 9), largest=st.sampled_from([0.01, 1.0, 30.0]))
@settings(max_examples=10)
def test_the_exponential_of_a_normal_matrix(n: int, seed: int, largest: float) -> None:
    x = random((n, n), seed=seed)
    x = x - x.T
    x = x * (largest / max(np.abs(x).sum(0).max(), 1e-9))
    values, vectors = np.linalg.eig(x)
    wanted = (vectors * np.exp(values)) @ np.linalg.inv(vectors)
    np.testing.assert_allclose(np.asarray(linalg.expm(x)), wanted.real, atol=CONDITIONED)


# ---------------------------------------------------------------- errors

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.cholesky(-np.eye(2)), "Matrix is not positive definite"),
        (lambda m: m.inv(SINGULAR), "Singular matrix"),
        (lambda m: m.solve(SINGULAR, np.ones(2)), "Singular matrix"),
        (lambda m: m.tensorinv(np.zeros((2, 2)), ind=1), "Singular matrix"),
        (lambda m: m.matrix_power(SINGULAR, -1), "Singular matrix"),
        (lambda m: m.svd(np.full((2, 2), np.nan)), "SVD did not converge"),
    ],
)
def test_singular_and_indefinite_matrices_raise_as_in_numpy(call: Callable[[Any], Any], message: str) -> None:
    for module in (linalg, np.linalg):
        with pytest.raises(np.linalg.LinAlgError, match=message):
            call(module)


def test_singular_matrices_raise_under_grad_but_not_under_jit() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        fg.grad(lambda x: linalg.inv(x).sum())(SINGULAR)
    assert not np.isfinite(np.asarray(fg.jit(linalg.inv)(SINGULAR))).any()
    found = fg.vmap(linalg.cholesky)(np.stack([np.eye(2), -np.eye(2)]))
    assert np.isfinite(np.asarray(found)).all(axis=(1, 2)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linalg.inv(np.ones((2, 3))), np.linalg.LinAlgError, r"^inv: takes square matrices, got f64\[2,3\]"),
        (lambda: linalg.det(np.ones(3)), np.linalg.LinAlgError, r"^det: takes matrices.*f64\[3\]"),
        (lambda: linalg.qr(np.eye(2), "full"), ValueError, '^qr: mode must be .*"raw", got .full.'),
        (lambda: linalg.eigh(np.eye(2), "X"), ValueError, "^eigh: UPLO must be"),
        (lambda: linalg.solve(np.eye(2), np.ones(3)), ValueError, r"^solve: f64\[2,2\] and the right-hand side"),
        (lambda: linalg.matrix_norm(np.eye(2), ord=3), ValueError, "^matrix_norm: ord must be"),
        (lambda: linalg.norm(np.ones(2), "fro"), ValueError, "^norm: there is no norm of vectors of order 'fro'"),
        (lambda: linalg.norm(np.ones((2, 2, 2)), 2), ValueError, "^norm: takes one axis for vectors or two"),
        (lambda: linalg.pinv(np.eye(2), 0.1, rtol=0.1), ValueError, "^pinv: rcond and rtol are two names"),
        (lambda: linalg.matrix_rank(np.eye(2), 0.1, rtol=0.1), ValueError, "^matrix_rank: tol and rtol exclude"),
        (lambda: linalg.multi_dot([np.eye(2)]), ValueError, "^multi_dot: wants at least two arrays, got 1"),
        (lambda: linalg.tensorinv(np.eye(2), 0), ValueError, "^tensorinv: ind must be at least 1, got 0"),
        (lambda: linalg.tensorsolve(np.ones((2, 3)), np.ones(2)), np.linalg.LinAlgError, "^tensorsolve: f64"),
        (lambda: linalg.lstsq(np.ones(2), np.ones(2)), np.linalg.LinAlgError, "^lstsq: takes matrices"),
        (lambda: linalg.outer(np.eye(2), np.ones(2)), ValueError, "^outer: takes vectors"),
        (
            lambda: linalg.cross(np.ones(3), np.ones(2)),
            ValueError,
            r"^cross: wants vectors of three, got 2 in f64\[2\]",
        ),
        (lambda: linalg.cross(1.0, np.ones(3)), ValueError, "^cross: axis -1 is out of range for an array of 0"),
        (lambda: linalg.matrix_power(np.eye(2), 0.5), TypeError, "^matrix_power: the exponent must be an integer"),
    ],
)
def test_invalid_operands_are_named(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# ---------------------------------------------------------------- derivatives

A, P, TALL = random((3, 3)) + 3 * np.eye(3), positive((3, 3)), random((4, 2))
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Array]] = {
    "cholesky": (lambda x: np.linalg.cholesky(x @ x.T), A),
    "qr": (lambda x: np.linalg.qr(x)[1], TALL),
    "svd": (lambda x: np.linalg.svd(x, full_matrices=False)[1], TALL),
    "norm nuc": (lambda x: np.linalg.norm(x, "nuc"), TALL),
    "norm 2": (lambda x: np.linalg.norm(x, 2), TALL),
    "norm": (np.linalg.norm, TALL),
    "eigh": (lambda x: np.linalg.eigh(x)[0], A),
    "eigh U": (lambda x: np.linalg.eigvalsh(x, "U"), A),
    "eigvals": (lambda x: np.linalg.eigvals(x).real, A),
    "solve": (lambda x: np.linalg.solve(x, x[:, 0] ** 2), A),
    "inv": (np.linalg.inv, A),
    "det": (np.linalg.det, A),
    "slogdet": (lambda x: np.linalg.slogdet(x)[1], A),
    "pinv": (np.linalg.pinv, TALL),
    "lstsq": (lambda x: np.linalg.lstsq(x, np.ones(4))[0], TALL),
    "lstsq residuals": (lambda x: np.linalg.lstsq(x, np.ones(4))[1], TALL),
    "cond": (np.linalg.cond, TALL),
    "cond fro": (lambda x: np.linalg.cond(x, "fro"), A),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, -3), A),
    "expm": (linalg.expm, A / 3),
    "solve_triangular": (lambda x: linalg.solve_triangular(x, x[0], lower=True), A),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_numpys_functions(name: str) -> None:
    f, x = FUNCTIONS[name]
    t = random(x.shape, seed=7)
    value, tangent = fg.jvp(f, (x,), (t,))
    plain = f if name not in ("expm", "solve_triangular") else lambda x: np.asarray(f(x))
    difference = (np.asarray(plain(x + 1e-6 * t)) - np.asarray(plain(x - 1e-6 * t))) / 2e-6
    np.testing.assert_allclose(np.asarray(tangent), difference, rtol=DIFFERENCED, atol=DIFFERENCED / 10)
    ct = random(np.shape(value), seed=8)
    (gradient,) = fg.vjp(f, x)[1](ct)
    np.testing.assert_allclose(np.sum(np.asarray(gradient) * t), np.sum(ct * np.asarray(tangent)), rtol=CONDITIONED)

    # The second derivative, forward over reverse, by differences of the first.
    def first(x: Any) -> Any:
        return fg.vjp(f, x)[1](ct)[0]

    second = fg.jvp(first, (x,), (t,))[1]
    difference = (np.asarray(first(x + 1e-6 * t)) - np.asarray(first(x - 1e-6 * t))) / 2e-6
    np.testing.assert_allclose(np.asarray(second), difference, rtol=10 * DIFFERENCED, atol=DIFFERENCED)


@pytest.mark.parametrize("name", ["cholesky", "svd", "solve", "inv", "pinv", "expm", "slogdet"])
def test_batches_and_jit(name: str) -> None:
    f, x = FUNCTIONS[name]
    batch = np.stack([x, x + 0.1, 2 * x])
    wanted = [np.asarray(f(one)) for one in batch]
    np.testing.assert_allclose(np.asarray(fg.vmap(f)(batch)), wanted, rtol=CONDITIONED, atol=MANY)
    np.testing.assert_allclose(np.asarray(fg.jit(f)(x)), wanted[0], rtol=CONDITIONED, atol=MANY)


def test_the_gradient_of_a_norm_at_zero_is_zero() -> None:
    assert fg.grad(linalg.norm)(np.zeros(3)).tolist() == [0, 0, 0]
    assert fg.grad(lambda x: linalg.vector_norm(x, ord=3))(np.zeros(2)).tolist() == [0, 0]
    assert fg.grad(lambda x: linalg.norm([x, x + 2]))(0.0) == 1.0


def test_both_triangles_of_a_positive_matrix_have_the_gradient() -> None:
    got = fg.grad(lambda x: 2 * np.log(np.diagonal(np.linalg.cholesky(x))).sum())(P)
    np.testing.assert_allclose(np.asarray(got), np.linalg.inv(P), rtol=CONDITIONED)


def test_one_triangle_is_read() -> None:
    x = random((3, 3))
    both(lambda m: m.eigvalsh(x))
    both(lambda m: m.eigvalsh(x, "U"))
    both(lambda m: m.cholesky(np.tril(P)))
    assert np.asarray(fg.grad(lambda x: np.linalg.eigvalsh(x)[0])(x))[0, 1:].tolist() == [0, 0]
