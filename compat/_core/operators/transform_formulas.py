"""PyTorch's derivatives inside transforms, where they differ from those of the programs.

Reverse mode: ``torch.func`` uses explicit backward formulas, too. The derivative of a kernel's program may be NaN where
PyTorch's formula is not (the standard deviation of equal numbers), or select another one of equal elements (the
median). So in reverse mode such a program is one operation with a custom rule.

Forward mode uses the derivative of the program. As in PyTorch, a result has a tangent if an operand has one, also if it
is zero, as for ``sign``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.transforms import vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.transforms.identities import still
from funcgrad import custom_vjp
from funcgrad.core.dtypes import is_inexact
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.batching import BatchTracer
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.forward import Forward, ForwardTracer, jvp_flat
from funcgrad.interpreters.reverse import ReverseTracer
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.elementwise import cast, conjugated
from funcgrad.primitives.shape import zeros


def goes_backward(x: Any) -> bool:
    """Whether a surrounding transform differentiates a value in reverse mode."""
    while isinstance(x, (BatchTracer, ForwardTracer)):
        x = x.value if isinstance(x, BatchTracer) else x.primal
    return isinstance(x, ReverseTracer)


def stated_program(kernel: Any, types: tuple[ArrayType | None, ...]) -> Program:
    """The program of a kernel with an explicit backward formula, as one operation with that formula as its rule."""
    forward = kernel.program(types)
    out_types = forward.output_types
    moving = [is_inexact(t.dtype) and i not in kernel.constant for i, t in enumerate(out_types)]
    inputs = [t for t in types if t is not None]

    def pull(kept: tuple, cotangents: Sequence[Any]) -> tuple:
        arrays, results = kept
        given = iter(arrays)
        primals = [None if t is None else next(given) for t in types]
        incoming: list[Any] = [None] * len(out_types)
        for i, (ct, t) in enumerate(zip(cotangents, out_types)):
            if moving[i] and not (ct is None and i in kernel.absent):
                incoming[i] = zeros(t.strong()) if ct is None else conjugated(ct)
        grads = kernel.stated(primals, results, incoming)
        return tuple(_cotangent(g, t) for g, t in zip(grads, types) if t is not None)

    def push(primals: tuple, tangents: tuple) -> tuple[list[Any], list[Any]]:
        moved = [t if is_inexact(kind.dtype) else None for t, kind in zip(tangents, inputs)]
        outs, found = jvp_flat(lambda *xs: evaluate(forward, xs), primals, moved)
        return outs, [zeros(type_of(o).strong()) if t is None else t for o, t in zip(outs, found)]

    def run(*arrays: Any) -> list[Any]:
        return list(evaluate(forward, arrays))

    operation = custom_vjp(run)
    operation.__name__ = kernel.name
    operation.defvjp(lambda *arrays: ((outs := run(*arrays)), (arrays, outs)), pull, materialize=False)
    operation.defjvp(push)
    return stage(operation, inputs, name=kernel.name, description=f"the operation {kernel.name}")


def _cotangent(gradient: Any, wanted: ArrayType) -> Any:
    if gradient is None or wanted.weak or not is_inexact(wanted.dtype):
        return None
    gradient = conjugated(gradient)
    return gradient if type_of(gradient).dtype == wanted.dtype else cast(gradient, dtype=wanted.dtype)


# ---------------------------------------------------------------- forward mode


def with_tangents(kernel: Any, operands: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
    """The results of an operation, with zero tangents for those without a tangent if an operand has one.

    Raises:
        NotImplementedError: if an operand has a tangent, and the operation has no derivative.
    """
    movers = {interpreter: x for x in operands for interpreter in pushing(x)} if mode.forward else {}
    if not movers:
        return results
    if not kernel.derivable:
        raise NotImplementedError(f"Trying to use forward AD with aten::{kernel.name} that does not support it.")
    return [x if i in kernel.constant else _complete(x, movers) for i, x in enumerate(results)]


def _complete(x: Any, movers: dict[Forward, Any]) -> Any:
    if not is_inexact(type_of(x).dtype):
        return x
    own = pushing(x)
    for interpreter, by in movers.items():
        if interpreter not in own:
            x = still(by, x)
    return x


def pushing(x: Any) -> list[Forward]:
    """The transforms and forward-mode levels in which a value has a tangent, innermost first."""
    found: list[Forward] = []
    while isinstance(x, vmap_checks.TRACED):
        if isinstance(x, ForwardTracer):
            assert isinstance(x.interpreter, Forward)
            # After its exit a forward-mode level passes primals on.
            found += [x.interpreter] if getattr(x.interpreter, "open", True) else []
        x = vmap_checks.wrapped(x)
    return found
