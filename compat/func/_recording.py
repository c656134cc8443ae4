"""Tensors that require grad, inside transforms: operations on them are recorded in their graph.

``Recording`` is the outermost interpreter. Its tracers wrap tensors, and it runs each primitive as an operation on
these, with a node, so that ``backward`` differentiates through the transform.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.operators.kernel import KERNELS, Kernel
from compat._core.operators.op_node import make_node_class
from compat._core.tensor.tensor import Tensor, sync
from compat._core.tensor.tracing import TensorTracer, elements, tensor_of
from compat._core.transforms import level_stack
from funcgrad.core.caching import Cache
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import Interpreter, bind
from funcgrad.primitives.elementwise import stop_gradient


class Recording(Interpreter):
    """Runs each primitive as an operation on tensors."""

    __slots__ = ()
    description = "the graph of tensors"

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        if not level_stack.recorded() or primitive is stop_gradient:
            return bind(primitive, [x.underlying() if isinstance(x, TensorTracer) else x for x in operands], params)
        results = _kernel(primitive, len(operands), params).call([tensor_of(x) for x in operands])
        found = [lift(t) if t._rg_ else elements(t) for t in results]
        return found if primitive.multiple else found[0]


_recording = Recording()
#: Between the interpreter of arrays, 0, and the levels of transforms, from 1.
_recording.level = 0.5  # type: ignore[assignment]


def lift(t: Tensor) -> TensorTracer:
    """A tensor that requires grad, as a tracer."""
    if t._view_ is not None:
        sync(t)
    return TensorTracer(_recording, t)


def node_name(primitive: Primitive) -> str:
    """The name of nodes of a primitive."""
    return f"{''.join(part.capitalize() for part in primitive.name.split('_'))}Backward0"


_kernels: Cache[tuple, Kernel] = Cache(KERNELS)


def _kernel(primitive: Primitive, count: int, params: dict[str, Any]) -> Kernel:
    """A primitive as an operation."""
    key = (primitive, count, *params.items())
    found = _kernels.get(key) or _kernels.again(key) if primitive.vjp is None else None  # not cached
    if found is None:

        def body(*arrays: Any) -> list[Any]:
            results = bind(primitive, arrays, params)
            return list(results) if primitive.multiple else [results]

        node = make_node_class(node_name(primitive), {})
        found = Kernel(primitive.name, body, [f"operand{i}" for i in range(count)], node=node)
        if primitive.vjp is None:
            _kernels[key] = found
    return found
