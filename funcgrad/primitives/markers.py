"""Primitives that compute nothing, and say something to whoever reads the program: a name, a barrier."""

from __future__ import annotations

from jax import lax

from funcgrad.ir import ArrayType
from funcgrad.primitive import Primitive
from funcgrad.primitives.elementwise import elementwise

# What ``checkpoint`` may be told to keep.
name_p = elementwise("name", lambda x, *, name: x, (lambda g, out, x, *, name: g,), accepts="any")

# XLA does not look through it: what is computed of its results is not what is computed of its operands.
barrier_p = Primitive(
    "optimization_barrier",
    infer=lambda *types: list(types),
    lower=lambda *xs: list(lax.optimization_barrier(xs)),
    jvp=lambda primals, tangents: (barrier_p(*primals), tangents),
    vjp=lambda operands, needs, params: (
        [] if any(isinstance(x, ArrayType) for x in operands) else barrier_p(*operands),
        list,
    ),
    batch=lambda size, operands, dims: (barrier_p(*operands), dims),
    multiple=True,
)
