"""A primitive: a name and its rules.

Each rule is given once, in the form that suits the primitive:

``partials``
    for elementwise functions: one function per operand, ``(g, out, *operands, **params) -> g * d out / d operand``.
    The map is diagonal, hence its own transpose, so one rule serves forward and reverse.
``transpose``
    for functions linear in an operand (reshape, gather, products, ...): one function per operand (``None`` where it is
    not linear), ``(ct, *operands, **params) -> cotangent of that operand``, the operand itself given as its
    ``ArrayType``. Forward mode is the primitive applied to tangents: to all at once, or, if it is ``bilinear``, to one
    beside the others' primals. A variadic primitive, linear in all its
    operands at once, gives one function, ``(ct, index, operands, **params)``.
``jvp``
    anything else: ``(primals, tangents, **params) -> (out, tangent)``, tangents ``None`` where zero. Reverse mode is
    derived by linearizing that one equation and transposing it.
primitives that carry programs: ``(primals, needs, params) -> (outs, pullback)``, together with ``jvp``. A primal given
    as its ``ArrayType`` is unknown, and the operation is linear in it.
``widen``
    primitives that carry programs: ``(operands, params) -> (operands, params)``, with programs for operands that vary
    along exactly these mesh axes. Called first inside ``shard_map``.
``close``
    primitives that carry Python functions: ``(interpreter, operands, params) -> (operands, params)``, with the
    functions traced to programs and their captured values as operands. Called by interpreters without concrete values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core.caching import Cache, Group
from funcgrad.core.errors import explained, locate
from funcgrad.core.ir import ArrayType

Rule = Callable[..., Any]
_NOWHERE: frozenset[str] = frozenset()


_RESULTS = Group("types of results", 16384)


class Primitive:
    """An operation that every interpreter can process.

    Calling a primitive binds it: ``mul(x, y)``, ``reduce_sum(x, axes=(0,))``. Operands are arrays, tracers or typed
    NumPy scalars; parameters are hashable and static.

    Attributes:
        infer: ``(*types, **params) -> ArrayType`` (a list of them if ``multiple``); raises for invalid operands.
        lower: ``(*jax_arrays, **params) -> jax_array`` (a list if ``multiple``), in terms of ``jax.lax``.
        batch: ``(size, operands, dims, **params) -> (out, dim)``; elementwise primitives need none.
        elementwise: operands broadcast as in NumPy, and each output element depends on one element of each.
        differentiable: False where the derivative is zero everywhere (comparisons, rounding, integers).
        effect: whether it has a side effect; a program keeps it although nothing depends on its results.
        varying: ``(axes, **params) -> axes``: the mesh axes along which results vary if the operands together vary
            along ``axes``; without it, the same axes.
        exact: whether ``infer`` computes the varying axes itself, for each result.
        closed: the dtypes for which operands of one type give a result of that type.
    """

    __slots__ = (
        "name", "infer", "lower", "multiple", "elementwise", "differentiable",
        "partials", "transpose", "bilinear", "jvp", "vjp", "batch", "close", "widen", "effect", "varying",
        "exact", "_types", "closed",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        *,
        infer: Rule,
        lower: Rule,
        partials: Sequence[Rule | None] | None = None,
        transpose: Sequence[Rule | None] | Rule | None = None,
        jvp: Rule | None = None,
        vjp: Rule | None = None,
        batch: Rule | None = None,
        close: Rule | None = None,
        widen: Rule | None = None,
        varying: Rule | None = None,
        exact: bool = False,
        closed: frozenset[Any] = frozenset(),
        bilinear: bool = False,
        multiple: bool = False,
        elementwise: bool = False,
        differentiable: bool = True,
        effect: bool = False,
    ):
        self.name = name
        self.infer = infer
        self.lower = lower
        self.partials = partials
        self.transpose = transpose
        self.jvp = jvp
        self.vjp = vjp
        self.batch = batch
        self.close = close
        self.widen = widen
        self.varying = varying
        self.exact = exact or widen is not None
        self.closed = closed
        self.bilinear = bilinear
        self.multiple = multiple
        self.elementwise = elementwise
        self.differentiable = differentiable
        self.effect = effect
        self._types: Cache[tuple, list[ArrayType]] = Cache(_RESULTS)

    def __call__(self, *operands: Any, **params: Any) -> Any:
        return _bind(self, operands, params)

    def __repr__(self) -> str:
        return self.name

    def output_types(self, types: Sequence[ArrayType], params: dict[str, Any]) -> list[ArrayType]:
        """The result types for operands of ``types``; memoized, since loops and layers repeat them."""
        if self.vjp is not None:
            # Types with programs are not memoized: they would stay alive as long as the primitive.
            return self._infer(types, params)
        key = (*types, *params.items()) if params else tuple(types)
        result = self._types.get(key)
        if result is None:
            result = self._types.again(key)
        if result is None:
            result = self._types[key] = self._infer(types, params)
        return result

    def _infer(self, types: Sequence[ArrayType], params: dict[str, Any]) -> list[ArrayType]:
        axes = _NOWHERE
        if not self.exact:
            for t in types:
                if t.varying or "over" in params:
                    axes = self.common(types, params)
                    break
        try:
            found = self.infer(*[t.with_varying(_NOWHERE) for t in types] if axes else types, **params)
        except (TypeError, ValueError) as error:
            locate(error)
            if not hasattr(error, "__notes__"):
                explained(error, "operands")
            raise
        found = list(found) if self.multiple else [found]
        if axes and self.varying is not None:
            axes = self.varying(axes, **params)
        return [t.with_varying(axes) for t in found] if axes else found

    def common(self, types: Sequence[ArrayType], params: dict[str, Any]) -> frozenset[str]:
        """The mesh axes along which an operation on operands of ``types`` treats all of them as varying."""
        axes = _NOWHERE.union(*[t.varying for t in types])
        over = params.get("over")
        return axes if over is None or not over.checked else axes.union(over.names)


Bind = Callable[[Primitive, Sequence[Any], dict[str, Any]], Any]
_bind: Bind


def set_bind(function: Bind) -> None:
    """Sets the function that binds a primitive; called once, by the tracing module."""
    global _bind
    _bind = function
