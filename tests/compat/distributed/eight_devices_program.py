"""A GPT of four layers on eight virtual devices: alone, by fully_shard, by tensor parallelism, by both."""

import sys

import pytest
from gpt import GPT, WHOLE, plan

import compat as torch
import compat.distributed.checkpoint as dcp
import compat.nn.functional as F
from compat import nn
from compat.distributed.fsdp import FSDPModule, fully_shard
from compat.distributed.tensor import DTensor, Partial, Shard, distribute_module, distribute_tensor, init_device_mesh
from compat.distributed.tensor.parallel import parallelize_module
from funcgrad import parallel, runtime


def divide(name, module, mesh):
    for key, p in list(module.named_parameters(recurse=False)):
        module.register_parameter(key, nn.Parameter(distribute_tensor(p.detach(), mesh, [Shard(0)])))


def divided(how):
    """The model, and the placements of the targets."""
    torch.manual_seed(0)
    model = GPT()
    if how == "fsdp":
        mesh = init_device_mesh("cpu", (8,), mesh_dim_names=("dp",))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model, mesh, [Shard(0)]
    if how == "tp":
        mesh = init_device_mesh("cpu", (8,), mesh_dim_names=("tp",))
        for path in ("ln", *[f"blocks.{i}.{name}" for i in range(4) for name in ("ln1", "ln2")]):
            distribute_module(model.get_submodule(path), mesh, divide)
        for block in model.blocks:  # row-wise layers, whose results are summed
            for layer in (block.o, block.down):
                layer.bias = nn.Parameter(distribute_tensor(layer.bias.detach(), mesh, [Shard(0)]))
        return parallelize_module(model, mesh, plan(False)), mesh, [WHOLE]
    if how == "both":
        mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
        parallelize_module(model, mesh["tp"], plan(True))
        return fully_shard(model, mesh=mesh["dp"]), mesh, [WHOLE, WHOLE]
    return model, None, None


def train(how, steps=4):
    model, mesh, placements = divided(how)
    data = torch.randint(0, 64, (steps, 16, 33), generator=torch.Generator().manual_seed(1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for batch in data:
        optimizer.zero_grad()
        targets = batch[:, 1:] if mesh is None else batch[:, 1:].redistribute(mesh, placements)
        loss = F.cross_entropy(model(batch[:, :-1]).reshape(-1, 64), targets.reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model, optimizer


def share(tensors):
    """The largest share of some tensors that a device holds."""
    held, total = {}, 0
    for t in tensors:
        buffer = runtime.ready(t._storage_.buffer)
        total += buffer.nbytes
        for part in buffer.addressable_shards:
            held[part.device] = held.get(part.device, 0) + part.data.nbytes
    assert len(held) == 8
    return max(held.values()) / total


parallel.virtual_devices(8)
if sys.argv[1] == "load":
    mesh = init_device_mesh("cpu", (4,))
    state = {"w": distribute_tensor(torch.zeros(8, 12), mesh, [Shard(1)]), "x": torch.zeros(3), "n": 0}
    dcp.load(state, checkpoint_id=sys.argv[2])
    assert state["w"].placements == (Shard(1),) and state["n"] == 7 and state["x"].tolist() == [1, 1, 1]
    assert torch.equal(state["w"].full_tensor(), torch.arange(96.0).view(8, 12))
    with pytest.raises(dcp.CheckpointException, match=r"tensor 'w' is of size \[8, 12\]"):
        dcp.load({"w": torch.zeros(3)}, checkpoint_id=sys.argv[2])
    sys.exit()

mesh = init_device_mesh("cpu", (8,))
w = distribute_tensor(torch.arange(96.0).view(8, 12), mesh, [Shard(0)])
dcp.save({"w": w, "x": torch.ones(3), "n": 7}, checkpoint_id=sys.argv[2])
assert isinstance(w + 1, DTensor) and (w + 1).placements == (Shard(0),) and w.to_local().shape == (1, 12)
assert torch.equal((w @ w.T).full_tensor(), torch.arange(96.0).view(8, 12) @ torch.arange(96.0).view(8, 12).T)
v = w.redistribute(placements=[WHOLE])
assert v.placements == (WHOLE,) and torch.equal(v.full_tensor(), w.full_tensor())
leaf = torch.ones(8, requires_grad=True)
(leaf.redistribute(mesh, [Shard(0)]) * 3).sum().backward()
assert leaf.grad.tolist() == [3] * 8
assert w.t().placements == (Shard(1),) and w.view(-1).placements == (Shard(0),)

# Shards of unequal length: the buffer is padded to equal ones.
whole = torch.arange(30.0).view(10, 3)
uneven = distribute_tensor(whole, mesh, [Shard(0)])
assert uneven.shape == (10, 3) and uneven.placements == (Shard(0),) and uneven.to_local().shape == (2, 3)
assert torch.equal((uneven @ uneven.t()).full_tensor(), whole @ whole.t())
for want in ([WHOLE], [Shard(1)]):
    moved = uneven.redistribute(placements=want)
    assert list(moved.placements) == want and torch.equal(moved.full_tensor(), whole)
    assert torch.equal(moved.redistribute(placements=[Shard(0)]).full_tensor(), whole)
parameter = nn.Parameter(uneven.detach())
adam = torch.optim.Adam([parameter], lr=0.1)
(parameter * parameter).sum().backward()
assert torch.equal(parameter.grad.full_tensor(), 2 * whole)
adam.step()
assert parameter.placements == (Shard(0),) and parameter.to_local().shape == (2, 3)

# Partial placements.
parts = [torch.full((8, 2), float(i), requires_grad=True) for i in range(8)]
total = DTensor.from_local(parts, mesh, [Partial()])
assert isinstance(total, DTensor) and total.placements == (Partial(),) and total.shape == (8, 2)
assert (
    total.to_local()[0, 0] == 0 and (total + 1).full_tensor()[0, 0] == 29 and not (total + 1).placements[0].is_partial()
)
added = total.redistribute(placements=[Shard(0)])
assert added.placements == (Shard(0),) and added.to_local().tolist() == [[28, 28]]
(added * torch.arange(8.0).view(8, 1).redistribute(mesh, [Shard(0)])).sum().backward()
assert all(p.grad[:, 0].tolist() == list(range(8)) for p in parts)
for kind, first in (("avg", 3.5), ("max", 7.0), ("min", 0.0)):
    assert DTensor.from_local(parts, mesh, [Partial(kind)]).full_tensor()[0, 0] == first
grid = init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "b"))
both = DTensor.from_local(parts, grid, [Partial(), Shard(0)])
assert both.shape == (32, 2) and both.full_tensor()[:, 0].tolist() == [i + 4.0 + i for i in range(4) for _ in range(8)]
with pytest.raises(RuntimeError, match="Can not redistribute to Partial"):
    w.redistribute(placements=[Partial()])

# What is written to a sharded tensor is sharded as it is.
for write in (torch.Tensor.zero_, nn.init.normal_, lambda t: t.copy_(whole[:8].repeat(1, 4)), lambda t: t.mul_(2)):
    assert write(w).placements == (Shard(0),), write
assert torch.equal(w.full_tensor(), 2 * whole[:8].repeat(1, 4))

# A module without memory is sharded first, then gets memory and values: those that it has on one device.
with torch.device("meta"):
    absent = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Linear(16, 6))
for layer in absent:
    fully_shard(layer, mesh=mesh)
fully_shard(absent, mesh=mesh)
shards = [p.placements for p in absent.parameters()]
assert all(p.is_meta and isinstance(p, DTensor) for p in absent.parameters()) and shards[0] == (Shard(0),)
assert [p.placements for p in absent.state_dict().values() if p.dim()] == [
    *shards[:4], (WHOLE,), (WHOLE,), *shards[4:],
]  # fmt: skip
absent.to_empty(device="cpu")
assert [p.placements for p in absent.parameters()] == shards and absent[1].running_mean.placements == (WHOLE,)
present = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Linear(16, 6))
for made in (absent, present):
    torch.manual_seed(0)
    for layer in made:
        layer.reset_parameters()
assert [p.placements for p in absent.parameters()] == shards
assert all(torch.equal(p.full_tensor(), q) for p, q in zip(absent.parameters(), present.parameters()))
x = torch.randn(8, 4)
assert torch.allclose(absent(x).full_tensor(), present(x), atol=1e-6)

alone, _, _ = train("alone")
for how, most in (("fsdp", 1 / 8), ("tp", 1 / 8), ("both", 0.17)):
    losses, model, optimizer = train(how)
    assert max(abs(a - b) for a, b in zip(alone, losses)) < 1e-5, (how, alone, losses)
    params = list(model.parameters())
    moments = [t for s in optimizer.state.values() for k, t in s.items() if k != "step"]
    shares = [share(ts) for ts in (params, [p.grad for p in params], moments)]
    assert max(shares) <= most, (how, shares)
    assert isinstance(model, FSDPModule) == (how != "tp")
    print(how, [f"{s:.4f}" for s in shares], max(abs(a - b) for a, b in zip(alone, losses)))
print("done")
