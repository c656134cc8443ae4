"""Processes that exchange tensors, train together, and fail."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import compat as torch
import compat.distributed as dist
from compat.distributed.distributed_c10d import DistStoreError
from tests.compat.distributed.launching import HERE, environment, free_port, run_processes, run_python


def test_stores(tmp_path: Path) -> None:
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    client = dist.TCPStore("127.0.0.1", server.port, wait_for_workers=False)
    for one, other in (
        (server, client),
        (dist.FileStore(str(tmp_path / "f"), 2), dist.FileStore(str(tmp_path / "f"), 2)),
        (below := dist.HashStore(), below),
    ):
        one.set("a", "1")
        assert other.get("a") == b"1" and other.check(["a"]) and not other.check(["a", "b"])
        assert [one.add("n", 2), other.add("n", 3), one.add("n", -1)] == [2, 5, 4]
        assert one.compare_set("c", "", "x") == b"x" and other.compare_set("c", "no", "y") == b"x"
        assert other.compare_set("c", "x", "y") == b"y" and one.delete_key("c") and not one.check(["c"])
        one.append("a", b"2")
        assert dist.PrefixStore("p", one).add("a", 1) == 1 and other.get("p/a") == b"1" and other.get("a") == b"12"
        with pytest.raises(DistStoreError, match="wait timeout after 50ms, keys: absent"):
            other.wait(["a", "absent"], timedelta(milliseconds=50))


def test_one_process() -> None:
    for text, error in (("nccl", RuntimeError), ("mpi", RuntimeError), ("no", ValueError)):
        with pytest.raises(error, match=r"NCCL|MPI|Unknown backend"):
            dist.init_process_group(text, store=dist.HashStore(), rank=0, world_size=1)
    dist.init_process_group("cpu:gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        x = torch.ones(2)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        assert x.tolist() == [1, 1] and dist.get_backend() == "gloo"
        with pytest.raises(TypeError, match=r"Expected parameter `tensor` of type torch\.Tensor"):
            dist.all_reduce([1])
        with pytest.raises(ValueError, match="tensors with different dtypes"):
            dist.all_gather([torch.ones(2)], torch.ones(2, dtype=torch.int64))
        with pytest.raises(RuntimeError, match="sparse"):
            dist.all_reduce(torch.ones(2).to_sparse())
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("count", [2, 3])
def test_exchanges(count: int, tmp_path: Path) -> None:
    address = f"file://{tmp_path / 'store'}" if count == 3 else ""
    for status, text in run_processes("exchanges_program.py", count, address=address):
        assert status == 0 and "done" in text, text
    assert not (tmp_path / "store").exists()


TOLD = {
    "killed": r"rank 2 \(process \d+ on .*\) has ended: it closed its connection",
    "raises": r"rank 2 \(process \d+ on .*\) has ended with KeyError: 'oops'",
    "late": r"timed out after 8 seconds .*rank 2 \(process \d+ on .*\) (has not called it|does not answer)",
    # the first rank that detects it reports it
    "shape": r"(rank 2 has sent 20 bytes where \d+|rank \d has sent \d+ bytes where 20) were expected: the tensors'",
    "absent": r"init_process_group: rank 0 .* of 3 processes rank 2 did not come",
}


@pytest.mark.parametrize("how", TOLD)
def test_missing_ranks_are_named(how: str) -> None:
    outputs = run_processes("failures_program.py", 3, how)
    told = [text for _, text in outputs[:2]]
    assert all("rank 2" in text for text in told), told
    assert any(re.search(TOLD[how], text) for text in told), told


def test_data_parallel_losses_are_those_of_the_joined_batch() -> None:
    found = []
    for count in (1, 2):
        outputs = run_processes("ddp_program.py", count)
        assert all(status == 0 for status, _ in outputs), outputs
        lines = [line for line in outputs[0][1].splitlines() if line.startswith("losses")]
        found.append(ast.literal_eval(lines[0].removeprefix("losses")))
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    # PyTorch's results with gloo for the same program and seed
    assert found[1] == pytest.approx(GLOO, abs=1e-4)


def test_data_parallel_on_accelerators() -> None:
    for status, text in run_processes("accelerators_ddp_program.py", 2, devices=2):
        assert status == 0 and "done" in text, text


GLOO = [1.478468, 4.940245, 1.797784, 1.2713, 2.246125, 1.279634]


def test_the_launcher_starts_processes_again() -> None:
    run = ("-m", "compat.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}")
    status, text = run_python(*run, "--max-restarts", "1", "launched_program.py", "die")
    assert status == 0, text
    lines = {line for line in text.splitlines() if line.startswith("process")}  # may be ended before
    assert lines >= {"process 1 1 2 0 1 die", "process 0 0 2 1 1 die", "process 1 1 2 1 1 die"}, text
    under_torch = ("-m", "compat", "-m", "torch.distributed.run", *run[2:])
    status, text = run_python(*under_torch, "launched_program.py", "die")
    assert status == 1 and "rank      : 1 (local_rank: 1)" in text.split("Root Cause")[1] and "SIGKILL" in text, text


def test_agents_on_two_hosts_start_one_group() -> None:
    port = free_port()
    start = lambda rank: subprocess.Popen(
        [sys.executable, "-m", "compat.distributed.run", "--nnodes=2", f"--node-rank={rank}", f"--master-port={port}",
         "launched_program.py"], env=environment(), cwd=HERE, text=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    agents = [start(1), start(0)]
    outputs = [agent.communicate(timeout=240)[0] for agent in agents]
    assert sorted(outputs) == ["process 0 0 2 0 1\n", "process 1 0 2 0 1\n"]
