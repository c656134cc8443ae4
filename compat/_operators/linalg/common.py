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


def failure(info: Tensor) -> tuple[str, int] | None:
    """The first nonzero number of ``info``, and its batch index for messages; None if there is none.

    Without concrete values, under transforms, no failure is detected.
    """
    if info._layout_.base.traced:
        found = value_of(strided_access.read(info._storage_.buffer, info._layout_, info._offset_))
    else:
        with guarded_storage.shown():  # only an error depends on it
            found = array_of(info.detach())
    if found is None or not found.any():
        return None
    if not found.ndim:
        return "", int(found)
    first = int(numpy.flatnonzero(found)[0])
    return f"(Batch element {first}): ", int(found.flat[first])


def check_singular(name: str, info: Tensor) -> None:
    """Raises if an inverse had a zero pivot."""
    found = failure(info)
    if found is not None:
        where, order = found
        raise LinAlgError(
            f"{name}: {where}The diagonal element {order} is zero, the inversion could not be completed because the "
            "input matrix is singular."
        )


def check_converged(info: Tensor) -> None:
    """Raises if the SVD did not converge."""
    found = failure(info)
    if found is not None:
        raise LinAlgError(
            f"linalg.svd: {found[0]}The algorithm failed to converge because the input matrix contained non-finite "
            "values."
        )


# ---------------------------------------------------------------- checks

_FACTORED = (dtype.float32, dtype.float64, dtype.complex64, dtype.complex128)


def check_matrix(name: str, x: Tensor, what: str = "A") -> None:
    """Raises for a tensor of fewer than two dimensions."""
    if x.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")


def check_square(name: str, x: Tensor, what: str = "A") -> None:
    """Raises for a tensor that is not square matrices."""
    check_matrix(name, x, what)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{name}: {what} must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )


def check_floating(name: str, x: Tensor, *, low: bool = True) -> None:
    """Raises for a tensor that is not floating or complex; unless ``low``, also for float16, bfloat16 and complex32."""
    if x.dtype.category < dtype.FLOATING:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}")
    if not low and x.dtype not in _FACTORED:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {x.dtype.scalar_name}")


def check_implemented(kernel: str, x: Tensor) -> None:
    """Raises for dtypes that LAPACK does not support."""
    if x.dtype not in _FACTORED:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{x.dtype.scalar_name}'")


def check_same_dtype(name: str, A: Tensor, B: Tensor, what: str = "A") -> None:
    """Raises if both sides of a system have different dtypes."""
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected {what} and B to have the same dtype, but found {what} of type {A.dtype.scalar_name} and "
            f"B of type {B.dtype.scalar_name} instead"
        )


def check_fits(name: str, A: Tensor, rows: int, columns: int, left: bool) -> None:
    """Raises if a right-hand side is incompatible with the matrices."""
    if A.shape[-2] != (rows if left else columns):
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {rows}x{columns})"
        )


# ---------------------------------------------------------------- memory


def in_columns(size: Sequence[int]) -> tuple[int, ...]:
    """The strides of column-major matrices."""
    if len(size) < 2:
        return contiguous_strides(tuple(size))
    *lead, step, row = contiguous_strides((*size[:-2], size[-1], size[-2]))
    return (*lead, row, step)


def by_columns(*which: int) -> Callable[[dict[str, Any], Sequence[ArrayType]], list[Any]]:
    """A strides rule: those results are column-major, the others row-major."""
    return lambda layouts, types: [in_columns(t.shape) if i in which else None for i, t in enumerate(types)]


# ---------------------------------------------------------------- helpers of operators


def spread(x: Any, lead: Sequence[int], core: int = 2) -> Any:
    """An array with its axes except the last ``core`` broadcast to ``lead``."""
    shape = type_of(x).shape
    wanted = (*lead, *shape[len(shape) - core :])
    if shape == wanted:
        return x
    return broadcast(x, shape=wanted, dims=tuple(range(len(wanted) - len(shape), len(wanted))))


def hermitian_part(x: Any) -> Any:
    """Half the sum of matrices and their conjugate transposes."""
    return scale(add(x, adjoint(x)), 0.5)


def not_finite(x: Any, axes: int = 1) -> Any:
    """1, int32, if the last axes contain NaN, 0 elsewhere."""
    return np.astype(np.any(np.not_equal(x, x), axis=tuple(range(-axes, 0))), int32)


def gradients(f: Callable[..., Sequence[Any]], operands: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """The gradients with respect to a function's operands, from those of its results."""
    _, pullback = vjp_flat(f, operands)
    return [None if g is None else conjugated(g) for g in pullback([conjugated(ct) for ct in cts])]


def transposed(tangent: Callable[..., Sequence[Any]], of: Sequence[ArrayType], cts: Sequence[Any]) -> list[Any]:
    """The same for a linear function of operands of given types.

    A backward formula that is given as a forward derivative is that function, transposed.
    """
    return gradients(tangent, [zeros(t) for t in of], cts)


# ---------------------------------------------------------------- ``out`` arguments


def castable(name: str, what: str = "result") -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Gives a function an ``out`` of any dtype that its result can be cast to; a decorator.

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
    """The error of an ``out`` argument to which the result cannot be cast; for ``out`` of a declaration."""

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
    """Writes results into the ``out`` tensors; returns these.

    Args:
        names: the names of the function and the ``i``-th result in messages, for results that may be cast; by default
            dtypes must be equal.

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


def refuse_backward(op: Op, text: str) -> None:
    """Makes the nodes of an operation raise when a gradient comes in."""

    def apply(self: Any, grads: Any) -> Any:
        raise RuntimeError(text)

    assert op.node is not None
    names = {"__slots__": (), "__module__": "builtins", "apply": apply, "swept": False}
    op.node = type(op.node.__name__, (op.node,), names)
