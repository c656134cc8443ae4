"""Programs of several processes: each is a file beside this one, which receives its rank, the number of processes, an
address, and further arguments of the test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def environment(devices: int = 1, more: str = "") -> dict[str, str]:
    flags = f"--xla_force_host_platform_device_count={devices} {more}"
    return {**os.environ, "PYTHONPATH": str(ROOT), "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def run_processes(program: str, count: int, *args: str, address: str = "", devices: int = 1) -> list[tuple[int, str]]:
    """Runs a program in several processes; returns the exit status and output of each."""
    address = address or f"tcp://127.0.0.1:{free_port()}"
    running = [
        subprocess.Popen(
            [sys.executable, str(HERE / program), str(rank), str(count), address, *args],
            env=environment(devices), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for rank in range(count)
    ]  # fmt: skip
    try:
        outputs = [p.communicate(timeout=500)[0] for p in running]
    finally:
        for p in running:
            p.kill()
    return [(p.returncode, text) for p, text in zip(running, outputs, strict=True)]


def run_python(*args: str, devices: int = 1, flags: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, *args], env=environment(devices, flags), cwd=HERE, text=True, timeout=500, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout
