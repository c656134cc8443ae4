"""Programs evaluated by NumPy have XLA's results; and the choice between the two."""

from __future__ import annotations

import importlib
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from scipy import special

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime
from funcgrad.primitives import convolution, indexing, shape, windows
from funcgrad.primitives import elementwise as ew
from funcgrad.primitives import fft as ft
from funcgrad.primitives.convolution import convolve
from funcgrad.primitives.integers import gcd
from funcgrad.primitives.linalg import common as la
from funcgrad.primitives.linalg import factorizations as factors
from funcgrad.primitives.linalg import solve as solving
from funcgrad.primitives.linalg import svd_eig as spectral
from funcgrad.primitives.sorting import sort, top_k
from funcgrad.runtime import numpy_backend
from funcgrad.runtime.numpy_backend.erf import erf_by_numpy, erf_of_large
from funcgrad.runtime.numpy_backend.threads import _libraries
from funcgrad.runtime.programs import Executable, lasting
from tests.funcgrad.tolerances import FEW32

_EVALUATE = importlib.import_module("funcgrad.runtime.numpy_backend.evaluate")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype(np.float32)
Y = RNG.normal(size=(4, 5)).astype(np.float32)
POSITIVE = (np.abs(X) + 0.5).astype(np.float32)
WHOLE = RNG.integers(-9, 9, size=(3, 4))
BITS = WHOLE.astype(np.uint8)
IMAGES = RNG.normal(size=(2, 4, 7, 6)).astype(np.float32)
WHERE = RNG.integers(-3, 6, size=(5, 1))
WIDE = WHERE.astype(np.int32)


def dims(window: Any, collapsed: Any, index_map: Any) -> Any:
    return indexing.IndexDims(window, collapsed, (), (), index_map)


def of_windows(primitive: Any, **options: Any) -> Callable[..., Any]:
    window = windows.window_over(4, (2, 3), (3, 2), **options)
    return lambda x: primitive(x, window=window)


# Stacks of 2 square matrices, the second of which is not positive definite, and right-hand sides.
_HALF = RNG.normal(size=(2, 5, 5))
_DEFINITE = _HALF @ np.swapaxes(_HALF, -1, -2) * np.array([1, -1])[:, None, None] + np.eye(5)
_RIGHT = RNG.normal(size=(2, 5, 3))
MATRICES = [
    (_DEFINITE, _RIGHT), (_DEFINITE.astype(np.float32), _RIGHT.astype(np.float32)),
    (_DEFINITE + 1j * (_HALF - np.swapaxes(_HALF, -1, -2)), _RIGHT + 1j * _RIGHT[:, ::-1]),
]  # fmt: skip


def by_factors(primitive: Any, **params: Any) -> Callable[..., Any]:
    def run(a: Any, b: Any) -> Any:
        packed, _, order = solving.factors(a)
        return primitive(a, packed, order, b, **params)

    return run


def by_pivots(primitive: Any) -> Callable[..., Any]:
    return lambda a, b: primitive(a, *factors.lu(a))


LINEAR: list[Callable[..., Any]] = [
    *[
        lambda a, b, s=s, w=w, t=t, u=u: la.triangular_solve(
            a, b if s else fnp.matrix_transpose(b), left=s, lower=w, transposed=t, unit=u)
        for s in (False, True) for w in (False, True) for t in (False, True) for u in (False, True)
    ],
    lambda a, b: factors.cholesky(a),
    solving.definite_solve,
    lambda a, b: factors.lu(a),
    lambda a, b: factors.lu(b),
    lambda a, b: factors.permutation(factors.lu(b)[1], length=5),
    *[by_factors(solving.factored_solve, transposed=t) for t in (False, True)],
    by_pivots(solving.factored_determinant),
    by_pivots(solving.factored_logdet),
    lambda a, b: solving.inverse(a),
    lambda a, b: solving.inverse(a * 0),
    lambda a, b: solving.first_zero_pivot(factors.lu(a - a[:, :1])[0]),
    lambda a, b: factors.reflectors(b),
    *[lambda a, b, x=x, f=f: factors.qr((b, fnp.matrix_transpose(b), a)[x], full=f)
      for x in range(3) for f in (False, True)],
    *[lambda a, b, w=w: spectral.eigh(a, lower=w) for w in (False, True)],
    *[lambda a, b, x=x, f=f: spectral.svd((b, fnp.matrix_transpose(b))[x], full=f, vectors=True)
      for x in range(2) for f in (False, True)],
    lambda a, b: spectral.svd(b, full=False, vectors=False),
    lambda a, b: spectral.matrix_exponential(a * 0.25),  # of which one is halved, and one is not
    lambda a, b: spectral.exponential_tangent(a * 0.1, a),
    *[lambda a, b, h=h: solving.pseudoinverse(
        a if h else b, np.zeros(2, b.real.dtype), np.full(2, 1e-6, b.real.dtype), hermitian=h)
      for h in (False, True)],
]  # fmt: skip

FUNCTIONS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    *[(p, (X,)) for p in (ew.neg, ew.exp, ew.expm1, ew.tanh, ew.logistic, ew.erf, ew.erfc, ew.sin, ew.sign, ew.floor)],
    *[(p, (POSITIVE,)) for p in (ew.log, ew.log1p, ew.sqrt, ew.rsqrt, ew.cbrt, ew.lgamma, ew.digamma, ew.acosh)],
    *[(p, (X.astype(np.float16),)) for p in (ew.exp, ew.tanh, ew.square)],
    *[(p, (X, POSITIVE)) for p in (ew.add, ew.div, ew.maximum, ew.atan2, ew.nextafter, ew.rem, ew.remainder, ew.lt)],
    *[(p, (WHOLE, np.int64(3))) for p in (ew.div, ew.rem, ew.remainder, ew.floor_divide, ew.eq)],
    *[(p, (WHOLE, np.int64(-3))) for p in (ew.div, ew.rem, ew.remainder, ew.floor_divide)],
    *[(p, (WHOLE, np.int64(2))) for p in (ew.shift_left, ew.shift_right, ew.shift_right_logical, ew.bitwise_and)],
    (gcd, (WHOLE, np.int64(6))),
    *[(lambda x, n=n: ew.integer_power(x, exponent=n), (POSITIVE,)) for n in (-3, 0, 1, 7)],
    (lambda x: ew.cast(x, dtype=np.dtype(np.int32)), (X,)),
    (lambda x: ew.bitcast(x, dtype=np.dtype(np.int32)), (X,)),
    (lambda x: ew.bitcast(x, dtype=np.dtype(np.int32)), (np.float32(2),)),
    (ew.make_complex, (X, POSITIVE)),
    (lambda x: ew.clamp(np.float32(-0.5), x, np.float32(0.5)), (X,)),
    (lambda x: shape.pad(x, np.float32(7), low=(1, -1), high=(-2, 2), interior=(2, 0)), (X,)),
    (lambda x: shape.broadcast(x, shape=(2, 3, 4), dims=(1, 2)), (X,)),
    (lambda x: shape.slice_(x, start=(0, 1), limit=(3, 4), strides=(2, 1)), (X,)),
    (fnp.matmul, (X, Y)),
    (lambda x: fnp.einsum("abcd,aecd->bea", x, x), (IMAGES,)),
    *[(lambda x, f=f: f(x, axis=1), (X,)) for f in (fnp.sum, fnp.prod, fnp.max, fnp.argmin, fnp.cumsum)],
    (lambda x: fg.numpy.flip(fnp.cumprod(x, axis=0), 1), (X,)),
    (lambda x: list(sort(x, -x, axis=0, keys=1, stable=True)), (X,)),
    *[
        (lambda x, i, m=m: indexing.gather(
            x, i, dims=dims((1,), (0,), (0,)), sizes=(1, 4), mode=m, unique=False), (X, i))
        for m in ("clip", "fill") for i in (WHERE, WIDE)
    ],
    (lambda x, i: indexing.gather(x, i, dims=dims((1, 2), (), (1,)), sizes=(3, 2), mode="clip", unique=False),
     (X, WHERE)),
    *[
        (lambda x, i, u, p=p, m=m: p(x, i, u, dims=dims((1,), (0,), (0,)), mode=m, unique=False), (X, WHERE, Y.T))
        for p in (indexing.scatter, indexing.scatter_add, indexing.scatter_mul, indexing.scatter_max)
        for m in ("clip", "fill")
    ],
    (lambda x, s: indexing.dynamic_slice(x, s, sizes=(2, 2)), (X, np.array([9, -9]))),
    (lambda x, s: indexing.dynamic_update_slice(x, s, x[:2, :2]), (X, np.array([1, 1]))),
    (lambda x, w: convolve(x, w, strides=(2, 1), padding=((1, 2), (0, 3)), rhs_dilation=(1, 2), groups=2),
     (IMAGES, RNG.normal(size=(6, 2, 3, 2)).astype(np.float32))),
    (fg.grad(lambda w, x: convolve(x, w, strides=2, padding=1).sum()),
     (RNG.normal(size=(6, 4, 3, 2)).astype(np.float32), IMAGES)),
    *[(of_windows(p), (IMAGES,)) for p in (windows.window_sum, windows.window_max, windows.window_argmax)],
    (of_windows(windows.window_argmin, padding=((1, 1), (1, 0)), strides=(1, 2)), (IMAGES,)),
    # Convolutions whose results have more positions than their windows have elements, and fewer.
    *[(lambda x, w, g=g: convolve(x, w, strides=(1, 2), padding=1, groups=g), (IMAGES, w))
      for g, w in ((1, IMAGES[:, :, :3, :2]), (2, IMAGES[:, :2, :2, :3]), (1, IMAGES[:, :, :6, :5]))],
    (fg.grad(lambda x, w: (convolve(x, w, padding=1) ** 2).sum()), (IMAGES, IMAGES[:, :, :3, :2])),
    # Large windows, and equal elements, of which the first is chosen.
    *[(lambda x, p=p: p(x, window=windows.window_over(4, (2, 3), (7, 5))), (IMAGES,))
      for p in (windows.window_sum, windows.window_max, windows.window_min)],
    *[(of_windows(p), (np.round(IMAGES) + 0,)) for p in (windows.window_argmax, windows.window_argmin)],
    (lambda x: fg.scan(lambda c, row: (c * row, c + row), x[0], x, reverse=True), (X,)),
    (lambda x: fg.cond(x[0, 0] > 0, lambda v: v + 1, lambda v: v * 2, x), (X,)),
    (lambda x: fg.jit(fnp.sin)(x) + 1, (X,)),
    *[(lambda x, k=k: top_k(x, k=k), (x,))
      for k in (0, 1, 3) for x in (X, np.round(X) + 0, WHOLE, BITS, X[0] * np.nan)],
    *[(f, (x, b)) for x, b in MATRICES for f in LINEAR],
    *[(f, (_DEFINITE[0], _RIGHT[0])) for f in LINEAR[16:-2]],
    *[(lambda x, i=i: ft.fft(x, axes=(2, 0), inverse=i), (IMAGES.astype(np.complex64),)) for i in (False, True)],
    (lambda x: ft.rfft(x, axis=1), (IMAGES,)),
    *[(lambda x, n=n: ft.irfft(x, axis=1, n=n), (IMAGES.astype(np.complex128),)) for n in (6, 7)],
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(FUNCTIONS)))
def test_the_same_as_xla(case: int) -> None:
    function, arguments = FUNCTIONS[case]
    program = fg.trace(lambda *xs: fg.trees.flatten(function(*xs))[0], *arguments)
    with numpy_backend.quiet():
        found = numpy_backend.evaluate(program, [np.asarray(a) for a in arguments])
    wanted = Executable(program)(*arguments)
    assert 0 <= numpy_backend.milliseconds(program) < 1
    for have, want in zip(found, wanted, strict=True):
        want = np.asarray(want)
        assert (have.dtype, have.shape) == (want.dtype, want.shape)
        # Both round each operation; float16 is computed in float32 by both.
        rtol = {2: 2e-3, 4: 2e-5}.get(want.real.dtype.itemsize, 1e-12) if want.dtype.kind in "fc" else 0
        np.testing.assert_allclose(have, want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (ew.div, (WHOLE, np.int64(0))),
        (ew.remainder, (WHOLE, np.int64(0))),
        (ew.shift_left, (WHOLE, np.int64(64))),
        (lambda x: ew.cast(x, dtype=np.dtype(np.int8)), (X * 1000,)),
        (lambda x: ew.cast(x, dtype=np.dtype(np.int32)), (np.float32([np.nan]),)),
        (ew.polygamma, (POSITIVE, POSITIVE)),
        (lambda x: top_k(x, k=2), (X * 0,)),
        (factors.cholesky, (np.zeros((0, 2, 2)),)),
        (of_windows(windows.window_argmax), (IMAGES * np.float32(np.nan),)),
    ],
)
def test_programs_whose_results_differ_in_numpy_are_compiled(function: Any, arguments: Any) -> None:
    program = fg.trace(function, *arguments)
    with pytest.raises(numpy_backend.NotEquivalent):
        numpy_backend.evaluate(program, arguments)
    assert not Executable(program).warm
    by_xla = Executable(program).run(*arguments)
    again = Executable(program)
    found = again.now([jax.numpy.asarray(a) for a in arguments], ())
    assert again.warm
    np.testing.assert_array_equal(np.asarray(found[0]), np.asarray(by_xla[0]))


def _program(size: int) -> Any:
    return fg.trace(lambda x: fnp.sin(x) * np.float32(2), np.zeros(size, np.float32))


def test_small_new_programs_are_not_compiled() -> None:
    code = runtime.executable(_program(5))
    result = runtime.record(code, [jax.numpy.arange(5, dtype=np.float32)])
    value = runtime.ready(result)
    assert isinstance(value, jax.Array) and not code.warm
    np.testing.assert_allclose(value, 2 * np.sin(np.arange(5)), rtol=FEW32)


def test_large_programs_are_compiled_immediately() -> None:
    assert not runtime.executable(_program(50_000_000)).light()


@pytest.mark.parametrize(("size", "compiled"), [(6, False), (100_000, True)])
def test_repeated_programs_are_compiled_unless_they_are_tiny(
    size: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = runtime.executable(_program(size))
    monkeypatch.setattr(code, "spent", 1e6)
    code.now([jax.numpy.zeros(size, np.float32)], ())
    assert code.warm is compiled


def test_with_several_devices_no_program_runs_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcgrad.runtime.programs.one_cpu", lambda: False)
    assert not runtime.executable(_program(7)).light()


def test_a_result_is_not_its_operands_memory() -> None:
    code = runtime.executable(fg.trace(lambda x: fnp.reshape(x, (2, 3)), np.zeros(6, np.float32)))
    x = jax.numpy.arange(6, dtype=np.float32)
    result = runtime.ready(runtime.record(code, [x]))
    assert result.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_two_results_never_share_memory() -> None:
    code = runtime.executable(fg.trace(lambda x: (x + 1, x - 1), np.zeros(6, np.float32)))
    a, b = code.program.outputs
    code.program.outputs[:] = [a, a, b]
    code.results = 3
    found = runtime.record_all(code, [jax.numpy.arange(6, dtype=np.float32)])
    assert len({runtime.ready(r).unsafe_buffer_pointer() for r in found}) == 3


def test_large_results_are_used_as_buffers_without_a_copy() -> None:
    x = np.ones(1 << 15, np.float32)
    code = runtime.executable(fg.trace(lambda x: (x + 1) * 2, x))
    with numpy_backend.quiet():
        array = code.by_numpy([x], [])[0]
        assert lasting([array])[0].unsafe_buffer_pointer() != array.ctypes.data  # it is referenced here
        results = code.by_numpy([x], [])
    del array
    where = results[0].ctypes.data
    (buffer,) = lasting(results)
    del results
    assert buffer.unsafe_buffer_pointer() == where
    kept = np.asarray(buffer)
    double = jax.jit(lambda x: x * 2, donate_argnums=0)(buffer)  # of memory that is not XLA's, JAX donates a copy
    assert double[5] == 8 and kept[5] == 4


def test_results_of_large_programs_share_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_EVALUATE, "LARGE", 1)
    code = runtime.executable(fg.trace(lambda x: (x + 1, x - 1), np.zeros(6, np.float32)))
    a, b = code.program.outputs
    code.program.outputs[:] = [a, a, b]
    with numpy_backend.quiet():
        found = lasting(code.by_numpy([np.arange(6, dtype=np.float32)], []))
    assert len({np.asarray(r).ctypes.data for r in found}) == 3


def test_large_programs_keep_no_more_arrays_than_they_need() -> None:
    x = np.ones(1 << 18, np.float32)

    def chain(x: Any) -> Any:
        for i in range(20):
            x = fnp.sqrt(x * (i + 1)) + x
        return x

    run = numpy_backend.function(fg.trace(chain, x))
    run([x])
    tracemalloc.start()
    try:
        run([x])
        assert tracemalloc.get_traced_memory()[1] < 4.5 * x.nbytes
    finally:
        tracemalloc.stop()


#: Of two matrices of 6 rows and columns: views, arithmetic, and products.
OPERATIONS: list[Callable[..., Any]] = [
    lambda a, b: a + b, lambda a, b: a * 0.5, lambda a, b: fnp.sqrt(abs(a)), lambda a, b: a.T, lambda a, b: a - b[0],
    lambda a, b: a.reshape(36).reshape(6, 6), lambda a, b: fnp.where(a > b, a, b), lambda a, b: a[::-1],
    lambda a, b: fnp.floor(a) / (abs(b) + 1), lambda a, b: fnp.matmul(a, b) / 8,
    lambda a, b: fnp.broadcast_to(b[:, :1], (6, 6)), lambda a, b: a.astype("int32") + b,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_reused_memory_changes_no_result(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def draw(x: Any, y: Any) -> list[Any]:
        values = [x, y, x * 2]
        for _ in range(25):
            a, b = (values[i] for i in rng.integers(0, len(values), 2))
            values.append(OPERATIONS[rng.integers(len(OPERATIONS))](a, b))
        return [values[i] for i in rng.integers(3, len(values), 4)]

    x, y = rng.normal(size=(2, 6, 6)).astype(np.float32)
    program = fg.trace(draw, x, y)
    before = x.copy(), y.copy()
    with numpy_backend.quiet():
        wanted = numpy_backend.evaluate(program, [x, y])
        monkeypatch.setattr(_EVALUATE, "LARGE", 1)
        program.cache.clear()
        for _ in range(2):
            for have, want in zip(numpy_backend.evaluate(program, [x, y]), wanted, strict=True):
                np.testing.assert_array_equal(have, want, strict=True)
    np.testing.assert_array_equal([x, y], before)


def test_rules_are_for_primitives_that_exist() -> None:
    from funcgrad.runtime.numpy_backend.table import RULES

    modules = (ew, shape, indexing, windows, convolution, la, factors, solving, spectral, ft)
    known = {p.name for m in modules for p in vars(m).values() if isinstance(p, fg.core.primitive.Primitive)}
    others = {"sort", "dot", "scan", "cond", "call", "optimization_barrier", "name", "cumsum", "cumprod", "cummax",
              "cummin", "prod", "any", "all", "argmax", "argmin", "reduce_max", "reduce_min", "top_k", "custom_jvp",
              "custom_vjp", "gcd", "constant", "attention_forward", "attention_backward"}  # fmt: skip
    assert set(RULES) <= known | others


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_batched_products_of_vectors(dtype: Any) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    (found,) = numpy_backend.evaluate(fg.trace(fg.vmap(fnp.dot), x, x), [x, x])
    np.testing.assert_array_equal(found, (x * x).sum(1))


def test_products_use_one_thread() -> None:
    """Two threads that wait for each other are slow if another program uses a core; other libraries' settings stay."""
    from threadpoolctl import threadpool_limits

    def threads() -> set[int]:
        return {get() for get, _ in _libraries()}

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        with numpy_backend.quiet():
            assert threads() == {1}
        assert threads() == before
        with pytest.raises(ZeroDivisionError), numpy_backend.quiet():
            _ = 1 / 0
        assert threads() == before


@pytest.mark.parametrize(("function", "primitive"), [(special.erf, ew.erf), (special.expit, ew.logistic)])
def test_functions_of_large_float32_arrays_are_precise(function: Any, primitive: Any) -> None:
    """They are not SciPy's. Three roundings of the result, five where it is added to 1 before it is inverted."""
    x = np.concatenate([np.linspace(-6, 6, 20_001), np.geomspace(1e-37, 80, 2001), [np.inf, -np.inf, np.nan, -0.0]])
    x = x.astype(np.float32).reshape(2, -1)
    with numpy_backend.quiet():
        (found,) = numpy_backend.evaluate(fg.trace(primitive, x), [x])
    assert found.dtype == np.float32 and np.all(np.abs(found[~np.isnan(x)]) <= 1)
    np.testing.assert_allclose(found, function(x.astype(np.float64)), rtol=5 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shapes", [((200, 100),) * 3, ((200, 100), (100,), ()), ((200, 1), (200, 100), (200, 100))])
def test_selections_of_large_arrays_keep_every_bit(shapes: Any, dtype: Any) -> None:
    """Of infinities, NaNs and zeros too, which are chosen without a branch."""
    odd = np.array([np.inf, -np.inf, np.nan, -0.0, 1e-310, 1.5, 0.0], dtype)
    condition, x, y = (RNG.integers(0, 7, size=s) for s in shapes)
    arguments = condition > 3, odd[x], odd[6 - y]
    program = fg.trace(fnp.where, *arguments)
    assert any(e.primitive.name == "select" for e in program.equations)
    with numpy_backend.quiet():
        (found,) = numpy_backend.evaluate(program, list(arguments))
    bits = np.dtype(f"i{found.itemsize}")
    np.testing.assert_array_equal(found.view(bits), np.where(*arguments).view(bits))


def test_the_c_version_of_erf_gives_the_same_bits() -> None:
    x = np.concatenate([RNG.normal(scale=2, size=5000), np.geomspace(1e-42, 80, 2001), [np.inf, -np.inf, np.nan, -0.0]])
    x = x.astype(np.float32)[::-1]
    np.testing.assert_array_equal(erf_of_large(x).view(np.int32), erf_by_numpy(x).view(np.int32))


@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_gathers_and_scatters_of_few_elements_respect_bounds(mode: str) -> None:
    x, updates = RNG.normal(size=(5, 4, 3)).astype(np.float32), RNG.normal(size=(2, 6, 3)).astype(np.float32)
    dims = indexing.IndexDims((2,), (0, 1), (), (), (1, 0))
    of_scatter = {"dims": dims, "mode": mode, "unique": False}

    def gathered(x: Any, places: Any) -> Any:
        return indexing.gather(x, places, dims=dims, sizes=(1, 1, 3), mode=mode, unique=False)

    for least, most in ((0, 4), (-3, 7)):  # in bounds, and out of them
        places = RNG.integers(least, most, (2, 6, 2)).astype(np.int16)
        cases = [(gathered, (x, places))]
        cases += [
            (lambda *xs, p=p: p(*xs, **of_scatter), (x, places, updates))
            for p in (indexing.scatter_add, indexing.scatter_mul, indexing.scatter_max)
        ]
        for function, operands in cases:
            program = fg.trace(function, *operands)
            (found,) = numpy_backend.evaluate(program, operands)
            np.testing.assert_allclose(found, Executable(program, 0).run(*operands)[0], rtol=1e-6)


@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_many_rows_are_added_in_order(mode: str) -> None:
    x, updates = (RNG.normal(size=(n, 7)).astype(np.float32) for n in (50, 400))
    for last in (49, 60):  # in bounds, and out of them
        places = np.where(np.arange(400) % 9, 3, last)
        wanted, inside = x.copy(), places < 50
        kept = np.minimum(places, 49) if mode == "clip" else places
        chosen = inside | (mode == "clip")
        np.add.at(wanted, kept[chosen], updates[chosen])
        program = fg.trace(
            lambda x, i, u: indexing.scatter_add(x, i, u, dims=dims((1,), (0,), (0,)), mode=mode, unique=False),
            x, places[:, None], updates,
        )  # fmt: skip
        with numpy_backend.quiet():
            (found,) = numpy_backend.evaluate(program, [x, places[:, None], updates])
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("operation", [ew.div, ew.rem])
def test_single_integers_are_divided_towards_zero(operation: Any) -> None:
    for x, y in ((7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3)):
        operands = np.array(x), np.array(y)
        with numpy_backend.quiet():
            (found,) = numpy_backend.evaluate(fg.trace(operation, *operands), operands)
        assert found.dtype == np.int64 and found == (int(x / y) if operation is ew.div else math.fmod(x, y))
    with pytest.raises(numpy_backend.NotEquivalent):
        numpy_backend.evaluate(fg.trace(operation, *operands), [operands[0], np.array(0)])
