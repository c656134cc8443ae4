"""Complex numbers: from parts, from polar coordinates, their angles and conjugates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compat._core.memory.strides import elementwise_strides
from compat._core.operators.op import Op, elementwise
from compat._core.operators.out import same_dtype
from compat._core.operators.pointwise import category, unary, zeros_like
from compat._core.operators.signature import Array
from compat._core.tensor.registry import function, publish
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
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
    dtype.array_dtype(first.dtype.to_complex())  # of halves there are none


_PARTS: dict[str, Any] = dict(promote=None, names="", inplace="", out=True, check=_check_parts)


def _call(op: Op, first: Tensor, second: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return op.function(first, second)
    if isinstance(out, Tensor) and out.dtype is not first.dtype.to_complex():
        wanted = first.dtype.to_complex().scalar_name
        raise RuntimeError(
            f"Expected object of scalar type {wanted} but got scalar type {out.dtype.scalar_name} for argument 'out'"
        )
    return op.function(first, second, out=out)


@elementwise("ComplexBackward0", saved="imag real", keeps="imag real", name="complex", **_PARTS)
def _complex(real: Array, imag: Array) -> Any:
    return e.make_complex(real, imag)


@function("torch.complex")
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from their parts.

    Args:
        real, imag: float32 or float64 tensors of one dtype that broadcast together.
        out: a complex tensor to write the result into.

    Raises:
        RuntimeError: for other dtypes.

    Example:
        >>> import compat as torch
        >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([1.+2.j])
    """
    return _call(_complex, real, imag, out)


@elementwise("PolarBackward0", saved="result", name="polar", **_PARTS)
def _polar(abs: Array, angle: Array) -> Any:
    return e.make_complex(abs * e.cos(angle), abs * e.sin(angle))


@function("torch.polar")
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from their absolute values and angles.

    Args:
        abs, angle: float tensors of one dtype that broadcast together.
        out: a complex tensor to write the result into.

    Raises:
        RuntimeError: for other dtypes.

    Example:
        >>> import compat as torch
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
    turned = np.where(x < e.number(0, x), e.number(math.pi, x), e.number(0, x))
    return np.where(x != x, x, turned)


def _angle_backward(ct: Any, input: Any) -> Any:
    if category(input) < dtype.COMPLEX:
        return zeros_like(ct)
    real, imag = e.real(input), e.imag(input)
    square = e.square(real) + e.square(imag)
    zero = square == e.number(0, square)
    over = ct / np.where(zero, e.number(1, square), square)
    over = np.where(zero, e.number(0, over), over)
    return e.make_complex(-imag * over, real * over)


def _angle_strides(layouts: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """Row-major for complex numbers, whose angles PyTorch copies out of complex ones; else in the operand's order."""
    layout = layouts["input"]
    size = tuple(layout.size)
    return [None if layout.dtype.is_complex else elementwise_strides([(size, layout.stride)], size)]


angle = unary(
    "angle",
    "AngleBackward0",
    _angle,
    "The angle of each number in radians: 0 or pi for real ones.",
    saved="self",
    keeps="input",
    backward=_angle_backward,
    inplace="",
    strides=_angle_strides,
    broadcasts=True,
)

_CONJ: dict[str, Any] = dict(promote="common", names="")
_conj_physical = unary("conj_physical", "ConjPhysicalBackward0", np.conj, "", inplace="", out=same_dtype, **_CONJ)
_INPLACE = "Tensor.conj_physical_ torch.conj_physical_"
_conj_into = unary("conj_physical", "ConjPhysicalBackward1", np.conj, "", inplace=_INPLACE, out=False, **_CONJ)
for _made in (_conj_into.inplace, vars(Tensor)["conj_physical_"]):
    _made.__doc__ = "The complex conjugate, in place; a real tensor stays as it is."


def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate, computed now; a real tensor itself.

    Args:
        input: a tensor.
        out: a tensor to write the result into.

    Example:
        >>> import compat as torch
        >>> torch.conj_physical(torch.tensor([1.0 + 2.0j]))
        tensor([1.-2.j])
    """
    if out is not None:
        return _conj_physical.function(input, out=out)
    return _conj_physical.function(input) if input.is_complex() else input


publish(conj_physical, "torch.conj_physical", "Tensor.conj_physical")
