"""Collectives over all batch elements of a ``vmap``, or all devices of a mesh: sums, gathers, exchanges.

For a ``vmap`` axis they have two operands: the element's value, and its traced index along the axis. If the index is
batched, the batching rule sees all elements and computes the result; under any other axis it is an ordinary operation.
For a mesh axis they have one operand and a parameter ``over`` with the mesh axes: XLA computes the result.
``funcgrad.lax.collectives`` resolves axis names.

An operation on a replicated and a varying value treats the first one as varying, by an explicit or implicit ``pvary``.
Its cotangent is the sum over those devices (``interpreters.rules``). So the transpose of a sum is ``pvary``, without
communication, and a cotangent varies along no other axes than its value. If types do not record the varying axes
(``shard_map`` with ``check_vma=False``), the transpose of a sum is a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.errors import FuncgradError
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import cast, div, eq, mul, number
from funcgrad.primitives.indexing import take
from funcgrad.primitives.reductions import reduce_max, reduce_min, reduce_sum
from funcgrad.primitives.shape import broadcast, moved


@dataclass(frozen=True)
class Over:
    """The mesh axes of a collective.

    Attributes:
        names: the axis names.
        checked: whether types record the axes along which values vary.
    """

    names: tuple[str, ...]
    checked: bool

    def __repr__(self) -> str:
        return f"({', '.join(self.names)}){'' if self.checked else ' unchecked'}"


class MeshAxis(NamedTuple):
    """An axis of a mesh along which ``shard_map`` runs a function on each device.

    Attributes:
        mesh: the mesh it belongs to.
        checked: as for ``Over``.
    """

    mesh: Any
    checked: bool


def _collective(
    name: str,
    *,
    infer: Rule,
    lower: Rule,
    together: Rule,
    shifted: Rule = dict,
    transpose: Callable[..., Any] | None = None,
    jvp: Rule | None = None,
    same: bool = False,
) -> Primitive:
    """A primitive of ``(x, index)``, the index along the named ``vmap`` axis; or of ``x``, ``over`` mesh axes.

    Args:
        infer: ``(x, **params)``.
        lower: ``(x, names, **params)``, for mesh axes.
        together: ``(size, x, dim, **params) -> (out, dim)``, if the named axis is the batched one.
        shifted: ``**params -> params``, when ``x`` gets a leading axis for another batch axis.
        transpose: ``(at, over, **params)``, which calls ``at(primitive, **params)`` for the collective that transposes
            this one, applied to the cotangent; for a mesh, of an operand that varies along all of ``over``.
        same: whether the result is replicated.
    """

    def run(x: Any, *index: Any, over: Over | None = None, **params: Any) -> Any:
        if over is None:
            raise FuncgradError("a collective was run outside the vmap that has its axis")
        return lower(x, over.names, **params)

    def batch(
        size: int, operands: Sequence[Any], dims: Sequence[int | None], over: Over | None = None, **params: Any
    ) -> tuple[Any, int | None]:
        x, *index = operands
        if index and dims[1] is not None:
            return together(size, x, dims[0], **params)
        assert dims[0] is not None
        where = {} if over is None else {"over": over}
        return primitive(moved(x, dims[0], 0), *index, **shifted(**params), **where), 0

    def transposed(ct: Any, x: Any, *index: Any, over: Over | None = None, **params: Any) -> Any:
        assert transpose is not None
        where = {} if over is None else {"over": over}
        return transpose(lambda primitive, **changed: primitive(ct, *index, **changed, **where), over, **params)

    def varying(axes: frozenset[str], over: Over | None = None, **params: Any) -> frozenset[str]:
        return axes.difference(over.names) if same and over is not None and over.checked else axes

    primitive = Primitive(
        name,
        infer=lambda x, *index, over=None, **params: infer(x, **params),
        lower=run,
        transpose=None if transpose is None else (transposed, None),
        jvp=jvp,
        batch=batch,
        varying=varying,
    )
    return primitive


def _sum_together(size: int, x: Any, dim: int | None) -> tuple[Any, None]:
    return (mul(x, number(size, x)) if dim is None else reduce_sum(x, axes=(dim,))), None


psum_p = _collective(
    "psum",
    infer=lambda x: x.strong(),
    lower=lax.psum,
    together=_sum_together,
    transpose=lambda at, over: at(pvary_p if over is not None and over.checked else psum_p),
    same=True,
)

# Replicated values treated as varying along more mesh axes.
pvary_p = _collective(
    "pvary",
    infer=lambda x: x.strong(),
    lower=lambda x, names: x,
    together=lambda size, x, dim: (x, dim),
    transpose=lambda at, over: at(pvary_p),
)

# The index of a device along a mesh axis.
axis_index_p = Primitive(
    "axis_index",
    infer=lambda *, over: ArrayType((), dtypes.int32),
    lower=lambda *, over: lax.axis_index(over.names),
    differentiable=False,
)


def _extreme(name: str, lower: Rule, reduce: Primitive) -> Primitive:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **where: Any) -> tuple[Any, Any]:
        (x, *index), t = primals, tangents[0]
        out = primitive(x, *index, **where)
        # Tied elements share the derivative evenly.
        chosen = cast(eq(x, out), dtype=type_of(x).dtype)
        return out, psum_p(mul(t, div(chosen, psum_p(chosen, *index, **where))), *index, **where)

    primitive = _collective(
        name,
        infer=lambda x: x.strong(),
        lower=lower,
        together=lambda size, x, dim: (x if dim is None else reduce(x, axes=(dim,)), None),
        jvp=jvp,
        same=True,
    )
    return primitive


pmax_p = _extreme("pmax", lax.pmax, reduce_max)
pmin_p = _extreme("pmin", lax.pmin, reduce_min)


def _repeated(x: Any, size: int) -> Any:
    """``x`` repeated for each of ``size`` batch elements, along the first axis."""
    shape = type_of(x).shape
    return broadcast(x, shape=(size, *shape), dims=tuple(range(1, len(shape) + 1)))


def _every(x: Any, dim: int | None, size: int) -> Any:
    """All batch elements, along the first axis."""
    return _repeated(x, size) if dim is None else moved(x, dim, 0)


def _inserted(x: ArrayType, axis: int, count: int) -> ArrayType:
    return x.with_shape((*x.shape[:axis], count, *x.shape[axis:])).strong()


def _scatter_infer(x: ArrayType, *, axis: int, count: int) -> ArrayType:
    assert x.shape[axis] == count
    return x.with_shape((*x.shape[:axis], *x.shape[axis + 1 :])).strong()


all_gather_p = _collective(
    "all_gather",
    infer=lambda x, *, axis, count: _inserted(x, axis, count),
    lower=lambda x, names, *, axis, count: lax.all_gather(x, names, axis=axis),
    together=lambda n, x, dim, *, axis, count: (moved(_every(x, dim, n), 0, axis), None),
    shifted=lambda axis, count: {"axis": axis + 1, "count": count},
    transpose=lambda at, over, **params: at(psum_scatter_p, **params),
)
psum_scatter_p = _collective(
    "psum_scatter",
    infer=_scatter_infer,
    lower=lambda x, names, *, axis, count: lax.psum_scatter(x, names, scatter_dimension=axis),
    together=lambda n, x, dim, *, axis, count: (_sum_together(n, x, dim)[0], axis),
    shifted=lambda axis, count: {"axis": axis + 1, "count": count},
    transpose=lambda at, over, **params: at(all_gather_p, **params),
)


def _permute_together(size: int, x: Any, dim: int | None, *, perm: Sequence[tuple[int, int]]) -> tuple[Any, int]:
    sources = np.full(size, size, "int32")  # indices out of bounds read zero
    for source, target in perm:
        sources[target] = source
    return take(_every(x, dim, size), sources, axis=0), 0


ppermute_p = _collective(
    "ppermute",
    infer=lambda x, *, perm: x.strong(),
    lower=lambda x, names, *, perm: lax.ppermute(x, names, perm),
    together=_permute_together,
    shifted=lambda perm: {"perm": perm},
    transpose=lambda at, over, *, perm: at(ppermute_p, perm=tuple((b, a) for a, b in perm)),
)


def _exchange_infer(x: ArrayType, *, split: int, concat: int, count: int) -> ArrayType:
    return _inserted(_scatter_infer(x, axis=split, count=count), concat, count)


def _exchange_together(
    n: int, x: Any, dim: int | None, *, split: int, concat: int, count: int
) -> tuple[Any, int | None]:
    # From (sender, .., receiver, ..) to (receiver, sender, ..), then the sender axis to its position.
    return moved(moved(_every(x, dim, n), split + 1, 0), 1, concat + 1), 0


all_to_all_p = _collective(
    "all_to_all",
    infer=_exchange_infer,
    lower=lambda x, names, *, split, concat, count: lax.all_to_all(x, names, split, concat),
    together=_exchange_together,
    shifted=lambda split, concat, count: {"split": split + 1, "concat": concat + 1, "count": count},
    transpose=lambda at, over, *, split, concat, count: at(all_to_all_p, split=concat, concat=split, count=count),
)
