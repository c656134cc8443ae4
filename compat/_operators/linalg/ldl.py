"""Factorizations of symmetric and Hermitian indefinite matrices: ``linalg.ldl_factor``, ``linalg.ldl_solve``.

``P.T A P = L D L.T``, with a unit diagonal of ``L`` and 1x1 or 2x2 blocks of ``D``. The pivots are chosen as by J.
Bunch and L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems", Mathematics of
Computation 31 (1977), and stored as in LAPACK: ``L`` and ``D`` in one matrix, interchanges not applied to previous
columns.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.structseq import return_type
from compat._operators.linalg.common import (
    broadcast_batch,
    check_floating,
    check_implemented,
    check_square,
    column_major,
)
from compat._operators.linalg.solve import check_systems
from funcgrad import numpy as np
from funcgrad.control.loops import fori_loop
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.transforms.vmap import vmap

#: The least pivot on the diagonal, relative to its column; it minimizes the bound of the growth of elements.
_GROWTH_BOUND = (1 + sqrt(17)) / 8


def _transposition(i: Any, a: Any, b: Any) -> Any:
    """The indices ``i`` with two of them swapped."""
    return np.where(i == a, b, np.where(i == b, a, i))


def _conjugated(x: Any, hermitian: bool) -> Any:
    return np.conj(x) if hermitian else x


def _size(x: Any) -> Any:
    """The magnitude for comparing pivots: for complex numbers the sum of the parts' magnitudes."""
    return np.abs(x.real) + np.abs(x.imag) if np.iscomplexobj(x) else np.abs(x)


def _pivot(a: Any, k: Any, i: Any) -> tuple[Any, Any]:
    """The row to interchange with row ``k``, and whether the pivot is a 2x2 block."""
    column = np.where(i > k, _size(a[:, k]), -1)
    largest = np.argmax(column)
    magnitude = np.maximum(column[largest], 0)
    diagonal = _size(a[k, k])
    row = np.max(np.where((i >= k) & (i != largest), _size(a[largest]), 0))
    stays = (diagonal >= _GROWTH_BOUND * magnitude) | (diagonal * row >= _GROWTH_BOUND * magnitude * magnitude)
    single = stays | (_size(a[largest, largest]) >= _GROWTH_BOUND * row)
    return np.where(stays, k, largest), ~single


class _State(NamedTuple):
    """A partially factored matrix.

    Attributes:
        remaining: the matrix whose trailing part is not yet factored.
        packed, pivots, info: the results.
        second: whether the next row is the second one of a block.
    """

    remaining: Any
    packed: Any
    pivots: Any
    info: Any
    second: Any


def _factored(a: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    """The factors of one matrix, the pivots, and the one-based index of the first zero pivot."""
    n = type_of(a).shape[-1]
    i = np.arange(n)
    real = lambda x: x.real.astype(x.dtype) if hermitian else x

    def step(k: Any, s: _State) -> _State:
        row, double = _pivot(s.remaining, k, i)
        double &= ~s.second
        at = np.where(double, np.minimum(k + 1, n - 1), k)
        order = _transposition(i, at, np.where(s.second, at, row))
        x = s.remaining[order][:, order]
        d, e, f = real(x[k, k]), np.where(double, x[at, k], 0), np.where(double, real(x[at, at]), 1)
        scale = np.where(double, np.abs(e), 1)
        # The part below the block times the inverse of the block, scaled to avoid overflow.
        pivot = d * (f / scale) - (e / scale) * _conjugated(e, hermitian)
        zero = (pivot == 0) & ~s.second
        pivot = np.where(pivot == 0, 1, pivot)
        one, other = x[:, k], x[:, at]
        first = np.where(i > at, (one * (f / scale) - other * (e / scale)) / pivot, 0)
        second = np.where(
            (i > at) & double, (other * (d / scale) - one * (_conjugated(e, hermitian) / scale)) / pivot, 0
        )
        update = x - np.outer(first, _conjugated(one, hermitian)) - np.outer(second, _conjugated(other, hermitian))
        first = np.where(i == k, d, np.where(double & (i == at), e, first))
        second = np.where(i == at, f, second)
        packed = np.where(s.second | (i != k), s.packed, first[:, None])
        packed = np.where(double & (i == at), second[:, None], packed)
        number = np.where(double, -row - 1, row + 1).astype(fdtypes.int32)
        return _State(
            np.where((i[:, None] > at) & (i > at) & ~s.second, update, x),
            packed,
            np.where(~s.second & (i == k) | double & (i == at), number, s.pivots),
            np.where(zero & (s.info == 0), k + 1, s.info).astype(fdtypes.int32),
            double,
        )

    below = np.tril(a, -1)
    full = below + np.diag(real(np.diag(a))) + _conjugated(below, hermitian).T
    initial = np.zeros(n, fdtypes.int32), np.zeros((), fdtypes.int32), np.zeros((), fdtypes.bool_)
    found = fori_loop(0, n, step, _State(full, np.zeros_like(a), *initial))
    return found.packed, found.pivots, found.info


def _batched(f: Any, axes: int) -> Any:
    """``f`` mapped over leading axes of its arguments."""
    for _ in range(axes):
        f = vmap(f)
    return f


def _check_factor(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> None:
    check_square("torch.linalg.ldl_factor_ex", A)
    check_floating("torch.linalg.ldl_factor_ex", A)
    check_implemented("ldl_factor_kernel_cpu", A)


@aten(
    "linalg_ldl_factor_ex(Tensor A, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor "
    "pivots, Tensor info)",
    names="", layout=column_major(0), check=_check_factor, out=True,
    gradients=Gradients(undefined=True),
)  # fmt: skip
def _ldl_factor_ex(A, *, hermitian, check_errors):
    shape = type_of(A).shape
    if 0 in shape:
        return A, np.zeros(shape[:-1], fdtypes.int32), np.zeros(shape[:-2], fdtypes.int32)
    return _batched(lambda a: _factored(a, hermitian and np.iscomplexobj(a)), len(shape) - 2)(A)


def _check_errors(name: str, info: Tensor) -> None:
    found = int(info.abs().max()) if info.numel() else 0
    if found:
        raise RuntimeError(f"{name}: Unknown error code: {found}.")


@composite(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, "
    "Tensor pivots, Tensor info)",
    names="linalg.ldl_factor_ex",
)
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """As ``linalg.ldl_factor``, with the one-based index of the first zero pivot.

    Args:
        A: ``(*, n, n)``.
        hermitian: whether complex matrices are Hermitian rather than symmetric.
        check_errors: whether to raise if a pivot is zero.

    Returns:
        A named tuple of ``LD``, ``pivots`` and ``info``, int32, 0 if there is none.

    Example:
        >>> torch.linalg.ldl_factor_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    found = _ldl_factor_ex.function(A, hermitian=hermitian, check_errors=check_errors, out=out)
    if check_errors:
        _check_errors("torch.linalg.ldl_factor_ex", found[2])
    return found


@composite(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    names="linalg.ldl_factor",
)
def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """``L`` and ``D`` of symmetric indefinite matrices, in one matrix, and the pivots.

    Args:
        A: ``(*, n, n)``; the lower triangles are read.
        hermitian: whether complex matrices are Hermitian rather than symmetric.

    Returns:
        A named tuple of ``LD`` and ``pivots``. Row ``i`` was interchanged with row ``pivots[i]``, counted from one; two
        equal negative ones belong to a 2x2 block, whose second row was interchanged.

    Raises:
        RuntimeError: if a pivot is zero.

    Example:
        >>> torch.linalg.ldl_factor(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
        torch.return_types.linalg_ldl_factor(
        LD=tensor([[2.0000, 0.0000],
                [0.5000, 2.5000]]),
        pivots=tensor([1, 2], dtype=torch.int32))
    """
    outs = None if out is None else (*out, A.new_empty(0).int())
    packed, pivots, info = _ldl_factor_ex.function(A, hermitian=hermitian, out=outs)
    _check_errors("torch.linalg.ldl_factor", info)
    return return_type("linalg_ldl_factor", ("LD", "pivots"))(packed, pivots)


def _solved(packed: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    """``X`` for one matrix: substitution with ``L``, the blocks of ``D``, and ``L`` transposed."""
    n = type_of(packed).shape[-1]
    i = np.arange(n)
    double = pivots < 0
    # Of the rows that belong to blocks, every other one begins a block.
    first = double & ((np.cumsum(double.astype(fdtypes.int32)) - 1) % 2 == 0)
    second = double & ~first
    partner = np.where(first, i + 1, np.where(second, i - 1, i))
    at = np.where(first, i + 1, i)
    row = np.where(second, at, np.abs(pivots.astype(fdtypes.int64)) - 1)
    of_block = first & (i[:, None] == i + 1)
    lower = np.where((i[:, None] > i) & ~of_block, packed, 0)

    def down(k: Any, x: Any) -> Any:
        x = x[_transposition(i, at[k], row[k])]
        return x - np.outer(lower[:, k], x[k])

    def up(back: Any, x: Any) -> Any:
        k = n - 1 - back
        x = np.where((i == k)[:, None], x - _conjugated(lower[:, k], hermitian) @ x, x)
        return x[_transposition(i, at[k], row[k])]

    x = fori_loop(0, n, down, b)
    d = np.diag(packed).real.astype(packed.dtype) if hermitian else np.diag(packed)
    e = np.where(second, packed[i, np.maximum(i - 1, 0)], 0)
    e = np.where(first, _conjugated(e[partner], hermitian), e)
    f = np.where(double, d[partner], 1)
    scale = np.where(double, np.abs(e), 1)
    pivot = d * (f / scale) - (e / scale) * np.where(double, e[partner], 0)
    x = (x * (f / scale)[:, None] - x[partner] * (e / scale)[:, None]) / pivot[:, None]
    return fori_loop(0, n, up, x)


def _check_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> None:
    name = "torch.linalg.ldl_solve"
    check_square(name, LD)
    check_floating(name, LD)
    check_systems(name, B, LD)
    if pivots.dtype.category != dtype.INTEGER:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype.scalar_name}")
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    broadcast_size(tuple(LD.shape[:-2]), tuple(B.shape[:-2]))


@aten(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    names="linalg.ldl_solve", layout=column_major(0), check=_check_solve, out=True,
    gradients=Gradients(without="pivots", undefined=True),
)  # fmt: skip
def ldl_solve(LD, pivots, B, *, hermitian):
    """``X`` with ``A @ X = B``, from the result of ``linalg.ldl_factor`` of ``A``.

    Args:
        LD: ``(*, n, n)``.
        pivots: ``(*, n)``, integers.
        B: ``(*, n, k)``; leading dimensions broadcast.
        hermitian: as for ``linalg.ldl_factor``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> a = torch.tensor([[0.0, 2.0], [2.0, 0.0]])
        >>> torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a), torch.tensor([[2.0], [4.0]]))
        tensor([[2.],
                [1.]])
    """
    size = type_of(LD).shape
    batch = broadcast_size(size[:-2], type_of(B).shape[:-2])
    b = broadcast_batch(B, batch)
    if 0 in type_of(b).shape:
        return b
    hermitian = hermitian and np.iscomplexobj(LD)
    solve = _batched(lambda packed, pivots, b: _solved(packed, pivots, b, hermitian), len(batch))
    return solve(broadcast_batch(LD, batch), broadcast_batch(pivots, batch, 1), b)
