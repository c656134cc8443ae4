"""``gcd``, ``lcm``, ``nextafter``, ``frexp``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from compat._core.operators.op import aten
from compat._core.operators.out import of_dtype
from compat._core.tensor.tensor import Tensor
from compat._operators.pointwise.declare import binary, refuses, zeros_like
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.integers import gcd as common_divisor

# ---------------------------------------------------------------- integers


_EXAMPLE = "torch.tensor([4, 6]), torch.tensor([6, 9])"


def _lcm(x: Any, y: Any) -> Any:
    divisor = common_divisor(x, y)
    zero = e.number(0, x)
    safe = np.where(divisor == zero, e.number(1, x), divisor)
    return np.where(divisor == zero, zero, np.abs(np.floor_divide(x, safe) * y))


gcd = binary(
    "gcd", None, common_divisor, "The greatest common divisors.", check=refuses("gcd_cpu", "bool float complex"),
    example=_EXAMPLE,
)  # fmt: skip
lcm = binary(
    "lcm", None, _lcm, "The least common multiples.", check=refuses("lcm_cpu", "bool float complex"), example=_EXAMPLE
)

# ---------------------------------------------------------------- floating-point numbers


def _next(x: Any, other: Any) -> Any:
    if type_of(x).dtype.itemsize > 2:
        return e.nextafter(x, other)
    # XLA has no nextafter for 16-bit formats; their bits without the sign are consecutive integers.
    bits, sign = numpy.dtype(numpy.int16), numpy.int16(-(2**15))
    zero = e.number(0, x)
    words = e.bitcast(x, dtype=bits)
    grows = (other > x) == (x > zero)
    found = e.bitcast(np.where(grows, words + numpy.int16(1), words - numpy.int16(1)), dtype=type_of(x).dtype)
    smallest = np.where(other > zero, numpy.int16(1), sign | numpy.int16(1))
    found = np.where(x == zero, e.bitcast(smallest, dtype=type_of(x).dtype), found)
    return np.where((x != x) | (other != other), x + other, np.where(x == other, other, found))


nextafter = binary(
    "nextafter",
    "NextafterBackward0",
    _next,
    "The next representable numbers towards ``other``.",
    saves="other self",
    check=refuses("nextafter_cpu", "bool integer complex"),
)


@nextafter.backward
def nextafter_backward(ct: Any, input: Any, other: Any) -> tuple[Any, Any]:
    same = input == other
    return np.where(same, zeros_like(ct), ct), zeros_like(ct)


class _Format(NamedTuple):
    """The layout of a floating-point format."""

    integer: numpy.dtype
    mantissa: int
    bias: int

    @property
    def field(self) -> int:
        """The mask of the exponent field, shifted to the lowest bits."""
        return 2 * self.bias + 1


_FORMATS = {4: _Format(fdtypes.int32, 23, 127), 8: _Format(fdtypes.int64, 52, 1023)}


def _exponents(x: Any) -> Any:
    """The integers ``n`` with ``0.5 <= abs(x) * 2**-n < 1``; 0 for zero and non-finite numbers."""
    form = _FORMATS[type_of(x).dtype.itemsize]
    # Subnormal numbers are scaled up first.
    scaling = e.number(2.0 ** (form.mantissa + 1), x)
    small = np.abs(x) < e.number(float(numpy.finfo(type_of(x).dtype).tiny), x)
    bits = e.bitcast(np.where(small, x * scaling, x), dtype=form.integer)
    one = form.integer.type
    field = e.shift_right(bits, one(form.mantissa)) & one(form.field)
    found = field - one(form.bias - 1) - np.where(small, one(form.mantissa + 1), one(0))
    zero_or_nonfinite = (x == e.number(0, x)) | (field == one(form.field))
    return np.where(zero_or_nonfinite, one(0), found)


def _check_frexp(input: Tensor) -> None:
    if not input.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")


def _scaled(x: Any, exponent: Any) -> Any:
    """``x * 2**-exponent``, in two steps so that neither factor overflows."""
    half = e.shift_right(exponent, type_of(exponent).dtype.type(1))
    two = e.number(2, x)
    return (
        x
        * e.power(two, e.cast(-half, dtype=type_of(x).dtype))
        * e.power(two, e.cast(half - exponent, dtype=type_of(x).dtype))
    )


def _check_frexp_out(result: Tensor, out: Tensor, operands: Any) -> None:
    if result.dtype.is_floating_point:
        of_dtype("torch.frexp() expects mantissa to have dtype {result_cpp} but got {out_cpp}")(result, out, operands)
    else:
        of_dtype("torch.frexp() expects exponent to have int dtype but got {out_cpp}")(result, out, operands)


@aten(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    node="FrexpBackward0", saves="exponent", names="torch.frexp Tensor.frexp", layout="pointwise", check=_check_frexp,
    out=_check_frexp_out,
)  # fmt: skip
def frexp(input):
    """The mantissas, whose magnitudes are in [0.5, 1), and the exponents to base 2.

    Raises:
        RuntimeError: for tensors that are not floating.

    Example:
        >>> torch.frexp(torch.tensor([1.0, -6.0]))
        torch.return_types.frexp(
        mantissa=tensor([ 0.5000, -0.7500]),
        exponent=tensor([1, 3], dtype=torch.int32))
    """
    dtype = type_of(input).dtype
    wide = input if dtype.itemsize >= 4 else e.cast(input, dtype=fdtypes.float32)
    exponent = _exponents(wide)
    mantissa = e.cast(_scaled(wide, exponent), dtype=dtype)
    return mantissa, e.cast(exponent, dtype=fdtypes.int32)


@frexp.backward
def frexp_backward(ct0: Any, exponent: Any) -> Any:
    return ct0 / e.exp2(e.cast(exponent, dtype=type_of(ct0).dtype))
