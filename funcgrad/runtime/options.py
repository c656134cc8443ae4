"""XLA compiler options.

On a CPU with AVX-512 XLA uses half of the vector registers by default, which suited the first such CPUs, whose clock
slowed down. With the full width, functions such as ``tanh``, ``exp`` and ``erf`` of large arrays take 0.55 of the time
(``python -m benchmarks lowering``); memory-bound operations and matrix products are unchanged.

Of LLVM's optimization levels the first takes two thirds of the second's time, and its code is as fast: what the second
adds is mostly the unrolling of loops that XLA has vectorized already.

By default XLA also omits roundings to bfloat16 and float16 where it can, so a result would depend on whether operations
are compiled one by one or together. Here both give the same bits.

JAX runs CPU programs in another thread, concurrently with Python. On one core that has no benefit, and on two hardly
any, since programs compute on both: there a program runs in the calling thread. Python then does not wait for another
thread to wake up, and blocks of more than 64 MiB are not mapped again at each run, as in threads that allocate from
another arena (``funcgrad/native/memory.py``): a GPT of width 128 takes 44 ms a step instead of 44 to 69.
"""

from __future__ import annotations

import os
from functools import cache

import jax


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: The number of cores up to which programs run in the calling thread.
FEW_CORES = 2

if cores() <= FEW_CORES and "JAX_CPU_ENABLE_ASYNC_DISPATCH" not in os.environ:
    jax.config.update("jax_cpu_enable_async_dispatch", False)
#: Whether programs run in another thread than the caller's.
ASYNCHRONOUS = bool(jax.config.read("jax_cpu_enable_async_dispatch"))

#: In bits; a CPU without such registers uses its widest.
VECTOR_WIDTH = 512
#: LLVM's optimization level.
OPTIMIZATION_LEVEL = 1


@cache
def compiler_options() -> dict[str, int | bool]:
    """Options for ``jax.jit``."""
    options: dict[str, int | bool] = {"xla_allow_excess_precision": False}
    if jax.default_backend() == "cpu":
        options["xla_cpu_prefer_vector_width"] = VECTOR_WIDTH
        options["xla_backend_optimization_level"] = OPTIMIZATION_LEVEL
    return options
