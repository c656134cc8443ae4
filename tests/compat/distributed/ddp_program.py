"""Losses of a module under DistributedDataParallel, or alone with the joined batch."""

import sys

import pytest

import compat as torch
import compat.distributed as dist
from compat import nn
from compat.distributed.algorithms.ddp_comm_hooks import default_hooks
from compat.nn.parallel import DistributedDataParallel

r, n = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method=sys.argv[3], rank=r, world_size=n)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(20, 300), nn.Linear(300, 900), nn.Linear(900, 5)
        self.unused, self.sometimes = nn.Linear(3, 3), nn.Linear(20, 5)
        self.register_buffer("seen", torch.full((1,), float(r)))

    def forward(self, x, part=0):  # type: ignore[no-untyped-def]
        y = self.c(torch.relu(self.b(torch.relu(self.a(x)))))
        return y + self.sometimes(x) if part == 0 else y


torch.manual_seed(0)
net = Net()
model = DistributedDataParallel(net, bucket_cap_mb=0.5, find_unused_parameters=True)
assert len(model.reducer.buckets) == 2 and net.seen.item() == 0 and next(iter(model.state_dict())).startswith("module.")
inputs, targets = torch.randn(6, 16, 20), torch.randn(6, 16, 5)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)


called = model if n == 2 else net


def loss_of(step, ranks):  # type: ignore[no-untyped-def]
    found = []
    for k in ranks:
        rows = slice(k * 8, (k + 1) * 8)
        part = k if step == 3 else 0  # in one step the second half leaves a layer out
        found.append(((called(inputs[step, rows], part) - targets[step, rows]) ** 2).mean())
    return sum(found) / len(found)


losses = []
for step in range(6):
    optimizer.zero_grad()
    loss = loss_of(step, [r] if n == 2 else [0, 1])
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    losses.append(mean.item())
assert net.unused.weight.grad is None
print("losses", losses)

if n == 2:
    model.zero_grad()
    with model.no_sync():
        model(inputs[0, r * 8 : r * 8 + 8]).sum().backward()
    mine = net.a.weight.grad.clone()
    model(inputs[1, r * 8 : r * 8 + 8]).sum().backward()
    both = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(both, net.a.weight.grad)
    assert torch.equal(*both) and not torch.equal(mine, both[0])

    strict = DistributedDataParallel(Net())
    strict(inputs[0]).sum().backward()
    with pytest.raises(RuntimeError, match=r"(?s)find_unused_parameters=True.*unused\.weight"):
        strict(inputs[0])

    small = DistributedDataParallel(nn.Linear(4, 2))
    small.register_comm_hook(None, default_hooks.bf16_compress_hook)
    small(torch.full((1, 4), r + 1.0)).sum().backward()
    assert small.module.weight.grad.tolist() == [[1.5] * 4] * 2
dist.destroy_process_group()
