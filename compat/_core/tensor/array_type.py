"""Tensors as arguments and results of funcgrad's own transforms: ``funcgrad.grad``, ``vmap``, ``jit`` and the others.

A function that is transformed gets tensors over what is traced, and every operation on one replays its program into the
trace. Only elements go in and come out: the graph of a tensor that requires grad ends where a pure function begins.
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
        RuntimeError: for one that is in a graph of tensors which nothing here would go on with.
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
    """Has funcgrad take tensors of a class."""
    register_array_type(kind, elements, tensor_of, operand)


register(Tensor)
