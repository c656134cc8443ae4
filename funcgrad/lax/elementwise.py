"""Elementwise operations, one row each: strict about dtypes and ranks, as in XLA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from jax.lax import RoundingMethod

from funcgrad.core import dtypes
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of, typed
from funcgrad.lax.operands import checked, same_dtype, same_rank
from funcgrad.numpy.promotion import astype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.special import functions as s

_DOCUMENT = """{what}

Args:
    {arguments}: {kinds}.

Returns:
    An array of {result}.

Raises:
    TypeError: for operands that are not arrays or numbers, of different dtypes, or of one that it is not defined on.
    ValueError: for incompatible shapes.

Example:
    >>> print({name}({example}))
    {shown}
"""
_ALL, _INEXACT, _FLOATS, _COMPLEX = "numbers", "floating or complex numbers", "floating numbers", "complex numbers"
_REAL, _INTEGERS, _BITS, _ANY, _ORDERED = (
    "real numbers",
    "integers",
    "integers or bools",
    "any",
    "real numbers or bools",
)


def _declare(
    name: str,
    arguments: str,
    body: Callable[..., Any],
    what: str,
    kinds: str,
    example: str,
    shown: str,
    result: str = "",
) -> Callable[..., Any]:
    """Declares the function of that name, for operands of one dtype.

    Args:
        arguments: their names.
        body: in terms of primitives.
        what, kinds, example, shown: for its docstring: the first line, dtypes, a call's arguments, its printed result.
        result: the dtype of the result, if not that of the operands.
    """
    names = arguments.split()
    signature = Signature([Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in names])

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(names):
            args = signature.bind(*args, **kwargs).args
        xs = same_dtype(name, *args)
        same_rank(name, xs)
        return body(*xs)

    words = f"arrays or numbers: {kinds}" if kinds != _ANY else "arrays or numbers"
    if len(names) > 1:
        words += ", of one dtype, and one shape but for axes of size 1 and scalars"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOCUMENT.format(
        what=what, arguments=", ".join(names), kinds=words, name=name, example=example, shown=shown,
        result=f"that shape, {result or ('of their dtype' if len(names) > 1 else 'of its dtype')}",
    )  # fmt: skip
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _unary(
    name: str, body: Callable[..., Any], what: str, kinds: str, example: str, shown: str, result: str = ""
) -> Any:
    return _declare(name, "x", body, what, kinds, example, shown, result)


def _binary(
    name: str, body: Callable[..., Any], what: str, kinds: str, example: str, shown: str, result: str = ""
) -> Any:
    return _declare(name, "x y", body, what, kinds, example, shown, result)


def _of_complex(on_complex: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: (on_complex if dtypes.is_complex(type_of(x).dtype) else otherwise)(x)


def _conjugate(x: Any) -> Any:
    kind = type_of(x).dtype
    return p.conj(x if dtypes.is_complex(kind) else p.cast(x, dtype=dtypes.complex_of(kind)))


def _numeric(name: str, primitive: Primitive) -> Callable[..., Any]:
    """A primitive that also takes bools, restricted to numbers."""

    def body(*xs: Any) -> Any:
        if type_of(xs[0]).dtype == dtypes.bool_:
            raise TypeError(f"{name}: takes numeric arrays, got {type_of(xs[0])}")
        return primitive(*xs)

    return body


def _right_by_sign(x: Any, y: Any) -> Any:
    """The arithmetic right shift, for unsigned integers too."""
    kind = type_of(x).dtype
    if kind not in dtypes.UNSIGNED:
        return p.shift_right(x, y)
    signed = dtypes.SIGNED[dtypes.UNSIGNED.index(kind)]
    return p.bitcast(p.shift_right(p.bitcast(x, dtype=signed), p.bitcast(y, dtype=signed)), dtype=kind)


_TRUTH = "of bools"
_PARTS = "of its real dtype"

# ---------------------------------------------------------------- one operand

abs = _unary(
    "abs",
    _of_complex(p.complex_abs, _numeric("abs", p.absolute)),
    "The absolute value.",
    _ALL,
    "-2.0",
    "2.0",
    "of the real dtype",
)
acos = _unary("acos", p.acos, "The arc cosine.", _INEXACT, "1.0", "0.0")
acosh = _unary("acosh", p.acosh, "The inverse of the hyperbolic cosine.", _INEXACT, "1.0", "0.0")
asin = _unary("asin", p.asin, "The arc sine.", _INEXACT, "0.0", "0.0")
asinh = _unary("asinh", p.asinh, "The inverse of the hyperbolic sine.", _INEXACT, "0.0", "0.0")
atan = _unary("atan", p.atan, "The arc tangent.", _INEXACT, "0.0", "0.0")
atanh = _unary("atanh", p.atanh, "The inverse of the hyperbolic tangent.", _INEXACT, "0.0", "0.0")
bessel_i0e = _unary(
    "bessel_i0e", s.i0e, "The modified Bessel function of order 0, times exp(-|x|).", _FLOATS, "0.0", "1.0"
)
bessel_i1e = _unary(
    "bessel_i1e", s.i1e, "The modified Bessel function of order 1, times exp(-|x|).", _FLOATS, "0.0", "0.0"
)
bitwise_not = _unary("bitwise_not", p.logical_not, "Every bit the other one.", _BITS, "5", "-6")
cbrt = _unary("cbrt", p.cbrt, "The cube root.", _FLOATS, "8.0", "2.0")
ceil = _unary("ceil", p.ceil, "The next whole number, upwards.", _FLOATS, "1.5", "2.0")
clz = _unary("clz", p.count_leading_zeros, "How many bits are 0 before the first 1.", _INTEGERS, "np.int32(1)", "31")
conj = _unary("conj", _conjugate, "The complex conjugate.", _INEXACT, "1 + 2j", "(1-2j)", "of the complex dtype")
cos = _unary("cos", p.cos, "The cosine.", _INEXACT, "0.0", "1.0")
cosh = _unary("cosh", p.cosh, "The hyperbolic cosine.", _INEXACT, "0.0", "1.0")
digamma = _unary("digamma", p.digamma, "The derivative of ``lgamma``.", _FLOATS, "1.0", "-0.5772...")
erf = _unary("erf", p.erf, "The error function.", _FLOATS, "0.0", "0.0")
erf_inv = _unary("erf_inv", p.erf_inv, "The inverse of ``erf``.", _FLOATS, "0.0", "0.0")
erfc = _unary("erfc", p.erfc, "``1 - erf(x)``, exact where that is small.", _FLOATS, "0.0", "1.0")
exp = _unary("exp", p.exp, "The exponential.", _INEXACT, "0.0", "1.0")
exp2 = _unary("exp2", p.exp2, "A power of 2.", _INEXACT, "3.0", "8.0")
expm1 = _unary("expm1", p.expm1, "``exp(x) - 1``, exact near 0.", _INEXACT, "0.0", "0.0")
floor = _unary("floor", p.floor, "The next whole number, downwards.", _FLOATS, "1.5", "1.0")
imag = _unary("imag", p.imag, "The imaginary part.", _COMPLEX, "1 + 2j", "2.0", _PARTS)
is_finite = _unary("is_finite", p.is_finite, "Whether it is neither infinite nor NaN.", _FLOATS, "1.0", "True", _TRUTH)
lgamma = _unary("lgamma", p.lgamma, "The logarithm of the gamma function's absolute value.", _FLOATS, "1.0", "0.0")
log = _unary("log", p.log, "The natural logarithm.", _INEXACT, "1.0", "0.0")
log1p = _unary("log1p", p.log1p, "``log(1 + x)``, exact near 0.", _INEXACT, "0.0", "0.0")
logistic = _unary("logistic", p.logistic, "``1 / (1 + exp(-x))``.", _INEXACT, "0.0", "0.5")
neg = _unary("neg", p.neg, "The negative.", _ALL, "2.0", "-2.0")
population_count = _unary("population_count", p.population_count, "How many bits are 1.", _INTEGERS, "7", "3")
real = _unary("real", p.real, "The real part.", _COMPLEX, "1 + 2j", "1.0", _PARTS)
reciprocal = _unary("reciprocal", lambda x: p.div(p.number(1, x), x), "``1 / x``.", _INEXACT, "4.0", "0.25")
rsqrt = _unary("rsqrt", p.rsqrt, "``1 / sqrt(x)``.", _INEXACT, "4.0", "0.5")
sign = _unary(
    "sign", _of_complex(p.complex_sign, p.sign), "-1, 0 or 1; of complex numbers ``x / |x|``.", _ALL, "-2.0", "-1.0"
)
sin = _unary("sin", p.sin, "The sine.", _INEXACT, "0.0", "0.0")
sinh = _unary("sinh", p.sinh, "The hyperbolic sine.", _INEXACT, "0.0", "0.0")
sqrt = _unary("sqrt", p.sqrt, "The square root.", _INEXACT, "4.0", "2.0")
square = _unary("square", p.square, "``x * x``.", _ALL, "3.0", "9.0")
tan = _unary("tan", p.tan, "The tangent.", _INEXACT, "0.0", "0.0")
tanh = _unary("tanh", p.tanh, "The hyperbolic tangent.", _INEXACT, "0.0", "0.0")

# ---------------------------------------------------------------- several

add = _binary("add", p.add, "The sum; of bools, whether one is.", _ANY, "1.0, 2.0", "3.0")
atan2 = _binary(
    "atan2", p.atan2, "The angle of the point ``(y, x)``, whose height is the first one.", _FLOATS, "0.0, 1.0", "0.0"
)
bitwise_and = _binary("bitwise_and", p.bitwise_and, "Bit by bit, whether both are 1.", _BITS, "6, 3", "2")
bitwise_or = _binary("bitwise_or", p.bitwise_or, "Bit by bit, whether one is 1.", _BITS, "6, 3", "7")
bitwise_xor = _binary("bitwise_xor", p.bitwise_xor, "Bit by bit, whether one alone is 1.", _BITS, "6, 3", "5")
complex = _binary(
    "complex", p.make_complex, "``x + 1j * y``.", "float32 or float64", "1.0, 2.0", "(1+2j)", "of the complex dtype"
)
div = _binary("div", p.div, "The quotient; of integers, towards zero.", _ALL, "-7, 2", "-3")
eq = _binary("eq", p.eq, "Whether they are equal.", _ANY, "1.0, 1.0", "True", _TRUTH)
ge = _binary("ge", p.ge, "Whether the first is no smaller.", _ORDERED, "2.0, 1.0", "True", _TRUTH)
gt = _binary("gt", p.gt, "Whether the first is larger.", _ORDERED, "2.0, 1.0", "True", _TRUTH)
igamma = _declare(
    "igamma", "a x", s.igamma, "The lower regularized incomplete gamma function.", _FLOATS, "1.0, 0.0", "0.0"
)
igamma_grad_a = _declare(
    "igamma_grad_a",
    "a x",
    lambda a, x: s.igamma_by_a(a, x, order=1),
    "The derivative of ``igamma`` by ``a``.",
    _FLOATS,
    "1.0, 0.0",
    "0.0",
)
igammac = _declare(
    "igammac", "a x", s.igammac, "``1 - igamma(a, x)``, exact where that is small.", _FLOATS, "1.0, 0.0", "1.0"
)
le = _binary("le", p.le, "Whether the first is no larger.", _ORDERED, "2.0, 1.0", "False", _TRUTH)
lt = _binary("lt", p.lt, "Whether the first is smaller.", _ORDERED, "2.0, 1.0", "False", _TRUTH)
max = _binary("max", p.maximum, "The larger of two; NaN if either is.", _ORDERED, "1.0, 2.0", "2.0")
min = _binary("min", p.minimum, "The smaller of two; NaN if either is.", _ORDERED, "1.0, 2.0", "1.0")
mul = _binary("mul", p.mul, "The product; of bools, whether both are.", _ANY, "2.0, 3.0", "6.0")
ne = _binary("ne", p.ne, "Whether they differ.", _ANY, "1.0, 1.0", "False", _TRUTH)
nextafter = _declare(
    "nextafter", "x1 x2", p.nextafter, "The next number after ``x1`` towards ``x2``.", _FLOATS, "1.0, 2.0", "1.0000001"
)
polygamma = _declare(
    "polygamma", "m x", p.polygamma, "The derivative of ``digamma`` of order ``m``.", _FLOATS, "1.0, 1.0", "1.6449..."
)
random_gamma_grad = _declare(
    "random_gamma_grad",
    "a x",
    s.gamma_sample_slope,
    "The derivative of a gamma variable ``x`` by its parameter ``a``.",
    _FLOATS,
    "1.0, 1.0",
    "1.1735...",
)
rem = _binary("rem", p.rem, "What a division towards zero leaves, of the sign of ``x``.", _REAL, "-7, 2", "-1")
shift_left = _binary("shift_left", p.shift_left, "The bits, moved to higher places.", _INTEGERS, "1, 3", "8")
shift_right_arithmetic = _binary(
    "shift_right_arithmetic",
    _right_by_sign,
    "The bits, moved to lower places, filled up with the highest.",
    _INTEGERS,
    "-8, 1",
    "-4",
)
shift_right_logical = _binary(
    "shift_right_logical",
    p.shift_right_logical,
    "The bits, moved to lower places, filled up with 0.",
    _INTEGERS,
    "8, 1",
    "4",
)
sub = _binary("sub", p.sub, "The difference.", _ALL, "3.0, 1.0", "2.0")
zeta = _declare("zeta", "x q", s.zeta, "The Hurwitz zeta function.", _FLOATS, "2.0, 1.0", "1.6449...")
betainc = _declare(
    "betainc", "a b x", s.betainc, "The regularized incomplete beta function.", _FLOATS, "1.0, 1.0, 0.25", "0.25"
)

# ---------------------------------------------------------------- with their own argument rules


def clamp(min: Any, x: Any, max: Any) -> Any:
    """``x`` clamped to the range from ``min`` to ``max``.

    Args:
        min, max: of the dtype of ``x`` and its shape, or scalars.
        x: an array or number: real numbers or bools.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays or numbers, or of different dtypes.
        ValueError: for bounds of another shape.

    Example:
        >>> print(clamp(0.0, np.array([-1.0, 0.5, 2.0]), 1.0))
        [0.  0.5 1. ]
    """
    low, x, high = same_dtype("clamp", min, x, max)
    shape = type_of(x).shape
    for bound in (low, high):
        if type_of(bound).shape not in ((), shape):
            raise ValueError(f"clamp: a bound must be a scalar or have the shape {shape}, got {type_of(bound)}")
    return p.clamp(low, x, high)


def pow(x: Any, y: Any) -> Any:
    """A power.

    Args:
        x: an array or number: floating or complex numbers.
        y: of the dtype of ``x``, or integers; shapes as for ``add``.

    Returns:
        An array of that shape and the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays or numbers, or of incompatible dtypes.
        ValueError: for incompatible shapes.

    Example:
        >>> print(pow(np.array([2.0, 3.0]), 2), pow(2.0, -1.0))
        [4. 9.] 0.5
    """
    x, y = checked("pow", x), checked("pow", y)
    kind = type_of(x)
    if not kind.inexact:
        raise TypeError(f"pow: the base must be of floating or complex numbers, got {kind}; see integer_pow")
    if isinstance(y, int) and not isinstance(y, bool):
        return p.integer_power(typed(x), exponent=y)
    if dtypes.is_integer(type_of(y).dtype):
        y = p.cast(y, dtype=kind.dtype)
    x, y = same_dtype("pow", x, y)
    same_rank("pow", (x, y))
    return p.power(x, y)


def integer_pow(x: Any, y: int) -> Any:
    """A power with a static integer exponent.

    Args:
        x: an array or number; of integers, the exponent must not be negative.
        y: a Python integer.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or another kind of exponent.
        ValueError: for integers to a negative power.

    Example:
        >>> print(integer_pow(np.array([2, 3]), 2), integer_pow(2.0, -1))
        [4 9] 0.5
    """
    x = typed(checked("integer_pow", x))
    if not isinstance(y, (int, np.integer)) or isinstance(y, bool):
        raise TypeError(f"integer_pow: the exponent must be a Python integer, got {y!r}")
    if y < 0 and not type_of(x).inexact:
        raise ValueError(f"integer_pow: integers cannot be raised to the negative power {y}, got {type_of(x)}")
    return p.integer_power(x, exponent=int(y))


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest whole number.

    Args:
        x: an array or number: floating-point numbers.
        rounding_method: ties round away from zero, or with ``TO_NEAREST_EVEN`` to even.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or not of floating-point numbers.

    Example:
        >>> x = np.array([0.5, 1.5, 2.5])
        >>> print(round(x), round(x, RoundingMethod.TO_NEAREST_EVEN))
        [1. 2. 3.] [0. 2. 2.]
    """
    x = typed(checked("round", x))
    even = RoundingMethod(rounding_method) == RoundingMethod.TO_NEAREST_EVEN
    return (p.round_half_even if even else p.round_half_away)(x)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Numbers rounded to fewer exponent and mantissa bits, in the same dtype.

    Args:
        operand: an array or number: floating-point numbers.
        exponent_bits, mantissa_bits: the numbers of bits, at least one and zero.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        TypeError: for operands that are not arrays, or not of floating-point numbers.
        ValueError: for fewer bits.

    Example:
        >>> print(reduce_precision(np.float32(1.001), 5, 3))
        1.0
    """
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: wants a bit of exponent at least, got {exponent_bits} and {mantissa_bits} of mantissa"
        )
    x = typed(checked("reduce_precision", operand))
    return p.reduce_precision(x, exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits))


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """An array cast to another dtype; a complex array cast to a real dtype keeps the real parts.

    Args:
        operand: an array or number.
        new_dtype: a dtype, its name, or a Python type.

    Returns:
        An array of that dtype.

    Raises:
        TypeError: for operands that are not arrays, or an unknown dtype.

    Example:
        >>> print(convert_element_type(np.array([1.5, 2.5]), "int32"))
        [1 2]
    """
    return astype(typed(checked("convert_element_type", operand)), dtypes.canonical(new_dtype))


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Elements of one array where ``pred`` holds, of the other elsewhere.

    Args:
        pred: bools, of their shape or a scalar.
        on_true, on_false: of one dtype and one shape.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: if ``pred`` is not bool, or dtypes differ.
        ValueError: if shapes differ.

    Example:
        >>> print(select(np.array([True, False]), np.array([1, 2]), np.array([3, 4])))
        [1 4]
    """
    pred, cases = _choice("select", pred, [on_false, on_true])
    if type_of(pred).dtype != dtypes.bool_:
        raise TypeError(f"select: what chooses must be of bools, got {type_of(pred)}; see select_n")
    return p.select(pred, cases[1], cases[0])


def select_n(which: Any, *cases: Any) -> Any:
    """Elements of one of several arrays, by an array of indices, which are clamped.

    Args:
        which: bools, for at most two cases, or int32; of the shape of the cases, or a scalar.
        cases: at least one array, all of one dtype and shape.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: if ``which`` is not bool or integer, or dtypes differ.
        ValueError: if shapes differ, there is no case, or more than two for bools.

    Example:
        >>> print(select_n(np.array([2, 0]), np.array([1, 2]), np.array([3, 4]), np.array([5, 6])))
        [5 2]
    """
    which, chosen = _choice("select_n", which, cases)
    kind = type_of(which)
    if kind.dtype == dtypes.bool_ and len(chosen) <= 2:
        return p.select(which, chosen[-1], chosen[0])
    if not dtypes.is_integer(kind.dtype):
        raise TypeError(f"select_n: what chooses one of {len(chosen)} cases must be of integers, got {kind}")
    out = chosen[-1]
    for i in range(len(chosen) - 2, -1, -1):
        out = p.select(p.le(which, p.number(i, which)), chosen[i], out)
    return out


def _choice(name: str, which: Any, cases: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The selector and the cases, of one type."""
    which = typed(checked(name, which))
    if not cases:
        raise ValueError(f"{name}: there is nothing to choose from")
    chosen = same_dtype(name, *cases)
    kind, shape = type_of(which), type_of(chosen[0]).shape
    if any(type_of(x).shape != shape for x in chosen) or kind.shape not in ((), shape):
        types = ", ".join(str(type_of(x)) for x in chosen)
        raise ValueError(f"{name}: cases must have one shape, and what chooses that or none, got {kind} and {types}")
    return which, chosen


__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e", "bessel_i1e", "betainc",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clamp", "clz", "complex", "conj",
    "convert_element_type", "cos", "cosh", "digamma", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1",
    "floor", "ge", "gt", "igamma", "igamma_grad_a", "igammac", "imag", "integer_pow", "is_finite", "le", "lgamma",
    "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg", "nextafter", "polygamma",
    "population_count", "pow", "random_gamma_grad", "real", "reciprocal", "reduce_precision", "rem", "round", "rsqrt",
    "select", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "sqrt",
    "square", "sub", "tan", "tanh", "zeta",
]  # fmt: skip
