"""The end of a process, and forked children: programs with their exit status, output and duration."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

#: How long a process may take to end after its last atexit function, in seconds, without the time in which it was
#: runnable and other processes had the processors.
LONGEST = 0.2

START = """
import atexit, os, sys, threading, time
early = []  # functions registered before the library's own: they are called after it

def ending():
    for f in early:
        f()
    waited = int(open("/proc/self/schedstat").read().split()[1]) / 1e9
    print("ending", time.monotonic(), waited, os.getpid(), flush=True)

atexit.register(ending)
import compat as torch
from compat import runtime
from funcgrad.runtime import background

def held(length):
    y, kept = torch.ones(16), []
    for i in range(length):
        y = y * 1.0001
        kept.append(y)
    return y.sum().item()

def daemons(work, count=2):
    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.3)
"""

#: Programs, each with its exit status and a part of its output.
PROGRAMS: dict[str, tuple[str, int, str]] = {
    "compiling": (
        """
        for length in range(400, 580, 20):
            for _ in range(3):
                held(length)
        sys.exit(3)
        """,
        3,
        "",
    ),
    "daemons": (
        """
        def work():
            model = torch.nn.Linear(8, 8)
            step = torch.optim.Adam(model.parameters())
            for size in range(10**6):
                step.zero_grad()
                model(torch.ones(1 + size % 50, 8)).square().mean().backward()
                step.step()

        daemons(work)
        raise SystemExit("a text")
        """,
        1,
        "a text",
    ),
    "printing": (
        """
        def work():
            x = torch.ones(3)
            while True:
                x = x + 1
                print(x)

        daemons(work, 3)
        print("the last")
        """,
        0,
        "the last",
    ),
    "compiled": (
        """
        import funcgrad as fg, funcgrad.numpy as fnp

        def work():
            f, x = fg.jit(fg.grad(lambda x: fnp.sum(fnp.sin(x @ x)))), fnp.ones((200, 200))
            while True:
                x = f(x) + fnp.cos(x)

        daemons(work)
        raise ValueError("its own")
        """,
        1,
        "its own",
    ),
    "in XLA's threads only": (
        """
        import funcgrad as fg, funcgrad.numpy as fnp
        from funcgrad.runtime import executable

        def layers(x, w):
            for _ in range(60):
                x = fnp.tanh(x @ w)
            return x

        x, w = fnp.ones((256, 256)), fnp.ones((256, 256)) / 256
        run = executable(fg.trace(layers, x, w)).run
        run.lower(x, w).compile()
        for _ in range(4):
            run(x, w)
        sys.exit(6)
        """,
        6,
        "",
    ),
    "holding": (
        """
        from funcgrad.runtime.deferred import lock

        def work():
            with lock:
                time.sleep(100)

        daemons(work, 1)
        early.append(lambda: (runtime.synchronize(), print("last of all", (torch.ones(3) * 2).sum().item())))
        """,
        0,
        "last of all 6.0",
    ),
    "functions at the end": (
        """
        x, big = torch.ones(5), torch.ones(300, 300)
        (big @ big).sum().item()

        def end():
            runtime.synchronize()
            print("at the end", (x * 3).sum().item(), (big @ big).sum().item())

        atexit.register(end)
        threading.Thread(target=lambda: (time.sleep(0.2), held(20))).start()
        sys.exit(4)
        """,
        4,
        "at the end 15.0 27000000.0",
    ),
    "forked": (
        """
        import os, signal
        import funcgrad as fg, funcgrad.numpy as fnp
        x, big = torch.ones(5), torch.ones(700, 700)
        (big @ big).sum().item()
        model = torch.nn.Linear(4, 4)
        step = torch.optim.SGD(model.parameters(), 0.1)

        def train():
            step.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            step.step()
            runtime.synchronize()

        for _ in range(4):
            train()
        child = os.fork()
        if not child:
            signal.alarm(30)
            train()
            print((big @ big).sum().item(), torch.ones(2000, 1000).sum().item(), model.weight.isfinite().all().item())
            print(fg.grad(lambda x: fnp.sum(x * x))(fnp.ones(2)))
            for run in (lambda: fg.jit(lambda x: x + 1)(fnp.ones(3)), lambda: torch.special.gammainc(x, x)):
                try:
                    print(run())
                except RuntimeError as error:
                    print("forkserver" in str(error))
            sys.exit(5)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        5,
        "343000000.0 2000000.0 True\n[2. 2.]\nTrue\nTrue",
    ),
}  # fmt: skip


class Ended(NamedTuple):
    """The end of a process.

    Attributes:
        status, output: its exit status and output.
        seconds: the time from its last atexit function on, without the time in which its first thread was runnable
            and had no processor.
    """

    status: int
    output: str
    seconds: float


def run(source: str) -> Ended:
    env = {**os.environ, "FUNCGRAD_CACHE_DIR": ""}
    command = [sys.executable, "-W", "ignore", "-c", START + dedent(source)]
    with tempfile.TemporaryFile("w+") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=env)
        # The process has ended, and its statistics can still be read.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        over = time.monotonic()
        waited = int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9
        status = process.wait()
        file.seek(0)
        output = file.read()
    told = [line.split("ending ")[1].split() for line in output.splitlines() if "ending " in line]
    began, waited_before = next((float(a), float(b)) for a, b, pid in told if int(pid) == process.pid)
    return Ended(status, output, over - began - (waited - waited_before))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the end waits for one program that is being compiled")
def test_a_process_ends_at_once_with_its_own_status_and_all_its_output() -> None:
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(PROGRAMS, pool.map(run, [source for source, _, _ in PROGRAMS.values()])))
    for name, (status, output, seconds) in found.items():
        wanted, text = PROGRAMS[name][1:]
        if status == -11:  # seen once in hundreds of runs: a thread unwound inside XLA; not yet understood
            status, output, seconds = run(PROGRAMS[name][0])
        assert status == wanted and text in output, (name, status, output[-2000:])
        # The C library may still write a line of its own when it finds a thread unwound; the status is what counts.
        assert "terminate called" not in output, (name, output[-2000:])
        for _ in range(6):  # its other threads may have been delayed as well: the least time is its own
            if seconds >= LONGEST:
                seconds = min(seconds, run(PROGRAMS[name][0]).seconds)
        assert seconds < LONGEST, (name, seconds)


#: Lowering an SVD imports SciPy's LAPACK from C++, which needs the interpreter to return.
LOWERING = """
import sys, time
import jax, numpy as np
from funcgrad.runtime import background

jax.devices()
x = np.ones((3, 3), np.float32)
background.compile_soon("svd", lambda: jax.jit(jax.numpy.linalg.svd).lower(x))
until = time.monotonic() + 60
while "scipy.linalg" not in sys.modules and time.monotonic() < until:
    time.sleep(0.0005)
"""


def test_a_process_that_ends_while_jax_imports_for_the_compiler_prints_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", LOWERING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


LEFT_LOCKED = """
import threading
import time

from funcgrad.runtime import background, report
from funcgrad.runtime.deferred import lock

for left in (lock, report._lock):
    left.__enter__()  # and an interrupt comes before its block
    begun, done = threading.Event(), []

    def job():
        begun.set()
        with left:
            done.append(True)

    background.compile_soon(object(), job)
    if left is lock:
        begun.wait()
        time.sleep(0.1)  # the thread waits for the lock by now
    background.wait()
    assert done == [True]
    left.__exit__()
    with left:
        pass
print("done")
"""


def test_a_thread_that_waits_for_the_compiler_lends_it_its_locks() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT_LOCKED], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("done\n", "")
