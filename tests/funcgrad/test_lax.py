"""``funcgrad.lax`` compared with ``jax.lax``: every function, its values, derivatives, batches and errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax as jlax

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import lax, trees
from funcgrad.tools.test_util import check_grads
from tests.funcgrad.oracle import QUICK, Case, Sampler, assert_close, check, distinct, integers, normal
from tests.funcgrad.tolerances import CONDITIONED, MANY

F64, I32 = np.float64, np.int32

# ---------------------------------------------------------------- elementwise: the primitives' tables have the rest

FLOATS = np.array([0.3, 0.7, 0.9, 0.1])
ABOVE = FLOATS + 1.5
WAVES = FLOATS + 1j * ABOVE
WHOLE, OTHER = np.array([5, -7, 0, 12], I32), np.array([3, 2, 1, 4], I32)
TRUE, FALSE = np.array([True, True, False, False]), np.array([True, False, True, False])
ELEMENTWISE: list[tuple[str, tuple[np.ndarray, ...]]] = [
    ("abs acos asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 expm1 "
     "floor is_finite lgamma log log1p logistic neg reciprocal round rsqrt sign sin sinh sqrt square tan tanh",
     (FLOATS,)),
    ("acosh conj round", (ABOVE,)),
    ("abs conj cos exp imag log neg real sign sin sqrt square tan tanh", (WAVES,)),
    ("abs bitwise_not clz neg population_count sign square", (WHOLE,)),
    ("bitwise_not clz population_count", (WHOLE.astype(np.uint8),)),
    ("bitwise_not", (TRUE,)),
    ("add atan2 complex div eq ge gt le lt max min mul ne nextafter pow "
     "rem sub", (FLOATS, ABOVE)),
    ("add div eq mul ne pow sub", (WAVES, FLOATS + 0j)),
    ("add bitwise_and bitwise_or bitwise_xor div eq ge gt le lt max min mul ne rem shift_left shift_right_arithmetic "
     "shift_right_logical sub", (WHOLE, OTHER)),
    ("shift_right_arithmetic shift_right_logical div rem", (WHOLE.astype(np.uint8), OTHER.astype(np.uint8))),
    ("bitwise_and bitwise_or bitwise_xor eq max min ne", (TRUE, FALSE)),
    ("polygamma", (OTHER.astype(F64), ABOVE)),
    ("zeta", (ABOVE, FLOATS)),
    ("betainc", (ABOVE, ABOVE + 1, FLOATS)),
    ("clamp", (np.float64(0.2), FLOATS, ABOVE / 2)),
]  # fmt: skip


@pytest.mark.parametrize(("names", "operands"), ELEMENTWISE, ids=[names.split()[0] for names, _ in ELEMENTWISE])
def test_elementwise(names: str, operands: tuple[np.ndarray, ...]) -> None:
    def every(module: Any) -> Callable[..., list[Any]]:
        return lambda *xs: [getattr(module, name)(*xs) for name in names.split()]

    wanted = jax.jit(every(jlax), compiler_options=QUICK)(*operands)
    for name, got, want in zip(names.split(), fg.jit(every(lax))(*operands), wanted, strict=True):
        assert_close(got, want, name, CONDITIONED)


# ---------------------------------------------------------------- the others


def real(*shape: int, low: float | None = None, high: float | None = None) -> Sampler:
    return normal(shape, F64, low, high)


def definite(n: int) -> Sampler:
    def sample(rng: np.random.Generator) -> np.ndarray:
        x = rng.normal(size=(n, n))
        return x @ x.T + n * np.eye(n)

    return sample


def triangular(n: int) -> Sampler:
    return lambda rng: np.tril(rng.normal(size=(n, n))) + 2 * np.eye(n)


def product(L: Any, a: Any, b: Any) -> Any:
    """1 + x times 1 + y, minus 1: associative, and not one of the primitives."""
    return L.add(L.add(a, b), L.mul(a, b))


def affine(L: Any, p: Any, q: Any) -> Any:
    return L.mul(p[0], q[0]), L.add(L.mul(q[0], p[1]), q[1])


def numbers(L: Any, kind: str) -> Any:
    if kind == "rows":
        return L.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    if kind == "walked":
        return L.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
    if kind == "to rows":
        return L.ScatterDimensionNumbers(
            update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
        )
    return L.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))


def symmetric(L: Any, x: Any) -> Any:
    return L.mul(L.add(x, L.transpose(x, (1, 0))), 0.5)


PLACES, ROWS3 = integers(0, 4, (2, 1)), integers(0, 3, (3, 2, 1))
ONE_HOT = ("NHWC", "HWIO", "NHWC")
Row = tuple[Callable[..., Any], list[Sampler]]
#: By name: a function of a module, and of operands.
ASKED: dict[str, Row] = {
    # elementwise, with rules of their own
    "pow, integers": (lambda L, x, n: L.pow(x, n), [real(3, low=0.5, high=2), integers(0, 4, (3,))]),
    "integer_pow": (lambda L, x: L.integer_pow(x, -2), [real(3, low=0.5, high=2)]),
    "round": (lambda L, x: L.round(x, L.RoundingMethod.TO_NEAREST_EVEN), [real(3)]),
    "reduce_precision": (lambda L, x: L.reduce_precision(x, 5, 4), [real(3)]),
    "convert_element_type": (lambda L, x: L.convert_element_type(x, np.complex128), [real(3)]),
    "select": (lambda L, c, x, y: L.select(c, x, y), [normal((3,), bool), real(3), real(3)]),
    "select_n": (lambda L, i, x, y, z: L.select_n(i, x, y, z), [integers(0, 3, (3,)), real(3), real(3), real(3)]),
    "select_n, bools": (lambda L, c, x, y: L.select_n(c, x, y), [normal((), bool), real(3), real(3)]),
    # creation
    "full": (lambda L, x: L.mul(L.full((2, 2), 3.0, F64), x), [real()]),
    "full, traced": (lambda L, x: L.full((2, 2), x), [real()]),
    "full_like": (lambda L, x: L.add(L.full_like(x, 2), L.full_like(x, 1, shape=())), [real(2)]),
    "empty": (lambda L, x: L.add(L.empty((2,), F64), x), [real(2)]),
    "iota": (lambda L, x: L.mul(L.iota(F64, 3), x), [real(3)]),
    "broadcasted_iota": (lambda L, x: L.mul(L.broadcasted_iota(F64, (2, 3), 1), x), [real(2, 3)]),
    # axes
    "reshape": (lambda L, x: L.reshape(x, (3, 2)), [real(2, 3)]),
    "reshape, turned": (lambda L, x: L.reshape(x, (6,), (1, 0)), [real(2, 3)]),
    "transpose": (lambda L, x: L.transpose(x, (2, 0, 1)), [real(2, 3, 1)]),
    "expand_dims": (lambda L, x: L.expand_dims(x, (0, -1)), [real(2, 3)]),
    "squeeze": (lambda L, x: L.squeeze(x, (0, -1)), [real(1, 2, 1)]),
    "collapse": (lambda L, x: L.collapse(x, 1), [real(2, 3, 2)]),
    "rev": (lambda L, x: L.rev(x, (0, 1)), [real(2, 3)]),
    "broadcast_in_dim": (lambda L, x: L.broadcast_in_dim(x, (2, 4, 3), (0, 2)), [real(2, 3)]),
    "broadcast": (lambda L, x: L.broadcast(x, (2, 2)), [real(3)]),
    "broadcast_to_rank": (lambda L, x: L.broadcast_to_rank(x, 3), [real(3)]),
    "broadcast_like": (lambda L, x, y: L.broadcast_like(x, y), [real(3), real(2, 3)]),
    "tile": (lambda L, x: L.tile(x, (2, 1)), [real(2, 3)]),
    "concatenate": (lambda L, x, y: L.concatenate([x, y], 1), [real(2, 3), real(2, 1)]),
    "stack": (lambda L, x, y: L.stack([x, y], 1), [real(2), real(2)]),
    "split": (lambda L, x: L.split(x, (1, 2), 1), [real(2, 3)]),
    "unstack": (lambda L, x: L.unstack(x, 1), [real(2, 3)]),
    "pad": (lambda L, x, v: L.pad(x, v, ((1, -1, 0), (0, 2, 1))), [real(2, 3), real()]),
    # slices
    "slice": (lambda L, x: L.slice(x, (0, 1), (2, 4), (1, 2)), [real(2, 4)]),
    "slice_in_dim": (lambda L, x: L.slice_in_dim(x, -2, None, axis=1), [real(2, 4)]),
    "index_in_dim": (lambda L, x: L.index_in_dim(x, -1, 1, False), [real(2, 4)]),
    "dynamic_slice": (lambda L, x, i, j: L.dynamic_slice(x, (i, j), (1, 2)), [real(2, 4), *[integers(-3, 5, ())] * 2]),
    "dynamic_slice, no negative ones": (
        lambda L, x, i: L.dynamic_slice(x, (i, i), (1, 2), allow_negative_indices=(False, True)),
        [real(2, 4), integers(-3, 5, ())],
    ),
    "dynamic_slice_in_dim": (lambda L, x, i: L.dynamic_slice_in_dim(x, i, 2, 1), [real(2, 4), integers(-3, 5, ())]),
    "dynamic_index_in_dim": (
        lambda L, x, i: L.dynamic_index_in_dim(x, i, 1, keepdims=False), [real(2, 4), integers(-3, 5, ())],
    ),
    "dynamic_update_slice": (
        lambda L, x, u, i: L.dynamic_update_slice(x, u, (i, i)), [real(2, 4), real(1, 2), integers(-3, 5, ())],
    ),
    "dynamic_update_slice_in_dim": (
        lambda L, x, u, i: L.dynamic_update_slice_in_dim(x, u, i, 1), [real(2, 4), real(2, 2), integers(0, 5, ())],
    ),
    "dynamic_update_index_in_dim": (
        lambda L, x, u, i: L.dynamic_update_index_in_dim(x, u, i, 1), [real(2, 4), real(2), integers(0, 4, ())],
    ),
    "index_take": (lambda L, x, i: L.index_take(x, (i, i), (0, 2)), [real(3, 2, 3), integers(0, 3, (2,))]),
    # gathers and scatters
    "gather": (lambda L, x, i: L.gather(x, i, numbers(L, "rows"), (1, 2), mode="clip"), [real(3, 2), PLACES]),
    "gather, outside": (
        lambda L, x, i: L.gather(x, i, numbers(L, "rows"), (1, 2), mode="fill", fill_value=7), [real(3, 2), PLACES],
    ),
    "gather, walked": (lambda L, x, i: L.gather(x, i, numbers(L, "walked"), (1, 1)), [real(3, 3), ROWS3]),
    **{
        f"scatter{kind}": (
            lambda L, x, i, u, kind=kind: getattr(L, f"scatter{kind}")(x, i, u, numbers(L, "to rows"), mode="drop"),
            [distinct((3, 2), F64), PLACES, distinct((2, 2), F64)],
        )
        for kind in ("_add", "_sub")
    },
    **{
        f"scatter{kind}": (
            lambda L, x, u, kind=kind: getattr(L, f"scatter{kind}")(
                x, np.array([[2], [0]]), u, numbers(L, "to rows"), unique_indices=True
            ),
            [distinct((3, 2), F64), real(2, 2)],
        )
        for kind in ("", "_mul", "_min", "_max")
    },
    "scatter_add, walked": (
        lambda L, x, i, u: L.scatter_add(x, i, u, numbers(L, "to walked"), mode="clip"),
        [real(3, 3), ROWS3, real(3, 2)],
    ),
    "scatter_apply": (
        lambda L, x: L.scatter_apply(
            x, np.array([[2], [0]]), L.sin, numbers(L, "to rows"), update_shape=(2, 2), unique_indices=True
        ),
        [real(3, 2)],
    ),
    # reductions
    **{
        f"reduce_{kind}": (lambda L, x, kind=kind: getattr(L, f"reduce_{kind}")(x, (0,)), [distinct((2, 3), F64)])
        for kind in ("sum", "prod", "max", "min")
    },
    **{
        f"reduce_{kind}": (
            lambda L, x, y, kind=kind: [getattr(L, f"reduce_{kind}")(v, (1,)) for v in (x, y)],
            [normal((2, 3), bool), normal((2, 5), I32)],
        )
        for kind in ("and", "or", "xor")
    },
    "reduce_max of nothing": (lambda L, x: L.add(L.reduce_max(L.slice(x, (0,), (0,)), (0,)), x), [real(2)]),
    "reduce": (lambda L, x: L.reduce(x, np.float64(0), partial(product, L), (0,)), [real(5, 2)]),
    "reduce, known": (lambda L, x: L.reduce(x, np.float64(1), L.mul, (0, 1)), [real(2, 2)]),
    "reduce, several": (
        lambda L, x, y: L.reduce((x, y), (np.float64(1), np.float64(0)), partial(affine, L), (1,)),
        [real(2, 3), real(2, 3)],
    ),
    **{
        f"cum{kind}": (lambda L, x, kind=kind: getattr(L, f"cum{kind}")(x, 1, True), [distinct((2, 3), F64)])
        for kind in ("sum", "prod", "max", "min", "logsumexp")
    },
    # windows
    "reduce_window, sums": (
        lambda L, x: L.reduce_window(x, np.float64(0), L.add, (2, 2), (1, 2), "SAME"), [real(3, 4)],
    ),
    "reduce_window, largest": (
        lambda L, x: L.reduce_window(x, -np.inf, L.max, (2, 2), (1, 1), "VALID"), [distinct((3, 4), F64)],
    ),
    # sorting
    "sort": (lambda L, x: L.sort(x, dimension=0), [distinct((4, 2), F64)]),
    "sort, several": (
        lambda L, i, x: L.sort((i, x), dimension=0, num_keys=2), [integers(0, 2, (5,)), distinct((5,), F64)],
    ),
    "sort_key_val": (lambda L, k, v: L.sort_key_val(k, v), [distinct((4,), F64), real(4)]),
    "top_k": (lambda L, x: L.top_k(x, 2, axis=0), [distinct((4, 2), F64)]),
    "approx_max_k": (lambda L, x: L.approx_max_k(x, 2), [distinct((2, 4), F64)]),
    "approx_min_k": (lambda L, x: L.approx_min_k(x, 2), [distinct((2, 4), F64)]),
    "argmax": (lambda L, x: [L.argmax(x, 1, I32), L.argmin(x, 0, np.int64)], [distinct((2, 4), F64)]),
    # products
    "dot": (lambda L, x, y: L.dot(x, y), [real(2, 3), real(3)]),
    "dot, wide": (
        lambda L, x, y: L.dot(x, y, preferred_element_type=F64), [normal(n, np.float32) for n in ((2, 3), (3,))],
    ),
    "dot_general": (lambda L, x, y: L.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), [real(2, 2, 3), real(2, 3, 4)]),
    "batch_matmul": (lambda L, x, y: L.batch_matmul(x, y), [real(2, 2, 3), real(2, 3, 4)]),
    "ragged_dot": (lambda L, x, w: L.ragged_dot(x, w, np.array([2, 0, 2], I32)), [real(5, 2), real(3, 2, 3)]),
    # convolutions
    "conv": (lambda L, x, w: L.conv(x, w, (2,), "SAME"), [real(2, 2, 5), real(3, 2, 2)]),
    "conv_with_general_padding": (
        lambda L, x, w: L.conv_with_general_padding(x, w, (1,), [(1, 0)], (2,), (2,)), [real(1, 2, 4), real(1, 2, 2)],
    ),
    "conv_general_dilated": (
        lambda L, x, w: L.conv_general_dilated(
            x, w, (1, 2), "SAME", dimension_numbers=ONE_HOT, feature_group_count=2, rhs_dilation=(1, 2)
        ),
        [real(1, 3, 4, 2), real(2, 2, 1, 4)],
    ),
    **{
        f"conv_transpose, {padding}, {stride}": (
            lambda L, x, w, padding=padding, stride=stride: L.conv_transpose(x, w, (stride,), padding),
            [real(1, 3, 2), real(3, 2, 1)],
        )
        for padding, stride in (("SAME", 2), ("VALID", 2), ("SAME", 4), ("VALID", 4))
    },
    "conv_transpose, transposed": (
        lambda L, x, w: L.conv_transpose(
            x, w, (2, 1), "SAME", dimension_numbers=ONE_HOT, transpose_kernel=True, rhs_dilation=(1, 2)
        ),
        [real(1, 2, 3, 2), real(2, 2, 3, 2)],
    ),
    "conv_general_dilated_patches": (
        lambda L, x: L.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID", dimension_numbers=ONE_HOT),
        [real(1, 3, 3, 2)],
    ),
    "conv_general_dilated_local": (
        lambda L, x, w: L.conv_general_dilated_local(
            x, w, (1,), "VALID", (2,), dimension_numbers=("NWC", "WIO", "NWC")
        ),
        [real(1, 3, 2), real(2, 4, 2)],
    ),
    # Fourier
    "fft": (
        lambda L, x: [L.fft(x, kind, (4,)) for kind in ("FFT", L.FftType.RFFT, "IFFT")], [real(2, 4)],
    ),
    "fft, back": (lambda L, x: L.fft(x, "IRFFT", (4,)), [normal((2, 3), np.complex128)]),
    # control flow
    "cond": (lambda L, c, x: L.cond(c, L.sin, L.cos, operand=x), [normal((), bool), real(2)]),
    "switch": (lambda L, i, x: L.switch(i, [L.sin, L.cos], operand=x), [integers(-1, 3, ()), real(2)]),
    "optimization_barrier": (lambda L, x: L.optimization_barrier((x, L.sin(x))), [real(2)]),
    "platform_dependent": (lambda L, x: L.platform_dependent(x, cpu=L.sin, default=L.sin), [real(2)]),
    "stop_gradient": (lambda L, x: L.mul(x, L.stop_gradient(x)), [real(2)]),
    "scan": (lambda L, x: L.scan(lambda c, y: (L.mul(c, y), c), L.full((), 1.0, F64), x), [real(3)]),
    "map": (lambda L, x: L.map(L.sin, x), [real(3)]),
    "associative_scan": (lambda L, x: L.associative_scan(L.mul, x), [real(5)]),
    "fori_loop": (lambda L, x: L.fori_loop(0, 3, lambda i, c: L.mul(c, x), x), [real(2)]),
    # linear algebra
    "linalg.cholesky": (lambda L, x: L.linalg.cholesky(x), [definite(3)]),
    "linalg.eigh": (
        lambda L, x: [L.square(L.linalg.eigh(x)[0]), L.linalg.eigh(x)[1]], [definite(3)],
    ),
    "linalg.householder_product": (lambda L, x, t: L.linalg.householder_product(x, t), [real(3, 2), real(2)]),
    "linalg.lu": (lambda L, x: L.linalg.lu(x), [real(3, 3)]),
    "linalg.lu_pivots_to_permutation": (
        lambda L, i: L.linalg.lu_pivots_to_permutation(i, 4), [integers(2, 4, (2,))],
    ),
    "linalg.qr": (lambda L, x: L.linalg.qr(x, full_matrices=False), [real(3, 2)]),
    "linalg.svd": (lambda L, x: L.linalg.svd(x, compute_uv=False), [real(3, 2)]),
    "linalg.symmetric_product": (
        lambda L, a, c: L.linalg.symmetric_product(a, symmetric(L, c), alpha=2.0, beta=0.5), [real(2, 3), real(2, 2)],
    ),
    "linalg.triangular_solve": (
        lambda L, a, b: L.linalg.triangular_solve(a, b, left_side=True, lower=True, transpose_a=True),
        [triangular(3), real(3, 2)],
    ),
    "linalg.triangular_solve, right": (
        lambda L, a, b: L.linalg.triangular_solve(a, b, lower=True, unit_diagonal=True), [triangular(3), real(2, 3)],
    ),
    "linalg.tridiagonal_solve": (
        lambda L, a, b: L.linalg.tridiagonal_solve(a, L.add(a, 4.0), a, b), [real(4, low=0.5, high=1), real(4, 2)],
    ),
}  # fmt: skip
#: JAX has derivatives of steps, none, not of repeated indices, not in a batch, or ones that differ from differences.
VALUES_ONLY = {
    "linalg.householder_product", "linalg.symmetric_product", "ragged_dot", "reduce_max of nothing", "reduce_precision",
    "reduce, several", "round", "scatter_apply", "stop_gradient",
}  # fmt: skip
NO_BATCHES = {"ragged_dot"}
GROUPS = [list(ASKED)[i : i + 12] for i in range(0, len(ASKED), 12)]


def everything(module: Any, vmap: Callable[..., Any], name: str, xs: tuple[Any, ...]) -> list[Any]:
    """A function's results for operands, for a batch of them, and for the batch reversed."""
    f = partial(ASKED[name][0], module)
    if name in VALUES_ONLY:
        xs = tuple(map(module.stop_gradient, xs))
    outs = trees.leaves(f(*xs))
    if name not in NO_BATCHES:
        pairs = [module.stack([x, module.rev(x, range(x.ndim))]) for x in xs]
        outs += trees.leaves(vmap(f)(*pairs))
    return outs


def case_of(names: list[str]) -> Case:
    """The functions of these names as one, so that they are compiled together."""
    counts = [len(ASKED[name][1]) for name in names]

    def of(module: Any, vmap: Callable[..., Any]) -> Callable[..., list[Any]]:
        def f(*xs: Any) -> list[Any]:
            given = iter(xs)
            parts = [tuple(next(given) for _ in range(n)) for n in counts]
            return [x for name, part in zip(names, parts, strict=True) for x in everything(module, vmap, name, part)]

        return f

    return Case(
        of(lax, fg.vmap), of(jlax, jax.vmap), [sample for name in names for sample in ASKED[name][1]],
        order=1, differences=not VALUES_ONLY & set(names),
    )  # fmt: skip


@pytest.mark.parametrize("names", GROUPS, ids=[names[0] for names in GROUPS])
def test_against_jax(names: list[str]) -> None:
    try:
        check(case_of(names), 3, batched=False, tolerance=CONDITIONED)
    except AssertionError:
        for name in names:  # which one it is
            check(case_of([name]), 3, batched=False, tolerance=CONDITIONED)
        raise


# ---------------------------------------------------------------- where JAX has no derivative, or another one


def slopes(f: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    check_grads(f, tuple(rng.normal(size=shape) for shape in shapes), modes=("fwd", "rev"), order=2)


def test_reductions_by_any_function_have_derivatives() -> None:
    slopes(lambda x, y: lax.reduce((x, y), (np.float64(2), np.float64(1)), partial(affine, lax), (1,)), (2, 3), (2, 3))
    slopes(lambda x: lax.reduce(x, np.float64(2), partial(product, lax), (0, 1)), (3, 2))


def test_windows_by_any_function() -> None:
    x = np.random.default_rng(0).normal(size=(3, 5))

    def of(L: Any, x: Any, start: Any) -> Any:
        f = partial(product, L)
        return L.reduce_window(x, start, f, (2, 2), (1, 2), [(1, 0), (0, 0)], (1, 2), (1, 2))

    zero = np.float64(0)
    np.testing.assert_allclose(fg.jit(partial(of, lax))(x, zero), jax.jit(partial(of, jlax))(x, zero), rtol=MANY)
    slopes(lambda x, start: of(lax, x, start), (3, 5), ())
    pair = lax.reduce_window((x, x), (-np.inf, np.inf), lambda a, b: (lax.max(a[0], b[0]), lax.min(a[1], b[1])), (3, 1))
    np.testing.assert_array_equal(pair, (x.max(0)[None], x.min(0)[None]))


def test_groups_of_rows_have_their_own_matrices() -> None:
    x, w, sizes = np.arange(10.0).reshape(5, 2), np.arange(18.0).reshape(3, 2, 3), np.array([1, 0, 3], np.int32)
    batch = fg.vmap(lax.ragged_dot, in_axes=(0, None, 0))(np.stack([x, -x]), w, np.stack([sizes, sizes[::-1]]))
    for found, rows, n in zip(batch, (x, -x), (sizes, sizes[::-1]), strict=True):
        np.testing.assert_allclose(found, jlax.ragged_dot(rows, w, n))
    slopes(lambda x, w: lax.ragged_dot(x, w, sizes), (5, 2), (3, 2, 3))


@pytest.mark.parametrize("new", ["int32", "int64", "uint16", "int8", "float16"])
def test_bits_read_as_another_dtype(new: str) -> None:
    x = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    found = lax.bitcast_convert_type(x, new)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(jlax.bitcast_convert_type(x, new)))
    assert fnp.array_equal(lax.bitcast_convert_type(found, np.float32), x)


def test_factors() -> None:
    x = np.random.default_rng(0).normal(size=(4, 4))
    for ours, theirs in zip(lax.linalg.hessenberg(x), jlax.linalg.hessenberg(x), strict=True):
        np.testing.assert_allclose(ours, theirs)
    for ours, theirs in zip(lax.linalg.tridiagonal(x @ x.T), jlax.linalg.tridiagonal(x @ x.T), strict=True):
        np.testing.assert_allclose(ours, theirs)
    packed, taus = lax.linalg.hessenberg(x)
    for left, turned in ((True, True), (True, False), (False, True), (False, False)):
        rest = (packed[1:, :3], taus, x[:3, :3])
        theirs = jlax.linalg.ormqr(*rest, left=left, transpose=turned)
        np.testing.assert_allclose(lax.linalg.ormqr(*rest, left=left, transpose=turned), theirs)
    r = np.linalg.cholesky(x @ x.T).T
    np.testing.assert_allclose(lax.linalg.cholesky_update(r, x[0]), jlax.linalg.cholesky_update(r, x[0]), atol=MANY)
    t, u = lax.linalg.schur(x)
    np.testing.assert_allclose(u @ t @ u.T, x, atol=MANY)
    values, left, right = lax.linalg.eig(x)
    np.testing.assert_allclose(x @ right, right * values, atol=MANY)
    np.testing.assert_allclose(left.conj().T @ x, values[:, None] * left.conj().T, atol=MANY)
    np.testing.assert_allclose(np.linalg.norm(left, axis=0), 1)
    with pytest.raises(fg.NonDifferentiableError, match="hessenberg"):
        fg.grad(lambda x: lax.linalg.hessenberg(x)[0].sum())(x)


# ---------------------------------------------------------------- solvers


def newton(M: Any, L: Any, f: Callable[[Any], Any], x: Any) -> Any:
    return L.while_loop(lambda x: abs(f(x)) > 1e-12, lambda x: x - f(x) / M.grad(f)(x), x)


def root(M: Any, L: Any, a: Any) -> Any:
    one = np.float64(1)
    return L.custom_root(lambda x: x * x * x - a, one, partial(newton, M, L), lambda g, y: y / g(one))


def iterated(L: Any, f: Callable[[Any], Any], b: Any) -> Any:
    """Jacobi's method, with a data-dependent number of steps."""
    step = lambda x: x + (b - f(x)) / 5
    return L.while_loop(lambda x: ((b - f(x)) ** 2).sum() > 1e-24, step, b)


def solved(L: Any, a: Any, b: Any) -> Any:
    return (L.custom_linear_solve(lambda x: a @ x, b, partial(iterated, L), partial(iterated, L)) ** 2).sum()


def test_custom_root_and_linear_solve_differentiate_implicitly() -> None:
    for transform in ("grad", "jacfwd"):
        np.testing.assert_allclose(
            getattr(fg, transform)(partial(root, fg, lax))(np.float64(8)),
            getattr(jax, transform)(partial(root, jax, jlax))(np.float64(8)),
        )
    np.testing.assert_allclose(fg.grad(fg.grad(partial(root, fg, lax)))(np.float64(8)), -2 / 9 / 32)
    a, b = 4 * np.eye(3) + np.random.default_rng(0).normal(size=(3, 3)), np.arange(3.0)
    ours, theirs = (M.jit(M.grad(partial(solved, L), argnums=(0, 1)))(a, b) for M, L in ((fg, lax), (jax, jlax)))
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=CONDITIONED)
    moved = fg.jvp(lambda a: solved(lax, a, b), (a,), (a,))[1]
    np.testing.assert_allclose(moved, (np.asarray(ours[0]) * a).sum(), rtol=CONDITIONED)
    hessians = [M.hessian(partial(solved, L), argnums=1)(a, b) for M, L in ((fg, lax), (jax, jlax))]
    np.testing.assert_allclose(*hessians, rtol=CONDITIONED)
    with pytest.raises(fg.NonDifferentiableError, match="transpose_solve"):
        fg.grad(lambda b: lax.custom_linear_solve(lambda x: a @ x, b, partial(iterated, lax)).sum())(b)


def test_solvers_may_return_more() -> None:
    def f(a: Any) -> Any:
        x, steps = lax.custom_root(
            lambda x: x * x - a, 1.0, lambda f, x: (newton(fg, lax, f, x), 7), lambda g, y: y / g(1.0), has_aux=True
        )
        return x, steps

    assert fg.grad(lambda a: f(a)[0])(4.0) == 0.25
    assert f(4.0)[1] == 7


# ---------------------------------------------------------------- collectives of named axes


def test_collectives_under_other_names() -> None:
    x = np.arange(6.0).reshape(3, 2)
    for f in (lambda L, x: L.pbroadcast(x, "i", 2), lambda L, x: L.pswapaxes(L.stack([x[0]] * 3), "i", 0)):
        ours, theirs = (M.vmap(partial(f, L), axis_name="i")(x) for M, L in ((fg, lax), (jax, jlax)))
        np.testing.assert_array_equal(ours, theirs)


# ---------------------------------------------------------------- strictness

X, Y = np.ones((2, 3)), np.ones((2, 3), np.float32)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lax.add(X, Y), TypeError, r"add: operands must have one dtype, got f64\[2,3\] and f32\[2,3\]"),
    (lambda: lax.add(np.arange(3), 1.5), TypeError, "add: operands must have one dtype"),
    (lambda: lax.add(X, np.ones(3)), ValueError, "as many axes as each other"),
    (lambda: lax.add(X, np.ones((3, 2))), ValueError, "do not broadcast"),
    (lambda: lax.add([1.0], X), TypeError, "wanted an array or a number"),
    (lambda: lax.add(X), TypeError, "missing a required argument: 'y'"),
    (lambda: lax.sin(3), TypeError, "sin: takes floating or complex arrays"),
    (lambda: lax.clamp(np.ones(3), X, 1.0), ValueError, "a bound must be a scalar"),
    (lambda: lax.select(X, X, X), TypeError, "must be of bools"),
    (lambda: lax.select_n(np.array([0, 1]), X, X), ValueError, "cases must have one shape"),
    (lambda: lax.select_n(np.bool_(True), X, X, X), TypeError, "one of 3 cases must be of integers"),
    (lambda: lax.reshape(X, (-1,)), ValueError, r"reshape: shape \(-1,\) has a negative size"),
    (lambda: lax.reshape(X, (4,)), ValueError, "6 elements against 4"),
    (lambda: lax.squeeze(X, (0,)), ValueError, "not all of size 1"),
    (lambda: lax.concatenate([X, Y], 0), TypeError, "must have one dtype"),
    (lambda: lax.pad(X, 0.0, [(1, 1)]), ValueError, "for each axis"),
    (lambda: lax.reduce_sum(X, (2,)), ValueError, "axis 2 is out of range"),
    (lambda: lax.reduce_and(X, (0,)), TypeError, "takes bools or integers"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: a > b, (0,)), TypeError, "must make one f64"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2,)), ValueError, "must have .* entries|entry for each axis"),
    (lambda: lax.dot(X, X), ValueError, "sizes differ"),
    (lambda: lax.dot_general(X, X, (((0,), (0,)), ((0,), (0,)))), ValueError, "one is in both"),
    (lambda: lax.conv_general_dilated(X, X, (), "FULL"), ValueError, 'padding must be pairs of integers, "VALID"'),
    (lambda: lax.conv_dimension_numbers((1, 2), (1, 2), ("NC", "OX", "NC")), ValueError, "must each have 2 letters"),
    (lambda: lax.fft(X, "DCT", (3,)), ValueError, "the kind must be one of FFT"),
    (lambda: lax.top_k(X, 4), ValueError, "cannot take 4"),
    (lambda: lax.dynamic_slice(X, (0,), (1, 1)), TypeError, "an integer for each of 2 axes"),
    (lambda: lax.dynamic_slice_in_dim(X, 0.5, 1), TypeError, "must be one integer"),
    (lambda: lax.scatter_add(X, X, X, numbers(lax, "to rows")), TypeError, "indices must be an integer array"),
    (lambda: lax.cond(True, lax.sin, lax.cos, 1.0, operand=2.0), TypeError, "not both"),
    (lambda: lax.platform_dependent(1.0, abacus=lax.sin), NotImplementedError, "no function for"),
]


@pytest.mark.parametrize(("ask", "kind", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_refused_arguments(ask: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        ask()


def test_numbers_take_the_dtype_of_arrays() -> None:
    assert lax.add(Y, 1).dtype == lax.mul(Y, 2.5).dtype == lax.max(Y, 0).dtype == np.float32
    assert lax.dynamic_update_slice(Y, np.zeros((1, 1), np.float32), (0, 0)).dtype == np.float32


# ---------------------------------------------------------------- completeness

#: jax.lax has these too: tokens and channels between devices, private names, other generators.
ABSENT = {
    "after_all", "composite", "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
    "conv_transpose_shape_tuple", "create_token", "dce_sink", "mulhi", "precv", "psend", "ragged_all_to_all",
    "ragged_dot_general", "rng_bit_generator", "rng_uniform", "scaled_dot", "stage", "linalg.qdwh",
}  # fmt: skip


#: JAX's functions that later versions than 0.10 dropped, and functions and arguments that are newer.
DROPPED = {"precv", "psend"}
LATER = {"log2", "one_minus_square", "polynomial", "psum_scatter_start"}
LATER_ARGUMENTS = {"top_k": {"is_stable"}}


def public(module: Any) -> set[str]:
    names = {n for n, f in vars(module).items() if not n.startswith("_") and inspect.isroutine(f)}
    return names - {"PrecisionLike"} - LATER


def test_jaxs_names_exist() -> None:
    theirs = public(jlax) | {f"linalg.{n}" for n in public(jlax.linalg)}
    ours = public(lax) | {f"linalg.{n}" for n in public(lax.linalg)}
    assert theirs - ours == ABSENT - (DROPPED - theirs)


#: Arguments without a meaning here: shardings and accuracies, axis groups, and private ones.
NO_ARGUMENTS = {
    "accuracy", "axis_index_groups", "out_dtype", "out_sharding", "_split_transpose", "to", "use_consistent_padding",
}  # fmt: skip
#: Functions in which one of these has a meaning.
MEANT = {"pcast": {"to"}}


@pytest.mark.parametrize("name", sorted(public(jlax) - ABSENT - {"random_gamma_grad"}))
def test_arguments_have_jax_s_names(name: str) -> None:
    theirs, ours = (list(inspect.signature(getattr(m, name)).parameters) for m in (jlax, lax))
    left_out = NO_ARGUMENTS - MEANT.get(name, set()) | LATER_ARGUMENTS.get(name, set())
    assert ours == [n for n in theirs if n not in left_out]
