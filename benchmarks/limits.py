"""The machine's limits: the rates of a large matrix product and of a large copy, measured with JAX.

``python -m benchmarks.limits THREADS`` prints both as JSON. They are the best of several sizes and runs, in float32,
which the contestants use on accelerators too.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.results import Limits
from benchmarks.worker import limit_to
from benchmarks.worker_process import ROOT, environment

RUNS = 10


def _best_seconds(work: Callable[[Any], Any], value: Any) -> float:
    """The shortest of several runs, each on the result of the previous one."""
    import jax

    value = jax.block_until_ready(work(value))
    found = []
    for _ in range(RUNS):
        start = time.perf_counter()
        value = jax.block_until_ready(work(value))
        found.append(time.perf_counter() - start)
    return min(found)


def measured() -> Limits:
    """The limits, measured in this process."""
    import jax
    import jax.numpy as jnp

    on_cpu = jax.devices()[0].platform == "cpu"
    # The copy reuses the memory of its source, since new memory costs page faults.
    product, copy = jax.jit(lambda x: jnp.matmul(x, x, precision="highest")), jax.jit(lambda x: x + 1, donate_argnums=0)
    flops = 0.0
    for n in (512, 1024, 2048) if on_cpu else (2048, 4096, 8192):
        # An idempotent matrix.
        matrix = jnp.full((n, n), 1 / n, jnp.float32)
        flops = max(flops, 2 * n**3 / _best_seconds(product, matrix))
    array = jnp.ones(2**24 if on_cpu else 2**28, jnp.float32)
    nbytes = array.nbytes
    return Limits(flops, 2 * nbytes / _best_seconds(copy, array))


def in_own_process(threads: int) -> Limits:
    """The limits, measured by a process with the given number of threads."""
    with tempfile.TemporaryDirectory() as caches:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.limits", str(threads)],
            cwd=ROOT, env=environment({}, threads, Path(caches)), check=True, capture_output=True, text=True,
        )  # fmt: skip
    return Limits(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    limit_to(int(sys.argv[1]))
    print(json.dumps(dataclasses.asdict(measured())))
