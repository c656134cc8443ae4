"""The form of a call of an operation: which operands are tensors, numbers or absent, with static arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compat._core.memory.strides import Layout, elementwise_strides, preserved_strides
from compat._core.operators.opmath import HALVES, SINGLE
from compat._core.operators.plan import Kind, type_of_kind
from compat._core.schema.parameter import Param
from compat._core.types import dtype as dtypes
from compat._core.types.type_promotion import common_dtype
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import Tracer, type_of
from funcgrad.primitives.elementwise import cast, real
from funcgrad.primitives.reductions import reduce_sum
from funcgrad.primitives.shape import reshape

if TYPE_CHECKING:
    from compat._core.operators.op import Op


class Call:
    """The form of a call, from which a kernel is made.

    Attributes:
        inputs: the names of the kernel's inputs: parameters, ``tensors[0]``, ``tensors[1]``, ... for sequences.
        operands: the indices of operands rather than numbers.
        edges: the indices of inputs for which a node has an edge.
    """

    def __init__(self, op: Op, args: Sequence[Any], numbers: tuple, statics: dict[str, Any]):
        self.op = op
        self.numbers = numbers
        self.statics = statics
        self.inputs: list[str] = []
        self.operands: list[int] = []
        self.edges: list[int] = []
        self.slots: list[tuple[Param, range | int | None]] = []
        for p, a in zip(op.params, args):
            here = len(self.inputs)
            if p.kind == "arrays":
                self.inputs += [f"{p.name}[{i}]" for i in range(len(a))]
                self.edges += range(here, here + len(a)) if p.edge else ()
                self.operands += range(here, here + len(a))
                self.slots.append((p, range(here, here + len(a))))
            elif p.dynamic:
                self.inputs.append(p.name)
                self.operands += [here] if p.kind == "array" else []
                self.edges += [here] if p.kind == "array" and p.edge else []
                self.slots.append((p, here))
            else:
                self.slots.append((p, None))
        chosen = op.row.dtypes.of.split() or None
        self.promotable = [
            i
            for i, n in enumerate(self.inputs)
            if (i in self.edges if chosen is None else n.partition("[")[0] in chosen)
        ]

    def arguments(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The arguments of the body, by parameter."""
        found: dict[str, Any] = {}
        for p, slot in self.slots:
            if slot is None:
                found[p.name] = self.statics[p.name]
            elif isinstance(slot, range):
                found[p.name] = [arrays[i] for i in slot]
            elif arrays[slot] is None and p.kind == "scalar":
                found[p.name] = p.default
            else:
                found[p.name] = arrays[slot]
        return found

    def body(self, *arrays: Any) -> list[Any]:
        found = self.arguments(self.promoted(arrays))
        positional = [v for (p, _), v in zip(self.slots, found.values()) if not p.keyword and not p.starred]
        for p, _ in self.slots:
            if p.starred:
                positional += found[p.name]
        result = self.op.body(*positional, **{p.name: found[p.name] for p, _ in self.slots if p.keyword})
        return list(result) if isinstance(result, (tuple, list)) else [result]

    def promoted(self, arrays: Sequence[Any]) -> list[Any]:
        """The operands in their common dtype, if the operation promotes."""
        result = list(arrays)
        if self.op.row.dtypes.promote is None:
            return result
        types = [None if a is None else a.type if isinstance(a, Tracer) else type_of(a) for a in arrays]
        if self._alike(types):
            return result
        common = self.common(types)
        for i in self.promotable:
            dtype = SINGLE if common in HALVES and self._unrounded(i, result[i]) else common
            t = types[i]
            if t is not None and (t.dtype != dtype or t.weak):
                result[i] = _cast(result[i], dtype)
        return result

    def _alike(self, types: Sequence[ArrayType | None]) -> bool:
        """Whether all operands have one floating-point dtype, and none is a number, so that nothing is promoted."""
        found = None
        for i in self.promotable:
            t = types[i]
            if t is not None:
                found = t.dtype if found is None else found
                if t.dtype != found or t.weak or not t.inexact or self.numbers[i] is not None:
                    return False
        return found is not None and found not in HALVES

    def _unrounded(self, i: int, x: Any) -> bool:
        """Whether an operand stays in float32, as PyTorch's kernels take it as a number."""
        return self.inputs[i] in self.op.row.dtypes.unrounded.split() and x is not None and not type_of(x).ndim

    def common(self, types: Sequence[ArrayType | None]) -> Any:
        """The operands' common dtype by PyTorch's rules, as a NumPy dtype."""
        groups: tuple[list, list, list] = ([], [], [])
        seen: set[tuple] = set()
        for i in self.promotable:
            t, kind = types[i], self.numbers[i]
            if t is None:
                continue
            if kind is not None:
                groups[2].append(kind)
            elif (t.dtype, not t.ndim) not in seen:
                seen.add((t.dtype, not t.ndim))
                groups[not t.ndim].append(dtypes.from_numpy(t.dtype))
        common = common_dtype(*groups)
        if self.op.row.dtypes.promote == "float" and common.category < dtypes.FLOATING:
            common = dtypes.get_default_dtype()
        return dtypes.array_dtype(common)

    def stated(self, primals: list[Any], results: list[Any], cts: list[Any]) -> list[Any]:
        """Gradients by the explicit backward formula, in the operands' sizes and dtypes."""
        op = self.op
        assert op.stated is not None
        known = self.arguments(self.promoted(primals))
        known |= {"result": results[0], "ct": cts[0], **dict(zip(op.results, results))}
        for i, (result, ct) in enumerate(zip(results, cts)):
            known[f"result{i}"], known[f"ct{i}"] = result, ct
        found = op.stated(*[known[n] for n in op.stated_names])
        slots = [s for p, s in self.slots if p.kind in ("array", "arrays") and p.edge]
        grads: list[Any] = [None] * len(primals)
        for slot, grad in zip(slots, found if isinstance(found, tuple) else (found,)):
            if isinstance(slot, range):
                for i, g in zip(slot, grad or [None] * len(slot)):
                    grads[i] = _fit(g, primals[i])
            elif slot is not None:
                grads[slot] = _fit(grad, primals[slot])
        return grads

    # ---------------------------------------------------------------- layouts

    def layouts(self, kinds: Sequence[Kind]) -> dict[str, Any]:
        """The operands' layouts by name."""
        return dict(zip(self.inputs, kinds))

    def elementwise_strides(self, kinds: Sequence[Kind], types: Sequence[ArrayType]) -> list[Any]:
        """The strides of elementwise results. A number counts as a zero-dimensional tensor. A promoted operand counts
        as PyTorch's copy of it, which has no strides of zero."""
        for kind in kinds:
            if not isinstance(kind, Layout) or not kind.contiguous or kind.size != kinds[0].size:
                break
        else:
            return [None] * len(types)  # row-major, like all operands
        common = None if self.op.row.dtypes.promote is None else self.common([type_of_kind(k) for k in kinds])
        operands = []
        for i in self.operands:
            kind = kinds[i]
            if isinstance(kind, Layout):
                size, stride = tuple(kind.size), kind.stride
                copied = common is not None and i in self.promotable and kind.dtype.numpy != common
                operands.append((size, preserved_strides(size, stride) if copied else stride))
            elif kind is not None and kind is not type(None):
                operands.append(((), ()))
        return [elementwise_strides(operands, t.shape) for t in types]


def _cast(x: Any, dtype: Any) -> Any:
    return cast(x, dtype=dtype)


def _fit(grad: Any, operand: Any) -> Any:
    """A gradient, summed to the operand's size and cast to its dtype."""
    if grad is None or operand is None:
        return None
    have = grad.type if isinstance(grad, Tracer) else type_of(grad)
    want = operand.type if isinstance(operand, Tracer) else type_of(operand)
    if have is want:
        return grad
    if have.shape != want.shape:
        shift = have.ndim - want.ndim
        axes = tuple(range(shift)) + tuple(
            d + shift for d in range(want.ndim) if want.shape[d] == 1 and have.shape[d + shift] != 1
        )
        grad = reshape(reduce_sum(grad, axes=axes), shape=want.shape)
    if have.dtype != want.dtype:
        if have.dtype.kind == "c" and want.dtype.kind != "c":
            grad = real(grad)
        grad = _cast(grad, want.dtype)
    return grad
