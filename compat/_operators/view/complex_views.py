"""Views of complex tensors as real ones and the reverse; conjugation, real and imaginary parts."""

from __future__ import annotations

from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.view import Geometry
from compat._core.operators.view_op import view
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._operators.view.slicing import select


@view("view_as_real(Tensor(a) self) -> Tensor(a)", node="ViewAsRealBackward0")
def view_as_real(input):
    """Complex numbers as pairs of real numbers, along a new last dimension.

    Example:
        >>> torch.view_as_real(torch.tensor([1 + 2j]))
        tensor([[1., 2.]])
    """
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if input.conj:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you "
            "can view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will "
            "NOT alias the original."
        )
    stride = (*[2 * s for s in input.stride], 1)
    return Geometry((*input.size, 2), stride, 2 * input.offset, input.dtype.to_real())


_LAST_STRIDE = "Tensor must have a last dimension with stride 1"


def _check_last_stride(input: Tensor) -> None:
    if input.stride()[-1] != 1:
        raise RuntimeError(_LAST_STRIDE)


@view("view_as_complex(Tensor(a) self) -> Tensor(a)", node="ViewAsComplexBackward0", inside=_check_last_stride)
def view_as_complex(input):
    """Pairs of real numbers, along the last dimension, as complex ones.

    Example:
        >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
        tensor([1.+2.j])
    """
    if input.dtype not in (dtype.float16, dtype.float32, dtype.float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            + input.dtype.scalar_name
        )
    if input.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.size[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.stride[-1] != 1:
        raise RuntimeError(_LAST_STRIDE)
    if any(s % 2 for n, s in zip(input.size[:-1], input.stride) if n > 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if input.offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return Geometry(
        input.size[:-1], tuple(s // 2 for s in input.stride[:-1]), input.offset // 2, input.dtype.to_complex()
    )


@view("_conj(Tensor(a) self) -> Tensor(a)", node="ConjBackward0", names="Tensor._conj")
def _conj(input):
    return input._replace(conj=not input.conj)


@view("_neg_view(Tensor(a) self) -> Tensor(a)", node="NegViewBackward0")
def _neg_view(input):
    return input._replace(neg=not input.neg)


@composite("conj(Tensor(a) self) -> Tensor(a)", errors="own")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate as a view: the conjugation is lazy. A real tensor is returned unchanged.

    Example:
        >>> torch.tensor([1 + 2j]).conj()
        tensor([1.-2.j])
    """
    return _conj(input) if input.is_complex() else input


@composite("real(Tensor(a) self) -> Tensor(a)", names="torch.real")
def real(input: Tensor) -> Tensor:
    """The real part, as a view; a real tensor is returned unchanged."""
    if not input.is_complex():
        return input
    return select(view_as_real(_conj(input) if input.is_conj() else input), -1, 0)


@composite("imag(Tensor(a) self) -> Tensor(a)", names="torch.imag")
def imag(input: Tensor) -> Tensor:
    """The imaginary part, as a view.

    Raises:
        RuntimeError: for a real tensor.
    """
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if input.is_conj():
        return select(_neg_view(view_as_real(_conj(input))), -1, 1)
    return select(view_as_real(input), -1, 1)


def _set_real(self: Tensor, value: Any) -> None:
    self.real[...] = value


def _set_imag(self: Tensor, value: Any) -> None:
    self.imag[...] = value


function("Tensor.real")(property(real, _set_real))
function("Tensor.imag")(property(imag, _set_imag))
