"""Forward mode: each value is paired with its tangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core import dtypes
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import (
    Interpreter,
    Tracer,
    bind,
    check_outside,
    differentiated_by,
    restoring,
    running,
    type_of,
)
from funcgrad.interpreters.rules import no_rule, push


class ForwardTracer(Tracer):
    """A primal and its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, interpreter: Forward, primal: Any, tangent: Any):
        self.interpreter = interpreter
        self.type = type_of(primal)
        self.primal = primal
        self.tangent = tangent

    def underlying(self) -> Any:
        return self.primal

    def differentiated_by(self) -> list[Interpreter]:
        beneath = differentiated_by(self.primal)
        return [self.interpreter, *beneath] if self.tangent is not None and self.interpreter.alive else beneath


class Forward(Interpreter):
    """Pushes tangents through each operation; ``None`` is a zero tangent."""

    __slots__ = ()
    description = "jvp"

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        primals, tangents = [], []
        for x in operands:
            mine = isinstance(x, ForwardTracer) and x.interpreter is self
            primals.append(x.primal if mine else x)
            tangents.append(x.tangent if mine else None)
        if primitive.jvp is not None and any(t is not None for t in tangents):
            return self._general(primitive, primals, tangents, params)
        out = bind(primitive, primals, params)
        if not primitive.differentiable or not dtypes.is_inexact(type_of(out).dtype):
            return out
        if primitive.partials is None and primitive.transpose is None:
            raise no_rule(primitive)
        return self._wrap(out, push(primitive, primals, tangents, out, params))

    def _general(self, primitive: Primitive, primals: list[Any], tangents: list[Any], params: dict[str, Any]) -> Any:
        assert primitive.jvp is not None
        out, tangent = primitive.jvp(primals, tangents, **params)
        check_outside(self, primitive, out if primitive.multiple else [out])
        if primitive.multiple:
            return [self._wrap(o, t) for o, t in zip(out, tangent, strict=True)]
        return self._wrap(out, tangent)

    def _wrap(self, primal: Any, tangent: Any) -> Any:
        return primal if tangent is None else ForwardTracer(self, primal, tangent)


@restoring
def jvp_flat(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Values and tangents of ``f``, which takes and returns flat sequences of arrays.

    Args:
        tangents: one per primal; ``None`` if it is zero, or if the primal has none (integers, bools).

    Returns:
        The results, and their tangents, ``None`` where zero.
    """
    interpreter = Forward()
    with running(interpreter):
        arguments = [
            p if t is None or not dtypes.is_inexact(type_of(p).dtype) else ForwardTracer(interpreter, p, t)
            for p, t in zip(primals, tangents, strict=True)
        ]
        results = f(*arguments)
        mine = [isinstance(r, ForwardTracer) and r.interpreter is interpreter for r in results]
        outs = [r.primal if m else r for r, m in zip(results, mine, strict=True)]
        return outs, [r.tangent if m else None for r, m in zip(results, mine, strict=True)]
