"""The tensor contraction, of which matrix products are a case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.errors import explained, here
from funcgrad.core.ir import ArrayType
from funcgrad.core.precision import of_products
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import cast
from funcgrad.primitives.platforms import by_platform
from funcgrad.primitives.shape import Dims, transpose

#: Pairs of axes, one per operand.
Both = tuple[Dims, Dims]


def _free(ndim: int, *taken: Dims) -> Dims:
    used = {d for dims in taken for d in dims}
    return tuple(d for d in range(ndim) if d not in used)


def _infer(x: ArrayType, y: ArrayType, *, contract: Both, batch: Both) -> ArrayType:
    (cx, cy), (bx, by) = contract, batch
    if x.dtype != y.dtype:
        raise TypeError(f"dot: operands must have one dtype, got {x} and {y}")
    fits = len(cx) == len(cy) and len(bx) == len(by)
    if not fits or any(x.shape[a] != y.shape[b] for a, b in zip((*cx, *bx), (*cy, *by), strict=True)):
        raise ValueError(
            f"dot: cannot contract axes {cx} of {x} with axes {cy} of {y} (batch axes {bx} and {by}): sizes differ"
        )
    free_x, free_y = _free(x.ndim, cx, bx), _free(y.ndim, cy, by)
    shape = (*[x.shape[d] for d in bx], *[x.shape[d] for d in free_x], *[y.shape[d] for d in free_y])
    return ArrayType(shape, x.dtype, x.weak and y.weak)


def _lower(x: Any, y: Any, *, contract: Both, batch: Both) -> Any:
    product = partial(_product, contract=contract, batch=batch)
    if not worth_turning(x, y, contract, batch):
        return product(x, y)
    return by_platform(x, y, cpu=partial(_turned, contract=contract, batch=batch), default=product)


def _product(x: Any, y: Any, *, contract: Both, batch: Both) -> Any:
    return lax.dot_general(x, y, (contract, batch), precision=of_products())


#: Row strides in bytes for which reading the columns of a transposed operand is slow: the elements compete for few
#: cache sets. Smaller for batches of many small products.
PITCH, PITCH_IN_BATCH = 512, 128


def worth_turning(x: Any, y: Any, contract: Both, batch: Both) -> bool:
    """Whether ``x.T @ y`` should copy the transpose of ``x`` first, as for the gradients of most weights.

    XLA's CPU backend reads the columns of x in place, which at such strides takes up to five times as long as copying
    and multiplying (16 columns of y), 1.6 times with a quarter as many columns as rows, equally long with as many.
    ``python -m benchmarks lowering`` has the figures.
    """
    (cx, cy), (bx, by) = contract, batch
    if x.dtype not in (np.float32, np.float64) or x.ndim - 1 in (*cx, *bx):
        return False
    rows = math.prod(x.shape[d] for d in _free(x.ndim, cx, bx))
    columns = math.prod(y.shape[d] for d in _free(y.ndim, cy, by))
    return 2 * columns <= rows and rows * x.dtype.itemsize % (PITCH_IN_BATCH if bx else PITCH) == 0


def _turned(x: Any, y: Any, *, contract: Both, batch: Both) -> Any:
    (cx, cy), (bx, by) = contract, batch
    free = _free(x.ndim, cx, bx)
    x = lax.optimization_barrier(lax.transpose(x, (*bx, *free, *cx)))  # else XLA takes the transpose into the product
    batches, last = len(bx), range(len(bx) + len(free), x.ndim)
    return _product(x, y, contract=(tuple(last), cy), batch=(tuple(range(batches)), by))


def _transpose_operand(ct: Any, other: Any, mine: ArrayType, contract: Both, batch: Both, mine_first: bool) -> Any:
    """The cotangent of one operand: ``ct`` contracted with the other operand over the other's free axes.

    Args:
        contract, batch: axes of this operand and of the other, in this order.
    """
    (my_contract, other_contract), (my_batch, other_batch) = contract, batch
    other_free = _free(type_of(other).ndim, other_contract, other_batch)
    my_free = _free(mine.ndim, my_contract, my_batch)
    n, batches = type_of(ct).ndim, len(my_batch)
    ct_batch = tuple(range(batches))
    contracted = tuple(my_contract[i] for i in sorted(range(len(other_contract)), key=other_contract.__getitem__))
    # The operand order that puts the result's axes in place, so that mostly no transpose follows.
    if mine_first:
        ct_other = tuple(range(n - len(other_free), n))
        out = dot(ct, other, contract=(ct_other, other_free), batch=(ct_batch, other_batch))
        order = (*my_batch, *my_free, *contracted)
    else:
        ct_other = tuple(range(batches, batches + len(other_free)))
        out = dot(other, ct, contract=(other_free, ct_other), batch=(other_batch, ct_batch))
        order = (*my_batch, *contracted, *my_free)
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return out if back == tuple(range(len(order))) else transpose(out, permutation=back)


def _transpose_x(ct: Any, x: ArrayType, y: Any, *, contract: Both, batch: Both) -> Any:
    return _transpose_operand(ct, y, x, contract, batch, True)


def _transpose_y(ct: Any, x: Any, y: ArrayType, *, contract: Both, batch: Both) -> Any:
    return _transpose_operand(ct, x, y, contract[::-1], batch[::-1], False)


def _batch_rule(
    which: str, size: int, operands: Sequence[Any], dims: Sequence[int | None], *, contract: Any, batch: Any
) -> tuple[Any, int]:
    (x, y), (dx, dy) = operands, dims
    (cx, cy), (bx, by) = contract, batch
    dot = _PRODUCTS[which]

    def shift(axes: Dims, dim: int) -> Dims:
        return tuple(a + (a >= dim) for a in axes)

    if dx is not None and dy is not None:
        cx, bx, cy, by = shift(cx, dx), (dx, *shift(bx, dx)), shift(cy, dy), (dy, *shift(by, dy))
        return dot(x, y, contract=(cx, cy), batch=(bx, by)), 0
    if dx is not None:
        free = _free(type_of(x).ndim - 1, cx, bx)
        position = len(bx) + sum(d < dx for d in free)
        cx, bx = shift(cx, dx), shift(bx, dx)
        # dx is now one of x's free axes; free axes keep their order.
        position = len(bx) + _free(type_of(x).ndim, cx, bx).index(dx)
        return dot(x, y, contract=(cx, cy), batch=(bx, by)), position
    assert dy is not None
    free_x = _free(type_of(x).ndim, cx, bx)
    cy, by = shift(cy, dy), shift(by, dy)
    position = len(by) + len(free_x) + _free(type_of(y).ndim, cy, by).index(dy)
    return dot(x, y, contract=(cx, cy), batch=(bx, by)), position


dot = Primitive(
    "dot", infer=_infer, lower=_lower, transpose=(_transpose_x, _transpose_y), bilinear=True,
    batch=partial(_batch_rule, "dot"),
)  # fmt: skip


# ---------------------------------------------------------------- float16 and bfloat16 with float32 results


def _infer_single(x: ArrayType, y: ArrayType, *, contract: Both, batch: Both) -> ArrayType:
    return ArrayType(_infer(x, y, contract=contract, batch=batch).shape, dtypes.float32)


def _lower_single(x: Any, y: Any, *, contract: Both, batch: Both) -> Any:
    return lax.dot_general(x, y, (contract, batch), precision=of_products(), preferred_element_type=np.float32)


def _transpose_single_x(ct: Any, x: ArrayType, y: Any, **axes: Both) -> Any:
    return _transpose_x(cast(ct, dtype=x.dtype), x, y, **axes)


def _transpose_single_y(ct: Any, x: Any, y: ArrayType, **axes: Both) -> Any:
    return _transpose_y(cast(ct, dtype=y.dtype), x, y, **axes)


#: The product of two float16 or bfloat16 arrays in float32, for sums that are rounded once. Accelerators have units for
#: it.
dot_in_single = Primitive(
    "dot_in_single", infer=_infer_single, lower=_lower_single, bilinear=True,
    transpose=(_transpose_single_x, _transpose_single_y), batch=partial(_batch_rule, "dot_in_single"),
)  # fmt: skip
_PRODUCTS = {"dot": dot, "dot_in_single": dot_in_single}


def matmul2(x: Any, y: Any) -> Any:
    """The product of two matrices."""
    return dot(x, y, contract=((1,), (0,)), batch=((), ()))


def matmul(x: Any, y: Any) -> Any:
    """NumPy's ``matmul``: leading axes broadcast, 1-d operands are a row and a column.

    Raises:
        ValueError: naming both shapes, if they are incompatible.
    """
    from funcgrad.primitives.elementwise import broadcast_shapes
    from funcgrad.primitives.shape import broadcast

    a, b = type_of(x), type_of(y)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"matmul: operands must have at least one axis, got {a} and {b}; at {here()}")
    inner = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if a.shape[-1] != inner:
        message = f"matmul: {a} has {a.shape[-1]} columns but {b} has {inner} rows; at {here()}"
        raise explained(ValueError(message), "operands")
    if (a.ndim <= 2 and b.ndim <= 2) or b.ndim <= 2 or (a.ndim == 1 and b.ndim == 2):
        return dot(x, y, contract=((a.ndim - 1,), (max(b.ndim - 2, 0),)), batch=((), ()))
    if a.ndim == 1:
        return dot(x, y, contract=((0,), (b.ndim - 2,)), batch=((), ()))
    lead = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2])

    def spread(v: Any, t: ArrayType) -> Any:
        shape = (*lead, *t.shape[-2:])
        return v if t.shape == shape else broadcast(v, shape=shape, dims=tuple(range(len(shape) - t.ndim, len(shape))))

    dims = tuple(range(len(lead)))
    n = len(lead)
    return dot(spread(x, a), spread(y, b), contract=((n + 1,), (n,)), batch=(dims, dims))
