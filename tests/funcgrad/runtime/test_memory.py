"""Settings of the C library's allocator: what a step frees serves the next one."""

import os
import subprocess
import sys

import pytest

from funcgrad.runtime import memory

PROGRAM = """
import resource

import funcgrad as fg
import funcgrad.numpy as fnp


@fg.jit
def step(x):
    parts = [fnp.tanh(x[i:] @ x[i:].T) for i in range(24)]  # 4 MiB each, and all are needed

    return sum(fnp.mean(p * p.T) for p in parts)


x = fnp.ones((1024, 64)) / 64
faults = []
for _ in range(12):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step(x).block_until_ready()
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(min(faults))
"""


def page_faults(**environment: str) -> int:
    """The fewest page faults of a step in a process of its own.

    Not the median: where a small block lies behind a freed large one, a later step may extend the heap once more.
    """
    line = [sys.executable, "-c", PROGRAM]
    return int(subprocess.run(line, env={**os.environ, **environment}, check=True, capture_output=True).stdout)


@pytest.mark.skipif(not memory.keep_memory(), reason="another C library, or settings of its own in the environment")
def test_a_step_faults_in_no_pages_again():
    assert page_faults() < 500
    assert page_faults(FUNCGRAD_MALLOC="system") > 5000
