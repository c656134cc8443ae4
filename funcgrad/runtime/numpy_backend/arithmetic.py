"""Rules of elementwise primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.runtime.numpy_backend.erf import erf_of_large
from funcgrad.runtime.numpy_backend.scipy_functions import special
from funcgrad.runtime.numpy_backend.table import RULES, SHORT, NotEquivalent, Rule, Short, rule, short


def _special(name: str) -> Callable[..., Any]:
    """A function of ``scipy.special``, loaded when it is called for the first time."""

    def run(*xs: Any) -> Any:
        return special(name)(*xs)

    return run


def _lgamma(x: Any) -> Any:
    return special("gammaln")(np.where(np.isneginf(x), -x, x))  # where SciPy has minus infinity


#: Arrays of so many elements are worth several passes over them.
_LARGE = 1 << 12


def _logistic(x: Any) -> Any:
    """Of large arrays in half of the time that SciPy's takes."""
    if x.dtype != np.float32 or x.size < _LARGE:
        return special("expit")(x)
    made = np.negative(x)
    np.exp(made, made)  # where it overflows the result is 0, as it should be
    made += 1
    return np.divide(1, made, made)


def _erf(x: Any) -> Any:
    return erf_of_large(x) if x.dtype == np.float32 and x.size >= _LARGE else special("erf")(x)


#: NumPy functions that agree with the primitive for all its dtypes.
_SAME: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "square": np.square, "max": np.maximum,
    "min": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "is_finite": np.isfinite, "not": np.invert, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "select": np.where, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "abs": np.abs, "complex_abs": np.abs, "real": np.real, "imag": np.imag, "conj": np.conj, "gcd": np.gcd,
}  # fmt: skip

#: Those that agree for floating dtypes. NumPy's are less accurate for complex numbers, so these are compiled.
_FLOATING: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power, "logistic": _logistic, "erf": _erf,
    "erfc": _special("erfc"), "lgamma": _lgamma, "digamma": _special("psi"),
    "erf_inv": _special("erfinv"), "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


def _floating(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function computed in float32 for shorter dtypes, as XLA does."""

    def run(*xs: Any) -> Any:
        dtype = xs[0].dtype
        if dtype == np.float32 or dtype == np.float64:
            return function(*xs)
        if dtype.kind in "ciub":
            raise NotEquivalent
        return np.asarray(function(*[np.asarray(x, np.float32) for x in xs])).astype(dtype)

    return run


@rule("nextafter")
def _nextafter(x: Any, toward: Any) -> Any:
    """Next to zero this is right where XLA, which takes denormal numbers for zero in comparisons, is not."""
    if x.dtype not in _FLOATS:
        raise NotEquivalent
    return np.nextafter(x, toward)


def _short_of(function: Callable[..., Any]) -> Short:
    """The function itself for dtypes that it is defined for."""

    def find(types: Sequence[ArrayType], **_: Any) -> Rule | None:
        return function if types[0].dtype in _FLOATS else None

    return find


#: The dtypes in which NumPy computes as XLA does.
_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))

RULES.update(_SAME)
RULES.update({name: _floating(function) for name, function in _FLOATING.items()})
SHORT.update({name: _short_of(function) for name, function in _FLOATING.items()})


@rule("stop_gradient", "name", "constant")
def _itself(x: Any, *_: Any, **__: Any) -> Any:
    return x


@rule("optimization_barrier")
def _themselves(*xs: Any) -> list[Any]:
    return list(xs)


@rule("integer_pow")
def _integer_pow(x: Any, *, exponent: int) -> Any:
    """By repeated multiplication, as XLA's lowering does."""
    if exponent < 0:
        if x.dtype.kind != "f":
            raise NotEquivalent
        return 1 / _integer_pow(x, exponent=-exponent)
    result: Any = None
    while exponent:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        x = x * x if exponent else x
    return np.ones_like(x) if result is None else result


_quotient = _floating(np.divide)


def _quotient_of_integers(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _short_of_integers(function: Callable[[int, int], int], otherwise: Short) -> Short:
    """The short rule of a function of two integers that are arrays without dimensions, such as the places where views
    begin: NumPy takes several times as long. ``otherwise`` is that of other operands."""

    def find(types: Sequence[ArrayType], **_: Any) -> Rule | None:
        dtype = types[0].dtype
        if dtype.kind != "i" or any(t.ndim for t in types):
            return otherwise(types)

        def run(x: Any, y: Any) -> Any:
            divisor = y.item()
            if not divisor:
                raise NotEquivalent
            return np.array(function(x.item(), divisor), dtype)

        return run

    return find


#: The number of elements from which ``_selected`` is faster than ``np.where``.
_MANY = 1 << 14


@short("select")
def _selection(types: Sequence[ArrayType], **_: Any) -> Rule | None:
    dtype = types[1].dtype
    if dtype not in _FLOATS or max(t.size for t in types) < _MANY:
        return None
    return partial(_selected, np.dtype(f"i{dtype.itemsize}"))


def _selected(bits: np.dtype, condition: Any, x: Any, y: Any) -> Any:
    """``np.where`` without a branch for each element, which takes several times as long where it is mispredicted.

    Args:
        bits: the integer dtype of the size of an element.
    """
    chosen = np.negative(condition.view(np.int8), dtype=bits)  # all bits are set where the condition holds
    y = y.view(bits)
    made = np.bitwise_and(chosen, x.view(bits) ^ y)
    return np.bitwise_xor(made, y).view(x.dtype)


SHORT["div"] = _short_of_integers(_quotient_of_integers, _short_of(np.divide))


@rule("div")
def _div(x: Any, y: Any) -> Any:
    """Integer division rounds towards zero."""
    if x.dtype.kind not in "iu":
        return _quotient(x, y)
    if not y.all():
        raise NotEquivalent
    down = np.floor_divide(x, y)
    return down + ((x < 0) != (y < 0)) * (down * y != x)


def _modulo(function: Callable[..., Any], x: Any, y: Any) -> Any:
    if x.dtype.kind != "f" and not (y.all() if y.ndim else y):
        raise NotEquivalent
    return function(x, y)


RULES["remainder"] = partial(_modulo, np.remainder)
RULES["rem"] = partial(_modulo, np.fmod)


def _rest_of_integers(x: int, y: int) -> int:
    return x - y * _quotient_of_integers(x, y)


SHORT.update(remainder=_short_of(np.remainder), rem=_short_of_integers(_rest_of_integers, _short_of(np.fmod)))


@rule("floor_divide")
def _floor_divide(x: Any, y: Any) -> Any:
    if x.dtype.kind == "f" or not y.all():
        raise NotEquivalent
    return np.floor_divide(x, y)


@rule("sign")
def _sign(x: Any) -> Any:
    return np.where(x == 0, x, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


@rule("clamp")
def _clamp(low: Any, x: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


def _shift(function: Callable[..., Any], x: Any, y: Any) -> Any:
    if not np.all((y >= 0) & (y < 8 * x.dtype.itemsize)):
        raise NotEquivalent
    return function(x, y)


RULES["shift_left"] = partial(_shift, np.left_shift)
RULES["shift_right"] = partial(_shift, np.right_shift)


@rule("shift_right_logical")
def _shift_right_logical(x: Any, y: Any) -> Any:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return _shift(np.right_shift, np.asarray(x).astype(unsigned), np.asarray(y).astype(unsigned)).astype(x.dtype)


@rule("cast")
def _cast(x: Any, *, dtype: np.dtype, weak: bool = False) -> Any:
    x = np.asarray(x)
    if dtype in dtypes.FLOAT8 and x.dtype != dtype:
        return dtypes.as_float8(x, dtype)
    if x.dtype in dtypes.FLOAT8:
        x = x.astype(np.float32)
    if x.dtype.kind == "c" and np.dtype(dtype).kind not in "cb":
        x = x.real
    if np.dtype(dtype).kind in "iu" and x.dtype.kind not in "iub":
        limits = np.iinfo(dtype)
        wide = x.astype(np.float64)
        if not np.all((wide > float(limits.min) - 1) & (wide < float(limits.max))):
            raise NotEquivalent  # XLA saturates
    return x.astype(dtype)


@short("cast")
def _short_cast(types: Sequence[ArrayType], *, dtype: np.dtype, weak: bool = False) -> Rule | None:
    source, target = types[0].dtype, np.dtype(dtype)
    looks = (target.kind in "iu" and source.kind not in "iub") or (source.kind == "c" and target.kind not in "cb")
    if looks or source in dtypes.FLOAT8 or target in dtypes.FLOAT8:
        return None
    return methodcaller("astype", target)


@rule("bitcast")
def _bitcast(x: Any, *, dtype: np.dtype) -> Any:
    x = np.array(x, order="C")
    if x.dtype.itemsize != np.dtype(dtype).itemsize:
        raise NotEquivalent
    return x.view(dtype)


@rule("complex")
def _complex(x: Any, y: Any) -> Any:
    made = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype, np.complex64))
    made.real, made.imag = x, y
    return made
