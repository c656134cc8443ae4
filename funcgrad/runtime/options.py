"""What XLA is told when it compiles.

On a CPU it uses half of the vector registers of a machine that has AVX-512 (its default is right for the first machines
that had it, which slowed down). Told to use the whole, functions such as ``tanh``, ``exp`` and ``erf`` of large arrays
take 0.55 of the time (``python -m benchmarks lowering``); what only moves memory, and what calls its library of matrix
products, is as fast as before.
"""

from __future__ import annotations

from functools import cache

import jax

#: In bits; a machine without such registers uses what it has.
VECTOR_WIDTH = 512


@cache
def compiler_options() -> dict[str, int] | None:
    """Options for ``jax.jit``; None where the defaults are right."""
    return {"xla_cpu_prefer_vector_width": VECTOR_WIDTH} if jax.default_backend() == "cpu" else None
