"""Comparisons, tests of numbers, logical and bitwise operators, ``copysign``, ``heaviside``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.memory.meta import check_values
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Dtypes, Gradients
from compat._core.operators.op import Op, pointwise
from compat._core.operators.out import of_dtype, same_dtype
from compat._core.tensor.registry import function, publish
from compat._core.tensor.tensor import Tensor, array_of
from compat._core.types import dtype
from compat._core.types.errors import lacks, wrong_combination
from compat._operators.pointwise.declare import (
    binary,
    category,
    checks,
    operator,
    overloaded,
    reflected,
    refuses,
    spread_names,
    unary,
    zeros_like,
)
from funcgrad import numpy as np
from funcgrad import runtime
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e

# ---------------------------------------------------------------- comparisons


def _check_operands(name: str) -> Callable[..., None]:
    """A check that the first operand is a tensor."""

    def check(input: Any, other: Any) -> None:
        if not isinstance(input, Tensor):
            raise wrong_combination(name, (input, other))

    return check


def _comparison(name: str, primitive: Any, summary: str, aliases: str = "", ordered: bool = True) -> Op:
    check = _check_operands(name)
    if ordered:
        check = checks(check, refuses(f"{name}_cpu", "complex"))
    compared = binary(
        name, None, primitive, summary, aliases=aliases, overloads="Tensor Scalar", check=check,
        example="torch.tensor([1, 2]), 2", inplace=False,
    )  # fmt: skip
    _declare_in_place(compared, primitive, check, aliases)
    return compared


def _declare_in_place(compared: Op, primitive: Any, check: Any, aliases: str) -> None:
    """Declares the in-place variant. It has a node, since its target may require grad; the gradient is zero."""
    node = f"{compared.name.capitalize()}Backward"

    def body(input, other):
        return np.astype(primitive(input, other), fdtypes.real_of(type_of(input).dtype))

    of_number = pointwise(
        f"{compared.name}.Scalar(Tensor self, Scalar other) -> Tensor",
        node=f"{node}0", names="", dtypes=Dtypes(promote="common", of="input other"), check=check,
    )(body)  # fmt: skip
    of_tensor = pointwise(
        f"{compared.name}.Tensor(Tensor self, Tensor other) -> Tensor", node=f"{node}1", names="", check=check
    )(body)

    def variant(self: Tensor, other: Any) -> Tensor:
        if self.dtype.category < dtype.FLOATING:
            return compared.inplace(self, other)
        return (of_tensor if isinstance(other, Tensor) else of_number).inplace(self, other)

    variant.__name__ = variant.__qualname__ = f"{compared.name}_"
    variant.__doc__ = f"``{compared.name}``, written into the tensor."
    composite(
        f"{compared.name}_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        f"{compared.name}_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        names=spread_names(compared.name, aliases)[1],
        errors="own",
    )(variant)


eq = _comparison("eq", e.eq, "Whether elements are equal.", ordered=False)
ne = _comparison("ne", e.ne, "Whether elements differ.", "not_equal", ordered=False)
lt = _comparison("lt", e.lt, "Whether elements of ``input`` are smaller.", "less")
le = _comparison("le", e.le, "Whether elements of ``input`` are not larger.", "less_equal")
gt = _comparison("gt", e.gt, "Whether elements of ``input`` are larger.", "greater")
ge = _comparison("ge", e.ge, "Whether elements of ``input`` are not smaller.", "greater_equal")
for _op in (eq, ne, lt, le, gt, ge):
    operator(_op, f"__{_op.name}__", arrays=_op is eq)


@composite("equal(Tensor self, Tensor other) -> bool")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same size and elements.

    Raises:
        TypeError: for anything that is not a tensor.

    Example:
        >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
        True
    """
    check_values("equal", input, other)
    if input.dtype in dtype.FLOAT8:
        raise lacks("equal_notnan_cpu", input.dtype)
    if input.shape != other.shape:
        return False
    if _is_known(input) and _is_known(other):
        return bool((array_of(input) == array_of(other)).all())
    return bool(eq(input.detach(), other.detach()).all())


#: Up to so many elements NumPy compares known values sooner than a recorded operation.
_FEW = 1 << 14


def _is_known(t: Tensor) -> bool:
    """Whether a tensor has few elements, with values that are computed already."""
    layout = t._layout_
    return layout.numel <= _FEW and not layout.base.traced and runtime.computed(t._storage_.buffer) is not None


def _isclose(x: Any, y: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    same = x == y
    if equal_nan:
        same = np.logical_or(same, np.logical_and(np.isnan(x), np.isnan(y)))
    if category(x) < dtype.FLOATING:
        x, y = (np.astype(v, fdtypes.float64) for v in (x, y))
    size = np.absolute(y)
    tolerance = e.number(atol, size) + e.number(rtol, size) * size
    return np.logical_or(same, np.logical_and(np.isfinite(y), np.absolute(x - y) <= tolerance))


def _check_isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")


@pointwise(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    names="torch.isclose Tensor.isclose", dtypes=Dtypes(), check=_check_isclose, out=False,
)  # fmt: skip
def isclose(input, other, rtol, atol, equal_nan):
    """Whether elements differ by at most ``atol + rtol * abs(other)``.

    Args:
        input, other: tensors of one dtype that broadcast together.
        rtol, atol: the relative and the absolute tolerance.
        equal_nan: whether NaN counts as equal to NaN.

    Raises:
        RuntimeError: for different dtypes and negative tolerances.

    Example:
        >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0000001, 2.1]))
        tensor([ True, False])
    """
    return _isclose(input, other, rtol, atol, equal_nan)


@composite("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements differ by at most ``atol + rtol * abs(other)``; arguments as for ``isclose``.

    Example:
        >>> torch.allclose(torch.tensor([1.0]), torch.tensor([1.0000001]))
        True
    """
    return bool(isclose(input.detach(), other.detach(), rtol, atol, equal_nan).all())


# ---------------------------------------------------------------- tests of numbers


def _test(
    name: str, body: Callable[[Any], Any], summary: str, check: Callable[..., None] | None = None, out: Any = False
) -> Op:
    return unary(name, None, body, summary, dtypes="common", inplace=False, out=out, check=check)


def _is_infinity(name: str, infinity: float) -> Op:
    def body(x: Any) -> Any:
        floating = category(x) == dtype.FLOATING
        return x == e.number(infinity, x) if floating else np.zeros(type_of(x).shape, dtype.bool_.numpy)

    sign = "minus infinity" if infinity < 0 else "infinity"
    refused = refuses("", "complex", message=f"{name} does not support complex inputs.", error=RuntimeError)
    return _test(name, body, f"Whether elements are {sign}.", check=refused, out=_only_bools(name))


def _only_bools(name: str) -> Callable[..., None]:
    return of_dtype(f"{name} does not support non-boolean outputs.")


isnan = _test("isnan", np.isnan, "Whether elements are not a number.")
isinf = _test("isinf", np.isinf, "Whether elements are infinite.")
isfinite = _test("isfinite", np.isfinite, "Whether elements are neither infinite nor NaN.")
isposinf = _is_infinity("isposinf", float("inf"))
isneginf = _is_infinity("isneginf", float("-inf"))


def _isreal(x: Any) -> Any:
    if category(x) < dtype.COMPLEX:
        return np.ones(type_of(x).shape, dtype.bool_.numpy)
    return e.imag(x) == e.number(0, e.imag(x))


isreal = _test("isreal", _isreal, "Whether elements have no imaginary part.")
signbit = _test(
    "signbit",
    lambda x: np.zeros(type_of(x).shape, dtype.bool_.numpy) if category(x) == dtype.BOOL else np.signbit(x),
    "Whether elements have their sign bit set, as -0.0 has.",
    check=refuses("", "complex", message="signbit is not implemented for complex tensors."),
    out=_only_bools("signbit"),
)

# ---------------------------------------------------------------- logic


logical_not = unary("logical_not", None, np.logical_not, "Whether elements are zero.", dtypes="common")


def _logical(name: str, body: Callable[[Any, Any], Any], summary: str) -> Op:
    return binary(name, None, body, summary, example="torch.tensor([True, False]), torch.tensor([True, True])")


logical_and = _logical("logical_and", np.logical_and, "Whether both elements are nonzero.")
logical_or = _logical("logical_or", np.logical_or, "Whether at least one of the elements is nonzero.")
logical_xor = _logical("logical_xor", np.logical_xor, "Whether exactly one of the elements is nonzero.")

# ---------------------------------------------------------------- bits


def _bitwise(
    name: str, kernel: str, body: Callable[[Any, Any], Any], summary: str, own: str, refused: str = "float complex"
) -> Op:
    """Declares a bitwise operator, also as Python's operator ``own``."""
    op = binary(
        name,
        None,
        body,
        summary,
        overloads=f"Tensor Scalar_Tensor {'Tensor_Scalar' if 'shift' in name else 'Scalar'}",
        check=refuses(kernel, refused),
        example="torch.tensor([6, 5]), 3",
        arguments=Arguments(without_out="Scalar_Tensor"),
    )
    operator(op, f"__{own}__")
    operator(op, f"__i{own}__", inplace=True)
    return op


def _shift(shift: Callable[[Any, Any], Any], overflow: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A shift that is defined for every count: ``overflow`` gives the result for negative counts and those >= width."""

    def body(x: Any, count: Any) -> Any:
        width = e.number(8 * type_of(x).dtype.itemsize, x)
        valid = np.logical_and(count >= e.number(0, count), count < width)
        return np.where(valid, shift(x, np.where(valid, count, zeros_like(count))), overflow(x))

    return body


bitwise_and = _bitwise("bitwise_and", "bitwise_and_cpu", e.bitwise_and, "The bitwise and.", "and")
bitwise_or = _bitwise("bitwise_or", "bitwise_or_cpu", e.bitwise_or, "The bitwise or.", "or")
bitwise_xor = _bitwise("bitwise_xor", "bitwise_xor_cpu", e.bitwise_xor, "The bitwise exclusive or.", "xor")
bitwise_left_shift = _bitwise(
    "bitwise_left_shift",
    "lshift_cpu",
    _shift(e.shift_left, zeros_like),
    "The bits shifted left by ``other`` places.",
    "lshift",
    refused="bool float complex",
)
bitwise_right_shift = _bitwise(
    "bitwise_right_shift",
    "rshift_cpu",
    _shift(
        lambda x, n: e.shift_right(x, n) if type_of(x).dtype.kind == "i" else e.shift_right_logical(x, n),
        lambda x: (
            np.where(x < e.number(0, x), e.number(-1, x), e.number(0, x))
            if type_of(x).dtype.kind == "i"
            else zeros_like(x)
        ),
    ),
    "The bits shifted right by ``other`` places, filled with copies of the sign bit.",
    "rshift",
    refused="bool float complex",
)
bitwise_not = unary(
    "bitwise_not", None, e.logical_not, "The bitwise not; for bools, the logical not.", dtypes="common", out=same_dtype,
    check=refuses("bitwise_not_cpu", "float complex"), example="torch.tensor([1, 2])",
)  # fmt: skip
operator(bitwise_and, "__rand__")
operator(bitwise_or, "__ror__")
operator(bitwise_xor, "__rxor__")
publish(reflected(bitwise_left_shift.function), "Tensor.__rlshift__")
publish(reflected(bitwise_right_shift.function), "Tensor.__rrshift__")


@function("Tensor.__invert__")
def invert(self: Tensor) -> Tensor:
    """``~self``."""
    if self.dtype.category > dtype.INTEGER:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(self)


# ---------------------------------------------------------------- signs and steps


def _copysign_backward(ct: Any, input: Any, result: Any) -> Any:
    zero = input == e.number(0, input)
    return np.where(zero, zeros_like(ct), ct * (result / input))


@pointwise(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    node="CopysignBackward0", saves="result! self", names="", dtypes="float", check=refuses("copysign_cpu", "complex"),
    out=True,
)  # fmt: skip
def _copysign_tensors(input, other):
    return np.copysign(input, other)


@_copysign_tensors.backward
def _copysign_tensors_backward(ct: Any, input: Any, result: Any) -> Any:
    return _copysign_backward(ct, input, result), zeros_like(ct)


@pointwise(
    "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
    node="CopysignBackward1", saves="result self", names="", dtypes=Dtypes(promote="float", of="input other"),
    check=refuses("copysign_cpu", "complex"), out=True,
)  # fmt: skip
def _copysign_number(input, other):
    return np.copysign(input, other)


_copysign_number.backward(_copysign_backward)


@overloaded(_copysign_tensors, _copysign_number)
def copysign(input: Any, other: Any) -> Op:
    """The magnitude of ``input`` with the sign of ``other``.

    Args:
        input: a tensor.
        other: a tensor or a number.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for complex tensors.

    Example:
        >>> torch.copysign(torch.tensor([1.0, -2.0]), -0.0)
        tensor([-1., -2.])
    """
    return _copysign_tensors if isinstance(other, Tensor) else _copysign_number


_DIFFERENT_DTYPES = "heaviside is not yet implemented for tensors with different dtypes."


def _check_heaviside(input: Tensor, values: Tensor) -> None:
    if input.dtype.is_complex or values.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError(_DIFFERENT_DTYPES)


def _check_heaviside_out(result: Tensor, out: Tensor, operands: Any) -> None:
    if out.is_complex():
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    of_dtype(_DIFFERENT_DTYPES)(result, out, operands)


@pointwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    dtypes=Dtypes(), check=_check_heaviside, out=_check_heaviside_out, gradients=Gradients(undefined=True),
)  # fmt: skip
def heaviside(input, values):
    """0 where ``input`` is negative, 1 where it is positive, and ``values`` where it is zero.

    Args:
        input, values: tensors of one dtype that broadcast together.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for complex tensors and different dtypes.

    Example:
        >>> torch.heaviside(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor(0.5))
        tensor([0.0000, 0.5000, 1.0000])
    """
    zero = zeros_like(input)
    step = np.astype(zero < input, type_of(input).dtype)
    return np.where(input == zero, values, step)
