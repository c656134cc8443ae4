"""The agent of a host: rendezvous with other hosts' agents, starts, monitors and restarts processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Sequence
from datetime import timedelta
from types import FrameType
from typing import IO, Any, NamedTuple

from compat._distributed.transport.errors import DistNetworkError
from compat._distributed.transport.stores import PrefixStore, Store
from compat._distributed.transport.tcp_store import TCPStore
from compat.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from compat.distributed.elastic.options import by_rank, hosts, processes, settings

#: The grace period in seconds for processes to exit after SIGTERM.
GRACE = 30.0


class SignalReceived(Exception):
    """The agent received a termination signal."""

    def __init__(self, number: int):
        super().__init__(f"got signal: {number}")
        self.number = number


class Round(NamedTuple):
    """One rendezvous round of all hosts.

    Attributes:
        number: the number of the round.
        host: this host's index.
        counts: the number of processes of each host.
        address, port: the address of rank 0's store, or of the agents' store.
    """

    number: int
    host: int
    counts: list[int]
    address: str
    port: int

    @property
    def first(self) -> int:
        """The rank of this host's first process."""
        return sum(self.counts[: self.host])


class Rendezvous:
    """The agents' rendezvous: a store at a common address, which one of them serves.

    Args:
        options: the command line.
        count: the number of processes of this host.
    """

    def __init__(self, options: Namespace, count: int):
        self.count, self.min_hosts, self.max_hosts = count, *hosts(options.nnodes)
        self.conf = settings(options.rdzv_conf)
        self.join_timeout = float(self.conf.get("join_timeout", self.conf.get("timeout", 600)))
        self.static = options.rdzv_backend == "static"
        self.rank = options.node_rank
        alone = options.standalone or (
            self.max_hosts == 1 and not options.rdzv_endpoint and options.rdzv_backend != "static"
        )
        endpoint = f"{options.master_addr}:{options.master_port}" if self.static else options.rdzv_endpoint
        self.address, port = ("127.0.0.1", 0) if alone else _address(options.rdzv_endpoint or endpoint)
        self.tcp = self._store(port, alone)
        self.port = self.tcp.port
        self.store: Store = PrefixStore(f"agents/{options.rdzv_id}", self.tcp)
        self.number = -1

    def _store(self, port: int, alone: bool) -> TCPStore:
        join_timeout = timedelta(seconds=self.join_timeout)
        serves = alone or (self.rank == 0 if self.static else self._may_serve())
        if serves:
            try:
                return TCPStore(self.address, port, is_master=True, timeout=join_timeout, wait_for_workers=False)
            except DistNetworkError:
                if self.static:
                    raise
        return TCPStore(self.address, port, timeout=join_timeout, wait_for_workers=False)

    def _may_serve(self) -> bool:
        if "is_host" in self.conf:
            return self.conf["is_host"].lower() in ("1", "true", "yes")
        names = {"localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()}
        try:
            return self.address in names or socket.gethostbyname(self.address) in {
                info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)
            }
        except OSError:
            return False

    def next(self) -> Round:
        """Joins the next round.

        Raises:
            DistStoreError: if not enough hosts join in time.
        """
        self.number = max(self.number + 1, self.requested_round())
        store = PrefixStore(f"round/{self.number}", self.store)
        host = self.rank if self.static else store.add("hosts", 1) - 1
        store.set(f"host/{host}", str(self.count))
        if host == 0:
            store.set("size", str(self._wait_for_hosts(store)))
        size = int(store.get("size"))
        if host >= size:
            raise DistNetworkError(f"this host joined too late: {size} hosts have started without it")
        return Round(self.number, host, [int(store.get(f"host/{i}")) for i in range(size)], self.address, self.port)

    def _wait_for_hosts(self, store: Store) -> int:
        """Waits for the minimum number of hosts, then for more until ``last_call_timeout`` passes without one."""
        if self.static:
            store.wait([f"host/{i}" for i in range(self.min_hosts)], timedelta(seconds=self.join_timeout))
            return self.min_hosts
        deadline, last = time.monotonic() + self.join_timeout, time.monotonic()
        seen = 0
        while True:
            now = int(store.add("hosts", 0))
            if now != seen:
                seen, last = now, time.monotonic()
            settled = time.monotonic() - last > float(self.conf.get("last_call_timeout", 30))
            if seen >= self.max_hosts or (seen >= self.min_hosts and settled):
                return min(seen, self.max_hosts)
            if time.monotonic() > deadline:
                raise DistNetworkError(f"{seen} of {self.min_hosts} hosts have joined in {self.join_timeout:g} seconds")
            time.sleep(0.05)

    def request_restart(self) -> None:
        """Requests a new round, after a process of this host has failed."""
        self.store.compare_set("again", str(self.number), str(self.number + 1))
        if self.requested_round() <= self.number:
            self.store.set("again", str(self.number + 1))

    def requested_round(self) -> int:
        """The number of the last requested round."""
        return self.store.add("again", 0)

    def finished(self, round: Round, ok: bool) -> None:
        """Waits until all hosts have finished, since this host may serve the store for the others."""
        if len(round.counts) == 1:
            return
        store = PrefixStore(f"end/{round.number}", self.store)
        store.add("hosts", 1)
        deadline = time.monotonic() + (300 if ok else 5)
        try:
            while store.add("hosts", 0) < len(round.counts) and time.monotonic() < deadline:
                time.sleep(0.05)
            if self.tcp._server is not None:
                time.sleep(0.3)  # until others have read the last value
        except DistNetworkError:
            pass  # the server has exited


def _address(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.rpartition(":") if ":" in endpoint else (endpoint, "", "29400")
    return host or "127.0.0.1", int(port)


class Agent:
    """Runs a program in the processes of this host.

    Args:
        options: the command line.
    """

    def __init__(self, options: Namespace):
        self.options = options
        self.count = processes(options.nproc_per_node)
        self.logs = options.log_dir or tempfile.mkdtemp(prefix="torchelastic_")
        self.workers: list[subprocess.Popen] = []
        self._pumps: list[threading.Thread] = []

    def run(self) -> None:
        """Runs the program until all processes have succeeded.

        Raises:
            ChildFailedError: if a process failed and no restarts are left.
            SignalReceived: on a signal.
        """
        for name in self.options.signals_to_handle.split(","):
            signal.signal(getattr(signal, name), _end)
        rendezvous = Rendezvous(self.options, self.count)
        restarts = 0
        try:
            while True:
                round = rendezvous.next()
                failed = self._run_round(rendezvous, round, restarts)
                if failed is not None and failed:
                    if restarts >= self.options.max_restarts:
                        rendezvous.store.set("failed", json.dumps(sorted(failed)))
                        rendezvous.finished(round, False)
                        raise ChildFailedError(self.options.training_script, failed)
                    _log(f"{len(failed)} processes failed, first rank {min(failed)}; restart "
                         f"{restarts + 1} of {self.options.max_restarts}")  # fmt: skip
                    rendezvous.request_restart()
                elif failed is not None:
                    rendezvous.finished(round, True)
                    return
                restarts += 1
        finally:
            self._stop()

    def _run_round(self, rendezvous: Rendezvous, round: Round, restarts: int) -> dict[int, ProcessFailure] | None:
        """Starts the processes and waits; returns the failed ones, or None if other hosts restart."""
        self._start(round, restarts)
        last_check = time.monotonic()
        while True:
            codes = [w.poll() for w in self.workers]
            if any(code not in (None, 0) for code in codes):
                time.sleep(min(0.1, self.options.monitor_interval))  # until others fail for the same reason
                failed = self._failures(round)
                self._stop()
                return failed
            if all(code == 0 for code in codes):
                self._join_pumps()
                return {}
            if len(round.counts) > 1 and time.monotonic() - last_check > 0.5:
                last_check = time.monotonic()
                if rendezvous.store.check(["failed"]):
                    self._stop()
                    raise DistNetworkError("processes of another host have failed and are not restarted")
                if rendezvous.requested_round() > round.number:
                    self._stop()
                    return None
            time.sleep(self.options.monitor_interval)

    def _failures(self, round: Round) -> dict[int, ProcessFailure]:
        result = {}
        for i, worker in enumerate(self.workers):
            if worker.poll() not in (None, 0):
                path = self._error_file(i)
                path = path if os.path.exists(path) else ""
                result[round.first + i] = ProcessFailure(i, worker.pid, worker.returncode, path)
        return result

    # ---------------------------------------------------------------- processes

    def _error_file(self, i: int) -> str:
        return os.path.join(self._folder(i), "error.json")

    def _folder(self, i: int) -> str:
        return os.path.join(self.logs, self.options.rdzv_id, f"attempt_{self._attempt}", str(i))

    def _start(self, round: Round, restarts: int) -> None:
        self._attempt = restarts
        self.workers, self._pumps = [], []
        redirects, tee = by_rank(self.options.redirects, self.count), by_rank(self.options.tee, self.count)
        visible = {int(i) for i in str(self.options.local_ranks_filter or "").split(",") if i}
        for i in range(self.count):
            os.makedirs(self._folder(i), exist_ok=True)
            streams: dict[str, Any] = {}
            pumps = []
            for bit, name in ((1, "stdout"), (2, "stderr")):
                file = os.path.join(self._folder(i), f"{name}.log")
                if tee[i] & bit:
                    streams[name] = subprocess.PIPE
                    pumps.append((name, open(file, "wb")))  # noqa: SIM115 - the thread that writes it closes it
                elif redirects[i] & bit or (visible and i not in visible):
                    streams[name] = open(file, "wb")  # noqa: SIM115 - for the process
            worker = subprocess.Popen(self._command(), env=self._environment(round, i, restarts), **streams)
            for stream, log in pumps:
                self._pump(worker, stream, log, f"[{self.options.role}{i}]:")
            self.workers.append(worker)

    def _pump(self, worker: subprocess.Popen, name: str, file: IO[bytes], prefix: str) -> None:
        """Copies a process's output to a file, and to the terminal."""
        source, visible = getattr(worker, name), getattr(sys, name)

        def work() -> None:
            with file, source:
                for line in source:
                    file.write(line)
                    visible.write(prefix + line.decode(errors="replace"))
                    visible.flush()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self._pumps.append(thread)

    def _join_pumps(self) -> None:
        for thread in self._pumps:
            thread.join(5.0)

    def _command(self) -> Sequence[str]:
        options = self.options
        program = [options.training_script, *options.training_script_args]
        if options.no_python:
            return program
        python = [sys.executable, "-u", "-m", "compat"]
        return [*python, "-m", *program] if options.module else [*python, *program]

    def _environment(self, round: Round, i: int, restarts: int) -> dict[str, str]:
        rank, size = round.first + i, sum(round.counts)
        variables = {
            "LOCAL_RANK": 0 if self.options.virtual_local_rank else i, "RANK": rank, "GROUP_RANK": round.host,
            "ROLE_RANK": rank, "ROLE_NAME": self.options.role, "LOCAL_WORLD_SIZE": self.count, "WORLD_SIZE": size,
            "GROUP_WORLD_SIZE": len(round.counts), "ROLE_WORLD_SIZE": size, "MASTER_ADDR": round.address,
            "MASTER_PORT": round.port, "TORCHELASTIC_RESTART_COUNT": restarts,
            "TORCHELASTIC_MAX_RESTARTS": self.options.max_restarts, "TORCHELASTIC_RUN_ID": self.options.rdzv_id,
            "TORCHELASTIC_USE_AGENT_STORE": True, "TORCHELASTIC_ERROR_FILE": self._error_file(i),
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": 1,
        }  # fmt: skip
        result = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        if self.count > 1 and "OMP_NUM_THREADS" not in os.environ:
            result["OMP_NUM_THREADS"] = "1"
        return result

    def _stop(self) -> None:
        """Stops the processes: by SIGTERM, and by SIGKILL after the grace period."""
        running = [w for w in self.workers if w.poll() is None]
        for worker in running:
            worker.terminate()
        deadline = time.monotonic() + GRACE
        for worker in running:
            try:
                worker.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._join_pumps()


def _end(number: int, frame: FrameType | None) -> None:
    raise SignalReceived(number)


def _log(text: str) -> None:
    sys.stderr.write(f"torch.distributed.run: {text}\n")
