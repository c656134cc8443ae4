"""Distances between vectors, and vector products other than matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy

from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Late
from compat._core.operators.op import aten
from compat._core.operators.out import of_dtype
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat._core.types import dtype
from compat._core.types.errors import Once, cpp_name, lacks, wrap_dim
from compat._core.types.type_promotion import promote_types
from compat._operators.linalg.matmul import vdot
from compat._operators.pointwise.arithmetic import check_difference
from compat._operators.pointwise.declare import checks
from compat._operators.pointwise.scalars import add_number
from compat._operators.reduction.sum_mean_var import axes_of
from compat._operators.reduction.vector_norms import norm_along, norm_gradient, norm_over, vector_norm_of
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.indexing import take as take_slices
from funcgrad.primitives.shape import reshape

# ---------------------------------------------------------------- distances of corresponding vectors


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    names="F.cosine_similarity torch.cosine_similarity",
)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors.

    Args:
        x1, x2: floating-point tensors that broadcast against each other.
        dim: the dimension of the vectors.
        eps: a lower bound for the lengths.

    Raises:
        RuntimeError: for integers.

    Example:
        >>> torch.cosine_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """
    common = promote_types(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.scalar_name}")
    size = broadcast_size(tuple(x1.shape), tuple(x2.shape))
    same = x1.shape == x2.shape
    vectors = []
    for x in (x1, x2):
        x = x.to(common) if x.dtype is not common else x
        x = x if same else x.expand(size)
        length = vector_norm_of.function(x, 2, (dim,), True).clone()
        with no_grad():  # the gradient ignores the bound
            length.clamp_min_(eps)
        vectors.append(x / length)
    return (vectors[0] * vectors[1]).sum(dim)


@composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
    names="F.pairwise_distance torch.pairwise_distance",
)
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norms of the differences of vectors along the last dimension.

    Args:
        p: the order of the norm.
        eps: a number that is added to the differences, so that none is zero.
        keepdim: whether to keep the last dimension, with size 1.

    Example:
        >>> torch.pairwise_distance(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2), eps=0.0)
        tensor([5.])
    """
    difference = x1 - x2
    if difference.dtype.category < dtype.FLOATING:
        difference = difference.to(dtype.get_default_dtype())
    return norm_along.function(add_number(difference, eps), float(p), (max(x1.dim(), x2.dim()) - 1,), keepdim)


def _check_dist(input: Tensor, other: Tensor, p: Any = 2) -> None:
    check_difference(input, other)
    common = promote_types(input.dtype, other.dtype)
    if common.category < dtype.FLOATING:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {common.scalar_name} instead."
        )
    broadcast_size(tuple(input.shape), tuple(other.shape))


@aten(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    node="DistBackward0", saves="self other p result!", dtypes="common", check=_check_dist, out=False,
    arguments=Arguments(static="p"),
)  # fmt: skip
def dist(input, other, p):
    """The norm of the difference of two tensors, flattened.

    Args:
        input, other: tensors that broadcast against each other.
        p: the order of the norm.

    Raises:
        RuntimeError: for integers.

    Example:
        >>> torch.dist(torch.tensor([3.0, 4.0]), torch.zeros(2))
        tensor(5.)
    """
    difference = np.subtract(input, other)
    return norm_over(difference, p, axes_of(difference, None), False)


@dist.backward
def dist_backward(ct: Any, input: Any, other: Any, p: Any, result: Any) -> Any:
    difference = np.subtract(input, other)
    grad = norm_gradient(ct, difference, p, result, axes_of(difference, None))
    if grad is None:
        return None, None
    return _summed_to(grad, input), _summed_to(np.negative(grad), other)


def _summed_to(grad: Any, like: Any) -> Any:
    """A gradient summed over the broadcast dimensions of its operand."""
    shape, target = type_of(grad).shape, type_of(like).shape
    extra = len(shape) - len(target)
    axes = tuple(range(extra)) + tuple(d for d in range(extra, len(shape)) if target[d - extra] == 1 and shape[d] != 1)
    return reshape(r.reduce_sum(grad, axes=axes), shape=target) if axes else grad


# ---------------------------------------------------------------- distances of all pairs


def _check_rows(x1: Tensor, x2: Tensor, p: float) -> None:
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_name}")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    broadcast_size(tuple(x1.shape[:-2]), tuple(x2.shape[:-2]))


def _differences(x1: Any, x2: Any) -> Any:
    """``(*, n, m, k)`` of ``(*, n, k)`` and ``(*, m, k)``."""
    return np.subtract(np.expand_dims(x1, -2), np.expand_dims(x2, -3))


def _pair_norm(difference: Any, p: float) -> Any:
    """The norms along the last axis; for ``p = 0`` the norm of a vector with NaN is NaN."""
    axes = (type_of(difference).ndim - 1,)
    if p == 0:
        differs = np.where(difference == difference, np.not_equal(difference, 0), difference)
        return r.reduce_sum(np.astype(differs, type_of(difference).dtype), axes=axes)
    return norm_over(difference, p, axes, False)


def _pair_gradient(ct: Any, difference: Any, p: float, result: Any) -> Any:
    """The gradient of ``_pair_norm``: each of several maxima gets the whole of it; None for zero."""
    axes = (type_of(difference).ndim - 1,)
    if math.isinf(p):
        ct, result = np.expand_dims(ct, -1), np.expand_dims(result, -1)
        not_maximum = np.minimum(np.ceil(np.abs(np.abs(difference) - result)), 1)
        return np.multiply(ct, np.multiply(e.sign(difference), 1 - not_maximum))
    if p == 1:
        return np.multiply(np.expand_dims(ct, -1), e.sign(difference))
    grad = norm_gradient(ct, difference, p, result, axes)
    if grad is None or p > 1:
        return grad
    return np.where(np.equal(difference, 0), e.number(0, grad), grad)


@aten("cdist(Tensor x1, Tensor x2, float p) -> Tensor", node="CdistBackward0", saves="x1! x2! p result!", names="")
def cdist_of(x1, x2, p):
    return _pair_norm(_differences(x1, x2), p)


@cdist_of.backward
def cdist_backward(ct: Any, x1: Any, x2: Any, p: float, result: Any) -> Any:
    difference = _differences(x1, x2)
    n = type_of(difference).ndim
    grad = _pair_gradient(ct, difference, p, result)
    if grad is None:
        return np.zeros(type_of(x1).shape, type_of(x1).dtype), np.zeros(type_of(x2).shape, type_of(x2).dtype)
    first, second = r.reduce_sum(grad, axes=(n - 2,)), np.negative(r.reduce_sum(grad, axes=(n - 3,)))
    return _summed_to(first, x1), _summed_to(second, x2)


def _rows_of_products(x: Any, y: Any) -> Any:
    return np.matmul(x, np.swapaxes(y, -1, -2))


@aten("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", node="EuclideanDistBackward0", saves="x1 x2 result!", names="")
def euclidean_dist(x1, x2):
    last = type_of(x1).ndim - 1
    lengths = [np.expand_dims(r.reduce_sum(e.square(x), axes=(last,)), -1) for x in (x1, x2)]
    squares = np.add(lengths[0], np.swapaxes(lengths[1], -1, -2))
    return e.sqrt(np.maximum(np.subtract(squares, np.multiply(_rows_of_products(x1, x2), 2.0)), 0.0))


@euclidean_dist.backward
def euclidean_dist_backward(ct: Any, x1: Any, x2: Any, result: Any) -> Any:
    zero = np.equal(result, 0)
    ratio = np.where(zero, e.number(0, result), np.divide(ct, np.where(zero, e.number(1, result), result)))
    last = type_of(ratio).ndim - 1
    by_row = np.expand_dims(r.reduce_sum(ratio, axes=(last,)), -1)
    by_column = np.expand_dims(r.reduce_sum(ratio, axes=(last - 1,)), -1)
    return (
        np.subtract(np.multiply(x1, by_row), np.matmul(ratio, x2)),
        np.subtract(np.multiply(x2, by_column), np.matmul(np.swapaxes(ratio, -1, -2), x1)),
    )


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@composite(names="torch.cdist")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The distances between all rows of two matrices.

    Args:
        x1: ``(*, n, k)``.
        x2: ``(*, m, k)``; the leading dimensions broadcast.
        p: the order of the norm of the differences.
        compute_mode: whether to use matrix products for ``p = 2``: by default for more than 25 rows.

    Returns:
        ``(*, n, m)``.

    Raises:
        ValueError: for an unknown mode.
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.cdist(torch.zeros(1, 2), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    _check_rows(x1, x2, p)
    many = x1.shape[-2] > 25 or x2.shape[-2] > 25
    lead = broadcast_size(tuple(x1.shape[:-2]), tuple(x2.shape[:-2]))
    products = compute_mode == _MODES[1] or (compute_mode == _MODES[0] and many)
    empty = 0 in (*lead, x1.shape[-2], x2.shape[-2], x1.shape[-1])
    if p != 2 or not products or empty:
        return cdist_of.function(x1, x2, float(p))
    flat = [_batch(x, lead) for x in (x1, x2)]
    return euclidean_dist.function(*flat).view(*lead, x1.shape[-2], x2.shape[-2])


def _batch(x: Tensor, lead: tuple[int, ...]) -> Tensor:
    """Batched matrices with their leading dimensions expanded to ``lead`` and flattened into one."""
    rows = x.shape[-2:]
    return x.expand(*lead, *rows).contiguous().view(math.prod(lead), *rows) if lead else x


def _check_pdist(input: Tensor, p: float = 2) -> None:
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")


def _pairs(x: Any) -> tuple[Any, Any]:
    """The indices of the first and of the second row of each pair."""
    return tuple(numpy.triu_indices(type_of(x).shape[0], 1))  # type: ignore[return-value]


@aten(
    "pdist(Tensor self, float p=2) -> Tensor",
    node="PdistBackward0", saves="self! p result!", names="F.pdist torch.pdist", check=_check_pdist, out=False,
)  # fmt: skip
def pdist(input, p):
    """The distances between the rows of a matrix.

    Args:
        input: ``(n, k)``.
        p: the order of the norm of the differences.

    Returns:
        ``(n * (n - 1) / 2,)``: the distances of the first row to those after it, of the second to those after it, ...

    Raises:
        RuntimeError: for an input that is not a matrix, and a negative order.

    Example:
        >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
        tensor([5.0000, 1.0000, 4.2426])
    """
    first, second = (take_slices(input, rows, axis=0, mode="clip") for rows in _pairs(input))
    return _pair_norm(np.subtract(first, second), p)


@pdist.backward
def pdist_backward(ct: Any, input: Any, p: float, result: Any) -> Any:
    rows = _pairs(input)
    first, second = (take_slices(input, i, axis=0, mode="clip") for i in rows)
    grad = _pair_gradient(ct, np.subtract(first, second), p, result)
    total = np.zeros(type_of(input).shape, type_of(input).dtype)
    if grad is None:
        return total
    return np.at(np.at(total)[rows[0]].add(grad))[rows[1]].add(np.negative(grad))


# ---------------------------------------------------------------- bounded norms


def _check_renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> None:
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions")
    wrap_dim(dim, input.dim())
    if input.dtype.category < dtype.FLOATING:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {input.dtype.scalar_name}"
        )


@aten(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    node="RenormBackward0", saves="self p dim maxnorm", names="torch.renorm Tensor.renorm Tensor.renorm_",
    check=_check_renorm, arguments=Arguments(static="p maxnorm"),
)  # fmt: skip
def renorm(input, p, dim, maxnorm):
    """The slices along a dimension, with norms greater than ``maxnorm`` scaled down to it.

    Args:
        p: the order of the norm.
        dim: the dimension of the slices.
        maxnorm: the maximum norm.

    Raises:
        RuntimeError: for fewer than two dimensions, an order that is not positive, and a negative bound.

    Example:
        >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    axes = tuple(d for d in range(type_of(input).ndim) if d != dim)
    size = norm_over(input, p, axes, True)
    factor = np.where(np.greater(size, maxnorm), np.divide(maxnorm, np.add(size, 1e-7)), e.number(1, size))
    return np.multiply(input, factor)


@renorm.backward
def renorm_backward(ct: Any, input: Any, p: float, dim: int, maxnorm: float) -> Any:
    axes = tuple(d for d in range(type_of(input).ndim) if d != dim)
    size = norm_over(input, p, axes, True)
    norm_grad = norm_gradient(np.sum(np.real(np.conj(input) * ct), axes, keepdims=True), input, p, size, axes)
    inverse = np.divide(1, np.add(size, 1e-7))
    scaled = np.multiply(maxnorm * inverse, np.subtract(ct, np.multiply(inverse, norm_grad)))
    return np.where(np.greater(size, maxnorm), scaled, ct)


# ---------------------------------------------------------------- products


def _check_trace(input: Tensor) -> None:
    if input.dtype is dtype.bool_:
        raise lacks("trace", input.dtype)
    if input.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.dim()}")


@aten("trace(Tensor self) -> Tensor", node="TraceBackward0", saves="self.sym_sizes", check=_check_trace, out=False)
def trace(input):
    """The sum of the diagonal of a matrix; int64 for integers.

    Raises:
        RuntimeError: for an input that is not a matrix.

    Example:
        >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """
    entries = np.diagonal(input)
    if not fdtypes.is_inexact(type_of(entries).dtype):
        entries = np.astype(entries, fdtypes.int64)
    return r.reduce_sum(entries, axes=(0,))


def _check_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> None:
    if input.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = wrap_dim(dim, input.dim())
    if input.dim() == 0 or input.shape[d] != 3 or other.shape[d] != 3:
        sizes = [t.shape[d] if t.dim() else 1 for t in (input, other)]
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")


@Late
def _check_cross_dtypes(input: Tensor, other: Tensor, *, dim: int = -1) -> None:
    if input.dtype is dtype.bool_:
        raise lacks("cross", input.dtype)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {other.dtype.scalar_name}")


_CROSS_OUT = of_dtype("Expected out tensor to have dtype {result_cpp}, but got {out_cpp} instead")


@aten(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    node="LinalgCrossBackward0", saves="self other dim", names="linalg.cross", dtypes="common",
    layout="pointwise, contiguous", check=checks(_check_cross, _check_cross_dtypes), out=_CROSS_OUT,
)  # fmt: skip
def linalg_cross(input, other, *, dim):
    """The cross products of vectors of three elements.

    Args:
        input, other: tensors that broadcast against each other.
        dim: the dimension of the vectors.

    Raises:
        RuntimeError: for vectors of other sizes.

    Example:
        >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.])
    """

    def rolled(x: Any, by: int) -> Any:
        return np.roll(x, by, axis=dim)

    return np.subtract(
        np.multiply(rolled(input, -1), rolled(other, -2)), np.multiply(rolled(input, -2), rolled(other, -1))
    )


@composite("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", out=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """As ``torch.linalg.cross``, by default along the first dimension of size 3.

    Raises:
        RuntimeError: for vectors of other sizes.

    Example:
        >>> torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]), dim=0)
        tensor([0, 0, 1])
    """
    if dim is None:
        Once.warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly "
            "or simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of "
            "linalg.cross in a future release."
        )
        dim = next((d for d, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross.function(input, other, dim=dim)


@composite(
    "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    names="linalg.vecdot", out=of_dtype("linalg.vecdot: Expected out of dtype{result} but found {out}"),
)  # fmt: skip
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Dot products of vectors, with the elements of ``x`` conjugated.

    Args:
        x, y: of one dtype; they broadcast against each other.
        dim: the dimension of the vectors.

    Raises:
        RuntimeError: for different dtypes.

    Example:
        >>> torch.linalg.vecdot(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))
        tensor([3, 7])
    """
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype.scalar_name} and y of type {y.dtype.scalar_name} instead"
        )
    if x.dim() == 1 and y.dim() == 1:
        return vdot(x, y)
    return (x.conj() * y).sum(dim) if x.dtype.is_complex else (x * y).sum(dim)


def _letters(expand: tuple[int, ...], total: int) -> str:
    """The labels of the axes of an operand, whose ``expand`` of ``total`` axes are inserted."""
    return "".join(chr(ord("a") + d) for d in range(total) if d not in expand)


@aten(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int "
    "unroll_dim=1) -> Tensor",
    node="TrilinearBackward0", saves="i1 i2 i3 expand1 expand2 expand3 sumdim", names="torch._trilinear",
)  # fmt: skip
def trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
    """The product of three tensors, with axes of size one inserted, summed over ``sumdim``."""
    total = type_of(i1).ndim + len(expand1)
    terms = ",".join(_letters(expand, total) for expand in (expand1, expand2, expand3))
    return np.einsum(f"{terms}->{_letters(tuple(sumdim), total)}", i1, i2, i3)


def _check_bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if input1.dim() != input2.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}")
    for d in range(input1.dim() - 1):
        if input1.shape[d] != input2.shape[d]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got {input1.shape[d]} and "
                f"{input2.shape[d]}"
            )
    wrap_dim(1, weight.dim())
    for i, x in enumerate((input1, input2), 1):
        expected = weight.shape[i] if weight.dim() > i else 1
        if x.shape[-1] != expected:
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {x.shape[-1]} but expected {expected}"
            )
    if bias is not None and bias.size(0) != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}"
        )
    named = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
    if len({t.dtype for t in named.values()}) > 1:
        dtypes = ", ".join(f"{name}: {cpp_name(t.dtype)}" for name, t in named.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {dtypes}")
    if weight.dtype is dtype.bool_:
        raise lacks("bmm", weight.dtype)


@composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    names="F.bilinear torch.bilinear",
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``sum(weight[k, i, j] * input1[..., i] * input2[..., j])``, plus a bias.

    Args:
        input1: ``(*, n)``.
        input2: ``(*, m)``.
        weight: ``(out, n, m)``.
        bias: ``(out,)``.

    Returns:
        ``(*, out)``.

    Raises:
        RuntimeError: if sizes do not match.

    Example:
        >>> torch.nn.functional.bilinear(torch.ones(1, 2), torch.ones(1, 3), torch.ones(4, 2, 3))
        tensor([[6., 6., 6., 6.]])
    """
    _check_bilinear(input1, input2, weight, bias)
    size = (*input1.shape[:-1], weight.shape[0])
    first, second = (x.reshape(-1, x.shape[-1]) for x in (input1, input2))
    product = trilinear.function(first, weight, second, (1, 3), (0,), (1, 2), (2, 3)).view(size)
    return product if bias is None else product + bias
