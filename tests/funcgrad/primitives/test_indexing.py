"""Gathers, scatters and dynamic slices: compared with ``jax.lax``, or dense arithmetic where JAX has no derivative."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

import funcgrad as fg
from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import indexing as p
from tests.funcgrad.oracle import (
    Case,
    Draw,
    Ours,
    Sampler,
    a_dtype,
    a_shape,
    an_axis,
    assert_close,
    check,
    check_eager,
    examples,
    integers,
    normal,
)
from tests.funcgrad.tolerances import FEW

JAX_MODES = {"clip": "clip", "fill": "fill", "promise": "promise_in_bounds"}


class Plan(NamedTuple):
    """A gather, and the scatter that writes to the same elements."""

    shape: tuple[int, ...]
    indices: Sampler
    dims: p.IndexDims
    sizes: tuple[int, ...]
    out: tuple[int, ...]
    mode: str


def a_plan(draw: Draw, modes: tuple[str, ...] = ("fill", "clip", "promise")) -> Plan:
    """Operand axes of every kind (batch, indexed or not, collapsed or kept), in any order, and those of the indices."""
    kinds = draw(
        st.just(["batch", "index drop", "index keep", "keep"])
        | st.lists(st.sampled_from(["batch", "index drop", "index keep", "keep", "drop"]), min_size=1, max_size=4)
    )
    shape = tuple(draw(st.sampled_from([3, 2, 4, 1])) for _ in kinds)
    sizes = tuple(
        draw(st.integers(0 if kind == "keep" else 1, n)) if "keep" in kind else 1
        for kind, n in zip(kinds, shape, strict=True)
    )
    batch = [d for d, kind in enumerate(kinds) if kind == "batch"]
    index_map = tuple(draw(st.permutations([d for d, kind in enumerate(kinds) if "index" in kind])))
    rows = draw(st.permutations([*[("batch", d) for d in batch], *[("row", n) for n in a_shape(draw, most=2)]]))
    row_sizes = tuple(shape[n] if what == "batch" else n for what, n in rows)
    kept = [d for d, kind in enumerate(kinds) if "keep" in kind]
    total = len(rows) + len(kept)
    window = tuple(sorted(draw(st.permutations(range(total)))[: len(kept)]))
    dims = p.IndexDims(
        window,
        tuple(d for d, kind in enumerate(kinds) if "drop" in kind),
        tuple(batch),
        tuple(rows.index(("batch", d)) for d in batch),
        index_map,
    )
    mode = draw(st.sampled_from(modes))
    outside = 0 if mode == "promise" else 2

    def indices(rng: np.random.Generator) -> np.ndarray:
        columns = [rng.integers(-outside, shape[d] - sizes[d] + 1 + outside, row_sizes) for d in index_map]
        return np.stack(columns, -1).astype(np.int32) if columns else np.zeros((*row_sizes, 0), np.int32)

    rest, inside = iter(row_sizes), iter(sizes[d] for d in kept)
    out = tuple(next(inside) if d in window else next(rest) for d in range(total))
    return Plan(shape, indices, dims, sizes, out, mode)


def gather(draw: Draw) -> Case:
    plan = a_plan(draw)
    d = plan.dims
    numbers = lax.GatherDimensionNumbers(d.window, d.collapsed, d.index_map, d.operand_batch, d.indices_batch)
    return Case(
        lambda x, i: p.gather(x, i, dims=d, sizes=plan.sizes, mode=plan.mode, unique=False),
        lambda x, i: lax.gather(x, i, numbers, plan.sizes, mode=JAX_MODES[plan.mode], fill_value=0),
        [normal(plan.shape, a_dtype(draw, np.int8, bool)), plan.indices],
    )


def scatter(primitive: Any, theirs: Any, *more: Any) -> Callable[[Draw], Case]:
    def case(draw: Draw) -> Case:
        plan = a_plan(draw)
        d = plan.dims
        numbers = lax.ScatterDimensionNumbers(d.window, d.collapsed, d.index_map, d.operand_batch, d.indices_batch)
        dtype = a_dtype(draw, *more)
        return Case(
            lambda x, i, u: primitive(x, i, u, dims=d, mode=plan.mode, unique=False),
            lambda x, i, u: theirs(x, i, u, numbers, mode=JAX_MODES[plan.mode]),
            [normal(plan.shape, dtype), plan.indices, normal(plan.out, dtype)],
        )

    return case


def rows(
    primitive: Any, combine: Callable[[Any, Any], Any], neutral: float, unique: bool = False
) -> Callable[[Draw], Case]:
    """A scatter to rows as dense arithmetic: every row with all updates, those to other rows made neutral."""

    def case(draw: Draw) -> Case:
        n, m, width = 4, draw(st.integers(1, 3 if unique else 6)), draw(st.integers(1, 3))
        dims = p.take_dims(2, 0, 1)

        def theirs(x: Any, i: Any, u: Any) -> Any:
            here = (i[:, 0] == jnp.arange(n)[:, None])[..., None]
            return combine(jnp.concatenate([x[:, None], jnp.where(here, u, neutral)], 1), axis=1)

        def different(rng: np.random.Generator) -> np.ndarray:
            return rng.permutation(n + 1)[:m, None].astype(np.int32)

        return Case(
            lambda x, i, u: primitive(x, i, u, dims=dims, mode="fill", unique=unique),
            theirs,
            [
                normal((n, width), np.float64),
                different if unique else integers(-1, n + 1, (m, 1)),
                normal((m, width), np.float64),
            ],
        )

    return case


def a_box(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...], Sampler]:
    shape = a_shape(draw, sizes=(3, 5, 1, 2))
    sizes = tuple(draw(st.integers(0 if n > 3 else 1, n)) for n in shape)
    return shape, sizes, lambda rng: rng.integers(-2, 6, len(shape)).astype(np.int32)


def dynamic_slice(draw: Draw) -> Case:
    shape, sizes, starts = a_box(draw)
    return Case(
        lambda x, s: p.dynamic_slice(x, s, sizes=sizes),
        lambda x, s: lax.dynamic_slice(x, [s[i] for i in range(len(shape))], sizes, allow_negative_indices=False),
        [normal(shape, a_dtype(draw, bool)), starts],
    )


def dynamic_update_slice(draw: Draw) -> Case:
    shape, sizes, starts = a_box(draw)
    dtype = a_dtype(draw, np.int16)
    return Case(
        p.dynamic_update_slice,
        lambda x, s, u: lax.dynamic_update_slice(x, u, [s[i] for i in range(len(shape))], allow_negative_indices=False),
        [normal(shape, dtype), starts, normal(sizes, dtype)],
    )


CASES = {
    "gather": gather,
    "scatter_add": scatter(p.scatter_add, lax.scatter_add, np.int32),
    "scatter": scatter(p.scatter, lax.scatter, np.int32, bool),
    "put": scatter(p.put, partial(lax.scatter, unique_indices=True), np.int32, bool),  # then its transpose only reads
    "scatter_mul": rows(p.scatter_mul, jnp.prod, 1),
    "scatter_max": rows(p.scatter_max, jnp.max, -np.inf),
    "scatter_min": rows(p.scatter_min, jnp.min, np.inf),
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
}


DENSE = ("scatter_mul", "scatter_max", "scatter_min")


@pytest.mark.parametrize("name", [name for name in CASES if name not in DENSE])
@given(st.data())
@examples(5)
def test_against_jax(name: str, data: Any) -> None:
    check(CASES[name](data.draw), data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("name", DENSE)
@given(st.data())
@examples(2)
def test_against_dense_arithmetic(name: str, data: Any) -> None:
    check(CASES[name](data.draw), data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("name", ["gather", "scatter", "dynamic_slice"])
@given(st.data())
@examples(1)
def test_operation_by_operation(name: str, data: Any) -> None:
    check_eager(CASES[name](data.draw))


@given(st.data())
@examples(2)
def test_products_at_unique_places(data: Any) -> None:
    check(rows(p.scatter_mul, jnp.prod, 1, unique=True)(data.draw))


@pytest.mark.parametrize("name", DENSE)
@given(st.data())
@examples(3)
def test_values_of_every_description(name: str, data: Any) -> None:
    case = scatter(getattr(p, name), getattr(lax, name))(data.draw)
    dtype = data.draw(st.sampled_from([np.float64, np.int32]))
    case.operands = [
        normal(s(np.random.default_rng(0)).shape, dtype) if i != 1 else s for i, s in enumerate(case.operands)
    ]
    case.order = 0
    check(case)


# ---------------------------------------------------------------- the helpers


def take(draw: Draw) -> Case:
    shape = a_shape(draw, least=1, sizes=(3, 4, 1, 2))
    axis = an_axis(draw, len(shape))
    i = integers(0, shape[axis], a_shape(draw, most=2, sizes=(2, 1, 0)), np.int64)
    return Case(lambda x, i: p.take(x, i, axis=axis), lambda x, i: jnp.take(x, i, axis), [normal(shape, float), i])


def take_along(draw: Draw) -> Case:
    shape = a_shape(draw, least=1, sizes=(3, 4, 1, 2))
    axis = an_axis(draw, len(shape))
    count = draw(st.integers(0, 4))
    i = integers(0, shape[axis], (*shape[:axis], count, *shape[axis + 1 :]), np.int64)
    return Case(
        lambda x, i: p.take_along(x, i, axis=axis),
        lambda x, i: jnp.take_along_axis(x, i, axis),
        [normal(shape, float), i],
    )


@pytest.mark.parametrize("case", [take, take_along])
@given(st.data())
@examples(4)
def test_helpers(case: Callable[[Draw], Case], data: Any) -> None:
    check(case(data.draw))


def test_gather_and_scatter_of_empty_arrays() -> None:
    x, none = np.zeros((0, 3)), np.zeros((0,), np.int32)
    assert p.take(x, none, axis=0).shape == (0, 3)
    assert np.asarray(p.take(x, np.zeros(2, np.int32), axis=0)).tolist() == [[0, 0, 0], [0, 0, 0]]
    got = p.scatter_add(x, none.reshape(0, 1), np.zeros((0, 3)), dims=p.take_dims(2, 0, 1), mode="fill", unique=False)
    assert got.shape == (0, 3)


def test_of_updates_to_one_place_the_derivative_is_that_of_the_one_that_stays() -> None:
    x, i, u = jnp.zeros(3), jnp.asarray([[1], [1], [2]]), jnp.asarray([5.0, 6.0, 7.0])
    dims = p.take_dims(1, 0, 1)

    def f(x: Any, u: Any) -> list[Any]:
        return [p.scatter(x, i, u, dims=dims, mode="fill", unique=False)]

    (out,), pullback = Ours.vjp(f, [x, u])
    stayed = [float(v == out[1]) for v in u[:2]]
    gx, gu = pullback([jnp.asarray([1.0, 2.0, 3.0])])
    assert gx.tolist() == [1, 0, 0]
    assert gu.tolist() == [2 * stayed[0], 2 * stayed[1], 3]
    (_,), (tangent,) = Ours.jvp(f, [x, u], [jnp.ones(3), jnp.asarray([10.0, 20.0, 30.0])])
    assert tangent.tolist() == [1, 10 * stayed[0] + 20 * stayed[1], 30]


@pytest.mark.parametrize(
    ("x", "u", "gx", "gu"),
    [(0.0, [2.0, 3.0], 6.0, [0.0, 0.0]), (2.0, [0.0, 3.0], 0.0, [6.0, 0.0]), (0.0, [0.0, 3.0], 0.0, [0.0, 0.0])],
)
def test_products_with_zeros_have_derivatives(x: float, u: list[float], gx: float, gu: list[float]) -> None:
    i = jnp.zeros((2, 1), jnp.int32)

    def f(x: Any, u: Any) -> list[Any]:
        return [p.scatter_mul(x, i, u, dims=p.take_dims(1, 0, 1), mode="fill", unique=False)]

    _, pullback = Ours.vjp(f, [jnp.asarray([x]), jnp.asarray(u)])
    got = pullback([jnp.ones(1)])
    assert [g.tolist() for g in got] == [[gx], gu]


def test_extremes_that_tie_share_evenly() -> None:
    i = jnp.zeros((2, 1), jnp.int32)

    def f(x: Any, u: Any) -> list[Any]:
        return [p.scatter_max(x, i, u, dims=p.take_dims(1, 0, 1), mode="fill", unique=False)]

    _, pullback = Ours.vjp(f, [jnp.asarray([3.0, 1.0]), jnp.asarray([3.0, 2.0])])
    gx, gu = pullback([jnp.ones(2)])
    assert_close(gx, np.asarray([0.5, 1]), "operand")
    assert_close(gu, np.asarray([0.5, 0]), "updates")


# ---------------------------------------------------------------- errors

X, AT, U = ArrayType((4, 5), dtypes.float32), ArrayType((3, 1), dtypes.int32), ArrayType((3, 5), dtypes.float32)
ROWS, BATCHED = p.take_dims(2, 0, 1), p.IndexDims((), (1,), (0,), (0,), (1,))
BOOL, COMPLEX = dtypes.bool_, dtypes.complex64


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"indices": AT.with_dtype(dtypes.float32)}, TypeError, r"integer array.*f32\[3,1\]"),
        ({"indices": AT.with_shape((3, 2))}, ValueError, r"2 coordinates but 1 axes.*f32\[4,5\].*i32\[3,2\]"),
        ({"mode": "wrap"}, ValueError, r"mode 'wrap' is none of 'clip', 'fill', 'promise'"),
        ({"sizes": (1, 6)}, ValueError, r"sizes \(1, 6\) does not fit.*f32\[4,5\]"),
        ({"sizes": (2, 5)}, ValueError, r"sizes \(2, 5\) must be 1 along collapsed.*f32\[4,5\]"),
        ({"dims": ROWS._replace(window=(2,))}, ValueError, r"window \(2,\) must be increasing axes.*with 2"),
        ({"dims": ROWS._replace(collapsed=(2,))}, ValueError, r"window|different axes"),
        ({"dims": ROWS._replace(index_map=(2,))}, ValueError, r"different axes of the operand.*f32\[4,5\]"),
        ({"dims": ROWS._replace(indices_batch=(1,))}, ValueError, r"indices_batch must be axes.*i32\[3,1\]"),
        ({"dims": BATCHED, "sizes": (1, 1)}, ValueError, r"equal sizes.*f32\[4,5\].*i32\[3,1\]"),
    ],
)  # fmt: skip
def test_gathers_that_do_not_fit_are_named(change: dict[str, Any], error: type[Exception], message: str) -> None:
    params = {"dims": ROWS, "sizes": (1, 5), "mode": "fill", "unique": False} | change
    indices = params.pop("indices", AT)
    with pytest.raises(error, match=f"^gather: .*{message}"):
        p.gather.output_types([X, indices], params)


@pytest.mark.parametrize(
    ("primitive", "x", "u", "error", "message"),
    [
        (p.scatter_add, X, U.with_dtype(dtypes.float64), TypeError, r"^scatter_add: .*f32\[4,5\] and f64\[3,5\]"),
        (p.scatter, X, U.with_shape((3,)), ValueError, r"^scatter: updates f32\[3\] must have 2 axes.*i32\[3,1\]"),
        (p.scatter_max, X, U.with_shape((2, 5)), ValueError, r"^scatter_max: updates f32\[2,5\].*\(3, 5\).*f32\[4,5\]"),
        (p.scatter_min, X, U.with_shape((3, 6)), ValueError, r"^scatter_min: .*sizes \(1, 6\) does not fit"),
        (p.scatter_add, X.with_dtype(BOOL), U.with_dtype(BOOL), TypeError, r"^scatter_add: .*bool\[4,5\]"),
        (p.scatter_max, X.with_dtype(COMPLEX), U.with_dtype(COMPLEX), TypeError, r"^scatter_max: .*c64"),
    ],
)  # fmt: skip
def test_scatters_that_do_not_fit_are_named(
    primitive: Any, x: ArrayType, u: ArrayType, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        primitive.output_types([x, AT, u], {"dims": ROWS, "mode": "fill", "unique": False})


@pytest.mark.parametrize(
    ("starts", "sizes", "error", "message"),
    [
        (ArrayType((3,), dtypes.int32), (1, 1), TypeError, r"2 integers for f32\[4,5\], got i32\[3\]"),
        (ArrayType((2,), dtypes.float32), (1, 1), TypeError, r"2 integers for f32\[4,5\], got f32\[2\]"),
        (ArrayType((2,), dtypes.int32), (5, 1), ValueError, r"sizes \(5, 1\) does not fit f32\[4,5\]"),
    ],
)
def test_slices_that_do_not_fit_are_named(
    starts: ArrayType, sizes: tuple[int, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^dynamic_slice: .*{message}"):
        p.dynamic_slice.output_types([X, starts], {"sizes": sizes})
    with pytest.raises(error, match=f"^dynamic_update_slice: .*{message}"):
        p.dynamic_update_slice.output_types([X, starts, ArrayType(sizes, dtypes.float32)], {})
    with pytest.raises(TypeError, match=r"^dynamic_update_slice: .*f32\[4,5\] and i32\[1,1\]"):
        p.dynamic_update_slice.output_types([X, starts, ArrayType((1, 1), dtypes.int32)], {})


@pytest.mark.parametrize(
    "factors", [(1.0, 0.0, 3.0), (0.0, 2.0, 3.0), (2.0, 0.0, 0.0), (0.0, 0.0, 5.0), (0.0, 0.0, 0.0)]
)
def test_second_derivatives_of_products_with_factors_that_are_zero(factors: tuple[float, ...]) -> None:
    def scattered(f: Any) -> Any:
        indices = np.zeros((2, 1), np.int32)
        return p.scatter_mul(
            f[:1], indices, f[1:], dims=p.IndexDims((), (0,), (), (), (0,)), mode="fill", unique=False
        )[0]

    at = np.array(factors)
    for derivative in (fg.grad, fg.hessian):
        np.testing.assert_allclose(derivative(scattered)(at), derivative(lambda f: f[0] * f[1] * f[2])(at), atol=FEW)
