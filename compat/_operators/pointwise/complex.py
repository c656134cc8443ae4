"""``complex``, ``polar``, ``angle``, ``conj_physical``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compat._core.memory.strides import elementwise_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes
from compat._core.operators.op import Op, pointwise
from compat._core.operators.out import same_dtype
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._operators.pointwise.declare import category, unary, zeros_like
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e


def _check_parts(first: Tensor, second: Tensor) -> None:
    allowed = (dtype.float16, dtype.float32, dtype.float64)
    names = first.dtype.scalar_name, second.dtype.scalar_name
    if first.dtype not in allowed or second.dtype not in allowed:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if first.dtype is not second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )
    dtype.array_dtype(first.dtype.to_complex())  # raises for bfloat16, which has no complex dtype


def _call(op: Op, first: Tensor, second: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return op.function(first, second)
    if isinstance(out, Tensor) and out.dtype is not first.dtype.to_complex():
        raise RuntimeError(
            f"Expected object of scalar type {first.dtype.to_complex().scalar_name} but got scalar type "
            f"{out.dtype.scalar_name} for argument 'out'"
        )
    return op.function(first, second, out=out)


@pointwise(
    "complex(Tensor real, Tensor imag) -> Tensor",
    node="ComplexBackward0", saves="imag! real!", names="", dtypes=Dtypes(), check=_check_parts, out=True,
)  # fmt: skip
def _complex(real, imag):
    return e.make_complex(real, imag)


@composite("complex(Tensor real, Tensor imag) -> Tensor", names="torch.complex")
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from their real and imaginary parts.

    Args:
        real, imag: float32 or float64 tensors of one dtype that broadcast together.
        out: a complex tensor to write the result into.

    Raises:
        RuntimeError: for other dtypes.

    Example:
        >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([1.+2.j])
    """
    return _call(_complex, real, imag, out)


@pointwise(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    node="PolarBackward0", saves="result", names="", dtypes=Dtypes(), check=_check_parts, out=True,
)  # fmt: skip
def _polar(abs, angle):
    return e.make_complex(abs * e.cos(angle), abs * e.sin(angle))


@composite("polar(Tensor abs, Tensor angle) -> Tensor", names="torch.polar")
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from their absolute values and angles.

    Args:
        abs, angle: float tensors of one dtype that broadcast together.
        out: a complex tensor to write the result into.

    Raises:
        RuntimeError: for other dtypes.

    Example:
        >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
        tensor([2.+0.j])
    """
    return _call(_polar, abs, angle, out)


@_polar.backward
def _polar_backward(ct: Any, result: Any) -> Any:
    size = np.absolute(result)
    safe = np.where(size == e.number(0, size), e.number(1, size), size)
    direction = result / np.astype(safe, type_of(result).dtype)
    direction = np.where(size == e.number(0, size), zeros_like(result), direction)
    return e.real(ct * np.conj(direction)), e.real(ct * np.conj(result * e.number(1j, result)))


def _angle(x: Any) -> Any:
    if category(x) == dtype.COMPLEX:
        return e.atan2(e.imag(x), e.real(x))
    of_real = np.where(x < e.number(0, x), e.number(math.pi, x), e.number(0, x))
    return np.where(x != x, x, of_real)


def _angle_backward(ct: Any, input: Any) -> Any:
    if category(input) < dtype.COMPLEX:
        return zeros_like(ct)
    real, imag = e.real(input), e.imag(input)
    square = e.square(real) + e.square(imag)
    zero = square == e.number(0, square)
    quotient = ct / np.where(zero, e.number(1, square), square)
    quotient = np.where(zero, e.number(0, quotient), quotient)
    return e.make_complex(-imag * quotient, real * quotient)


def _angle_strides(layouts: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """Contiguous for complex numbers, as in PyTorch; else the operand's memory format."""
    layout = layouts["input"]
    size = tuple(layout.size)
    return [None if layout.dtype.is_complex else elementwise_strides([(size, layout.stride)], size)]


angle = unary(
    "angle",
    "AngleBackward0",
    _angle,
    "The angle of each number in radians: 0 or pi for real numbers.",
    saves="self!",
    backward=_angle_backward,
    inplace=False,
    layout=_angle_strides,
)

_conj_physical = unary("conj_physical", "ConjPhysicalBackward0", np.conj, "", names="", dtypes="common", out=same_dtype)
_conj_into = unary(
    "conj_physical", "ConjPhysicalBackward1", np.conj, "", names="Tensor.conj_physical_ torch.conj_physical_",
    dtypes="common", out=False,
)  # fmt: skip
for _made in (_conj_into.inplace, names_of("Tensor")["conj_physical_"]):
    _made.__doc__ = "The complex conjugate, in place; a real tensor is unchanged."


@composite("conj_physical(Tensor self) -> Tensor", errors="own")
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The materialized complex conjugate; a real tensor is returned unchanged.

    Args:
        input: a tensor.
        out: a tensor to write the result into.

    Example:
        >>> torch.conj_physical(torch.tensor([1.0 + 2.0j]))
        tensor([1.-2.j])
    """
    if out is not None:
        return _conj_physical.function(input, out=out)
    return _conj_physical.function(input) if input.is_complex() else input
