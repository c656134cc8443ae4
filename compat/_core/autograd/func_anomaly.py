"""Anomaly mode inside the transforms of ``torch.func``: checks of gradients for NaN.

Inside a transform there are no nodes to check. So each differentiated operand goes through an identity primitive whose
reverse-mode derivative checks the operation's gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.autograd.anomaly_mode import check_nan, record_stack, warn_with_stack
from compat._core.tensor.tracing import tensor_of
from compat._core.transforms import level_stack, vmap_checks
from compat._core.transforms.grad_mode import mode, no_grad
from funcgrad.core.dtypes import is_inexact
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import Tracer, type_of


class _Made:
    """A stand-in for the node of an operation inside a transform.

    Attributes:
        metadata: the stack of the call, as for nodes.
    """

    def __init__(self, node: type):
        self._name = node.__name__
        self.metadata: dict[str, Any] = {}
        record_stack(self)

    def name(self) -> str:
        """The name of the node."""
        return self._name


def _looked_at(cotangent: Any, by: _Made, nr: int) -> Any:
    values = vmap_checks.inmost(cotangent)
    if mode.anomaly and mode.check_nan and vmap_checks.shown(values):
        with no_grad():
            try:
                check_nan(by, [None] * nr + [tensor_of(values)])
            except RuntimeError:
                warn_with_stack(by)
                raise
    return cotangent


_watch: Primitive = Primitive(
    "watch",
    infer=lambda x, by, nr: x,
    lower=lambda x, by, nr: x,
    batch=lambda size, operands, dims, by, nr: (_watch(operands[0], by=by, nr=nr), dims[0]),
    jvp=lambda primals, tangents, by, nr: (_watch(primals[0], by=by, nr=nr), tangents[0]),
    vjp=lambda primals, needs, params: (
        [_watch(primals[0], **params)],
        lambda cotangents: [_looked_at(cotangents[0], **params)],
    ),
)


def watched(operands: Sequence[Any], node: type) -> list[Any]:
    """The operands of an operation inside a transform, with checks of their gradients.

    Args:
        node: the class of its nodes.
    """
    if not any(entered.kind == "grad" for entered in level_stack.state.levels):
        return list(operands)
    for entered in level_stack.state.levels:
        level_stack.through(entered.interpreter)  # so that each gradient has a value
    by = _Made(node)
    return [
        _watch(x, by=by, nr=nr) if isinstance(x, Tracer) and is_inexact(type_of(x).dtype) else x
        for nr, x in enumerate(operands)
    ]
