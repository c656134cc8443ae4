"""View operations: new sizes and strides over the same storage.

A view is declared by a function from geometry to geometry (size, stride, offset, dtype). Its backward is derived from
the strided read of the new geometry from a contiguous tensor of the input's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from compat._core.autograd.accumulate_grad import leaf_edge
from compat._core.autograd.anomaly_mode import record_stack
from compat._core.autograd.node import NO_EDGE, Node, overrides_operators
from compat._core.autograd.rebase_history import extended
from compat._core.autograd.saved_variable import HookStack
from compat._core.memory import strided_access
from compat._core.memory.numpy_storage import is_large, part_of
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base, Layout, contiguous_strides, layout_of, room, view_strides
from compat._core.operators.kernel import Derivative, Kernel
from compat._core.tensor.autograd_state import PASSING, SHARED, View
from compat._core.tensor.constructors import beside
from compat._core.tensor.tensor import Tensor, wrap
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode, next_sequence
from compat._core.types.dtype import FLOATING
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.size import Size
from funcgrad import numpy as fnp
from funcgrad.core.caching import Cache, Group
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.tracing import type_of
from funcgrad.native.twins import twin
from funcgrad.primitives.shape import concatenate, expanded, zeros

Ints = tuple[int, ...]
_new = object.__new__


class Geometry(NamedTuple):
    """A tensor's size, strides, offset and dtype: the argument and result of a view's body."""

    size: Ints
    stride: Ints
    offset: int
    dtype: Dtype
    conj: bool = False
    neg: bool = False

    @property
    def ndim(self) -> int:
        return len(self.size)


def geometry_of(t: Tensor) -> Geometry:
    layout = t._layout_
    return Geometry(tuple(layout.size), layout.stride, t._offset_, layout.dtype, layout.conj, layout.neg)


def over(base: Base, g: Geometry) -> Layout:
    """The layout of a geometry over a buffer."""
    return layout_of(base, g.size, g.stride, g.offset, g.dtype, g.conj, g.neg)


class ViewNode(Node):
    """The node of a view operation.

    Attributes:
        plan: the plan of the view.
    """

    __slots__ = ("plan",)
    swept = True
    plan: ViewPlan

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        outputs = self.plan.outputs
        return (outputs[nr][0].size, outputs[nr][0].dtype) if nr < len(outputs) else None

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        plan = self.plan
        if all(g is None for g in grads):
            return (None,)
        if plan.rearrangement is not None and grads[0] is not None and not mode.traced:
            undone = _undo(grads[0], *plan.rearrangement, plan.undone, plan.op.undone)
            if undone is not None:
                return (undone,)
        derivative, offsets = plan.derivative
        present = tuple(g is not None for g in grads) + (False,) * (derivative.results - len(grads))
        backward = derivative.backward(present)
        if backward.kernel is None:
            return tuple(None if p is None else grads[~p] for p in backward.places)
        values = [grads[i] for i in backward.grads] + [offsets[i - 1] for i in backward.numbers]
        return backward.kernel.call(values)

    def program(self) -> Program:
        return self.plan.derivative[0].shown()


def _undo(grad: Tensor, order: Ints, size: Ints, known: Cache[tuple, Any], undone: str) -> Tensor | None:
    """The gradient of a view that only rearranges elements, as a view of the incoming gradient: permuted by ``order``,
    then reshaped to ``size``; None if a copy is needed.

    Args:
        known: a cache of the layouts.
        undone: the row's option (``ViewDeclaration``).
    """
    if mode.grad or overrides_operators(grad):
        return grad.permute(order).reshape(size) if order != tuple(range(len(order))) else grad.reshape(size)
    storage, layout, offset = grad._storage_, grad._layout_, grad._offset_
    key = (storage.base, layout, offset)
    try:
        found = known[key]
    except KeyError:
        found = known[key] = _undone_layout(storage.base, layout, offset, order, size) or False
    if not found:
        return None
    if found is layout and undone == "changed":
        return grad
    made = wrap(storage, found, offset)
    made._counter_ = grad._counter_
    made._view_ = PASSING if undone else SHARED
    grad._view_ = grad._view_ or SHARED
    return made


def _undone_layout(base: Base, layout: Layout, offset: int, order: Ints, size: Ints) -> Layout | None:
    if len(order) != layout.ndim:  # a saved tensor was resized
        raise RuntimeError(f"the gradient of a view of {len(order)} dimensions has {layout.ndim}")
    sizes, strides = tuple(layout.size[d] for d in order), tuple(layout.stride[d] for d in order)
    stride = view_strides(sizes, strides, size)
    if stride is None:
        return None
    return layout_of(base, size, stride, offset, layout.dtype, layout.conj, layout.neg)


def _seen_inside(storage: UntypedStorage) -> UntypedStorage:
    """The storage of a view of a traced tensor; without derivatives if operations are not recorded."""
    level_stack.check_alive(storage)
    return storage if mode.grad else level_stack.detached(storage, forward=False)


def unrecorded(t: Tensor, layout: Layout, offset: int) -> Tensor:
    """A view without a node; of large memory shared with NumPy, over a separate storage for the part."""
    view = t._view_
    if view is None:
        t._view_ = SHARED
        base, origin = t, ""
    else:
        base, origin = t if view.base is None else view.base, view.origin
    storage, counter = t._storage_, t._counter_
    if storage.base.traced:
        storage = _seen_inside(storage)
    if is_large(storage):
        storage, layout, offset = part_of(storage, layout, offset)
    out = wrap(storage, layout, offset)
    out._counter_ = counter
    if counter is None:
        out._view_ = SHARED
    else:
        out._view_ = View(base, counter.version, "inference" if mode.inference else origin if mode.grad else "no_grad")
    return out


def _places(g: Geometry) -> np.ndarray:
    """The flat places of the elements in memory."""
    along = (np.arange(n).reshape(-1, *[1] * (g.ndim - 1 - d)) * s for d, (n, s) in enumerate(zip(g.size, g.stride)))
    return sum(along, np.full(g.size, g.offset, np.int64)).reshape(-1)


def _averaged(memory: Any, places: np.ndarray, x: Any) -> Any:
    """Memory with the elements of an overlapping tensor written: elements that share a place are averaged."""
    counts = np.maximum(np.bincount(places, minlength=type_of(memory).shape[0]), 1)
    total = fnp.at(memory)[places].add(fnp.reshape(x, (-1,)))
    return fnp.divide(total, counts.astype(type_of(memory).dtype))


_UNDONE = Group("layouts of gradients of views", 4096)


_native = twin(
    Path(__file__).with_name("view_runner.c"),
    Tensor=Tensor, UntypedStorage=UntypedStorage, Node=Node, HookStack=HookStack, next_sequence=next_sequence,
    leaf_edge=leaf_edge, NO_EDGE=NO_EDGE, View=View, SHARED=SHARED, ViewNode=ViewNode,
)  # fmt: skip


class ViewPlan:
    """A view operation on a tensor of a given layout and offset.

    Attributes:
        outputs: the layout and offset of each result.
        node: the class of its nodes; None if no gradient is wanted.
        shows: the static arguments by name, for ``_saved_...``.
        rearrangement: if every element is taken once, the permutation and size of the inverse.
        undone: a cache of layouts of gradients.
        converts: whether elements are converted: another dtype, conjugated or negated.
        traced: whether the storage is traced.
        run: from a sequence that begins with the tensor to its views.
    """

    __slots__ = (
        "op", "input", "outputs", "several", "node", "shows", "rearrangement", "undone", "origin", "converts", "traced",
        "_function", "_geometry", "_derivative", "run",
    )  # fmt: skip

    def __init__(
        self, op: Any, t: Tensor, geometries: Sequence[Geometry], several: bool, shows: dict[str, Any], function: Any
    ):
        self.op = op
        self.input = t._layout_
        base = t._storage_.base
        self.outputs = [(over(base, g), g.offset) for g in geometries]
        self.several = several
        recorded = mode.grad and t._rg_ and t._layout_.dtype.category >= FLOATING
        self.node = op.node if recorded and self.outputs and self.outputs[0][0].dtype.category >= FLOATING else None
        self.shows = shows
        self.traced = base.traced
        self.origin = "inference" if mode.inference else "no_grad" if not mode.grad else "multiple" if several else ""
        self._function = function
        self._geometry = geometry_of(t)
        self._derivative: tuple[Derivative, list[int]] | None = None
        kind = (t._layout_.dtype, t._layout_.conj, t._layout_.neg)
        self.converts = any((g.dtype, g.conj, g.neg) != kind for g in geometries)
        self.undone: Cache[tuple, Layout | Literal[False]] = Cache(_UNDONE)
        self.rearrangement = None if several or op.through_storage else self._rearrangement()
        self.run: Callable[[Sequence[Any]], Any] = self._run
        if _native is not None and not (self.traced or self.converts):
            outputs = tuple(self.outputs)
            self.run = _native.ViewRunner(self, self.node, self.origin, outputs, several, self._run)

    def _run(self, values: Sequence[Any]) -> Any:
        t = values[0]
        view, counter, base = t._view_, t._counter_, t
        if view is None:
            t._view_ = SHARED
        elif view.base is not None:
            base = view.base
        version = 0 if counter is None else counter.version
        node = self._node_for(t) if self.node is not None and counter is not None else None
        origin = self.origin or ("" if view is None else view.origin)
        indirect = self.converts or (view is not None and view.steps)
        storage = t._storage_
        if self.traced:
            storage = _seen_inside(storage)
        made = []
        for nr, (layout, offset) in enumerate(self.outputs):
            out = beside(storage, layout, offset, counter)
            steps = extended(self, t, layout, offset) if indirect else ()
            out._view_ = View(base, version, origin, steps) if counter is not None else SHARED
            if node is not None:
                out._rg_, out._node_, out._nr_ = True, node, nr
            made.append(out)
        return tuple(made) if self.several else made[0]

    def _node_for(self, t: Tensor) -> ViewNode:
        assert self.node is not None
        node = _new(self.node)
        node.plan = self
        node._sequence = next_sequence()
        node._hooks = None
        before = t._node_
        node.next_functions = (((before, t._nr_) if before is not None else leaf_edge(t)) if t._rg_ else NO_EDGE,)
        if HookStack.used:
            record_stack(node)
        return node

    # ---------------------------------------------------------------- backward

    @property
    def derivative(self) -> tuple[Derivative, list[int]]:
        """The backward, and its offsets."""
        if self._derivative is None:
            kernel, _, offsets = self._kernel()
            mask = (True,) + (False,) * len(offsets)
            types = (
                ArrayType(self._geometry.size, self._geometry.dtype.numpy),
                *[ArrayType((), np.dtype(np.int64), weak=True)] * len(offsets),
            )
            self._derivative = kernel.derivative(types, mask), offsets
        return self._derivative

    @property
    def device(self) -> Any:
        """The device of the results."""
        return self.input.base.device

    def _inside(self) -> tuple[Geometry, list[Geometry]]:
        """The view of a contiguous tensor of the input's size: geometries of that tensor and of the results."""
        g = self._geometry
        contiguous = Geometry(g.size, contiguous_strides(g.size), 0, g.dtype)
        found = self._function(contiguous)
        return contiguous, list(found) if self.several else [found]

    def _rearrangement(self) -> tuple[Ints, Ints] | None:
        g, (out,) = self._inside()
        if out.dtype is not g.dtype or out.conj or out.neg:
            return None
        layout = over(Base(g.size, g.dtype), out)
        if layout.access[0] != "whole" or any(s == 0 and n > 1 for n, s in zip(out.size, out.stride)):
            return None
        return tuple(sorted(range(out.ndim), key=lambda d: -out.stride[d] if out.size[d] > 1 else 0)), g.size

    def _kernel(self) -> tuple[Kernel, list[Layout], list[int]]:
        if self.op.through_storage:
            return self._storage_kernel()
        g, outs = self._inside()
        base = Base(g.size, g.dtype)
        layouts = [over(base, o) for o in outs]
        offsets = [o.offset for o in outs]
        along = _divided(g, outs) if self.several else None
        key = (base, along, *layouts)
        kernel = self.op.kernels.get(key) or self.op.kernels.again(key)
        if kernel is None:

            def body(x: Any, *places: Any) -> list[Any]:
                return [strided_access.read(x, layout, place) for layout, place in zip(layouts, places)]

            gradient = None if along is None else _joined(g, outs, along)
            kernel = self.op.kernels[key] = _view_kernel(self.op, body, len(offsets), gradient)
        return kernel, layouts, offsets

    def _storage_kernel(self) -> tuple[Kernel, list[Layout], list[int]]:
        """The kernel of ``as_strided``, whose result is a part of the storage rather than of the input."""
        g = self._geometry._replace(conj=False, neg=False)  # as for the elements in the storage
        out = Geometry(tuple(self.outputs[0][0].size), self.outputs[0][0].stride, self.outputs[0][1], g.dtype)
        start = min(g.offset, out.offset)
        g, out = g._replace(offset=g.offset - start), out._replace(offset=out.offset - start)
        needed = max(room(o.size, o.stride, o.offset) for o in (g, out))
        base = Base((needed,), g.dtype)
        inside, outside = over(base, g), over(base, out)
        key = (base, inside, outside, g.offset)
        kernel = self.op.kernels.get(key) or self.op.kernels.again(key)
        if kernel is None:

            def body(x: Any, place: Any) -> list[Any]:
                assert g.dtype.numpy is not None
                empty = zeros(ArrayType((needed,), g.dtype.numpy))
                places = np.empty(0) if inside.dense else _places(g)
                shared = len(np.unique(places)) < places.size
                memory = _averaged(empty, places, x) if shared else strided_access.write(empty, inside, g.offset, x)
                return [strided_access.read(memory, outside, place)]

            kernel = self.op.kernels[key] = _view_kernel(self.op, body, 1)
        return kernel, [outside], [out.offset]


def _divided(whole: Geometry, parts: Sequence[Geometry]) -> int | None:
    """The dimension along which the parts divide a contiguous tensor, or are its slices; None if there is none."""
    for d, step in enumerate(whole.stride):
        start = 0
        for part in parts:
            if part.ndim == whole.ndim:
                n = part.size[d]
                size, stride = (*whole.size[:d], n, *whole.size[d + 1 :]), whole.stride
            else:
                n = 1
                size, stride = (tuple(x[:d] + x[d + 1 :]) for x in (whole.size, whole.stride))
            if part != whole._replace(size=size, stride=stride, offset=start * step):
                break
            start += n
        else:
            if start == whole.size[d]:
                return d
    return None


def _joined(whole: Geometry, parts: Sequence[Geometry], along: int) -> Callable[..., list[Any]]:
    """The gradient of a tensor that views divide, as for ``Kernel``: the concatenation of their gradients."""
    dropped = parts[0].ndim < whole.ndim
    lengths = [1 if dropped else p.size[along] for p in parts]

    def stated(inputs: Sequence[Any], results: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        pieces = []
        for missing, group in groupby(zip(cts, lengths), key=lambda item: item[0] is None):
            found = [*group]
            if missing:
                size = (*whole.size[:along], sum(n for _, n in found), *whole.size[along + 1 :])
                pieces.append(zeros(ArrayType(size, whole.dtype.numpy)))
            else:
                pieces += [expanded(ct, along) if dropped else ct for ct, _ in found]
        gradient = concatenate(*pieces, axis=along) if len(pieces) > 1 else pieces[0]
        return [gradient, *[None] * (len(inputs) - 1)]

    return stated


def _view_kernel(
    op: Any, body: Callable[..., list[Any]], offsets: int, gradient: Callable[..., list[Any]] | None = None
) -> Kernel:
    inputs = ["self", *[f"offset{i}" for i in range(offsets)]]
    absent = frozenset(range(offsets)) if gradient is not None else frozenset()
    return Kernel(op.name, body, inputs, node=op.backward_base, with_edges=(0,), stated=gradient, absent=absent)
