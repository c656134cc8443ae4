"""Banded systems: time and memory are proportional to the size times the bandwidth.

Gaussian elimination with row interchanges, column by column. A window of the ``below + 1`` rows that a column reaches
is carried along; the pivot row leaves it, and the next row of the matrix enters.

Source: G. Golub, C. Van Loan, "Matrix Computations" (4th ed., 2013), section 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.control.scan import scan
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.creation.arrays import zeros
from funcgrad.numpy.indexing.getitem import At, getitem
from funcgrad.numpy.linalg.operands import require
from funcgrad.numpy.products import matmul
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.reductions import argmax
from funcgrad.numpy.shape import broadcast_to, concatenate, expand_dims, reshape
from funcgrad.primitives.elementwise import broadcast_shapes
from funcgrad.runtime.call_cache import composite
from funcgrad.transforms.vmap import vmap

__all__ = ["solve_banded", "solveh_banded"]


def _rows(diagonals: Any, below: int, above: int) -> Any:
    """``rows[i, j] = a[i, i - below + j]``, zero outside the matrix; with ``below`` additional rows at the end."""
    n = type_of(diagonals).shape[-1]
    row, place = np.arange(n + below)[:, None], np.arange(below + above + 1)[None, :]
    column = row - below + place
    inside = (column >= 0) & (column < n) & (row < n)
    picked = getitem(diagonals, (np.broadcast_to(below + above - place, column.shape), np.clip(column, 0, n - 1)))
    return e.where(inside, picked, 0)


def _first_window(rows: Any, below: int) -> Any:
    """The first ``below + 1`` rows, each from the first column on."""
    count, width = below + 1, type_of(rows).shape[-1]
    place = np.arange(width)[None, :] + below - np.arange(count)[:, None]
    picked = getitem(rows, (np.arange(count)[:, None], np.minimum(place, width - 1)))
    return e.where(place < width, picked, 0)


def _eliminated(rows: Any, b: Any, below: int) -> tuple[Any, Any]:
    """The rows of the triangular factor, each from its pivot on, and the transformed right-hand side."""
    n, k = type_of(b).shape
    padded = concatenate([b, zeros((below + 1, k), type_of(b).dtype)])
    later = concatenate([rows, zeros((1, type_of(rows).shape[-1]), type_of(rows).dtype)])
    whole = slice(below + 1, below + 1 + n)

    def step(carry: Any, entering: Any) -> Any:
        window, right = carry
        pivot = argmax(e.abs(getitem(window, (slice(None), 0))))
        (row, first), (side, first_side) = [(At(x)[pivot].get(), getitem(x, 0)) for x in (window, right)]
        window, right = At(window)[pivot].set(first), At(right)[pivot].set(first_side)
        lead = getitem(row, 0)
        factors = expand_dims(e.divide(getitem(window, (slice(1, None), 0)), e.where(e.equal(lead, 0), 1, lead)), 1)
        window = getitem(window, slice(1, None)) - factors * row
        right = getitem(right, slice(1, None)) - factors * side
        empty = zeros((below, 1), type_of(window).dtype)
        moved = concatenate([getitem(window, (slice(None), slice(1, None))), empty], axis=1)
        next_row, next_side = (expand_dims(x, 0) for x in entering)
        return (concatenate([moved, next_row]), concatenate([right, next_side])), (row, side)

    first = _first_window(rows, below), getitem(padded, slice(0, below + 1))
    return scan(step, first, (getitem(later, whole), getitem(padded, whole)))[1]


def _substituted(upper: Any, right: Any) -> Any:
    """Back substitution in a triangular system given by rows from the diagonal on."""
    reach, k = type_of(upper).shape[-1] - 1, type_of(right).shape[-1]

    def step(known: Any, xs: Any) -> Any:
        row, side = xs
        x = e.divide(side - matmul(getitem(row, slice(1, None)), known), getitem(row, 0))
        return getitem(concatenate([expand_dims(x, 0), known]), slice(0, reach)), x

    return scan(step, zeros((reach, k), type_of(right).dtype), (upper, right), reverse=True)[1]


@composite
def solve_banded(
    l_and_u: Sequence[int],
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """``x`` with ``a @ x = b``, for a banded matrix given by its diagonals.

    Args:
        l_and_u: the numbers of diagonals below and above the main one.
        ab: ``(*, l + u + 1, n)``, a diagonal per row, the topmost first: ``ab[u + i - j, j] = a[i, j]``.
        b: ``(n,)`` or ``(*, n, k)``; leading axes broadcast.
        overwrite_ab, overwrite_b, check_finite: ignored.

    Returns:
        ``(*, n)`` or ``(*, n, k)``, of the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: if ``ab`` has a wrong number of diagonals, or ``b`` an incompatible shape.
        LinAlgError: for a singular matrix, except under ``jit``.

    Example:
        >>> ab = np.array([[0.0, 1.0], [2.0, 2.0], [1.0, 0.0]])
        >>> print(np.round(solve_banded((1, 1), ab, np.array([3.0, 3.0])), 6))
        [1. 1.]
    """
    diagonals = validate.pair("solve_banded", "l_and_u", l_and_u, "two numbers of diagonals")
    below, above = validate.integers("solve_banded", "l_and_u", diagonals, least=0)
    ab, b = promoted(asoperand(ab, "solve_banded"), asoperand(b, "solve_banded"), floating=True)
    return _solved("solve_banded", below, above, ab, b)


def _solved(name: str, below: int, above: int, ab: Any, b: Any) -> Any:
    found = type_of(ab)
    if found.ndim < 2 or found.shape[-2] != below + above + 1:
        raise ValueError(f"{name}: {below} + {above} + 1 diagonals are wanted, got {found}")
    if not type_of(b).ndim:
        raise ValueError(f"{name}: the right-hand side must have at least one axis, got {type_of(b)}")
    vector = type_of(b).ndim == 1
    b = expand_dims(b, 1) if vector else b
    if type_of(b).shape[-2] != found.shape[-1]:
        raise ValueError(f"{name}: {found} and the right-hand side {type_of(b)} do not fit")

    def one(diagonals: Any, right: Any) -> tuple[Any, Any]:
        upper, right = _eliminated(_rows(diagonals, below, above), right, below)
        return _substituted(upper, right), getitem(upper, (slice(None), 0))

    lead = broadcast_shapes(name, found.shape[:-2], type_of(b).shape[:-2])
    solve = one
    for _ in lead:
        solve = vmap(solve)
    x, pivots = solve(*(broadcast_to(v, (*lead, *type_of(v).shape[-2:])) for v in (ab, b)))
    require(e.not_equal(pivots, 0), "Singular matrix")
    return reshape(x, type_of(x).shape[:-1]) if vector else x


@composite
def solveh_banded(
    ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """``x`` with ``a @ x = b``, for a Hermitian banded matrix given by its diagonals on one side.

    Positive definiteness is not used.

    Args:
        ab: ``(*, u + 1, n)``: as for ``solve_banded``, without the diagonals below the main one.
        b: ``(n,)`` or ``(*, n, k)``.
        lower: whether ``ab`` has the diagonals below instead: ``ab[i - j, j] = a[i, j]``.
        overwrite_ab, overwrite_b, check_finite: ignored.

    Returns:
        ``(*, n)`` or ``(*, n, k)``, of the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: if ``ab`` has fewer than two axes, or ``b`` an incompatible shape.
        LinAlgError: for a singular matrix, except under ``jit``.

    Example:
        >>> ab = np.array([[0.0, 1.0], [2.0, 2.0]])
        >>> print(np.round(solveh_banded(ab, np.array([3.0, 3.0])), 6))
        [1. 1.]
    """
    ab, b = promoted(asoperand(ab, "solveh_banded"), asoperand(b, "solveh_banded"), floating=True)
    if type_of(ab).ndim < 2 or not type_of(ab).shape[-2]:
        raise ValueError(f"solveh_banded: ab must have diagonals along its last two axes, got {type_of(ab)}")
    reach, n = type_of(ab).shape[-2] - 1, type_of(ab).shape[-1]
    away, column = np.arange(1, reach + 1)[:, None], np.arange(n)[None, :]
    # A diagonal on the other side is shifted by as many columns.
    start = column - away if lower else column + away
    inside, row = (start >= 0) & (start < n), away - 1 if lower else reach - away
    given = getitem(ab, (..., slice(1, None) if lower else slice(None, -1), slice(None)))
    other = e.where(inside, e.conj(getitem(given, (..., row, np.clip(start, 0, n - 1)))), 0)
    # The main diagonal of a Hermitian matrix is real: imaginary parts are ignored.
    main = astype(e.real(getitem(ab, (..., slice(0, 1) if lower else slice(-1, None), slice(None)))), type_of(ab).dtype)
    parts = [getitem(other, (..., slice(None, None, -1), slice(None))), main, given] if lower else [given, main, other]
    return _solved("solveh_banded", reach, reach, concatenate(parts, axis=-2), b)
