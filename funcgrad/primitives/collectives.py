"""Primitives over all examples of a batch at once: sums, gathers, exchanges.

Each has two operands: what an example has, and the example's number along an axis. Where that number is batched, the
batching rule sees all examples and does the work; batched along any other axis, it is an operation like any.
``funcgrad.collectives`` says what axes are called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.errors import FuncgradError
from funcgrad.ir import ArrayType
from funcgrad.primitive import Primitive, Rule
from funcgrad.primitives.elementwise import mul, number
from funcgrad.primitives.indexing import take
from funcgrad.primitives.reductions import reduce_sum
from funcgrad.primitives.shape import broadcast, moved
from funcgrad.tracing import type_of


def _unbound(*_: Any, **__: Any) -> Any:
    raise FuncgradError("a collective was run outside the vmap that has its axis")


def _collective(name: str, *, infer: Rule, together: Rule, shifted: Rule, transpose: Callable[..., Any]) -> Primitive:
    """A primitive of ``(x, index)``, where ``index`` is the number of the example along the named axis.

    Args:
        together: ``(size, x, dim, **params) -> (out, dim)``, where the named axis is the one that is batched.
        shifted: ``**params -> params`` for examples of another axis, which are in front of ``x``.
        transpose: ``(ct, x, index, **params)``, the collective that goes the other way.
    """

    def batch(size: int, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[Any, int | None]:
        (x, index), (dim, of_index) = operands, dims
        if of_index is not None:
            return together(size, x, dim, **params)
        assert dim is not None
        return primitive(moved(x, dim, 0), index, **shifted(**params)), 0

    primitive = Primitive(name, infer=infer, lower=_unbound, transpose=(transpose, None), batch=batch)
    return primitive


def _sum_together(size: int, x: Any, dim: int | None) -> tuple[Any, None]:
    return (mul(x, number(size, x)) if dim is None else reduce_sum(x, axes=(dim,))), None


psum_p = _collective(
    "psum",
    infer=lambda x, index: x.strong(),
    together=_sum_together,
    shifted=dict,
    transpose=lambda ct, x, index: psum_p(ct, index),
)


def _repeated(x: Any, size: int) -> Any:
    """``x`` of each of ``size`` examples, in front."""
    shape = type_of(x).shape
    return broadcast(x, shape=(size, *shape), dims=tuple(range(1, len(shape) + 1)))


def _every(x: Any, dim: int | None, size: int) -> Any:
    """All examples, along the first axis."""
    return _repeated(x, size) if dim is None else moved(x, dim, 0)


def _inserted(x: ArrayType, axis: int, count: int) -> ArrayType:
    return x.with_shape((*x.shape[:axis], count, *x.shape[axis:])).strong()


def _scatter_infer(x: ArrayType, index: ArrayType, *, axis: int, count: int) -> ArrayType:
    assert x.shape[axis] == count
    return x.with_shape((*x.shape[:axis], *x.shape[axis + 1 :])).strong()


all_gather_p = _collective(
    "all_gather",
    infer=lambda x, index, *, axis, count: _inserted(x, axis, count),
    together=lambda n, x, dim, *, axis, count: (moved(_every(x, dim, n), 0, axis), None),
    shifted=lambda axis, count: {"axis": axis + 1, "count": count},
    transpose=lambda ct, x, index, *, axis, count: psum_scatter_p(ct, index, axis=axis, count=count),
)
psum_scatter_p = _collective(
    "psum_scatter",
    infer=_scatter_infer,
    together=lambda n, x, dim, *, axis, count: (_sum_together(n, x, dim)[0], axis),
    shifted=lambda axis, count: {"axis": axis + 1, "count": count},
    transpose=lambda ct, x, index, *, axis, count: all_gather_p(ct, index, axis=axis, count=count),
)


def _permute_together(size: int, x: Any, dim: int | None, *, perm: Sequence[tuple[int, int]]) -> tuple[Any, int]:
    sources = np.full(size, size, "int32")  # what lies outside is read as zero
    for source, target in perm:
        sources[target] = source
    return take(_every(x, dim, size), sources, axis=0), 0


ppermute_p = _collective(
    "ppermute",
    infer=lambda x, index, *, perm: x.strong(),
    together=_permute_together,
    shifted=lambda perm: {"perm": perm},
    transpose=lambda ct, x, index, *, perm: ppermute_p(ct, index, perm=tuple((b, a) for a, b in perm)),
)


def _exchange_infer(x: ArrayType, index: ArrayType, *, split: int, concat: int, count: int) -> ArrayType:
    return _inserted(_scatter_infer(x, index, axis=split, count=count), concat, count)


def _exchange_together(
    n: int, x: Any, dim: int | None, *, split: int, concat: int, count: int
) -> tuple[Any, int | None]:
    # From (giver, .., receiver, ..) to (receiver, giver, ..), and the giver to its place.
    return moved(moved(_every(x, dim, n), split + 1, 0), 1, concat + 1), 0


all_to_all_p = _collective(
    "all_to_all",
    infer=_exchange_infer,
    together=_exchange_together,
    shifted=lambda split, concat, count: {"split": split + 1, "concat": concat + 1, "count": count},
    transpose=lambda ct, x, index, *, split, concat, count: all_to_all_p(
        ct, index, split=concat, concat=split, count=count
    ),
)
