"""Options of XLA.

On a CPU it uses half of the vector registers of a machine that has AVX-512 (its default is right for the first machines
that had it, which slowed down). Told to use the whole, functions such as ``tanh``, ``exp`` and ``erf`` of large arrays
take 0.55 of the time (``python -m benchmarks lowering``); what only moves memory, and what calls its library of matrix
products, is as fast as before.

By default XLA also leaves roundings to bfloat16 and float16 out where it can, so a result would depend on whether
operations are compiled one by one or together. Here both give the same bits.

JAX hands programs for the CPU to a thread, so that Python goes on meanwhile. On one core nothing can: there a program
runs in the thread that calls it, which for a small one takes half of the time.
"""

from __future__ import annotations

import os
from functools import cache

import jax


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if cores() == 1 and "JAX_CPU_ENABLE_ASYNC_DISPATCH" not in os.environ:
    jax.config.update("jax_cpu_enable_async_dispatch", False)

#: In bits; a machine without such registers uses its widest.
VECTOR_WIDTH = 512


@cache
def compiler_options() -> dict[str, int | bool]:
    """Options for ``jax.jit``."""
    options: dict[str, int | bool] = {"xla_allow_excess_precision": False}
    if jax.default_backend() == "cpu":
        options["xla_cpu_prefer_vector_width"] = VECTOR_WIDTH
    return options
