"""``floor``, ``ceil``, ``trunc``, ``frac``, ``round``."""

from __future__ import annotations

from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes
from compat._core.operators.op import Op, pointwise
from compat._core.operators.out import same_dtype
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._operators.pointwise.declare import (
    category,
    checks,
    only_floating,
    overloaded,
    refuses,
    unary,
    zero_gradient,
    zeros_like,
)
from funcgrad.primitives import elementwise as e


def _of_floats(round: Any) -> Any:
    """A function that rounds floating-point numbers and returns integers unchanged."""
    return lambda x: round(x) if category(x) == dtype.FLOATING else x


def _check(name: str) -> Any:
    message = f"{name} is not supported for complex inputs"
    return checks(refuses(f"{name}_vml_cpu", "bool"), refuses("", "complex", message=message))


def _rounding(name: str, node: str, body: Any, summary: str, aliases: str = "") -> Op:
    return unary(
        name,
        node,
        _of_floats(body),
        summary,
        aliases=aliases,
        dtypes="common",
        out=same_dtype,
        backward=zero_gradient,
        check=_check(name),
    )


floor = _rounding("floor", "FloorBackward0", e.floor, "The largest integers less than or equal to the elements.")
ceil = _rounding("ceil", "CeilBackward0", e.ceil, "The smallest integers greater than or equal to the elements.")
trunc = _rounding("trunc", "TruncBackward0", e.trunc, "The integer parts of the elements.", "fix")
frac = unary(
    "frac",
    "FracBackward0",
    lambda x: x - e.trunc(x),
    "The fractional parts of the elements, ``input - trunc(input)``.",
    dtypes="common",
    out=same_dtype,
    backward=lambda ct: ct,
    check=refuses("frac_cpu", "bool integer complex"),
)

_round = unary(
    "round",
    "RoundBackward0",
    _of_floats(e.round_half_even),
    "",
    dtypes="common",
    names="",
    out=same_dtype,
    backward=zero_gradient,
    check=refuses("round_vml_cpu", "bool complex"),
)


@pointwise(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    node="RoundBackward1", names="", dtypes=Dtypes(promote="common", numbers=True), check=only_floating("round_cpu"),
    out=same_dtype,
)  # fmt: skip
def _round_decimals(input, *, decimals):
    ten = e.number(10.0 ** abs(decimals), input)
    if decimals < 0:
        return e.round_half_even(input / ten) * ten
    return e.round_half_even(input * ten) / ten


@_round_decimals.backward
def _round_decimals_backward(ct: Any) -> Any:
    return zeros_like(ct)


@overloaded(_round, _round_decimals)
def round(input: Any, *, decimals: int | None = None) -> Op:
    """The nearest integers; ties go to even.

    Args:
        input: a tensor.
        decimals: the number of decimal places; may be negative.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for bool and complex tensors, and integers with ``decimals``.

    Example:
        >>> torch.round(torch.tensor([0.5, 1.5, -1.7]))
        tensor([ 0.,  2., -2.])
    """
    return _round if decimals is None else _round_decimals


@composite("special_round(Tensor self, *, int decimals=0) -> Tensor", names="special.round")
def special_round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """``torch.round`` to ``decimals`` places."""
    rounded: Tensor = round(input, decimals=decimals, out=out)
    return rounded
