"""Products of vectors, matrices and batches of them."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from compat._core.autograd.rebase_history import check_recorded, set_history
from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Dtypes
from compat._core.operators.op import aten
from compat._core.operators.opmath import EIGHTS, in_single
from compat._core.operators.out import of_dtype, resize
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import taken
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types.dtype import bool_
from compat._core.types.errors import cpp_name, lacks
from compat._core.types.scalar_conversion import fits, widened
from compat._operators.linalg.gemm_epilogue import combined, plus, scaled, times
from compat._operators.pointwise.arithmetic import check_factor, only_real_factors
from compat._operators.view.shape import (
    expand,
    reshape,
    squeeze,
    t,
    transpose,
    unsafe_squeeze,
    unsafe_view,
    unsqueeze,
    view_size,
)
from funcgrad.core.tracing import type_of
from funcgrad.primitives.contraction import dot as contract
from funcgrad.primitives.elementwise import conj
from funcgrad.primitives.reductions import reduce_sum

# ---------------------------------------------------------------- helpers

_float8_in_single = partial(in_single, kinds=EIGHTS)


@_float8_in_single
def _matrix_product(x: Any, y: Any, product: Any = contract) -> Any:
    return product(x, y, contract=((1,), (0,)), batch=((), ()))


@_float8_in_single
def _batched_product(x: Any, y: Any, product: Any = contract) -> Any:
    return product(x, y, contract=((2,), (1,)), batch=((0,), (0,)))


def _by(*sizes: Any) -> str:
    return " and ".join("x".join(map(str, s)) for s in sizes)


def _check_same_dtype(message: str, a: Tensor, b: Tensor, *others: Tensor, name: Any = lambda d: d.scalar_name) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(message.format(*[name(x.dtype) for x in (a, b, *others)]))


def _check_not_bool(kernel: str, x: Tensor) -> None:
    if x.dtype is bool_:
        raise lacks(kernel, x.dtype)


def _check_expandable(x: Tensor, size: tuple[int, ...]) -> None:
    """Raises unless ``x`` can be expanded to ``size``."""
    shape = x.shape
    if len(shape) > len(size) or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(size))):
        expand(x, size)


# ---------------------------------------------------------------- matrix products


def _check_mm(input: Tensor, mat2: Tensor) -> None:
    if input.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(f"{'self' if input.dim() != 2 else 'mat2'} must be a matrix")
    _check_inner(input, mat2)
    _check_same_dtype("expected m1 and m2 to have the same dtype, but got: {} != {}", input, mat2, name=cpp_name)
    _check_not_bool("addmm_impl_cpu_", input)


def _check_inner(a: Tensor, b: Tensor) -> None:
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_by(a.shape, b.shape)})")


@aten(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    node="MmBackward0", saves="mat2 mat2.sym_sizes mat2.sym_strides self self.sym_sizes self.sym_strides",
    check=_check_mm,
)  # fmt: skip
def mm(input, mat2):
    """The product of two matrices.

    Args:
        input: ``(n, k)``.
        mat2: ``(k, m)``, of the same dtype.

    Returns:
        ``(n, m)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.mm(torch.tensor([[1, 2]]), torch.tensor([[3], [4]]))
        tensor([[11]])
    """
    return _matrix_product(input, mat2)


def check_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> None:
    """Raises ``addmm``'s errors for its arguments."""
    _check_same_dtype("self and mat2 must have the same dtype, but got {} and {}", input, mat2)
    _check_same_dtype("mat1 and mat2 must have the same dtype, but got {} and {}", mat1, mat2)
    for name, m in (("mat1", mat1), ("mat2", mat2)):
        if m.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix, got {m.dim()}-D tensor")
    _check_inner(mat1, mat2)
    _check_expandable(input, (mat1.shape[0], mat2.shape[1]))
    _check_not_bool("addmm_impl_cpu_", input)
    only_real_factors(input.dtype, beta, alpha)


@aten(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    node="AddmmBackward0", saves="alpha beta mat1 mat1.sym_sizes mat1.sym_strides mat2 mat2.sym_sizes mat2.sym_strides",
    names="torch.addmm Tensor.addmm Tensor.addmm_", dtypes=Dtypes(fits=fits("beta alpha", widened)), check=check_addmm,
    arguments=Arguments(deprecated="beta alpha"),
)  # fmt: skip
def addmm(input, mat1, mat2, *, beta, alpha):
    """``beta * input + alpha * (mat1 @ mat2)``.

    Args:
        input: the summand, of a size that broadcasts to ``(n, m)``.
        mat1: ``(n, k)``.
        mat2: ``(k, m)``.
        beta: if 0, ``input`` is ignored, even NaN.
        alpha: the factor of the product.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.addmm(torch.ones(1), torch.ones(1, 3), torch.ones(3, 2), alpha=2)
        tensor([[7., 7.]])
    """
    return combined(_matrix_product, beta, input, alpha, mat1, mat2)


# ---------------------------------------------------------------- vectors


def _check_dot(input: Tensor, tensor: Tensor) -> None:
    if input.dim() != 1 or tensor.dim() != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.dim()}D and {tensor.dim()}D tensors")
    _check_same_dtype("dot : expected both vectors to have same dtype, but found {} and {}", input, tensor)
    if input.numel() != tensor.numel():
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{input.numel()}] and src [{tensor.numel()}] to have the same "
            f"number of elements, but got {input.numel()} and {tensor.numel()} elements respectively"
        )
    _check_not_bool("dot", input)


def _inner(x: Any, y: Any) -> Any:
    return contract(x, y, contract=((0,), (0,)), batch=((), ()))


@aten(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    node="DotBackward0", saves="self tensor", check=_check_dot,
    out=of_dtype("result dtype {out} does not match input dtype {result}"),
)  # fmt: skip
def dot(input, tensor):
    """The sum of the products of two vectors' elements.

    Raises:
        RuntimeError: unless both are vectors of one size and dtype.

    Example:
        >>> torch.dot(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor(11)
    """
    return _inner(input, tensor)


@aten("vdot(Tensor self, Tensor other) -> Tensor", node="VdotBackward0", saves="other self", check=_check_dot)
def vdot(input, other):
    """``dot`` with the first vector conjugated.

    Raises:
        RuntimeError: unless both are vectors of one size and dtype.

    Example:
        >>> torch.vdot(torch.tensor([1j]), torch.tensor([1j]))
        tensor(1.+0.j)
    """
    return _inner(conj(input) if type_of(input).dtype.kind == "c" else input, other)


def _check_vector_sizes(input: Any, mat: Tensor, vec: Tensor) -> None:
    ndim = 1 if input is None else input.dim()
    if mat.dim() != 2 or vec.dim() != 1 or ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {ndim}, {mat.dim()}, {vec.dim()}")
    n = mat.shape[0] if input is None else input.numel()
    if mat.shape[1] != vec.shape[0] or n not in (1, mat.shape[0]):
        raise RuntimeError(f"size mismatch, got input ({n}), mat ({_by(mat.shape)}), vec ({vec.shape[0]})")


def _check_mv(input: Tensor, vec: Tensor) -> None:
    _check_vector_sizes(None, input, vec)
    _check_same_dtype("addmv input tensors must have the same dtype, but got {1}, {0}, and {1}", input, vec)
    _check_not_bool("addmv_impl_cpu", input)


@aten("mv(Tensor self, Tensor vec) -> Tensor", node="MvBackward0", saves="self vec", check=_check_mv)
def mv(input, vec):
    """The product of a matrix and a vector.

    Args:
        input: ``(n, k)``.
        vec: ``(k,)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.mv(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))
        tensor([3, 7])
    """
    return _matrix_product(input, vec)


def _check_addmv(input: Tensor, mat: Tensor, vec: Tensor, beta: Any = 1, alpha: Any = 1) -> None:
    _check_vector_sizes(input, mat, vec)
    if not input.dtype is mat.dtype is vec.dtype:
        names = [x.dtype.scalar_name for x in (input, mat, vec)]
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, and {names[2]}"
        )
    _check_not_bool("addmv_impl_cpu", input)
    only_real_factors(input.dtype, beta, alpha)


@aten(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    node="AddmvBackward0", saves="alpha beta mat vec", names="torch.addmv Tensor.addmv Tensor.addmv_",
    dtypes=Dtypes(fits=fits("beta alpha")), check=_check_addmv, arguments=Arguments(deprecated="beta alpha"),
)  # fmt: skip
def addmv(input, mat, vec, *, beta, alpha):
    """``beta * input + alpha * (mat @ vec)``.

    Args:
        input: ``(n,)``, or one element.
        mat: ``(n, k)``.
        vec: ``(k,)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.addmv(torch.ones(2), torch.ones(2, 3), torch.ones(3))
        tensor([4., 4.])
    """
    return combined(_matrix_product, 1, scaled(beta, input), alpha, mat, vec, round_alpha=True)


def _check_addr(input: Tensor, vec1: Tensor, vec2: Tensor, beta: Any = 1, alpha: Any = 1) -> None:
    for name, v in (("vec1", vec1), ("vec2", vec2)):
        if v.dim() != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {v.dim()}-D")
    _check_expandable(input, (vec1.shape[0], vec2.shape[0]))
    for name, factor in (("beta", beta), ("alpha", alpha)):
        check_factor(name, factor, input.dtype.category)
    only_real_factors(input.dtype, beta, alpha)


@aten(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    node="AddrBackward0", saves="alpha beta vec1 vec2", names="torch.addr Tensor.addr Tensor.addr_",
    dtypes=Dtypes(promote="common", numbers=True, fits=fits("beta alpha")), check=_check_addr,
    arguments=Arguments(deprecated="beta alpha"),
)  # fmt: skip
def addr(input, vec1, vec2, *, beta, alpha):
    """``beta * input + alpha * outer(vec1, vec2)``.

    Args:
        input: of a size that broadcasts to ``(n, m)``.
        vec1: ``(n,)``.
        vec2: ``(m,)``.

    Raises:
        RuntimeError: if sizes do not match.

    Example:
        >>> torch.addr(torch.zeros(2, 2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]])
    """
    return plus(beta, input, 1, contract(times(alpha, vec1), vec2, contract=((), ()), batch=((), ())))


# ---------------------------------------------------------------- batched products


def _check_batches(a: Tensor, b: Tensor, kernel: str = "bmm") -> None:
    for name, x in (("batch1", a), ("batch2", b)):
        if x.dim() != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if b.shape[0] != a.shape[0] or b.shape[1] != a.shape[2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: "
            f"[{b.shape[0]}, {b.shape[1]}]."
        )
    _check_same_dtype("expected scalar type {} but found {}", a, b)
    _check_not_bool(kernel, a)


@aten("bmm(Tensor self, Tensor mat2) -> Tensor", node="BmmBackward0", saves="mat2 self", check=_check_batches)
def bmm(input, mat2):
    """Batched matrix products.

    Args:
        input: ``(b, n, k)``.
        mat2: ``(b, k, m)``.

    Returns:
        ``(b, n, m)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.bmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1)).flatten()
        tensor([3., 3.])
    """
    return _batched_product(input, mat2)


def _check_baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, beta: Any = 1, alpha: Any = 1) -> None:
    wrong = "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}"
    _check_same_dtype(wrong, input, batch1, batch2, name=cpp_name)
    _check_batches(batch1, batch2, "baddbmm")
    _check_expandable(input, (batch1.shape[0], batch1.shape[1], batch2.shape[2]))
    only_real_factors(input.dtype, beta, alpha)


@aten(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    node="BaddbmmBackward0", saves="alpha batch1 batch2 beta", names="torch.baddbmm Tensor.baddbmm Tensor.baddbmm_",
    dtypes=Dtypes(fits=fits("beta alpha", widened)), check=_check_baddbmm, arguments=Arguments(deprecated="beta alpha"),
)  # fmt: skip
def baddbmm(input, batch1, batch2, *, beta, alpha):
    """``beta * input + alpha * bmm(batch1, batch2)``.

    Args:
        input: of a size that broadcasts to ``(b, n, m)``.
        batch1: ``(b, n, k)``.
        batch2: ``(b, k, m)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.baddbmm(torch.zeros(1), torch.ones(1, 1, 3), torch.ones(1, 3, 1), alpha=2)
        tensor([[[6.]]])
    """
    return combined(_batched_product, beta, input, alpha, batch1, batch2)


def _check_addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, beta: Any = 1, alpha: Any = 1) -> None:
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        if x.dim() != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({_by(batch1.shape[1:], batch2.shape[1:])})")
    _check_same_dtype("self and mat2 must have the same dtype, but got {} and {}", input, batch2)
    _check_same_dtype("mat1 and mat2 must have the same dtype, but got {} and {}", batch1, batch2)
    _check_expandable(input, (batch1.shape[1], batch2.shape[2]))
    _check_not_bool("addmm_impl_cpu_", batch1)
    only_real_factors(input.dtype, beta, alpha)


@aten(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    node="AddbmmBackward0",
    saves="alpha batch1 batch1.sym_argsize_0 batch1.sym_argsize_1 batch2 batch2.sym_argsize_2 beta",
    dtypes=Dtypes(fits=fits("beta alpha", widened)), check=_check_addbmm, arguments=Arguments(deprecated="beta alpha"),
)  # fmt: skip
def addbmm(input, batch1, batch2, *, beta, alpha):
    """``beta * input`` plus ``alpha`` times the sum of batched matrix products.

    Args:
        input: of a size that broadcasts to ``(n, m)``.
        batch1: ``(b, n, k)``.
        batch2: ``(b, k, m)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.addbmm(torch.zeros(1), torch.ones(5, 1, 3), torch.ones(5, 3, 1))
        tensor([[15.]])
    """
    return plus(beta, input, alpha, reduce_sum(_batched_product(batch1, batch2), axes=(0,)))


@composite(
    "addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
    names="Tensor.addbmm_",
)
def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``addbmm`` in place; the tensor is resized to the result."""
    if batch1.dim() != 3 or batch2.dim() != 3 or self.shape == (batch1.shape[1], batch2.shape[2]):
        return addbmm.inplace(self, batch1, batch2, beta=beta, alpha=alpha)
    result = addbmm(self, batch1, batch2, beta=beta, alpha=alpha)
    if mode.grad:
        check_recorded(self)
    with no_grad():
        resize(self, tuple(result.shape))
        self.copy_(result)
    if result.requires_grad:
        set_history(self, result.grad_fn, result.output_nr)
    return self


# ---------------------------------------------------------------- matmul


@composite("matmul(Tensor self, Tensor other) -> Tensor", names="torch.matmul Tensor.matmul linalg.matmul", out=True)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of vectors, matrices, or batches of matrices, whose leading dimensions broadcast.

    Args:
        input: ``(k,)``, ``(n, k)`` or ``(*batch, n, k)``.
        other: ``(k,)``, ``(k, m)`` or ``(*batch, k, m)``.

    Returns:
        ``(*batch, n, m)``, without ``n`` or ``m`` where that operand is a vector.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.matmul(torch.ones(5, 2, 3), torch.ones(3)).shape
        torch.Size([5, 2])
    """
    a, b = input.dim(), other.dim()
    if a == 2 and b == 2:
        return mm(input, other)
    if a == 0 or b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 1:
        return dot(input, other)
    if a == 2 and b == 1:
        return mv(input, other)
    if a == 1 and b == 2:
        return unsafe_squeeze(mm(unsqueeze(input, 0), other), 0)
    if _folds(input, other):
        return _folded(input, other)
    return _broadcast_product(input, other)


def _folds(a: Tensor, b: Tensor) -> bool:
    """Whether a batch times a matrix or a vector is computed as one matrix product, with the batch folded into the
    rows."""
    large, small = (a, b) if a.dim() >= b.dim() else (b, a)
    if large.dim() < 3 or small.dim() > 2:
        return False
    if small.requires_grad:
        return True
    if a.dim() == 2 or large.numel() == 0:
        return a.dim() != 2
    if large is b:
        large = transpose(large.detach(), -2, -1)
    size, stride = large.shape, large.stride()
    return all(stride[i] == stride[i + 1] * size[i + 1] for i in range(len(size) - 2))


def _folded(a: Tensor, b: Tensor) -> Tensor:
    swap = b.dim() > a.dim()
    large, small = (transpose(b, -2, -1), t(a) if a.dim() == 2 else a) if swap else (a, b)
    lead, last = tuple(large.shape[:-1]), large.shape[-1]
    rows = reshape(large, (prod(lead), last))
    if small.dim() == 1:
        return unsafe_view(mv(rows, small), lead)
    product = unsafe_view(mm(rows, small), (*lead, small.shape[1]))
    return transpose(product, -2, -1).contiguous() if swap else product


def _broadcast_product(a: Tensor, b: Tensor) -> Tensor:
    rows, inner = (a.shape[-2] if a.dim() > 1 else 1), a.shape[-1]
    vector = b.dim() == 1
    lead_a, lead_b = tuple(a.shape[:-2]), tuple(b.shape[:-2])
    if a.dim() == b.dim() == 3 and lead_a != lead_b:
        # A batch of one matrix that requires grad: without expansion its gradient needs no sum over the batch.
        if lead_a[0] == 1 and a.requires_grad:
            return matmul(squeeze(a, 0), b)
        if lead_b[0] == 1 and b.requires_grad:
            return matmul(a, squeeze(b, 0))
    lead = broadcast_size(lead_a, lead_b)
    count = prod(lead)
    left = reshape(expand(a, (*lead, rows, inner)), (count, rows, inner))
    if vector:
        right = unsqueeze(reshape(expand(b, (*lead, b.shape[0])), (count, b.shape[0])), 2)
    else:
        right = reshape(expand(b, (*lead, *b.shape[-2:])), (count, *b.shape[-2:]))
    product = bmm(left, right)
    size = (*lead, *([rows] if a.dim() > 1 else []), *([] if vector else [b.shape[-1]]))
    return unsafe_view(squeeze(product, -1) if vector else product, size)


@function("Tensor.__matmul__")
def _matmul_operator(self: Tensor, other: Any) -> Any:
    other = taken(other)
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


@function("Tensor.__rmatmul__")
def _reflected_matmul(self: Tensor, other: Any) -> Any:
    other = taken(other)
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


# ---------------------------------------------------------------- linear layers


@composite("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", names="F.linear", out=True)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``.

    Args:
        input: ``(*, in_features)``.
        weight: ``(out_features, in_features)``, or ``(in_features,)``.
        bias: ``(out_features,)``.

    Returns:
        ``(*, out_features)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.nn.functional.linear(torch.ones(2, 3), torch.ones(1, 3), torch.ones(1))
        tensor([[4.],
                [4.]])
    """
    n = input.dim()
    if n == 0 or weight.dim() == 0:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {n}D and {weight.dim()}D")
    if bias is None:
        return matmul(input, t(weight))
    if n == 2:
        return addmm(bias, input, t(weight))
    if input.is_contiguous() and (n == 3 or bias.dim() == 1):
        size = tuple(input.shape)
        rows = addmm(bias, reshape(input, (prod(size[:-1]), size[-1])), t(weight))
        return view_size(rows, (*size[:-1], rows.shape[1]))
    return matmul(input, t(weight)).add_(bias)
