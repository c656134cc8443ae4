"""Two processes compared with one, with one core each, and the cost of communication; as ratios in one run.

    python -m benchmarks.scaling.processes [--rounds 5] [--python PATH]

Two processes connect, and in each round train a perceptron in three configurations: rank 0 alone while rank 1 waits,
both without exchanging gradients (``no_sync``), and both with ``DistributedDataParallel``. All three are measured in
the same processes, interleaved, so that other load affects all. Then the processes sum tensors of several sizes.
With ``--python`` the same program runs in an interpreter that has PyTorch.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

WIDTH, SAMPLES, STEPS = 512, 256, 12
SIZES = (64, 1 << 14, 1 << 20, 25 << 20)


def member(rank: int, address: str, rounds: int) -> None:
    """One of the two processes; rank 0 prints the measurements."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    layers = [torch.nn.Linear(WIDTH, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 768), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(768, 10))
    model = torch.nn.parallel.DistributedDataParallel(net)
    inputs, targets = torch.randn(SAMPLES, WIDTH), torch.randn(SAMPLES, 10)

    def steps(called: Any) -> float:
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        times = []
        for _ in range(STEPS):
            begun = time.perf_counter()
            optimizer.zero_grad()
            ((called(inputs) - targets) ** 2).mean().backward()
            optimizer.step()
            float(net[0].bias.detach()[0])  # wait for it
            times.append(time.perf_counter() - begun)
        return median(times[2:])

    def without() -> float:
        with model.no_sync():
            return steps(model)

    ways: dict[str, Callable[[], float]] = {
        "one": lambda: steps(net) if rank == 0 else 0.0, "apart": without, "both": lambda: steps(model),
    }  # fmt: skip
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            dist.barrier()
            took = way()
            if turn:  # the first one compiles
                found[name].append(took)
    sums = {size: summed(torch, dist, size) for size in SIZES}
    if rank == 0:
        report(sum(p.numel() for p in net.parameters()), {name: median(times) for name, times in found.items()}, sums)
    dist.destroy_process_group()


def summed(torch: Any, dist: Any, size: int) -> float:
    """The median time of summing tensors of a size over both processes."""
    x = torch.ones(size // 4)
    times = []
    for _ in range(22):
        dist.barrier()
        begun = time.perf_counter()
        dist.all_reduce(x)
        times.append(time.perf_counter() - begun)
    return median(times[2:])


def report(parameters: int, times: dict[str, float], sums: dict[int, float]) -> None:
    """Prints the measurements."""
    one, apart, both = (times[name] * 1e3 for name in ("one", "apart", "both"))
    print(f"{parameters / 1e6:.1f} million parameters, {SAMPLES} samples a process, one core each")
    print(f"one process       {one:6.1f} ms a step")
    print(f"two, no exchange  {apart:6.1f} ms a step, {2 * one / apart:.2f} times the samples of one in the same time")
    print(f"two               {both:6.1f} ms a step, {2 * one / both:.2f} times")
    print(f"exchanging        {both - apart:6.1f} ms a step")
    for size, took in sums.items():
        print(f"sum of {size:9d} bytes  {took * 1e3:8.3f} ms")


def main() -> None:
    """Starts both processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", help="an interpreter with PyTorch; by default this one with compat")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.rank is not None:
        member(chosen.rank, chosen.address, chosen.rounds)
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    command = [chosen.python] if chosen.python else [sys.executable, "-m", "compat"]
    given = [__file__, "--address", address, "--rounds", str(chosen.rounds), "--rank"]
    running = [subprocess.Popen([*command, *given, str(rank)]) for rank in range(2)]
    sys.exit(max(abs(process.wait()) for process in running))


if __name__ == "__main__":
    main()
