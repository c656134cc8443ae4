"""Trigonometric and hyperbolic functions and their inverses, ``hypot``, ``sinc``, ``deg2rad``, ``rad2deg``."""

from __future__ import annotations

import math
from typing import Any

from compat._core.operators.op import Op, pointwise
from compat._core.operators.opmath import in_single, scaled
from compat._operators.pointwise.declare import binary, refuses, unary, zero_gradient, zeros_like
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e

sin = unary("sin", "SinBackward0", e.sin, "The sine of radians.", saves="self")
cos = unary("cos", "CosBackward0", e.cos, "The cosine of radians.", saves="self")
tan = unary("tan", "TanBackward0", e.tan, "The tangent of radians.", saves="result")


# Explicit backward formulas round float16 and bfloat16 after the same steps as PyTorch's, where derived ones do not.


def _asin_backward(ct: Any, input: Any) -> Any:
    return ct * np.conj(e.rsqrt(e.number(1, input) - input * input))


asin = unary(
    "asin",
    "AsinBackward0",
    e.asin,
    "The inverse sine, in radians.",
    saves="self",
    aliases="arcsin",
    backward=_asin_backward,
)
acos = unary(
    "acos",
    "AcosBackward0",
    e.acos,
    "The inverse cosine, in radians.",
    saves="self",
    aliases="arccos",
    backward=lambda ct, input: -_asin_backward(ct, input),
)
atan = unary("atan", "AtanBackward0", e.atan, "The inverse tangent, in radians.", saves="self", aliases="arctan")
sinh = unary("sinh", "SinhBackward0", e.sinh, "The hyperbolic sine.", saves="self")
cosh = unary("cosh", "CoshBackward0", e.cosh, "The hyperbolic cosine.", saves="self")


@in_single
def _tanh_backward(ct: Any, result: Any) -> Any:
    return ct * np.conj(e.number(1, result) - result * result)


tanh = unary(
    "tanh",
    "TanhBackward0",
    e.tanh,
    "The hyperbolic tangent.",
    saves="result",
    aliases="F.tanh",
    backward=_tanh_backward,
)
asinh = unary(
    "asinh", "AsinhBackward0", e.asinh, "The inverse hyperbolic sine.", saves="self", aliases="arcsinh", inplace=False
)


def _acosh_backward(ct: Any, input: Any) -> Any:
    one = e.number(1, input)
    if fdtypes.is_complex(type_of(input).dtype):  # sqrt(a) * sqrt(b) differs from sqrt(a * b) for complex numbers
        return ct * np.conj(e.rsqrt(input - one) * e.rsqrt(input + one))
    return ct * e.rsqrt(input * input - one)  # not NaN below -1, although acosh is, as in PyTorch


acosh = unary(
    "acosh",
    "AcoshBackward0",
    e.acosh,
    "The inverse hyperbolic cosine.",
    saves="self",
    aliases="arccosh",
    inplace=False,
    backward=_acosh_backward,
    example="torch.tensor([1.5, 2.0])",
)
atanh = unary(
    "atanh",
    "AtanhBackward0",
    e.atanh,
    "The inverse hyperbolic tangent.",
    saves="self",
    aliases="arctanh",
    inplace=False,
    backward=lambda ct, input: ct / np.conj(e.number(1, input) - e.square(input)),
)


def _declare_in_place(op: Op, alias: str) -> None:
    """Declares the in-place variant, whose backward raises an error, as in PyTorch."""
    names = " ".join(f"{namespace}.{n}_" for n in (op.name, alias) for namespace in ("Tensor", "torch"))
    declare = pointwise(*op.schemas, node=f"{op.name.title()}Backward1", names=names, dtypes="float")
    inplace = declare(op.body)
    inplace.backward(zero_gradient)  # never called

    def raise_error(node: Any, grads: Any) -> None:
        raise NotImplementedError(f"the derivative for 'inplace version of {op.name}' is not implemented.")

    inplace.node.apply = raise_error  # type: ignore[union-attr, method-assign]


_declare_in_place(asinh, "arcsinh")
_declare_in_place(acosh, "arccosh")
_declare_in_place(atanh, "arctanh")


def _atan2_backward(ct: Any, input: Any, other: Any) -> Any:
    square = e.square(input) + e.square(other)
    zero = square == e.number(0, square)
    inverse = e.select(zero, e.number(0, square), e.div(e.number(1, square), square))
    return ct * other * inverse, ct * -input * inverse


atan2 = binary(
    "atan2",
    "Atan2Backward0",
    e.atan2,
    "The angle of the point (other, input), in radians.",
    saves="other self",
    aliases="arctan2",
    dtypes="float",
    check=refuses("atan2_cpu", "complex"),
    backward=_atan2_backward,
)


def _hypot_backward(ct: Any, input: Any, other: Any, result: Any) -> Any:
    return ct * input / result, ct * other / result


hypot = binary(
    "hypot",
    "HypotBackward0",
    in_single(np.hypot),
    "``sqrt(input**2 + other**2)`` without overflow.",
    saves="other result self",
    check=refuses("hypot_cpu", "bool integer complex"),
    backward=_hypot_backward,
)


@in_single
def _sinc(x: Any) -> Any:
    zero = x == e.number(0, x)
    angle = np.where(zero, e.number(1, x), x * e.number(math.pi, x))
    return np.where(zero, e.number(1, x), e.sin(angle) / angle)


def _sinc_backward(ct: Any, input: Any) -> Any:
    angle = scaled(input, math.pi)
    square = scaled(input * input, math.pi)
    zero = square == e.number(0, square)  # or the square underflows
    slope = (angle * e.cos(angle) - e.sin(angle)) / np.where(zero, e.number(1, square), square)
    return np.where(zero, zeros_like(ct), ct * np.conj(slope))


sinc = unary(
    "sinc",
    "SincBackward0",
    _sinc,
    "``sin(pi * input) / (pi * input)``, and 1 at 0.",
    saves="self",
    aliases="special.sinc",
    backward=_sinc_backward,
)


def _refuse_complex(name: str) -> Any:
    return refuses("", "complex", message=f"{name} is not supported for complex tensors.", error=RuntimeError)


deg2rad = unary(
    "deg2rad", "Deg2RadBackward0", in_single(np.deg2rad), "Degrees to radians.", check=_refuse_complex("deg2rad")
)
rad2deg = unary(
    "rad2deg", "Rad2DegBackward0", in_single(np.rad2deg), "Radians to degrees.", check=_refuse_complex("rad2deg")
)
