"""The text of tensors inside transforms."""

from __future__ import annotations

from typing import Any

from compat._core.memory import strided_access
from compat._core.tensor.tensor import Tensor, array_of
from compat._core.tensor.tracing import tensor_of
from compat._core.transforms import level_stack, vmap_checks
from compat._operators.tensor.format import tensor_text
from funcgrad import runtime
from funcgrad.core.tracing import Tracer
from funcgrad.interpreters.batching import BatchTracer
from funcgrad.interpreters.forward import ForwardTracer
from funcgrad.interpreters.reverse import ReverseTracer


def traced_text(t: Tensor) -> str:
    """The text of a traced tensor, as PyTorch prints it: the innermost transform first."""
    x = strided_access.read(runtime.ready(t._storage_.buffer), t._layout_, t._offset_)
    if isinstance(x, Tracer):
        level = _level(x)
        if isinstance(x, BatchTracer) and level:
            return _wrapped(f"BatchedTensor(lvl={level}, bdim={x.dim}", x.value)
        if isinstance(x, (ForwardTracer, ReverseTracer)) and level:
            return _wrapped(f"GradTrackingTensor(lvl={level}", x.underlying())
        if not vmap_checks.shown(x):
            return f"tensor({x!r}, size={tuple(t.shape)})"
    node = t.grad_fn
    return tensor_text(
        array_of(t),
        t._layout_.dtype,
        requires_grad=t._rg_,
        grad_fn=None if node is None else type(node).__name__,
        tangent=_tangent(x),
    )


def _level(x: Tracer) -> int:
    """The level of the ``torch.func`` transform that a tracer belongs to: 1 for the outermost, 0 for none."""
    for number, entered in enumerate(level_stack.state.levels, 1):
        if entered.interpreter is x.interpreter:
            return number
    return 0


def _wrapped(head: str, value: Any) -> str:
    inner = repr(tensor_of(value)).replace("\n", "\n    ")
    return f"{head}, value=\n    {inner}\n)"


def _tangent(x: Any) -> str | None:
    """The printed tangent of a dual tensor."""
    if isinstance(x, ForwardTracer) and x.interpreter is level_stack.state.duals and x.tangent is not None:
        return str(tensor_of(x.tangent)) if x.ndim else f"{tensor_of(x.tangent)}"
    return None
