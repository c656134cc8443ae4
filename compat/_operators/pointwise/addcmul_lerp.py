"""``addcmul``, ``addcdiv`` and ``lerp``."""

from __future__ import annotations

from typing import Any

from compat._core.operators.declaration import Arguments, Dtypes, Late
from compat._core.operators.op import Op, pointwise
from compat._core.operators.opmath import in_single
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import cpp_name
from compat._core.types.scalar_conversion import fits, widened
from compat._operators.pointwise.arithmetic import only_real_factors, times
from compat._operators.pointwise.declare import checks, common, divisor, overloaded, refuses
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e

# ---------------------------------------------------------------- fused sums


def _real_value(*operands: Any, value: Any = 1) -> None:
    only_real_factors(common(operands), value)


@pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    node="AddcmulBackward0", saves="tensor1 tensor2 value",
    dtypes=Dtypes(promote="common", fits=fits("value", widened)),
    check=checks(refuses("addcmul_cpu_out", "bool"), _real_value), arguments=Arguments(deprecated="value"),
)  # fmt: skip
@in_single
def addcmul(input, tensor1, tensor2, *, value):
    """``input + value * tensor1 * tensor2``.

    Args:
        input, tensor1, tensor2: tensors that broadcast together.
        value: a number.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for bool tensors.

    Example:
        >>> torch.addcmul(torch.ones(2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), value=10)
        tensor([31., 81.])
    """
    return np.add(input, times(np.multiply(tensor1, tensor2), value))


@addcmul.backward
def _addcmul_backward(ct: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    part = in_single(times)
    return ct, ct * np.conj(part(tensor2, value)), ct * np.conj(part(tensor1, value))


def _check_addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> None:
    if common((tensor1, tensor2)).category < dtype.FLOATING:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )


@pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    node="AddcdivBackward0", saves="tensor1 tensor2 value",
    dtypes=Dtypes(promote="common", fits=fits("value", widened)), check=checks(_check_addcdiv, _real_value),
    arguments=Arguments(deprecated="value"),
)  # fmt: skip
@in_single
def addcdiv(input, tensor1, tensor2, *, value):
    """``input + value * tensor1 / tensor2``.

    Args:
        input, tensor1, tensor2: tensors that broadcast together.
        value: a number.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: if ``tensor1`` and ``tensor2`` are both integer.

    Example:
        >>> torch.addcdiv(torch.ones(2), torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]), value=10)
        tensor([6., 6.])
    """
    return np.add(input, np.divide(times(tensor1, value), divisor(tensor2)))


@addcdiv.backward
def _addcdiv_backward(ct: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    factor = np.conj(np.divide(np.astype(value, type_of(tensor2).dtype), divisor(tensor2)))
    slope = np.divide(in_single(times)(tensor1, value), divisor(tensor2 * tensor2))
    return ct, ct * factor, -ct * np.conj(slope)


def _check_lerp(input: Any, end: Any, weight: Any) -> None:
    of_any_dtype = isinstance(weight, Tensor) and not weight.dim()
    for name, t in (("end", end), ("weight", None if of_any_dtype else weight)):
        if isinstance(t, Tensor) and t.dtype is not input.dtype:
            raise RuntimeError(f"expected dtype {cpp_name(input.dtype)} for `{name}` but got dtype {cpp_name(t.dtype)}")


def _check_lerp_kernel(input: Any, end: Any, weight: Any) -> None:
    refuses(f"lerp_kernel_{'tensor' if isinstance(weight, Tensor) else 'scalar'}", "bool integer")(input)


def _lerp(input: Any, end: Any, weight: Any) -> Any:
    """Computed from the nearer endpoint, so that a weight of 1 gives ``end`` exactly."""
    size = np.absolute(weight)
    difference = end - input
    from_end = end - difference * (e.number(1, weight) - weight)
    return np.where(size < e.number(0.5, size), input + weight * difference, from_end)


@pointwise(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    node="LerpBackward1", saves="end self weight", names="", dtypes=Dtypes(),
    check=Late(_check_lerp_kernel, _check_lerp), out=True,
)  # fmt: skip
def _lerp_tensor(input, end, weight):
    return in_single(_lerp)(input, end, np.astype(weight, type_of(input).dtype))


@_lerp_tensor.backward
def _lerp_tensor_backward(ct: Any, input: Any, end: Any, weight: Any) -> Any:
    weight = np.conj(np.astype(weight, type_of(ct).dtype))
    return ct * (e.number(1, weight) - weight), ct * weight, ct * np.conj(end - input)


@pointwise(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    node="LerpBackward0", saves="weight", names="", dtypes=Dtypes(fits=fits("weight", widened)),
    check=Late(_check_lerp_kernel, _check_lerp), out=True,
)  # fmt: skip
@in_single
def _lerp_number(input, end, weight):
    return _lerp(input, end, np.astype(weight, type_of(input).dtype))


@_lerp_number.backward
@in_single
def _lerp_number_backward(ct: Any, weight: Any) -> Any:
    weight = np.conj(np.astype(weight, type_of(ct).dtype))
    return ct * (e.number(1, weight) - weight), ct * weight


@overloaded(_lerp_tensor, _lerp_number)
def lerp(input: Any, end: Any, weight: Any) -> Op:
    """``input + weight * (end - input)``, exact at both ends.

    Args:
        input, end: tensors of one dtype that broadcast together.
        weight: a tensor of that dtype, a zero-dimensional one of any dtype, or a number.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for tensors of different dtypes.
        NotImplementedError: for integers and bools.

    Example:
        >>> torch.lerp(torch.zeros(2), torch.tensor([10.0, 20.0]), 0.5)
        tensor([ 5., 10.])
    """
    return _lerp_tensor if isinstance(weight, Tensor) else _lerp_number
