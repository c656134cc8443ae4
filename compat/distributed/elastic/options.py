"""The options of ``python -m torch.distributed.run``, as for ``torchrun``.

Environment variables with the prefix ``PET_`` set their defaults: ``PET_NPROC_PER_NODE=2``.
"""

from __future__ import annotations

import argparse
import os
from typing import Any


class _Or(argparse.Action):
    """An option whose default is taken from an environment variable."""

    def __init__(self, dest: str, default: Any = None, required: bool = False, **more: Any):
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(dest=dest, default=default, required=required and default is None, **more)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, values)


class _Flag(_Or):
    """A boolean option."""

    def __init__(self, dest: str, **more: Any):
        super().__init__(dest=dest, default=False, nargs=0, **more)
        if isinstance(self.default, str):
            self.default = self.default not in ("0", "")

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, True)


def parser() -> argparse.ArgumentParser:
    """The command line parser."""
    found = argparse.ArgumentParser(prog="torchrun", description="Starts a program in several processes.")
    add = found.add_argument
    value = lambda name, default, help, **more: add(
        f"--{name}", f"--{name.replace('-', '_')}", action=_Or, default=default, help=help, **more
    )
    flag = lambda name, help, *short: add(
        *short, f"--{name}", *([f"--{name.replace('-', '_')}"] if "-" in name else []), action=_Flag, help=help
    )
    value("nnodes", "1:1", "how many hosts, or the fewest and the most, as MIN:MAX")
    value("nproc-per-node", "1", "how many processes on this host, or auto, cpu, gpu")
    value("rdzv-backend", "static", "how hosts meet: static, c10d")
    value("rdzv-endpoint", "", "where they meet: HOST[:PORT]")
    value("rdzv-id", "none", "the name of the job")
    value("rdzv-conf", "", "more, as KEY=VALUE,...: timeout, join_timeout, is_host")
    flag("standalone", "a single host, without rendezvous")
    value("max-restarts", 0, "how often processes are started again after a failure", type=int)
    value("monitor-interval", 0.1, "how many seconds pass between looks at the processes", type=float)
    value(
        "start-method",
        "spawn",
        "changes nothing: each process is a new Python",
        choices=["spawn", "fork", "forkserver"],
    )
    value("role", "default", "what the processes are called")
    flag("module", "the program is a module, as with python -m", "-m")
    flag("no-python", "the program is run as it is, without Python")
    flag("run-path", "the program is run in the launcher's way of finding it; the same here")
    value("log-dir", None, "where what processes print is written")
    add(
        "-r",
        "--redirects",
        action=_Or,
        default="0",
        help="what goes to files: 1 stdout, 2 stderr, 3 both; or 0:1,1:3 by rank",
    )
    add("-t", "--tee", action=_Or, default="0", help="the same, but shown as well")
    value("local-ranks-filter", "", "the local ranks whose output is printed, as 0,1")
    value("node-rank", 0, "which host this is, where they meet statically", type=int)
    value("master-addr", "127.0.0.1", "where rank 0 is")
    value("master-port", 29500, "at which port it serves the store", type=int)
    value("local-addr", None, "this host's address")
    value("logs-specs", None, "changes nothing")
    value("event-log-handler", "null", "changes nothing")
    value("numa-binding", None, "changes nothing")
    value("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "which signals end the processes")
    flag("virtual-local-rank", "each process sees itself as local rank 0")
    add("training_script", help="the program")
    add("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return found


def hosts(text: str) -> tuple[int, int]:
    """The minimum and the maximum number of hosts.

    Raises:
        ValueError: for an invalid range.
    """
    fewest, _, most = str(text).partition(":")
    found = int(fewest), int(most or fewest)
    if not 0 < found[0] <= found[1]:
        raise ValueError(f"nnodes must be N or MIN:MAX with 0 < MIN <= MAX, got {text!r}")
    return found


def processes(text: str) -> int:
    """The number of processes of this host.

    Raises:
        ValueError: for ``gpu`` without a GPU, and for an argument that is not a number.
    """
    if text in ("auto", "cpu"):
        return os.cpu_count() or 1
    if text == "gpu":
        raise ValueError("Cuda is not available.")
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {text}") from None


def by_rank(text: str, count: int) -> list[int]:
    """The value of ``--redirects`` or ``--tee`` per local rank: a number for all, or ``0:1,1:3``."""
    if ":" not in str(text):
        return [int(text)] * count
    said = {int(k): int(v) for k, v in (part.split(":") for part in str(text).split(","))}
    return [said.get(i, 0) for i in range(count)]


def settings(text: str) -> dict[str, str]:
    """The settings in ``--rdzv-conf``."""
    return dict(part.split("=", 1) for part in text.split(",") if part)
