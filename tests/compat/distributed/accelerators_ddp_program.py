"""A program for accelerators under DistributedDataParallel: the CPU as two devices, and a process for each of them."""

import sys

import pytest

import compat as torch
import compat.distributed as dist
from compat import nn
from compat.nn.parallel import DistributedDataParallel

r, n = int(sys.argv[1]), int(sys.argv[2])
assert torch.accelerator.is_available() and torch.accelerator.device_count() == 2
kind = torch.accelerator.current_accelerator()
torch.accelerator.set_device_index(r)
backend = dist.get_default_backend_for_device(kind)
dist.init_process_group(backend, init_method=sys.argv[3], rank=r, world_size=n)
here = torch.device("xla", r)

torch.manual_seed(0)
inputs, targets = torch.randn(3, 8, 6), torch.randn(3, 8, 2)
torch.manual_seed(r)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).to(r)
model = DistributedDataParallel(net, device_ids=[r])  # begins with rank 0's parameters
assert model.device_ids == [r] and model.device_type == "xla" and all(p.device == here for p in net.parameters())
alone = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
alone.load_state_dict({name: p.cpu() for name, p in net.state_dict().items()})
optimizers = [torch.optim.Adam(m.parameters(), lr=0.1) for m in (model, alone)]
for x, y in zip(inputs, targets):
    for optimizer in optimizers:
        optimizer.zero_grad()
    rows = slice(r * 4, r * 4 + 4)
    loss = ((model(x[rows]) - y[rows].to(r)) ** 2).mean()  # arguments are put on the device
    loss.backward()
    joined = ((alone(x) - y) ** 2).mean()
    joined.backward()
    assert loss.device == here and net[0].weight.grad.device == here
    dist.all_reduce(mean := loss.detach().clone(), dist.ReduceOp.AVG)
    assert mean.device == here and abs(mean.item() - joined.item()) < 1e-5, (mean, joined)
    for optimizer in optimizers:
        optimizer.step()

with pytest.raises(ValueError, match="device_ids can only be None or contain a single element"):
    DistributedDataParallel(net, device_ids=[0, 1])
with pytest.raises(
    ValueError, match=r"only work with single-device/multiple-device GPU modules .* got device_ids \[0\]"
):
    DistributedDataParallel(alone, device_ids=[0])
with pytest.raises(ValueError, match="must be on the same type of devices"):
    DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).to(r)))
dist.destroy_process_group()
print("done")
