"""Norms of vectors and matrices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments
from compat._core.operators.entry_function import ALIASES
from compat._core.operators.op import aten
from compat._core.operators.out import of_dtype
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import Once, cpp_name, wrong_argument
from compat._core.types.type_promotion import promote_types
from compat._operators.reduction.sum_mean_var import accumulated, axes_of, kept_shape, reduce, restore
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r

# ---------------------------------------------------------------- the norm and its gradient


def _magnitude(x: Any) -> Any:
    return np.abs(x)


def _squares(x: Any) -> Any:
    if fdtypes.is_complex(type_of(x).dtype):
        return np.add(e.square(e.real(x)), e.square(e.imag(x)))
    return e.square(x)


def _where_zero(x: Any, value: float, otherwise: Any) -> Any:
    return np.where(np.equal(x, 0), e.number(value, otherwise), otherwise)


def _root(total: Any, p: float) -> Any:
    """``total ** (1 / p)``, whose derivative at zero is zero."""
    safe = _where_zero(total, 1, total)
    return _where_zero(total, 0, e.sqrt(safe) if p == 2 else np.power(safe, 1 / p))


def _sum_of_powers(x: Any, p: float, axes: tuple[int, ...], keepdim: bool) -> Any:
    if p == 2:
        return _root(reduce(r.reduce_sum, _squares(x), axes, keepdim), p)
    size = _magnitude(x)
    if p == 1:
        return reduce(r.reduce_sum, size, axes, keepdim)
    if p > 1:
        return _root(reduce(r.reduce_sum, np.power(size, p), axes, keepdim), p)
    # At zero a power below 1 has no finite derivative, and a negative power is infinite.
    powers = np.power(_where_zero(size, 1, size), p)
    total = reduce(r.reduce_sum, _where_zero(size, 0 if p > 0 else math.inf, powers), axes, keepdim)
    return _root(total, p) if p > 0 else np.power(total, 1 / p)


def norm_over(x: Any, p: float, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The ``p``-norm of an array along axes; real.

    Example:
        >>> print(norm_over(np.array([3.0, 4.0]), 2.0, (0,), False))
        5.0
    """
    if math.isinf(p):
        return reduce(r.reduce_max if p > 0 else r.reduce_min, _magnitude(x), axes, keepdim)
    if p == 0:
        return reduce(r.reduce_sum, np.astype(np.not_equal(x, 0), type_of(_magnitude(x)).dtype), axes, keepdim)
    if type_of(x).dtype in (fdtypes.float16, fdtypes.bfloat16):
        return accumulated(x, lambda v: _sum_of_powers(v, p, axes, keepdim))
    return _sum_of_powers(x, p, axes, keepdim)


def _direction(x: Any) -> Any:
    """``x / |x|``; zero for zero and for NaN."""
    if fdtypes.is_complex(type_of(x).dtype):
        return e.complex_sign(x)
    return np.where(x == x, e.sign(x), e.number(0, x))


def norm_gradient(ct: Any, x: Any, p: float, result: Any, axes: tuple[int, ...]) -> Any:
    """The gradient of ``norm_over``; where it is not differentiable, the smallest subgradient, as in PyTorch.

    Args:
        ct, result: the gradient of the norm and the norm, with the axes removed or of size 1.

    Returns:
        The gradient; None for a ``p`` of 0, since the number of nonzero elements is piecewise constant.
    """
    if p == 0:
        return None
    ct, result = restore(ct, x, axes), restore(result, x, axes)
    if p == 1:
        return np.multiply(_direction(x), ct)
    if p == 2:
        # Zero at zero, and so are second derivatives.
        return np.multiply(ct, np.where(np.equal(result, 0), e.number(0, x), np.divide(x, result)))
    if math.isinf(p):
        ties = np.equal(_magnitude(x), result)
        count = reduce(r.reduce_sum, np.astype(ties, type_of(ct).dtype), axes, True)
        return np.multiply(_direction(x), np.where(ties, np.divide(ct, count), e.number(0, ct)))
    size = _magnitude(x)
    if p < 1:
        powers = _where_zero(size, 0, np.power(size, p - 1))
        return np.multiply(np.multiply(_direction(x), powers), np.multiply(ct, np.power(result, 1 - p)))
    scale = np.divide(ct, np.power(_where_zero(result, 1, result), p - 1))
    if p < 2:
        powers = np.multiply(_direction(x), np.power(size, p - 1))
    else:
        powers = np.multiply(x, np.power(size, p - 2))
    return np.multiply(powers, _where_zero(result, 0, np.broadcast_to(scale, kept_shape(type_of(x).shape, axes))))


# ---------------------------------------------------------------- vectors


def _check_identity(x: Tensor, p: float, dim: Any) -> None:
    """Checks that an empty tensor is not reduced by a norm that has no identity."""
    if x.numel() or not (p < 0 or math.isinf(p)):
        return
    start = f"linalg.vector_norm cannot compute the {p:g} norm on "
    if dim is None or dim == ():
        raise RuntimeError(f"{start}an empty tensor because the operation does not have an identity")
    for d in dim:
        if x.shape[d] == 0:
            raise RuntimeError(
                f"{start}the dimension {d}because this dimension is empty and the operation does not have an identity"
            )


def _check_norm_dtype(name: str, x: Tensor, dtype: dtypes.dtype | None) -> None:
    """Checks that the input can be converted to ``dtype``."""
    if dtype is None:
        return
    if dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype.scalar_name}")
    if dtype.is_complex != x.dtype.is_complex:
        kinds = ["complex" if d.is_complex else "real" for d in (x.dtype, dtype)]
        raise RuntimeError(f"{name}: dtype should be {kinds[0]} for {kinds[0]} inputs, but got {dtype.scalar_name}")
    if promote_types(x.dtype, dtype) is not dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({x.dtype.scalar_name}) should be convertible without narrowing to the "
            f"specified dtype ({dtype.scalar_name})"
        )


def _no_complex(name: str, ord: Any) -> None:
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")


def _check_vector_norm(input, ord, dim=None, keepdim=False, *, dtype=None):
    _no_complex("linalg.vector_norm", ord)
    if isinstance(ord, str) or not isinstance(ord, (int, float)):
        raise wrong_argument("linalg_vector_norm", "ord", 2, "Number", ord)
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {input.dtype.scalar_name}"
        )
    _check_norm_dtype("linalg.vector_norm", input, dtype)
    _check_identity(input, ord, dim)


@aten(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor",
    node="LinalgVectorNormBackward0", saves="self! ord dim keepdim result!", names="", check=_check_vector_norm,
    out=True, arguments=Arguments(static="ord"),
)  # fmt: skip
def vector_norm_of(input, ord, dim, keepdim, *, dtype):
    x = input if dtype is None else np.astype(input, dtype.numpy)
    return norm_over(x, ord, axes_of(x, dim), keepdim)


@vector_norm_of.backward
def vector_norm_backward(ct: Any, input: Any, ord: Any, dim: Any, result: Any) -> Any:
    grad = norm_gradient(ct, np.astype(input, _wider(input, result)), ord, result, axes_of(input, dim))
    return None if grad is None else np.astype(grad, type_of(input).dtype)


def _wider(x: Any, result: Any) -> Any:
    """The dtype of ``x`` in the precision of the norm, which the argument ``dtype`` may have raised."""
    own, real = type_of(x).dtype, type_of(result).dtype
    if not fdtypes.is_complex(own):
        return real
    return fdtypes.complex128 if real == fdtypes.float64 else fdtypes.complex64


@composite(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    names="linalg.vector_norm",
)
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """The norm of vectors: ``sum(|x| ** ord) ** (1 / ord)``.

    Args:
        x: a floating-point or complex tensor.
        ord: the order; ``inf`` and ``-inf`` for the largest and smallest magnitude, 0 for the number of nonzeros.
        dim: the dimensions that form a vector; all of them, if None.
        keepdim: whether to keep the reduced dimensions with size 1.
        dtype: the dtype to convert to first.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for integers, an ``out`` of another dtype, and empty tensors if the norm has no identity.

    Example:
        >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if out is not None and isinstance(x, Tensor) and x.dtype.category >= dtypes.FLOATING:
        real = (dtype or x.dtype).to_real()
        if out.dtype is not real:
            raise RuntimeError(
                f"Expected out tensor to have dtype {cpp_name(real)}, but got {cpp_name(out.dtype)} instead"
            )
    return vector_norm_of.function(x, ord, dim, keepdim, dtype=dtype, out=out)


# ---------------------------------------------------------------- matrices


def _not_supported(ord: Any) -> RuntimeError:
    return RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")


def _check_matrix_norm(A: Tensor, ord: Any, dim: tuple[int, ...], dtype: dtypes.dtype | None) -> None:
    if A.dim() < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if A.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}"
        )
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    known = ord in ("fro", "nuc") if isinstance(ord, str) else abs(ord) in (1, 2, math.inf)
    if not known:
        raise _not_supported(ord if isinstance(ord, str) else f"{ord:g}")
    _check_norm_dtype("linalg.matrix_norm", A, dtype)


def _by_singular_values(A: Tensor, ord: Any, dim: tuple[int, int], keepdim: bool) -> Tensor:
    """The nuclear norm, and the norms of order 2 and -2."""
    order = [*[d for d in range(A.dim()) if d not in dim], *dim]
    values = names_of("linalg")["svdvals"](A.permute(order))
    found = values.sum(-1, keepdim) if ord == "nuc" else (values.amax if ord > 0 else values.amin)(-1, keepdim)
    return found.unsqueeze(-1).permute([order.index(d) for d in range(A.dim())]) if keepdim else found


_OUT_DTYPE = "linalg.{} expected out tensor dtype {{result}} but got: {{out}}"


@composite(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    names="linalg.matrix_norm", out=of_dtype(_OUT_DTYPE.format("matrix_norm")),
)  # fmt: skip
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """The norm of matrices.

    Args:
        A: ``(*, n, m)``, floating-point or complex.
        ord: ``"fro"`` for the root of the sum of squares, ``"nuc"`` for the sum of singular values, 2 and -2 for the
            largest and smallest; 1 and ``inf`` for the largest sum of magnitudes of a column and of a row, -1 and
            ``-inf`` for the smallest.
        dim: the two dimensions that form a matrix.
        keepdim: whether to keep the reduced dimensions with size 1.
        dtype: the dtype to convert to first.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for other orders, dimensions or dtypes.

    Example:
        >>> torch.linalg.matrix_norm(torch.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
        tensor(6.)
    """
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    _no_complex("linalg.matrix_norm", ord)
    ord = ord if isinstance(ord, str) else float(ord)
    _check_matrix_norm(A, ord, dims, dtype)
    first, second = (_wrapped(d, A.dim()) for d in dims)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    if ord == "fro":
        return vector_norm_of.function(A, 2, (first, second), keepdim, dtype=dtype)
    if ord == "nuc" or abs(ord) == 2:
        return _by_singular_values(A if dtype is None else A.to(dtype), ord, (first, second), keepdim)
    if math.isinf(ord):
        first, second = second, first
    sums = vector_norm_of.function(A, 1.0, (first,), keepdim, dtype=dtype)
    if not keepdim and second > first:
        second -= 1
    return sums.amax(second, keepdim) if ord > 0 else sums.amin(second, keepdim)


def _wrapped(d: int, ndim: int) -> int:
    if not -ndim <= d < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
    return d % ndim


# ---------------------------------------------------------------- norms of vectors or matrices


def _with_numpy_names(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Makes a function accept NumPy's names of its arguments, too."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        return function(*args, **{ALIASES.get(name, name): value for name, value in kwargs.items()})

    return call


@composite(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    names="linalg.norm", out=of_dtype(_OUT_DTYPE.format("norm")),
)  # fmt: skip
@_with_numpy_names
def linalg_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of a vector or a matrix.

    Args:
        A: a floating-point or complex tensor.
        ord: as for ``vector_norm`` and ``matrix_norm``; None for the root of the sum of squares.
        dim: one dimension for vectors, two for matrices; None for all dimensions of ``A``, which is flattened if
            ``ord`` is None.
        keepdim: whether to keep the reduced dimensions with size 1.
        dtype: the dtype to convert to first.

    Raises:
        RuntimeError: for other numbers of dimensions, and unknown orders.

    Example:
        >>> torch.linalg.norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5.)
    """
    dims = None if dim is None else tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if dims is not None and ord is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dims is None and ord is not None and A.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D."
        )
    if ord is None:
        return vector_norm_of.function(A, 2.0, dims, keepdim, dtype=dtype)
    matrix = isinstance(ord, str) or (A.dim() == 2 if dims is None else len(dims) == 2)
    if matrix:
        return matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)
    return vector_norm_of.function(A, ord, dims, keepdim, dtype=dtype)


@composite(names="torch.norm", out=True)
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: dtypes.dtype | None = None
) -> Tensor:
    """The norm over dimensions, by default of all elements as one vector.

    Args:
        input: a floating-point or complex tensor.
        p: the order, or ``"fro"`` for the root of the sum of squares.
        dim: a dimension, several, or None for all.
        keepdim: whether to keep the reduced dimensions with size 1.
        dtype: the dtype to convert to first.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for integers, and unknown orders.

    Example:
        >>> torch.norm(torch.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
        tensor([ 5., 10.])
    """
    dims = dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)
    if p is None or (p == "fro" and (dims is None or len(dims) <= 2)):
        return vector_norm_of.function(input, 2.0 if p is None else 2, dims, keepdim, dtype=dtype)
    if isinstance(p, str):
        return matrix_norm(input, p, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)
    return vector_norm_of.function(input, p, dims, keepdim, dtype=dtype)


@function("Tensor.norm")
def tensor_norm(
    self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: dtypes.dtype | None = None
) -> Tensor:
    """The norm over dimensions; arguments as for ``torch.norm``.

    Example:
        >>> torch.tensor([3.0, 4.0]).norm()
        tensor(5.)
    """
    return norm(self, p, dim, keepdim, dtype=dtype)


@aten(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    node="NormBackward1", saves="self! p dim keepdim result!", names="", check=None, arguments=Arguments(static="p"),
)  # fmt: skip
def norm_along(input, p, dim, keepdim):
    return norm_over(input, p, axes_of(input, dim), keepdim)


@norm_along.backward
def norm_along_backward(ct: Any, input: Any, p: Any, dim: Any, result: Any) -> Any:
    return norm_gradient(ct, input, p, result, axes_of(input, dim))


def _warn_deprecated(name: str, replacement: str) -> None:
    text = (
        f"at::{name} is deprecated and it is just left for JIT compatibility. It will be removed in a future PyTorch "
    )
    Once.warn(f"{text}release. Please use `{replacement}` instead", key=name)


@composite(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
    names="torch.nuclear_norm", out=True,
)  # fmt: skip
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """A deprecated alias of ``torch.linalg.matrix_norm(input, "nuc")``.

    Args:
        dim: the two dimensions that form a matrix; None for the last two. A bool is ``keepdim``.
        keepdim: whether to keep the reduced dimensions with size 1.
    """
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    _warn_deprecated("nuclear_norm", "linalg.matrix_norm(A, 'nuc', dim, keepdim)")
    dims = (-2, -1) if dim is None else tuple(dim) if isinstance(dim, (tuple, list)) else (dim, dim)
    return matrix_norm(input, "nuc", dims, keepdim)


@composite(
    "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    names="torch.frobenius_norm", out=True,
)  # fmt: skip
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """A deprecated alias of ``torch.linalg.vector_norm`` over at most two dimensions; an empty tuple for all.

    Args:
        dim: a dimension, or several.
        keepdim: whether to keep the reduced dimensions with size 1.

    Raises:
        RuntimeError: for more than two dimensions.
    """
    _warn_deprecated("frobenius_norm", "linalg.vector_norm(A, 2., dim, keepdim)")
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    return norm_along.function(input, 2.0, dims or tuple(range(input.dim())), keepdim)


@composite(names="F.normalize", out=True)
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """The input divided by its norm along a dimension, or by ``eps`` if that is greater.

    Args:
        p: the order of the norm.
        dim: a dimension, or several.

    Example:
        >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    return input / norm(input, p, dim, True).clamp_min(eps).expand_as(input)
