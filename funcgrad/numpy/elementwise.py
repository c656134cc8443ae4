"""Elementwise functions, with NumPy's broadcasting and funcgrad's promotion."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import dtypes
from funcgrad.numpy.promotion import PYTHON_NUMBERS, asoperand, astype, promoted, promoted_pair
from funcgrad.primitive import Primitive
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import full
from funcgrad.tracing import array_classes, type_of


def _document(what: str, arity: int, example: str, shown: str) -> str:
    arguments = "x: an array or number." if arity == 1 else "x, y: arrays or numbers that broadcast together."
    return (
        f"{what}\n\nArgs:\n    {arguments}\n\n"
        "Returns:\n    An array of the broadcast shape and the promoted dtype.\n\n"
        "Raises:\n    TypeError: for operands that are not arrays, or of a dtype that the function is not defined on.\n"
        f"    ValueError: for shapes that do not broadcast.\n\nExample:\n    >>> print({example})\n    {shown}\n"
    )


def named(function: Callable[..., Any], name: str, document: str) -> Callable[..., Any]:
    """``function``, which a table row made, with a name and a docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = document
    return function


def _unary(
    primitive: Primitive, name: str, what: str, example: str, shown: str, *, floating: bool = False
) -> Callable[[Any], Any]:
    def function(x: Any, /) -> Any:
        if x.__class__ not in array_classes:
            x = asoperand(x, name)
        if x.__class__ in PYTHON_NUMBERS or (floating and not type_of(x).inexact):
            (x,) = promoted(x, floating=floating)
        return primitive(x)

    return named(function, name, _document(what, 1, example, shown))


def _binary(
    primitive: Primitive, name: str, what: str, example: str, shown: str, *, floating: bool = False
) -> Callable[[Any, Any], Any]:
    def function(x: Any, y: Any, /) -> Any:
        if x.__class__ not in array_classes or y.__class__ not in array_classes:
            x, y = asoperand(x, name), asoperand(y, name)
        x, y = promoted_pair(x, y, floating)
        return primitive(x, y)

    return named(function, name, _document(what, 2, example, shown))


# ---------------------------------------------------------------- arithmetic

add = _binary(p.add, "add", "Sum. Logical or for bools.", "add(1.0, 2.0)", "3.0")
multiply = _binary(p.mul, "multiply", "Product. Logical and for bools.", "multiply(2.0, 3.0)", "6.0")
true_divide = divide = _binary(p.div, "divide", "Quotient, floating.", "divide(1, 2)", "0.5", floating=True)
maximum = _binary(
    p.maximum, "maximum", "The larger of two; NaN if either is; ties share the derivative.", "maximum(1.0, 2.0)", "2.0"
)
minimum = _binary(
    p.minimum, "minimum", "The smaller of two; NaN if either is; ties share the derivative.", "minimum(1.0, 2.0)", "1.0"
)
arctan2 = atan2 = _binary(
    p.atan2, "arctan2", "The angle of the point (y, x), in radians.", "arctan2(0.0, 1.0)", "0.0", floating=True
)
nextafter = _binary(
    p.nextafter,
    "nextafter",
    "The next representable number towards ``y``.",
    "nextafter(1.0, 2.0)",
    "1.0000001",
    floating=True,
)
negative = _unary(p.neg, "negative", "Negation.", "negative(2.0)", "-2.0")


def sign(x: Any, /) -> Any:
    """-1, 0 or 1; ``x / |x|`` for complex.

    Args:
        x: an array or number, no bool.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for bools, and for what is not an array.

    Example:
        >>> print(sign(-3.0))
        -1.0
    """
    (x,) = promoted(asoperand(x, "sign"))
    if dtypes.is_complex(type_of(x).dtype):
        return p.complex_sign(x)
    # No negative zero.
    return p.select(p.eq(x, p.number(0, x)), p.number(0, x), p.sign(x))


def subtract(x: Any, y: Any, /) -> Any:
    """Difference.

    Raises:
        TypeError: for bools, whose difference is not defined; use ``logical_xor``.

    Example:
        >>> print(subtract(3.0, 1.0))
        2.0
    """
    x, y = promoted_pair(asoperand(x, "subtract"), asoperand(y, "subtract"))
    return p.sub(x, y)


def positive(x: Any, /) -> Any:
    """``x`` itself, as an array.

    Example:
        >>> print(positive([1, -2]))
        [ 1 -2]
    """
    return asoperand(x, "positive")


def square(x: Any, /) -> Any:
    """``x * x``.

    Example:
        >>> print(square(3.0))
        9.0
    """
    (x,) = promoted(asoperand(x, "square"))
    return x if type_of(x).dtype == dtypes.bool_ else p.square(x)


def absolute(x: Any, /) -> Any:
    """The absolute value; of a complex number its modulus, a real array.

    The derivative at 0 is 0.

    Example:
        >>> print(absolute(-2.0))
        2.0
    """
    (x,) = promoted(asoperand(x, "absolute"))
    dtype = type_of(x).dtype
    if dtype == dtypes.bool_ or dtype in dtypes.UNSIGNED:
        return x
    return p.complex_abs(x) if dtypes.is_complex(dtype) else p.absolute(x)


abs = absolute


def fabs(x: Any, /) -> Any:
    """The absolute value, floating.

    Example:
        >>> print(fabs(-2))
        2.0
    """
    return absolute(promoted(asoperand(x, "fabs"), floating=True)[0])


def reciprocal(x: Any, /) -> Any:
    """``1 / x``, floating.

    Example:
        >>> print(reciprocal(4.0))
        0.25
    """
    return divide(1, x)


def power(x: Any, y: Any, /) -> Any:
    """``x ** y``. An integer Python exponent is repeated multiplication, exact and with an exact derivative.

    Raises:
        ValueError: for an integer array to a negative Python exponent.

    Example:
        >>> print(power(2.0, 3))
        8.0
    """
    x = asoperand(x, "power")
    if isinstance(y, int) and not isinstance(y, bool) and type_of(x).dtype != dtypes.bool_:
        if y < 0 and not dtypes.is_inexact(type_of(x).dtype):
            raise ValueError(
                f"power: an integer array ({type_of(x)}) to the negative power {y}; convert it to float first"
            )
        (x,) = promoted(x)
        return p.square(x) if y == 2 else p.integer_power(x, exponent=y)
    x, y = promoted(x, asoperand(y, "power"))
    if dtypes.is_inexact(type_of(x).dtype):
        return p.power(x, y)
    return _integer_array_power(x, y)


def _integer_array_power(x: Any, y: Any) -> Any:
    """Integers to integer powers by repeated squaring over the exponent's bits."""
    if type_of(x).dtype == dtypes.bool_:
        x, y = astype(x, dtypes.int8), astype(y, dtypes.int8)
    zero, one = p.number(0, x), p.number(1, x)
    result = p.select(p.lt(y, zero), zero, one)
    for bit in range(8 * type_of(x).dtype.itemsize - (type_of(x).dtype in dtypes.SIGNED)):
        odd = p.ne(p.bitwise_and(y, p.number(1 << bit, y)), zero)
        result, x = p.select(odd, p.mul(result, x), result), p.mul(x, x)
    return result


pow = power
float_power = _binary(p.power, "float_power", "Power, floating.", "float_power(2, 3)", "8.0", floating=True)


# ---------------------------------------------------------------- exponentials, trigonometry, special functions

exp = _unary(p.exp, "exp", "Exponential.", "exp(0.0)", "1.0", floating=True)
exp2 = _unary(p.exp2, "exp2", "Power of two.", "exp2(0.0)", "1.0", floating=True)
expm1 = _unary(p.expm1, "expm1", "Exponential less one, exact near 0.", "expm1(0.0)", "0.0", floating=True)
log = _unary(p.log, "log", "Natural logarithm.", "log(1.0)", "0.0", floating=True)
log1p = _unary(p.log1p, "log1p", "Logarithm of one more, exact near 0.", "log1p(0.0)", "0.0", floating=True)
sqrt = _unary(p.sqrt, "sqrt", "Square root.", "sqrt(4.0)", "2.0", floating=True)
cbrt = _unary(p.cbrt, "cbrt", "Cube root.", "cbrt(8.0)", "2.0", floating=True)
rsqrt = _unary(p.rsqrt, "rsqrt", "Reciprocal square root.", "rsqrt(4.0)", "0.5", floating=True)
sin = _unary(p.sin, "sin", "Sine of radians.", "sin(0.0)", "0.0", floating=True)
cos = _unary(p.cos, "cos", "Cosine of radians.", "cos(0.0)", "1.0", floating=True)
tan = _unary(p.tan, "tan", "Tangent of radians.", "tan(0.0)", "0.0", floating=True)
asin = arcsin = _unary(p.asin, "arcsin", "Inverse sine, in radians.", "arcsin(0.0)", "0.0", floating=True)
acos = arccos = _unary(p.acos, "arccos", "Inverse cosine, in radians.", "arccos(1.0)", "0.0", floating=True)
atan = arctan = _unary(p.atan, "arctan", "Inverse tangent, in radians.", "arctan(0.0)", "0.0", floating=True)
sinh = _unary(p.sinh, "sinh", "Hyperbolic sine.", "sinh(0.0)", "0.0", floating=True)
cosh = _unary(p.cosh, "cosh", "Hyperbolic cosine.", "cosh(0.0)", "1.0", floating=True)
tanh = _unary(p.tanh, "tanh", "Hyperbolic tangent.", "tanh(0.0)", "0.0", floating=True)
asinh = arcsinh = _unary(p.asinh, "arcsinh", "Inverse hyperbolic sine.", "arcsinh(0.0)", "0.0", floating=True)
acosh = arccosh = _unary(p.acosh, "arccosh", "Inverse hyperbolic cosine.", "arccosh(1.0)", "0.0", floating=True)
atanh = arctanh = _unary(p.atanh, "arctanh", "Inverse hyperbolic tangent.", "arctanh(0.0)", "0.0", floating=True)


def hypot(x: Any, y: Any, /) -> Any:
    """``sqrt(x**2 + y**2)`` without overflow.

    Example:
        >>> print(hypot(3.0, 4.0))
        5.0
    """
    x, y = promoted(asoperand(x, "hypot"), asoperand(y, "hypot"), floating=True)
    size = p.stop_gradient(p.maximum(p.absolute(x), p.absolute(y)))
    unit = p.select(p.bitwise_and(p.gt(size, p.number(0, size)), p.is_finite(size)), size, p.number(1, size))
    length = p.mul(p.sqrt(p.add(p.square(p.div(x, unit)), p.square(p.div(y, unit)))), unit)
    # An infinite side makes it infinite, even beside a NaN.
    infinite = p.bitwise_or(isinf(x), isinf(y))
    return p.select(infinite, p.number(np.inf, length), length)


def sinc(x: Any, /) -> Any:
    """``sin(pi x) / (pi x)``, 1 at 0.

    Example:
        >>> print(sinc(0.0))
        1.0
    """
    (x,) = promoted(asoperand(x, "sinc"), floating=True)
    zero = p.eq(x, p.number(0, x))
    angle = p.scale(x, np.pi)
    # A second-order Taylor term at 0, whose first two derivatives are right there.
    near = p.sub(p.number(1, x), p.scale(p.square(angle), 1 / 6))
    safe = p.select(zero, p.number(1, x), angle)
    return p.select(zero, near, p.div(p.sin(safe), safe))


# ---------------------------------------------------------------- comparison and logic

equal = _binary(p.eq, "equal", "Whether equal.", "equal(1, 1.0)", "True")
not_equal = _binary(p.ne, "not_equal", "Whether different.", "not_equal(1, 2)", "True")
less = _binary(p.lt, "less", "Whether smaller.", "less(1, 2)", "True")
less_equal = _binary(p.le, "less_equal", "Whether not larger.", "less_equal(2, 2)", "True")
greater = _binary(p.gt, "greater", "Whether larger.", "greater(1, 2)", "False")
greater_equal = _binary(p.ge, "greater_equal", "Whether not smaller.", "greater_equal(2, 2)", "True")
bitwise_and = _binary(p.bitwise_and, "bitwise_and", "Bits set in both.", "bitwise_and(6, 3)", "2")
bitwise_or = _binary(p.bitwise_or, "bitwise_or", "Bits set in either.", "bitwise_or(6, 3)", "7")
bitwise_xor = _binary(p.bitwise_xor, "bitwise_xor", "Bits set in one.", "bitwise_xor(6, 3)", "5")
bitwise_left_shift = left_shift = _binary(p.shift_left, "left_shift", "Bits moved up.", "left_shift(3, 2)", "12")
bitwise_right_shift = right_shift = _binary(p.shift_right, "right_shift", "Bits moved down.", "right_shift(12, 2)", "3")
bitwise_invert = invert = bitwise_not = _unary(p.logical_not, "invert", "Bits flipped.", "invert(6)", "-7")


def _truth(x: Any, name: str) -> Any:
    x = asoperand(x, name)
    type = type_of(x)
    return x if type.dtype == dtypes.bool_ else p.ne(x, type.dtype.type(0))


def logical_not(x: Any, /) -> Any:
    """Whether ``x`` is zero.

    Example:
        >>> print(logical_not([True, False]))
        [False  True]
    """
    return p.logical_not(_truth(x, "logical_not"))


def logical_and(x: Any, y: Any, /) -> Any:
    """Whether both are nonzero.

    Example:
        >>> print(logical_and([True, True], [True, False]))
        [ True False]
    """
    return p.bitwise_and(_truth(x, "logical_and"), _truth(y, "logical_and"))


def logical_or(x: Any, y: Any, /) -> Any:
    """Whether either is nonzero.

    Example:
        >>> print(logical_or([True, False], False))
        [ True False]
    """
    return p.bitwise_or(_truth(x, "logical_or"), _truth(y, "logical_or"))


def logical_xor(x: Any, y: Any, /) -> Any:
    """Whether exactly one is nonzero.

    Example:
        >>> print(logical_xor([True, True], [True, False]))
        [False  True]
    """
    return p.bitwise_xor(_truth(x, "logical_xor"), _truth(y, "logical_xor"))


def isnan(x: Any, /) -> Any:
    """Whether not a number.

    Example:
        >>> print(isnan([1.0, np.inf, np.nan]))
        [False False  True]
    """
    x = asoperand(x, "isnan")
    return p.ne(x, x)


def isfinite(x: Any, /) -> Any:
    """Whether neither infinite nor NaN; of a complex number, both parts.

    Example:
        >>> print(isfinite([1.0, np.inf, np.nan]))
        [ True False False]
    """
    (x,) = promoted(asoperand(x, "isfinite"))
    dtype = type_of(x).dtype
    if dtypes.is_complex(dtype):
        return p.bitwise_and(p.is_finite(p.real(x)), p.is_finite(p.imag(x)))
    return p.is_finite(x) if dtypes.is_floating(dtype) else p.eq(x, x)


def isinf(x: Any, /) -> Any:
    """Whether infinite; of a complex number, either part.

    Example:
        >>> print(isinf([1.0, np.inf, np.nan]))
        [False  True False]
    """
    (x,) = promoted(asoperand(x, "isinf"))
    if dtypes.is_complex(type_of(x).dtype):
        return p.bitwise_or(isinf(p.real(x)), isinf(p.imag(x)))
    return p.bitwise_and(p.logical_not(isfinite(x)), p.logical_not(isnan(x)))


def isposinf(x: Any, /) -> Any:
    """Whether infinite and positive.

    Example:
        >>> print(isposinf([-np.inf, np.inf]))
        [False  True]
    """
    return logical_and(isinf(x), greater(x, 0))


def isneginf(x: Any, /) -> Any:
    """Whether infinite and negative.

    Example:
        >>> print(isneginf([-np.inf, np.inf]))
        [ True False]
    """
    return logical_and(isinf(x), less(x, 0))


def fmax(x: Any, y: Any, /) -> Any:
    """The larger of two; of a number and NaN, the number.

    Example:
        >>> print(fmax(1.0, np.nan))
        1.0
    """
    x, y = promoted_pair(asoperand(x, "fmax"), asoperand(y, "fmax"))
    return p.select(p.ne(x, x), y, p.select(p.ne(y, y), x, p.maximum(x, y)))


def fmin(x: Any, y: Any, /) -> Any:
    """The smaller of two; of a number and NaN, the number.

    Example:
        >>> print(fmin(1.0, np.nan))
        1.0
    """
    x, y = promoted_pair(asoperand(x, "fmin"), asoperand(y, "fmin"))
    return p.select(p.ne(x, x), y, p.select(p.ne(y, y), x, p.minimum(x, y)))


def signbit(x: Any, /) -> Any:
    """Whether the sign bit is set, as it is for -0.0.

    Example:
        >>> print(signbit([0.0, -0.0]))
        [False  True]
    """
    (x,) = promoted(asoperand(x, "signbit"))
    dtype = type_of(x).dtype
    if not dtypes.is_floating(dtype):
        return p.lt(x, p.number(0, x))
    signed = dtypes.SIGNED[{2: 1, 4: 2, 8: 3}[dtype.itemsize]]
    return p.lt(p.bitcast(x, dtype=signed), signed.type(0))


def copysign(x: Any, y: Any, /) -> Any:
    """The size of ``x`` with the sign of ``y``.

    Example:
        >>> print(copysign(3.0, -0.0))
        -3.0
    """
    x, y = promoted(asoperand(x, "copysign"), asoperand(y, "copysign"), floating=True)
    return p.select(p.ne(signbit(x), signbit(y)), p.neg(x), x)


def heaviside(x: Any, y: Any, /) -> Any:
    """0 where ``x`` is negative, 1 where positive, ``y`` where zero.

    Example:
        >>> print(heaviside([-1.0, 0.0, 2.0], 0.5))
        [0.  0.5 1. ]
    """
    x, y = promoted(asoperand(x, "heaviside"), asoperand(y, "heaviside"), floating=True)
    zero = p.number(0, x)
    step = p.select(p.lt(x, zero), zero, p.select(p.gt(x, zero), p.number(1, x), y))
    return p.select(p.ne(x, x), x, step)


# ---------------------------------------------------------------- selection and complex parts


def where(condition: Any, x: Any, y: Any, /) -> Any:
    """``x`` where ``condition`` is nonzero, ``y`` elsewhere; the three broadcast together.

    No cotangent reaches the side that is not chosen, but its derivative is computed: keep both sides finite.

    Example:
        >>> print(where(True, 1.0, 2.0))
        1.0
    """
    x, y = promoted_pair(asoperand(x, "where"), asoperand(y, "where"))
    return p.select(_truth(condition, "where"), x, y)


def clip(x: Any, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None) -> Any:
    """``x`` held between ``min`` and ``max`` (also called ``a_min`` and ``a_max``); either may be None.

    Returns:
        An array of the broadcast shape. Its dtype is that of ``x``, unless a bound is of another kind (a floating one
        of whole numbers): then what they promote to.

    Example:
        >>> print(clip(3.0, 0.0, 1.0))
        1.0
        >>> clip(np.float32(3), 0.0, np.ones(1)).dtype
        dtype('float32')
    """
    x = asoperand(x, "clip")
    low, high = (_bound(x, given) for given in ((a_min if min is None else min), (a_max if max is None else max)))
    if low is not None and high is not None:
        x, low, high = promoted(x, low, high)
        return p.clamp(low, x, high)
    if low is not None:
        return maximum(x, low)
    return minimum(x, high) if high is not None else x


def _bound(x: Any, bound: Any) -> Any:
    """``bound`` as ``clip`` takes it: a number of the kind of ``x`` in the dtype of ``x``, or the nearest there is."""
    if bound is None:
        return None
    bound = asoperand(bound, "clip")
    wanted, own = type_of(x).dtype, type_of(bound).dtype
    if wanted == own or type_of(x).weak or type_of(bound).weak:
        return bound
    if dtypes.is_floating(wanted) and dtypes.is_floating(own):
        return astype(bound, wanted)
    if not (dtypes.is_integer(wanted) and dtypes.is_integer(own)):
        return bound
    limits = np.iinfo(wanted), np.iinfo(own)
    least, most = builtins.max(limit.min for limit in limits), builtins.min(limit.max for limit in limits)
    return astype(p.clamp(p.number(least, bound), bound, p.number(most, bound)), wanted)


def real(x: Any, /) -> Any:
    """The real part.

    Example:
        >>> print(real(1 + 2j))
        1.0
    """
    (x,) = promoted(asoperand(x, "real"))
    return p.real(x) if dtypes.is_complex(type_of(x).dtype) else x


def imag(x: Any, /) -> Any:
    """The imaginary part; zeros for real arrays.

    Example:
        >>> print(imag(1 + 2j))
        2.0
    """
    (x,) = promoted(asoperand(x, "imag"))
    return p.imag(x) if dtypes.is_complex(type_of(x).dtype) else full(p.number(0, x), type_of(x).shape)


def conj(x: Any, /) -> Any:
    """The complex conjugate.

    Example:
        >>> print(conj(1 + 2j))
        (1-2j)
    """
    (x,) = promoted(asoperand(x, "conj"))
    return p.conj(x) if dtypes.is_complex(type_of(x).dtype) else x


conjugate = conj


__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "cbrt", "clip", "conj", "conjugate",
    "copysign", "cos", "cosh", "divide", "equal", "exp", "exp2", "expm1", "fabs", "float_power", "fmax", "fmin",
    "greater", "greater_equal", "heaviside", "hypot", "imag", "invert", "isfinite", "isinf", "isnan", "isneginf",
    "isposinf", "left_shift", "less", "less_equal", "log", "log1p", "logical_and", "logical_not", "logical_or",
    "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow",
    "power", "real", "reciprocal", "right_shift", "rsqrt", "sign", "signbit", "sin", "sinc", "sinh", "sqrt",
    "square", "subtract", "tan", "tanh", "true_divide",
]  # fmt: skip
