"""Shared parts of operations on matrices: checks of operands, memory order of results, and errors for singular
matrices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from compat._core.memory import guarded_storage, strided_access
from compat._core.memory.strides import contiguous_strides
from compat._core.operators.op import Op
from compat._core.operators.out import check_dtype, resize_out
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor, array_of
from compat._core.transforms.grad_mode import no_grad
from compat._core.types import dtype
from compat._core.types.errors import lacks
from compat._core.types.type_promotion import can_cast
from funcgrad import numpy as np
from funcgrad.core.dtypes import int32
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.numpy.linalg.operands import value_of
from funcgrad.primitives.elementwise import add, conjugated, scale
from funcgrad.primitives.linalg.common import adjoint
from funcgrad.primitives.shape import broadcast, zeros

# ---------------------------------------------------------------- errors


class LinAlgError(RuntimeError):
    """Raised for matrices whose values make an operation impossible: singular, or not positive definite."""


LinAlgError.__module__, LinAlgError.__name__, LinAlgError.__qualname__ = "torch._C", "_LinAlgError", "_LinAlgError"
publish(LinAlgError, "linalg.LinAlgError", "_C._LinAlgError")


def first_failure(info: Tensor) -> tuple[str, int] | None:
    """The text of the batch index of the first nonzero number of ``info``, and that number; None without one.

    Under transforms, without concrete values, no failure is detected.
    """
    if info._layout_.base.traced:
        found = value_of(strided_access.read(info._storage_.buffer, info._layout_, info._offset_))
    else:
        with guarded_storage.shown():  # only an error depends on the values
            found = array_of(info.detach())
    if found is None or not found.any():
        return None
    if not found.ndim:
        return "", int(found)
    first = int(numpy.flatnonzero(found)[0])
    return f"(Batch element {first}): ", int(found.flat[first])


def check_info(name: str, info: Tensor, message: str, error: type[Exception] = LinAlgError) -> None:
    """Raises an error if a matrix failed.

    Args:
        name: the function's, with which the message begins.
        message: the rest of it; ``{i}`` is the nonzero number.
    """
    found = first_failure(info)
    if found is not None:
        raise error(f"{name}: {found[0]}{message.format(i=found[1])}")


#: Messages of ``check_info``: a matrix to be inverted had a zero pivot, an SVD did not converge.
SINGULAR = (
    "The diagonal element {i} is zero, the inversion could not be completed because the input matrix is singular."
)
NOT_CONVERGED = "The algorithm failed to converge because the input matrix contained non-finite values."


# ---------------------------------------------------------------- checks

#: The dtypes that LAPACK supports.
LAPACK_DTYPES = (dtype.float32, dtype.float64, dtype.complex64, dtype.complex128)


def check_matrix(name: str, x: Tensor, what: str = "A") -> None:
    """Raises for a tensor of fewer than two dimensions."""
    if x.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")


def check_square(name: str, x: Tensor, what: str = "A") -> None:
    """Raises unless a tensor consists of square matrices."""
    check_matrix(name, x, what)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{name}: {what} must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )


def check_floating(name: str, x: Tensor, *, low: bool = True) -> None:
    """Raises for integers and bools, and, unless ``low``, for float16, bfloat16 and complex32."""
    if x.dtype.category < dtype.FLOATING:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}")
    if not low and x.dtype not in LAPACK_DTYPES:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {x.dtype.scalar_name}")


def check_implemented(kernel: str, x: Tensor) -> None:
    """Raises for dtypes that LAPACK does not support."""
    if x.dtype not in LAPACK_DTYPES:
        raise lacks(kernel, x.dtype)


def check_same_dtype(name: str, A: Tensor, B: Tensor, what: str = "A") -> None:
    """Raises if the sides of a linear system have different dtypes."""
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected {what} and B to have the same dtype, but found {what} of type {A.dtype.scalar_name} and "
            f"B of type {B.dtype.scalar_name} instead"
        )


def check_right_hand_side(name: str, A: Tensor, rows: int, columns: int, left: bool) -> None:
    """Raises if the shape of a right-hand side is incompatible with that of the matrices."""
    if A.shape[-2] != (rows if left else columns):
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {rows}x{columns})"
        )


# ---------------------------------------------------------------- memory


def column_major_strides(size: Sequence[int]) -> tuple[int, ...]:
    """The strides of column-major matrices."""
    if len(size) < 2:
        return contiguous_strides(tuple(size))
    *lead, step, row = contiguous_strides((*size[:-2], size[-1], size[-2]))
    return (*lead, row, step)


def column_major(*which: int) -> Callable[[dict[str, Any], Sequence[ArrayType]], list[Any]]:
    """The strides rule of an operator: the results with these indices are column-major, others row-major."""
    return lambda layouts, types: [column_major_strides(t.shape) if i in which else None for i, t in enumerate(types)]


# ---------------------------------------------------------------- helpers of operators


def broadcast_batch(x: Any, batch: Sequence[int], core: int = 2) -> Any:
    """An array with its axes before the last ``core`` broadcast to ``batch``."""
    shape = type_of(x).shape
    full = (*batch, *shape[len(shape) - core :])
    if shape == full:
        return x
    return broadcast(x, shape=full, dims=tuple(range(len(full) - len(shape), len(full))))


def hermitian_part(x: Any) -> Any:
    """Half the sum of matrices and their conjugate transposes."""
    return scale(add(x, adjoint(x)), 0.5)


def not_finite(x: Any, axes: int = 1) -> Any:
    """1, int32, if the last axes contain NaN, 0 elsewhere."""
    return np.astype(np.any(np.not_equal(x, x), axis=tuple(range(-axes, 0))), int32)


def gradients(f: Callable[..., Sequence[Any]], operands: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """The gradients of a function's operands, given those of its results."""
    _, pullback = vjp_flat(f, operands)
    return [None if g is None else conjugated(g) for g in pullback([conjugated(ct) for ct in cts])]


def transposed(tangent: Callable[..., Sequence[Any]], of: Sequence[ArrayType], cts: Sequence[Any]) -> list[Any]:
    """The gradients of the operands, of given types, of a linear function, given those of its results.

    A backward formula is the transpose of the forward derivative.
    """
    return gradients(tangent, [zeros(t) for t in of], cts)


# ---------------------------------------------------------------- ``out`` arguments


def castable(name: str, what: str = "result") -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """A decorator that adds an ``out`` argument of any dtype that the result can be cast to.

    Args:
        name, what: the names of the function and its result in messages.
    """

    def declare(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @functools.wraps(function)
        def call(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Tensor:
            if out is None:
                return function(*args, **kwargs)
            with no_grad():
                (found,) = into_outs((out,), (function(*args, **kwargs),), lambda _: (name, what))
            return found

        return call

    return declare


def casts_safely(name: str, what: str = "result") -> Callable[..., None]:
    """The check, for ``out`` of a declaration, that the result can be cast to the dtype of ``out``."""

    def check(result: Tensor, out: Tensor, operands: Any) -> None:
        if not can_cast(result.dtype, out.dtype):
            raise RuntimeError(
                f"{name}: Expected {what} to be safely castable from {result.dtype.scalar_name} dtype, but got {what} "
                f"with dtype {out.dtype.scalar_name}"
            )

    return check


def into_outs(
    outs: Sequence[Tensor], results: Sequence[Tensor], names: Callable[[int], tuple[str, str]] | None = None
) -> Sequence[Tensor]:
    """Writes results into ``out`` tensors, which it returns.

    Args:
        names: for results that may be cast, the names of the function and of the ``i``-th result in messages; by
            default dtypes must be equal.

    Raises:
        RuntimeError: for an incompatible dtype; nothing is written then.
    """
    for i, (t, r) in enumerate(zip(outs, results)):
        if names is None:
            check_dtype(r, t, exact=True)
        else:
            casts_safely(*names(i))(r, t, ())
    with no_grad():
        for t, r in zip(outs, results):
            resize_out(t, tuple(r.shape))
            t.copy_(r.detach())
    return outs


# ---------------------------------------------------------------- nodes


def refuse_backward(op: Op, message: str) -> None:
    """Makes the backward of an operator raise a RuntimeError."""

    def apply(self: Any, grads: Any) -> Any:
        raise RuntimeError(message)

    assert op.node is not None
    names = {"__slots__": (), "__module__": "builtins", "apply": apply, "swept": False}
    op.node = type(op.node.__name__, (op.node,), names)
