"""Elementwise primitives: their XLA operations and derivatives, one row each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.core.tracing import Tracer, type_of
from funcgrad.primitives.complex_lowering import of_both_kinds
from funcgrad.primitives.float8_lowering import to_float8

# ---------------------------------------------------------------- shapes, types, broadcasting


def broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a shape broadcasts to the wanted one."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(n in (1, m) for n, m in pairs)


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that ``shapes`` broadcast to, by NumPy's rule.

    Raises:
        ValueError: naming the operation and all the shapes.
    """
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            break
    else:
        return first
    rank = max(map(len, shapes))
    result = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in shapes], strict=True):
        wanted = {n for n in sizes if n != 1}
        if len(wanted) > 1:
            raise ValueError(f"{name}: operands of shapes {' and '.join(map(str, shapes))} do not broadcast together")
        result.append(wanted.pop() if wanted else 1)
    return tuple(result)


def spread(*xs: Any) -> list[Any]:
    """JAX arrays broadcast to one shape, as ``jax.lax`` requires."""
    shape = broadcast_shapes("operands", *[x.shape for x in xs])
    return [
        x if x.shape == shape else lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))
        for x in xs
    ]


def _infer(name: str, accepts: str, result: np.dtype | None) -> Rule:
    accepted = _accepted[accepts]

    def infer(*types: ArrayType, **params: Any) -> ArrayType:
        first = types[0]
        dtype, shape, weak = first.dtype, first.shape, first.weak
        for t in types:
            if t.dtype != dtype:
                raise TypeError(f"{name}: operands must have one dtype, got {' and '.join(map(str, types))}")
            if t.shape != shape:
                shape = broadcast_shapes(name, *[t.shape for t in types]) if shape and t.shape else shape or t.shape
            weak = weak and t.weak
        if dtype not in accepted:
            raise TypeError(f"{name}: takes {_WORDS[accepts]} arrays, got {first}")
        if result is None and shape == first.shape and weak == first.weak:
            return first
        return ArrayType(shape, result or dtype, result is None and weak)

    return infer


_WORDS = {
    "any": "all", "number": "numeric", "inexact": "floating or complex", "float": "floating",
    "integer": "integer", "bits": "integer or bool", "real": "real", "ordered": "real or bool", "complex": "complex",
}  # fmt: skip


_DTYPES = frozenset(dtypes.SHORT)
_FLOATING = frozenset(d for d in _DTYPES if dtypes.is_floating(d))
_COMPLEX = frozenset(d for d in _DTYPES if dtypes.is_complex(d))
_INTEGER = frozenset(d for d in _DTYPES if dtypes.is_integer(d))
_BOOL = frozenset([dtypes.bool_])
_accepted = {
    "any": _DTYPES, "number": _DTYPES - _BOOL, "inexact": _FLOATING | _COMPLEX, "float": _FLOATING,
    "complex": _COMPLEX, "integer": _INTEGER, "bits": _INTEGER | _BOOL, "real": _DTYPES - _BOOL - _COMPLEX,
    "ordered": _DTYPES - _COMPLEX,
}  # fmt: skip


def elementwise(
    name: str,
    lower: Callable[..., Any],
    partials: Sequence[Rule | None] | None = None,
    *,
    accepts: str = "number",
    result: np.dtype | None = None,
) -> Primitive:
    """An elementwise primitive; without ``partials`` its derivative is zero everywhere.

    Args:
        lower: takes JAX arrays of one shape; for complex arrays ``complex_lowering`` may have another one.
        accepts: the accepted dtypes, a key of the table above.
        result: the dtype of the result, if not that of the operands.
    """
    lowering = of_both_kinds(name, _in_float32(lower) if name in _APPROXIMATED else lower)
    return Primitive(
        name,
        infer=_infer(name, accepts, result),
        closed=_accepted[accepts] if result is None else frozenset(),
        lower=lambda *xs, **params: lowering(*(spread(*xs) if len(xs) > 1 else xs), **params),
        partials=partials,
        elementwise=True,
        differentiable=partials is not None,
    )


#: Operations that XLA, or JAX for it, computes in several steps, each of which would round to float16 or bfloat16.
_APPROXIMATED = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "digamma", "erf", "erf_inv",
    "erfc", "exp", "exp2", "expm1", "lgamma", "log", "log1p", "logistic", "polygamma", "pow", "rsqrt", "sin", "sinh",
    "tan", "tanh",
))  # fmt: skip


def _in_float32(lower: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering computed in float32 for shorter floating dtypes, so that only the result is rounded, as in NumPy."""

    def run(*xs: Any) -> Any:
        dtype = xs[0].dtype
        if dtypes.is_complex(dtype) or dtype.itemsize >= 4:
            return lower(*xs)
        return lax.convert_element_type(lower(*[lax.convert_element_type(x, np.float32) for x in xs]), dtype)

    return run


def number(value: complex, like: Any) -> np.generic:
    """``value`` as a scalar of the dtype of ``like``, for use in a rule."""
    return (like.type if isinstance(like, Tracer) else type_of(like)).dtype.type(value)


def scale(x: Any, factor: float) -> Any:
    return mul(x, number(factor, x))


def shift(x: Any, amount: float) -> Any:
    return add(x, number(amount, x))


def _identity(g: Any, *_: Any) -> Any:
    return g


def _power_base(g: Any, out: Any, x: Any, y: Any) -> Any:
    # y * x**(y-1), but 0 where y is 0: there x**(y-1) may be infinite at x = 0.
    safe = select(eq(y, number(0, y)), number(1, y), y)
    return mul(g, mul(y, power(x, shift(safe, -1))))


def _power_exponent(g: Any, out: Any, x: Any, y: Any) -> Any:
    # out * log(x), whose limit at x = 0 is 0 for y >= 0.
    zero = eq(x, number(0, x))
    return mul(g, mul(out, log(select(zero, number(1, x), x))))


def _integer_power(g: Any, out: Any, x: Any, *, exponent: int) -> Any:
    if exponent == 0:
        return scale(g, 0)
    lower = x if exponent == 2 else integer_power(x, exponent=exponent - 1)
    return mul(g, scale(lower, exponent))


def _tie_share(mine: Any, other: Any, out: Any) -> Any:
    # Tied operands get half each.
    return select(eq(mine, out), select(eq(other, out), number(0.5, out), number(1, out)), number(0, out))


# ---------------------------------------------------------------- arithmetic

add = elementwise(
    "add",
    lambda x, y: lax.bitwise_or(x, y) if x.dtype == bool else lax.add(x, y),
    (_identity, _identity),
    accepts="any",
)
sub = elementwise("sub", lax.sub, (_identity, lambda g, out, x, y: neg(g)))
mul = elementwise(
    "mul",
    lambda x, y: lax.bitwise_and(x, y) if x.dtype == bool else lax.mul(x, y),
    (lambda g, out, x, y: mul(g, y), lambda g, out, x, y: mul(g, x)),
    accepts="any",
)
div = elementwise(
    "div",
    lax.div,
    (lambda g, out, x, y: div(g, y), lambda g, out, x, y: neg(mul(g, div(out, y)))),
)


def _safe_integers(y: Any) -> tuple[Any, Any]:
    """Where ``y`` is 0, and integers ``y`` with 1 there: XLA's integer division by zero is not NumPy's."""
    absent = lax.eq(y, lax.full_like(y, 0))
    return absent, lax.select(absent, lax.full_like(y, 1), y)


def _remainder_lower(x: Any, y: Any) -> Any:
    zero = lax.full_like(x, 0)
    r = lax.rem(x, y if dtypes.is_inexact(x.dtype) else _safe_integers(y)[1])
    beyond = (r != zero) & ((r < zero) != (y < zero))
    r = lax.select(beyond, r + y, r)
    if not dtypes.is_inexact(x.dtype):
        return r
    # A zero remainder has the sign of y.
    return lax.select(r == zero, lax.select(y < zero, lax.neg(zero), zero), r)


def _floor_divide_lower(x: Any, y: Any) -> Any:
    zero = lax.full_like(x, 0)
    below = (x < zero) != (y < zero)
    if not dtypes.is_inexact(x.dtype):
        absent, safe = _safe_integers(y)
        quotient = lax.div(x, safe)
        rounded = lax.select((quotient * safe != x) & below, quotient - lax.full_like(x, 1), quotient)
        return lax.select(absent, zero, rounded)
    quotient = lax.div(x, y)
    # From the remainder, so that x == y * (x // y) + x % y holds in floating-point arithmetic.
    whole = lax.round((x - _remainder_lower(x, y)) / y, lax.RoundingMethod.TO_NEAREST_EVEN)
    whole = lax.select(whole == zero, quotient * zero, whole)
    outside = lax.select(below & (x != zero), lax.full_like(x, -1), quotient)  # where y is infinite
    finite = lax.select(lax.is_finite(y), whole, outside)
    return lax.select(lax.is_finite(x) & (y != zero) & (y == y), finite, quotient)


def _quotient(out: Any, x: Any, y: Any) -> Any:
    return round_half_even(div(sub(x, out), y))


rem = elementwise("rem", lax.rem, (_identity, lambda g, out, x, y: neg(mul(g, trunc(div(x, y))))), accepts="real")
remainder = elementwise(
    "remainder",
    _remainder_lower,
    (_identity, lambda g, out, x, y: neg(mul(g, _quotient(out, x, y)))),
    accepts="real",
)
floor_divide = elementwise("floor_divide", _floor_divide_lower, accepts="real")
neg = elementwise("neg", lax.neg, (lambda g, out, x: neg(g),))
power = elementwise("pow", lax.pow, (_power_base, _power_exponent), accepts="inexact")
integer_power = elementwise("integer_pow", lambda x, *, exponent: lax.integer_pow(x, exponent), (_integer_power,))
maximum = elementwise(
    "max",
    lax.max,
    (lambda g, out, x, y: mul(g, _tie_share(x, y, out)), lambda g, out, x, y: mul(g, _tie_share(y, x, out))),
    accepts="any",
)
minimum = elementwise(
    "min",
    lax.min,
    (lambda g, out, x, y: mul(g, _tie_share(x, y, out)), lambda g, out, x, y: mul(g, _tie_share(y, x, out))),
    accepts="any",
)
absolute = elementwise(
    "abs",
    lambda x: x if x.dtype == bool or x.dtype in dtypes.UNSIGNED else lax.abs(x),
    (lambda g, out, x: mul(g, sign(x)),),
    accepts="ordered",
)
square = elementwise("square", lambda x: lax.mul(x, x), (lambda g, out, x: mul(g, scale(x, 2)),))


def _atan2_lower(y: Any, x: Any) -> Any:
    # LLVM miscompiles it for 512-bit registers if x is known to be 1: angles are off by up to 2. So x must not be
    # known: where y is NaN, and the result therefore NaN, it is y.
    return lax.atan2(y, lax.select(y == y, x, y))


atan2 = elementwise(
    "atan2",
    _atan2_lower,
    (
        lambda g, out, y, x: mul(g, div(x, add(square(x), square(y)))),
        lambda g, out, y, x: neg(mul(g, div(y, add(square(x), square(y))))),
    ),
    accepts="float",
)
# A step to the next representable number, whose size is constant, except at the ends.
nextafter = elementwise(
    "nextafter",
    lax.nextafter,
    (lambda g, out, x, y: select(eq(x, y), number(0, g), g), None),
    accepts="float",
)

# ---------------------------------------------------------------- exponentials, logarithms, powers

exp = elementwise("exp", lax.exp, (lambda g, out, x: mul(g, out),), accepts="inexact")
exp2 = elementwise("exp2", lax.exp2, (lambda g, out, x: mul(g, scale(out, math.log(2))),), accepts="inexact")
expm1 = elementwise("expm1", lax.expm1, (lambda g, out, x: mul(g, shift(out, 1)),), accepts="inexact")
log = elementwise("log", lax.log, (lambda g, out, x: div(g, x),), accepts="inexact")
log1p = elementwise("log1p", lax.log1p, (lambda g, out, x: div(g, shift(x, 1)),), accepts="inexact")
sqrt = elementwise("sqrt", lax.sqrt, (lambda g, out, x: div(scale(g, 0.5), out),), accepts="inexact")
rsqrt = elementwise("rsqrt", lax.rsqrt, (lambda g, out, x: scale(mul(g, div(out, x)), -0.5),), accepts="inexact")
cbrt = elementwise("cbrt", lax.cbrt, (lambda g, out, x: div(scale(g, 1 / 3), mul(out, out)),), accepts="float")
logistic = elementwise(
    "logistic", lax.logistic, (lambda g, out, x: mul(g, mul(out, sub(number(1, out), out))),), accepts="inexact"
)

# ---------------------------------------------------------------- trigonometry

sin = elementwise("sin", lax.sin, (lambda g, out, x: mul(g, cos(x)),), accepts="inexact")
cos = elementwise("cos", lax.cos, (lambda g, out, x: neg(mul(g, sin(x))),), accepts="inexact")
tan = elementwise("tan", lax.tan, (lambda g, out, x: mul(g, shift(square(out), 1)),), accepts="inexact")
asin = elementwise("asin", lax.asin, (lambda g, out, x: mul(g, rsqrt(_one_minus_square(x))),), accepts="inexact")
acos = elementwise("acos", lax.acos, (lambda g, out, x: neg(mul(g, rsqrt(_one_minus_square(x)))),), accepts="inexact")
atan = elementwise(
    "atan",
    lambda x: _atan2_lower(x, lax.full_like(x, 1)),
    (lambda g, out, x: div(g, shift(square(x), 1)),),
    accepts="inexact",
)
sinh = elementwise("sinh", lax.sinh, (lambda g, out, x: mul(g, cosh(x)),), accepts="inexact")
cosh = elementwise("cosh", lax.cosh, (lambda g, out, x: mul(g, sinh(x)),), accepts="inexact")
tanh = elementwise("tanh", lax.tanh, (lambda g, out, x: mul(g, _one_minus_square(out)),), accepts="inexact")
asinh = elementwise("asinh", lax.asinh, (lambda g, out, x: mul(g, rsqrt(_less(square(x), -1))),), accepts="inexact")
acosh = elementwise(
    "acosh", lax.acosh, (lambda g, out, x: mul(g, mul(rsqrt(_less(x, 1)), rsqrt(_less(x, -1)))),), accepts="inexact"
)
atanh = elementwise("atanh", lax.atanh, (lambda g, out, x: div(g, _one_minus_square(x)),), accepts="inexact")


def _less(x: Any, amount: float) -> Any:
    # Subtracting, not adding, the zero imaginary part of a real number preserves the sign of zeros, which selects the
    # side of a branch cut.
    return sub(x, number(amount, x))


def _one_minus_square(x: Any) -> Any:
    # As a product, which is accurate near |x| = 1.
    if type_of(x).dtype.kind == "c":
        return mul(neg(_less(x, 1)), _less(x, -1))
    return mul(sub(number(1, x), x), shift(x, 1))


# ---------------------------------------------------------------- special functions

erf = elementwise(
    "erf", lax.erf, (lambda g, out, x: mul(g, scale(exp(neg(square(x))), 2 / math.sqrt(math.pi))),), accepts="float"
)
erfc = elementwise(
    "erfc", lax.erfc, (lambda g, out, x: mul(g, scale(exp(neg(square(x))), -2 / math.sqrt(math.pi))),), accepts="float"
)
erf_inv = elementwise(
    "erf_inv",
    lax.erf_inv,
    (lambda g, out, x: mul(g, scale(exp(square(out)), math.sqrt(math.pi) / 2)),),
    accepts="float",
)
polygamma = elementwise(
    "polygamma", lax.polygamma, (None, lambda g, out, n, x: mul(g, polygamma(shift(n, 1), x))), accepts="float"
)
digamma = elementwise(
    "digamma",
    lambda x: lax.select(x == 0, -1 / x, lax.digamma(x)),  # infinite at zero, where XLA has NaN
    (lambda g, out, x: mul(g, trigamma(x)),),
    accepts="float",
)
lgamma = elementwise("lgamma", lax.lgamma, (lambda g, out, x: mul(g, digamma(x)),), accepts="float")


def trigamma(x: Any) -> Any:
    """The derivative of digamma; below 1/2, where XLA returns NaN, ``pi**2 / sin(pi x)**2 - trigamma(1 - x)``; zero at
    infinity.

    Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", 6.4.7.
    """
    reflected = lt(x, number(0.5, x))
    upper = polygamma(number(1, x), select(reflected, sub(number(1, x), x), x))
    pole = square(div(number(math.pi, x), sin(scale(x, math.pi))))
    far = eq(x, number(math.inf, x))
    return select(far, number(0, x), select(reflected, sub(pole, upper), upper))


# ---------------------------------------------------------------- piecewise constant

sign = elementwise("sign", lax.sign, accepts="real")  # of a complex number it is no constant: complex_sign
floor = elementwise("floor", lax.floor, accepts="float")
ceil = elementwise("ceil", lax.ceil, accepts="float")
round_half_even = elementwise("round", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), accepts="float")
round_half_away = elementwise("round_away", lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), accepts="float")
trunc = elementwise("trunc", lambda x: lax.select(x < 0, lax.ceil(x), lax.floor(x)), accepts="float")

# ---------------------------------------------------------------- comparison, logic, bits

eq = elementwise("eq", lax.eq, accepts="any", result=dtypes.bool_)
ne = elementwise("ne", lax.ne, accepts="any", result=dtypes.bool_)
lt = elementwise("lt", lax.lt, accepts="ordered", result=dtypes.bool_)
le = elementwise("le", lax.le, accepts="ordered", result=dtypes.bool_)
gt = elementwise("gt", lax.gt, accepts="ordered", result=dtypes.bool_)
ge = elementwise("ge", lax.ge, accepts="ordered", result=dtypes.bool_)
is_finite = elementwise("is_finite", lax.is_finite, accepts="float", result=dtypes.bool_)
logical_not = elementwise("not", lax.bitwise_not, accepts="bits")
bitwise_and = elementwise("and", lax.bitwise_and, accepts="bits")
bitwise_or = elementwise("or", lax.bitwise_or, accepts="bits")
bitwise_xor = elementwise("xor", lax.bitwise_xor, accepts="bits")
shift_left = elementwise("shift_left", lax.shift_left, accepts="integer")
shift_right = elementwise(
    "shift_right",
    # Arithmetic, to preserve the sign.
    lambda x, y: (lax.shift_right_logical if x.dtype in dtypes.UNSIGNED else lax.shift_right_arithmetic)(x, y),
    accepts="integer",
)
shift_right_logical = elementwise("shift_right_logical", lax.shift_right_logical, accepts="integer")

population_count = elementwise("population_count", lax.population_count, accepts="integer")
count_leading_zeros = elementwise("clz", lax.clz, accepts="integer")

# ---------------------------------------------------------------- selection


def _infer_select(condition: ArrayType, x: ArrayType, y: ArrayType) -> ArrayType:
    if condition.dtype != dtypes.bool_ or x.dtype != y.dtype:
        raise TypeError(f"select: wants a bool condition and two operands of one dtype, got {condition}, {x} and {y}")
    for wide, other in ((x, y), (y, x)):
        if wide.shape == condition.shape and (wide is other or (not other.shape and wide.weak <= other.weak)):
            return wide
    return ArrayType(broadcast_shapes("select", condition.shape, x.shape, y.shape), x.dtype, x.weak and y.weak)


select = Primitive(
    "select",
    infer=_infer_select,
    lower=lambda c, x, y: lax.select(*spread(c, x, y)),
    partials=(
        None,
        lambda g, out, c, x, y: select(c, g, number(0, g)),
        lambda g, out, c, x, y: select(c, number(0, g), g),
    ),
    elementwise=True,
)

clamp = elementwise(
    "clamp",
    lax.clamp,
    (
        lambda g, out, low, x, high: select(gt(low, x), g, number(0, g)),
        lambda g, out, low, x, high: select(bitwise_and(ge(x, low), le(x, high)), g, number(0, g)),
        lambda g, out, low, x, high: select(lt(high, x), g, number(0, g)),
    ),
    accepts="ordered",
)


# ---------------------------------------------------------------- dtypes and complex parts


def _cast_lower(x: Any, *, dtype: np.dtype, weak: bool = False) -> Any:
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        x = lax.ne(x, lax.full_like(x, 0)) if dtype == dtypes.bool_ else lax.real(x)
    if dtype in dtypes.FLOAT8 and x.dtype != dtype:
        return to_float8(lax.convert_element_type(x, np.float32), dtype)
    return lax.convert_element_type(x, dtype)


def _cast_transpose(ct: Any, x: ArrayType, *, dtype: np.dtype, weak: bool = False) -> Any:
    return cast(ct, dtype=x.dtype)


def _linear(name: str, infer: Rule, lower: Rule, transpose: Rule) -> Primitive:
    return Primitive(name, infer=infer, lower=lower, transpose=(transpose,), elementwise=True)


def _infer_part(name: str) -> Rule:
    def infer(x: ArrayType) -> ArrayType:
        if not dtypes.is_complex(x.dtype):
            raise TypeError(f"{name}: takes complex arrays, got {x}")
        return ArrayType(x.shape, dtypes.real_of(x.dtype))

    return infer


def _cast_infer(x: ArrayType, *, dtype: np.dtype, weak: bool = False) -> ArrayType:
    return ArrayType(x.shape, dtype, weak)


# With ``weak`` the result is weak: a weak integer promoted with a weak float.
cast = _linear("cast", _cast_infer, _cast_lower, _cast_transpose)
bitcast = Primitive(
    "bitcast",
    infer=lambda x, *, dtype: ArrayType(x.shape, dtype),
    lower=lambda x, *, dtype: lax.bitcast_convert_type(x, dtype),
    elementwise=True,
    differentiable=False,
)
reduce_precision = _linear(
    "reduce_precision",
    _infer("reduce_precision", "float", None),
    lambda x, *, exponent_bits, mantissa_bits: lax.reduce_precision(x, exponent_bits, mantissa_bits),
    lambda ct, x, **bits: reduce_precision(ct, **bits),
)
real = _linear(
    "real",
    _infer_part("real"),
    lax.real,
    lambda ct, x: make_complex(ct, number(0, ct)),
)
imag = _linear(
    "imag",
    _infer_part("imag"),
    lax.imag,
    lambda ct, x: make_complex(number(0, ct), neg(ct)),
)
conj = _linear("conj", _infer("conj", "complex", None), lax.conj, lambda ct, x: conj(ct))


def conjugated(x: Any) -> Any:
    """The complex conjugate; a real array unchanged."""
    return conj(x) if dtypes.is_complex(type_of(x).dtype) else x


def _infer_complex(x: ArrayType, y: ArrayType) -> ArrayType:
    if x.dtype != y.dtype or x.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"complex: wants two float32 or two float64 operands, got {x} and {y}")
    return ArrayType(broadcast_shapes("complex", x.shape, y.shape), dtypes.complex_of(x.dtype))


make_complex = Primitive(
    "complex",
    infer=_infer_complex,
    lower=lambda x, y: lax.complex(*spread(x, y)),
    transpose=(lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))),
    elementwise=True,
)


def complex_sign(x: Any) -> Any:
    """``x / |x|``, and 0 where ``x`` is 0; for an infinite part, 1 in that part."""
    length = complex_abs(x)
    zero, one = number(0, length), number(1, length)
    far = eq(length, number(np.inf, length))

    def part(v: Any) -> Any:
        inner = div(v, select(eq(length, zero), one, select(far, one, length)))
        outer = select(eq(absolute(v), length), sign(v), zero)
        return select(eq(length, zero), zero, select(far, outer, inner))

    u, v = part(real(x)), part(imag(x))
    both = bitwise_and(far, eq(absolute(real(x)), absolute(imag(x))))
    return make_complex(select(both, number(np.nan, u), u), select(both, number(np.nan, v), v))


def _complex_abs_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    # Re(t conj(x)) / |x|, and 0 where x is 0.
    (x,), (t,) = primals, tangents
    out = complex_abs(x)
    length = select(eq(out, number(0, out)), number(1, out), out)
    return out, div(real(mul(t, conj(x))), length)


def _complex_abs_lower(x: Any) -> Any:
    # Infinite if one part is, even if the other is NaN, where XLA returns NaN.
    parts = lax.abs(lax.real(x)), lax.abs(lax.imag(x))
    infinite = lax.bitwise_or(*(lax.eq(part, lax.full_like(part, np.inf)) for part in parts))
    return lax.select(infinite, lax.full_like(parts[0], np.inf), lax.abs(x))


complex_abs = Primitive(
    "complex_abs",
    infer=_infer_part("complex_abs"),
    lower=_complex_abs_lower,
    jvp=_complex_abs_jvp,
    elementwise=True,
)

stop_gradient = Primitive("stop_gradient", infer=lambda x: x, lower=lambda x: x, elementwise=True, differentiable=False)
