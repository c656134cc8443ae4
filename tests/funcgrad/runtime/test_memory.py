"""Settings of the C library's allocator: what a step frees serves the next one."""

import inspect
import os
import subprocess
import sys
from typing import Any
from unittest.mock import Mock

import jax
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime
from funcgrad.runtime import cache, memory, programs


def many_arrays(x: Any) -> Any:
    parts = [fnp.tanh(x[i:] @ x[i:].T) for i in range(24)]  # 4 MiB each, and all are needed
    return sum(fnp.mean(p * p.T) for p in parts)


PROGRAM = f"""
import resource
from typing import Any

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime


{inspect.getsource(many_arrays)}

x = fnp.ones((1024, 64)) / 64
run = runtime.executable(fg.trace(many_arrays, x)).run
faults = []
for _ in range(12):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    [mean] = run(x)
    mean.block_until_ready()
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
    assert page_faults(GLIBC_TUNABLES="glibc.malloc.hugetlb=1") < 500


ARENAS = """
import ctypes
import os
import tempfile
import threading

import funcgrad

CPUS = len(os.sched_getaffinity(0))
alive = threading.Barrier(8 * CPUS + 1)
threads = [threading.Thread(target=alive.wait) for _ in range(8 * CPUS)]
for thread in threads:
    thread.start()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(file.read().count(b"<heap nr"), 2 + 2 * CPUS)
alive.wait()
"""


@pytest.mark.skipif(not memory.keep_memory(), reason="another C library, or settings of its own in the environment")
def test_there_is_an_arena_for_python_each_of_the_threads_of_xla_and_compiling() -> None:
    done = subprocess.run([sys.executable, "-c", ARENAS], check=True, capture_output=True, text=True)
    found, wanted = done.stdout.split()
    assert found == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=3"), ("MALLOC_ARENA_MAX", "3")],
)
def test_settings_of_the_user_are_left_alone(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert not memory.keep_memory()


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="memory of the CPU")
def test_temporary_memory_is_divided_into_blocks_unless_compiling_takes_long(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    def blocks() -> str:
        x = fnp.ones((1024, 64))
        made = runtime.executable(fg.trace(many_arrays, x)).run.lower(x).compile()
        try:
            made.runtime_executable().serialize()
        except jax.errors.JaxRuntimeError as error:  # what XLA says of them is the sign that there are several
            writer = cache.Writer(Mock(side_effect=error))
            writer.add("program")
            writer.finish()
            return "several"
        return "one"

    assert blocks() == "several"
    monkeypatch.setattr(programs, "LONG", 1.0)
    assert blocks() == "one"
    assert not recwarn.list


LARGE = """
import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime

def products(x):
    p = fnp.tanh(x @ x.T)  # 64 MiB
    return fnp.mean(p * p.T)

x = fnp.ones((4096, 4))
[mean] = runtime.executable(fg.trace(products, x)).run(x)
print(mean)
"""


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="memory of the CPU")
def test_large_arrays_are_no_reason_for_warnings() -> None:
    # XLA prints one for each array that does not fit into a block.
    done = subprocess.run([sys.executable, "-c", LARGE], check=True, capture_output=True, text=True)
    assert float(done.stdout) == pytest.approx(1, abs=1e-2)
    assert done.stderr == ""
