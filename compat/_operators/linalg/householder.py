"""Householder reflections packed as in LAPACK, and products of them."""

from __future__ import annotations

from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.operators.out import of_dtype
from compat._core.tensor.tensor import Tensor
from compat._operators.linalg.common import casts_safely, check_implemented, column_major, gradients
from funcgrad.core.tracing import type_of
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import factorizations as factors


def _check_geqrf(input: Tensor) -> None:
    if input.dim() < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_implemented("geqrf_cpu", input)


@aten(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    layout=column_major(0), check=_check_geqrf, gradients=Gradients(undefined=True),
)  # fmt: skip
def geqrf(input):
    """QR packed as in LAPACK: ``R`` in the upper triangle, below it the Householder vectors whose product is ``Q``.

    Returns:
        A named tuple of ``a`` and ``tau``; not differentiable.

    Example:
        >>> torch.geqrf(torch.ones(3, 2)).tau.shape
        torch.Size([2])
    """
    return factors.reflectors(input)


def _check_tau(name: str, input: Tensor, tau: Tensor) -> None:
    if input.dim() - tau.dim() != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.dim()} and "
            f"input.ndim is equal to {input.dim()}"
        )
    if input.dim() > 2 and input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )


def _check_householder(input: Tensor, tau: Tensor) -> None:
    name = "torch.linalg.householder_product"
    if input.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.shape[-2] < input.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau.dim() == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if input.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _check_tau(name, input, tau)
    if tau.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.scalar_name} does not match input dtype {input.dtype.scalar_name}"
        )
    check_implemented("orgqr_cpu", input)


@aten(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    node="LinalgHouseholderProductBackward0", saves="input! result! tau!",
    names="linalg.householder_product", layout=column_major(0), check=_check_householder,
    out=casts_safely("torch.linalg.householder_product"),
)  # fmt: skip
def householder_product(input, tau):
    """The first columns of the product of Householder reflections from ``geqrf``.

    Args:
        input: ``(*, m, n)``, with the Householder vectors below the diagonal.
        tau: ``(*, k)``, at most ``n``.

    Returns:
        ``(*, m, n)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> a, tau = torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> torch.linalg.householder_product(a, tau).abs()
        tensor([[0.6000, 0.8000],
                [0.8000, 0.6000]])
    """
    t = type_of(input)
    return factors.reflected(input, tau, p.identity(t.shape, t.dtype))


@composite("orgqr(Tensor self, Tensor input2) -> Tensor", out=casts_safely("torch.linalg.householder_product"))
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """``torch.linalg.householder_product`` under LAPACK's name."""
    return householder_product.function(input, input2)


@householder_product.backward
def _householder_backward(ct: Any, input: Any, tau: Any) -> Any:
    if not type_of(input).size or not type_of(tau).size:
        return None, None
    return tuple(gradients(lambda x, t: [householder_product.body(x, t)], [input, tau], [ct]))


def _check_ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> None:
    name, tau, other = "torch.ormqr", input2, input3
    if input.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if other.dim() < 2:
        raise RuntimeError(f"{name}: other must have at least 2 dimensions.")
    side = -2 if left else -1
    if tau.dim() == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if other.shape[side] < tau.shape[-1]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.shape[-1] > min(other.shape[side], input.shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    _check_tau(name, input, tau)
    if input.shape[:-2] != other.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
            f"{list(other.shape[:-2])}"
        )
    for what, x in (("tau", tau), ("other", other)):
        if x.dtype is not input.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {what} to have the same dtype, but input has dtype"
                f"{input.dtype.scalar_name} and {what} has dtype {x.dtype.scalar_name}"
            )
    check_implemented("ormqr_cpu", input)


@aten(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    node="OrmqrBackward0", saves="input2! input3! left result! self! transpose", layout=column_major(0),
    check=_check_ormqr,
    out=of_dtype(
        "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{result} and result has "
        "dtype {out}"
    ),
)  # fmt: skip
def ormqr(input, input2, input3, left, transpose):
    """A matrix times the square product of Householder reflections from ``geqrf``.

    Args:
        input: ``(*, m, k)``, with the Householder vectors below the diagonal.
        input2: ``(*, k)``, the ``tau`` of ``geqrf``.
        input3: ``(*, m, n)``, or ``(*, n, m)`` if ``left`` is False.
        left: whether the product is the left factor.
        transpose: whether to use the conjugate transpose of the product.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> x = torch.tensor([[3.0, 1.0], [4.0, 2.0]])
        >>> torch.ormqr(*torch.geqrf(x), x, transpose=True).abs().triu().round(decimals=4)
        tensor([[5.0000, 2.2000],
                [0.0000, 0.4000]])
    """
    if left:
        return factors.reflected(input, input2, input3, adjoint_of_product=transpose)
    return p.adjoint(factors.reflected(input, input2, p.adjoint(input3), adjoint_of_product=not transpose))


@ormqr.backward
def _ormqr_backward(ct: Any, input: Any, input2: Any, input3: Any, left: Any, transpose: Any) -> Any:
    found = gradients(lambda *xs: [ormqr.body(*xs, left, transpose)], [input, input2, input3], [ct])
    return (None, None, found[2]) if not (type_of(input).size and type_of(input2).size) else tuple(found)
