"""Tensors as arguments and results of funcgrad's own transforms: ``funcgrad.grad``, ``vmap``, ``jit`` and the others.

The transformed function gets tensors over tracers, and every operation on one replays its program into the trace. Only
elements are arguments and results: the graph of a tensor that requires grad does not continue in a pure function.
"""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import array, elements, tensor_of
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode
from compat._core.types.memory_format import strided
from funcgrad.core.errors import explained
from funcgrad.core.trees import register_array_type


def operand(t: Tensor) -> Any:
    """A tensor as an operand of a function of funcgrad.

    Raises:
        RuntimeError: for a tensor that requires grad, whose graph would not continue.
        TypeError: for a sparse or nested one.
    """
    if t.__class__ is not Tensor and t.layout is not strided:
        kind = "nested" if t.is_nested else "sparse"
        instead = "tensor.values()" if t.is_nested else "tensor.to_dense()"
        raise TypeError(f"A function of funcgrad was given a {kind} tensor. Use {instead} instead.")
    if (
        t.requires_grad
        and mode.grad
        and level_stack.in_graph(t)
        and not (level_stack.state.levels or level_stack.state.duals)
    ):
        message = (
            "A function of funcgrad was given a Tensor that requires grad, whose graph would end there. Use "
            "tensor.detach() instead, or differentiate by the tensor with funcgrad.grad."
        )
        raise explained(RuntimeError(message), "tensor-in-funcgrad")
    return array(t)


def register(kind: type[Tensor]) -> None:
    """Registers a class of tensors with funcgrad as arrays."""
    register_array_type(kind, elements, tensor_of, operand)


register(Tensor)
