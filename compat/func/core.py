"""Tensors as arguments and results of funcgrad's own transforms: ``funcgrad.grad``, ``vmap``, ``jit`` and the others.

A function that is transformed gets tensors over what is traced, and every operation on one replays its program into the
trace. Only elements go in and come out: the graph of a tensor that requires grad ends where a pure function begins.
"""

from __future__ import annotations

from compat.arrays import elements, tensor_of
from compat.nn.parameter import Parameter
from compat.tensor import Tensor
from funcgrad.trees import register_array_type

for kind in (Tensor, Parameter):
    register_array_type(kind, elements, tensor_of)
