"""Every elementwise primitive compared with ``jax.lax``: each accepted dtype, broadcasting, derivatives, batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

import funcgrad as fg
from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.integers import gcd
from funcgrad.runtime import executable
from tests.funcgrad.oracle import (
    Case,
    Ours,
    Sampler,
    Theirs,
    as_list,
    assert_close,
    check,
    check_eager,
    examples,
    normal,
)

BOOL = (dtypes.bool_,)
INTEGERS = dtypes.SIGNED + dtypes.UNSIGNED
FLOATS = dtypes.FLOATING
NUMBERS = INTEGERS + FLOATS + dtypes.COMPLEX
Domain = tuple[float, float] | None


class Row(NamedTuple):
    """A primitive's oracle, its dtypes, and one domain per operand, away from poles and kinks."""

    theirs: Callable[..., Any]
    takes: tuple[np.dtype, ...]
    domains: tuple[Domain, ...] = (None,)
    params: tuple[tuple[str, Any], ...] = ()
    frozen: tuple[int, ...] = ()
    order: int = 2


def real(theirs: Callable[..., Any], *domains: Domain, **more: Any) -> Row:
    return Row(theirs, FLOATS, domains or (None,), **more)


def inexact(theirs: Callable[..., Any], *domains: Domain, **more: Any) -> Row:
    return Row(theirs, FLOATS + dtypes.COMPLEX, domains or (None,), **more)


def two(theirs: Callable[..., Any], takes: tuple[np.dtype, ...], *domains: Domain) -> Row:
    return Row(theirs, takes, domains or (None, None))


def boolean(on_bools: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: on_bools(x, y) if x.dtype == bool else otherwise(x, y)


ANY = (*BOOL, *NUMBERS)
ORDERED = (*BOOL, *INTEGERS, *FLOATS)
SMALL, UNIT, POSITIVE, ABOVE_ONE = (-2.0, 2.0), (-0.7, 0.7), (0.5, 3.0), (1.5, 4.0)

TABLE: dict[str, Row] = {
    "add": two(boolean(lax.bitwise_or, lax.add), ANY),
    "sub": two(lax.sub, NUMBERS),
    "mul": two(boolean(lax.bitwise_and, lax.mul), ANY),
    "div": two(lax.div, NUMBERS, None, (1, 3)),
    "rem": two(lax.rem, INTEGERS + FLOATS, (5.1, 5.9), (2.1, 2.4)),
    "remainder": two(jnp.remainder, INTEGERS + FLOATS, (5.1, 5.9), (2.1, 2.4)),
    "floor_divide": two(jnp.floor_divide, INTEGERS + FLOATS, (5.1, 5.9), (2.1, 2.4)),
    "neg": Row(lax.neg, NUMBERS),
    "pow": inexact(lax.pow, POSITIVE, SMALL),
    "integer_pow": Row(lambda x, *, exponent: lax.integer_pow(x, exponent), NUMBERS, ((1, 2),), (("exponent", 3),)),
    "max": two(lax.max, ANY),
    "min": two(lax.min, ANY),
    "abs": Row(jnp.abs, ORDERED),
    "square": Row(lax.square, NUMBERS),
    "atan2": real(lax.atan2, POSITIVE, POSITIVE),
    "nextafter": Row(lax.nextafter, FLOATS, (None, None), order=0),
    "exp": inexact(lax.exp, SMALL),
    "exp2": inexact(lax.exp2, SMALL),
    "expm1": inexact(lax.expm1, SMALL),
    "log": inexact(lax.log, POSITIVE),
    "log1p": inexact(lax.log1p, POSITIVE),
    "sqrt": inexact(lax.sqrt, POSITIVE),
    "rsqrt": inexact(lax.rsqrt, POSITIVE),
    "cbrt": real(lax.cbrt, POSITIVE),
    "logistic": inexact(lax.logistic, SMALL),
    "sin": inexact(lax.sin),
    "cos": inexact(lax.cos),
    "tan": inexact(lax.tan, UNIT),
    "asin": inexact(lax.asin, UNIT),
    "acos": inexact(lax.acos, UNIT),
    "atan": inexact(lax.atan, UNIT),
    "sinh": inexact(lax.sinh, SMALL),
    "cosh": inexact(lax.cosh, SMALL),
    "tanh": inexact(lax.tanh, SMALL),
    "asinh": inexact(lax.asinh, UNIT),
    "acosh": inexact(lax.acosh, ABOVE_ONE),
    "atanh": inexact(lax.atanh, UNIT),
    "erf": real(lax.erf, SMALL),
    "erfc": real(lax.erfc, SMALL),
    "erf_inv": real(lax.erf_inv, UNIT),
    "polygamma": real(lax.polygamma, (1, 1), POSITIVE, frozen=(0,)),
    "digamma": real(lax.digamma, POSITIVE),
    "lgamma": real(lax.lgamma, POSITIVE),
    "sign": Row(lax.sign, INTEGERS + FLOATS),
    "floor": real(lax.floor),
    "ceil": real(lax.ceil),
    "round": real(lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
    "round_away": real(lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)),
    "trunc": real(jnp.trunc),
    "eq": two(lax.eq, ANY),
    "ne": two(lax.ne, ANY),
    "lt": two(lax.lt, ORDERED),
    "le": two(lax.le, ORDERED),
    "gt": two(lax.gt, ORDERED),
    "ge": two(lax.ge, ORDERED),
    "is_finite": real(lax.is_finite),
    "not": Row(lax.bitwise_not, (*BOOL, *INTEGERS)),
    "and": two(lax.bitwise_and, (*BOOL, *INTEGERS)),
    "or": two(lax.bitwise_or, (*BOOL, *INTEGERS)),
    "xor": two(lax.bitwise_xor, (*BOOL, *INTEGERS)),
    "shift_left": two(lax.shift_left, INTEGERS, None, (0, 6)),
    "gcd": Row(jnp.gcd, INTEGERS, (None, None), order=0),
    "population_count": Row(lax.population_count, INTEGERS, order=0),
    "clz": Row(lax.clz, INTEGERS, order=0),
    "reduce_precision": Row(
        lax.reduce_precision,
        FLOATS,
        params=(("exponent_bits", 4), ("mantissa_bits", 3)),
    ),
    "shift_right": two(lax.shift_right_arithmetic, INTEGERS, None, (0, 6)),
    "shift_right_logical": two(lax.shift_right_logical, INTEGERS, None, (0, 6)),
    "clamp": Row(lambda low, x, high: lax.min(lax.max(low, x), high), ORDERED, ((-2, -1), None, (1, 2))),
    "real": Row(lax.real, dtypes.COMPLEX),
    "imag": Row(lax.imag, dtypes.COMPLEX),
    "conj": Row(lax.conj, dtypes.COMPLEX),
    "complex": Row(lax.complex, (dtypes.float32, dtypes.float64), (None, None)),
    "complex_abs": Row(lax.abs, dtypes.COMPLEX),
    "stop_gradient": Row(lax.stop_gradient, ANY),
}
PRIMITIVES = {v.name: v for v in (*vars(p).values(), gcd) if isinstance(v, p.Primitive)}


# ---------------------------------------------------------------- those whose operands differ in dtype


def _select(dtype: np.dtype, shapes: list[tuple[int, ...]]) -> Case:
    operands = [normal(shapes[0], bool), *[normal(s, dtype) for s in shapes[1:]]]
    return Case(p.select, lambda c, x, y: lax.select(*jnp.broadcast_arrays(c, x, y)), operands)


def _cast(source: np.dtype, target: np.dtype, shape: tuple[int, ...]) -> Case:
    def theirs(x: Any) -> Any:
        x = lax.real(x) if dtypes.is_complex(x.dtype) and not dtypes.is_complex(target) else x
        return lax.convert_element_type(x, target)

    # Rounding makes differences of lower precision meaningless.
    return Case(lambda x: p.cast(x, dtype=target), theirs, [normal(shape, source, 0, 3)], differences=False)


def _bitcast(source: np.dtype, target: np.dtype, shape: tuple[int, ...]) -> Case:
    return Case(
        lambda x: p.bitcast(x, dtype=target),
        lambda x: lax.bitcast_convert_type(x, target),
        [normal(shape, source)],
        order=0,
    )


CASES = {*TABLE, "select", "cast", "bitcast"}


# ---------------------------------------------------------------- tests


def operands(row: Row, dtype: np.dtype, shapes: list[tuple[int, ...]]) -> list[Sampler]:
    return [normal(s, dtype, *(d or ())) for s, d in zip(shapes, row.domains, strict=True)]


def case(name: str, dtype: np.dtype, shapes: list[tuple[int, ...]]) -> Case:
    row = TABLE[name]
    arity = len(row.domains)

    def theirs(*xs: Any) -> Any:
        return row.theirs(*(jnp.broadcast_arrays(*xs) if arity > 1 else xs), **dict(row.params))

    return Case(
        lambda *xs: PRIMITIVES[name](*xs, **dict(row.params)),
        theirs,
        operands(row, dtype, shapes),
        row.frozen,
        order=min(row.order, 2 if dtype.itemsize > 2 else 1),
        differences=name not in ("stop_gradient", "reduce_precision"),  # step functions have no derivative
    )


@st.composite
def broadcastable(draw: Any, count: int) -> list[tuple[int, ...]]:
    """Shapes that broadcast together; now and then one of them has no elements, or no axes."""
    # Hypothesis begins with the simplest example, which should be a meaningful one: 2-d, broadcast, float64.
    whole = draw(st.just([2, 3]) | st.lists(st.sampled_from([2, 3, 1, 0]), max_size=3))
    shapes = []
    for _ in range(count):
        shape = [draw(st.sampled_from([n, n, 1])) for n in whole]
        shapes.append(tuple(shape[draw(st.sampled_from([len(shapes) % 2, 0, 0, 1, len(shape)])) :]))
    return shapes


def derivable(name: str) -> list[np.dtype]:
    row = TABLE[name]
    # From 0.12 on JAX does not differentiate those of complex numbers.
    if name in ("max", "min") and jax.__version_info__ >= (0, 12):
        row = row._replace(takes=ORDERED)
    order = [dtypes.float64, dtypes.complex128, dtypes.float32, dtypes.complex64, dtypes.bfloat16, dtypes.float16]
    return [d for d in order if d in row.takes] or list(row.takes)


@pytest.mark.parametrize("name", TABLE)
@given(st.data())
@examples(2)
def test_against_jax(name: str, data: Any) -> None:
    row = TABLE[name]
    dtype = data.draw(st.sampled_from(derivable(name)))
    shapes = data.draw(broadcastable(len(row.domains)))
    check(case(name, dtype, shapes), data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("name", TABLE)
def test_every_dtype(name: str) -> None:
    """The values for all dtypes that a primitive accepts, in one program."""
    row = TABLE[name]
    rng = np.random.default_rng(0)
    shape = (3, 2)
    groups = [[s(rng) for s in operands(row, d, [shape] * len(row.domains))] for d in row.takes]
    n = len(row.domains)

    def each(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *flat: [f(*flat[i * n : i * n + n], **dict(row.params)) for i in range(len(groups))]

    flat = [x for group in groups for x in group]
    for d, ours, theirs in zip(
        row.takes, Ours.run(each(PRIMITIVES[name]), flat), Theirs.run(each(row.theirs), flat), strict=True
    ):
        assert_close(ours, theirs, f"{name} of {d}")


@pytest.mark.parametrize("name", TABLE)
def test_other_dtypes_are_refused(name: str) -> None:
    row = TABLE[name]
    for dtype in set(dtypes.SUPPORTED) - set(dtypes.FLOAT8) - set(row.takes):
        with pytest.raises(TypeError, match=name):
            PRIMITIVES[name].output_types([ArrayType((), dtype)] * len(row.domains), dict(row.params))


@pytest.mark.parametrize("name", ["add", "div", "maximum", "sin", "erf", "complex_abs", "clamp"])
def test_operation_by_operation(name: str) -> None:
    name = getattr(p, name).name
    dtype = derivable(name)[-1]
    check_eager(case(name, dtype, [(2, 3), (3,), ()][: len(TABLE[name].domains)]))


@given(st.data())
@examples(4)
def test_select(data: Any) -> None:
    dtype = data.draw(st.sampled_from([dtypes.float64, dtypes.complex64, dtypes.float16, dtypes.int8]))
    check(_select(dtype, data.draw(broadcastable(3))))


@given(st.data())
@examples(8)
def test_cast(data: Any) -> None:
    kinds = [dtypes.float64, dtypes.float32, dtypes.bfloat16, dtypes.complex64, dtypes.int32, dtypes.bool_]
    source, target = data.draw(st.sampled_from(kinds)), data.draw(st.sampled_from(kinds))
    check(_cast(source, target, data.draw(broadcastable(1))[0]))


@pytest.mark.parametrize(("source", "target"), [("float32", "int32"), ("int64", "float64"), ("uint16", "bfloat16")])
def test_bitcast(source: str, target: str) -> None:
    check(_bitcast(dtypes.canonical(source), dtypes.canonical(target), (2, 3)))


@pytest.mark.parametrize(("name", "n"), [("add", 2), ("select", 3), ("clamp", 3)])
def test_shapes_that_do_not_broadcast_are_named(name: str, n: int) -> None:
    types = [ArrayType((2, 3), dtypes.float32), ArrayType((4, 3), dtypes.float32), ArrayType((), dtypes.float32)]
    types = [ArrayType((3,), dtypes.bool_), *types[:2]] if name == "select" else types[:n]
    with pytest.raises(ValueError, match=rf"{name}.*\(2, 3\).*\(4, 3\)"):
        PRIMITIVES[name].output_types(types, {})


def test_dtypes_that_differ_are_named() -> None:
    with pytest.raises(TypeError, match=r"add: .*f32\[2\] and i32\[\]"):
        p.add.output_types([ArrayType((2,), dtypes.float32), ArrayType((), dtypes.int32)], {})


# ---------------------------------------------------------------- conventions at special points


@pytest.mark.parametrize(
    ("name", "x", "y", "gx", "gy"),
    [
        ("max", 2.0, 2.0, 0.5, 0.5),  # a tie shares the gradient
        ("min", 2.0, 2.0, 0.5, 0.5),
        ("pow", 0.0, 2.0, 0.0, 0.0),  # 0 ** y has limits, and they are finite
        ("pow", 0.0, 0.0, 0.0, 0.0),
        ("pow", 0.0, 1.0, 1.0, 0.0),
    ],
)
def test_derivatives_at_special_points(name: str, x: float, y: float, gx: float, gy: float) -> None:
    _, pullback = Ours.vjp(lambda *a: as_list(PRIMITIVES[name](*a)), [jnp.float64(x), jnp.float64(y)])
    assert [float(g) for g in pullback([jnp.float64(1)])] == [gx, gy]


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_no_axes_and_no_elements(shape: tuple[int, ...]) -> None:
    """All primitives that are differentiable in float64, in one program."""
    rows = {name: row for name, row in TABLE.items() if dtypes.float64 in row.takes and row.order and not row.frozen}

    def each(which: Callable[[str], Callable[..., Any]]) -> Callable[..., Any]:
        def f(*xs: Any) -> list[Any]:
            given = iter(xs)
            return [which(n)(*[next(given) for _ in r.domains], **dict(r.params)) for n, r in rows.items()]

        return f

    flat = [s for row in rows.values() for s in operands(row, dtypes.float64, [shape] * len(row.domains))]
    check(
        Case(each(PRIMITIVES.__getitem__), each(lambda n: rows[n].theirs), flat, order=1, differences=False),
        batched=False,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_of_many_numbers(dtype: Any) -> None:
    """Compiled for the widest registers, where known ranges of an operand must not mislead the compiler."""

    def compiled(function: Callable[..., Any], *xs: Any) -> Any:
        (found,) = executable(fg.trace(function, *xs))(*xs)
        return found

    x = np.linspace(-3, 3, 1000, dtype=dtype)
    for function in (p.atan, lambda x: p.atan2(x, np.ones_like(x)), lambda x: p.atan2(x, dtype(1))):
        tolerance = 1e-6 if dtype is np.float32 else 1e-14
        np.testing.assert_allclose(compiled(function, x), np.arctan(x), rtol=tolerance)
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
    for y, x in ((odd, dtype(1)), (dtype(1), odd), (odd, odd), (odd, odd[::-1].copy())):
        y, x = map(np.array, np.broadcast_arrays(y, x))
        np.testing.assert_allclose(compiled(p.atan2, y, x), np.arctan2(y, x), rtol=1e-6)
