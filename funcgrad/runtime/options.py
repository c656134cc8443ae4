"""XLA compiler options.

On a CPU with AVX-512 XLA uses half of the vector registers by default, which suited the first such CPUs, whose clock
slowed down. With the full width, functions such as ``tanh``, ``exp`` and ``erf`` of large arrays take 0.55 of the time
(``python -m benchmarks lowering``); memory-bound operations and matrix products are unchanged.

Of LLVM's optimization levels the first takes two thirds of the second's time, and its code is as fast: what the second
adds is mostly the unrolling of loops that XLA has vectorized already.

By default XLA copies a donated buffer that a native kernel reads, though all reads are before the buffer is
overwritten; its region analysis finds that out. A step of an MLP with Adam has three copies less.

By default XLA also omits roundings to bfloat16 and float16 where it can, so a result would depend on whether operations
are compiled one by one or together. Here both give the same bits.

JAX runs CPU programs in another thread, concurrently with Python. On a single core that has no benefit: there a program
runs in the calling thread, which halves the time of a small one. On two cores an MLP with Adam takes 1.2 times as long
that way.

XLA allocates a program's temporary memory as one block, and the C library maps blocks of more than 64 MiB anew at each
run in threads other than Python's (``funcgrad/native/memory.py``): a step of a GPT of width 128, whose block has 64.5
MiB, took 44 to 69 ms, depending on the thread. The C library keeps several smaller blocks: 44 ms. XLA cannot serialize
a program with several, so one that takes long to compile has a single block, and is kept on disk.
"""

from __future__ import annotations

import os

import jax

from funcgrad.core.ir import Program
from funcgrad.native.machine import cores

if cores() == 1 and "JAX_CPU_ENABLE_ASYNC_DISPATCH" not in os.environ:
    jax.config.update("jax_cpu_enable_async_dispatch", False)
#: Whether programs run in another thread than the caller's.
ASYNCHRONOUS = bool(jax.config.read("jax_cpu_enable_async_dispatch"))

#: In bits; a CPU without such registers uses its widest.
VECTOR_WIDTH = 512
#: LLVM's optimization level.
OPTIMIZATION_LEVEL = 1
#: The bytes of a block of temporary memory, unless an array is larger.
TEMPORARY_BLOCK = 48 * 2**20
#: The estimated milliseconds of compiling beyond which a program has a single block.
LONG = 10_000.0


def temporary_block(program: Program) -> int | None:
    """The bytes of a block of a program's temporary memory: ``TEMPORARY_BLOCK``, or those of its largest array, since
    XLA prints a warning for each that is larger than a block; None if that is more than XLA's option can hold."""
    block = max(TEMPORARY_BLOCK, _largest(program))
    return block if block < 2**31 else None


def _largest(program: Program) -> int:
    sizes = [v.type.nbytes for e in program.equations for v in e.outputs]
    return max([*sizes, *[_largest(nested) for e in program.equations for nested in e.programs()]], default=0)


def compiler_options(block: int | None = TEMPORARY_BLOCK) -> dict[str, int | bool]:
    """Options for ``jax.jit``.

    Args:
        block: the bytes of a block of temporary memory; None for a single block.
    """
    options: dict[str, int | bool] = {"xla_allow_excess_precision": False}
    if jax.default_backend() == "cpu":
        options["xla_cpu_prefer_vector_width"] = VECTOR_WIDTH
        options["xla_cpu_copy_insertion_use_region_analysis"] = True
        options["xla_backend_optimization_level"] = OPTIMIZATION_LEVEL
        if block is not None:
            options["xla_multiheap_size_constraint_per_heap"] = block
    return options
