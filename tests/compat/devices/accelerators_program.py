"""Tensors on accelerators, tested on the CPU as four virtual devices, which use the same code path of JAX."""

import io
import pickle
from unittest import mock

import jax
import pytest

import compat as torch
import compat.nn.functional as F
import funcgrad as fg
from compat import nn
from funcgrad import runtime


def held_by(t):
    """The devices that a tensor's memory is on."""
    return runtime.ready(t._storage_.buffer).devices()


devices = jax.devices()
assert len(devices) == 4

# ---------------------------------------------------------------- making and moving

a = torch.ones(3, device="xla:3")
assert repr(a) == "tensor([1., 1., 1.], device='xla:3')" and a.is_xla and not a.is_cuda and a.get_device() == 3
assert held_by(a) == held_by(a * 2 + 1) == {devices[3]} and (a * 2).device == torch.device("xla", 3)
x = torch.arange(6.0).reshape(2, 3)
y = x.to("xla:2")
assert y.device == (y @ y.T).device == y.t().device == torch.device("xla:2") and torch.equal(y.cpu(), x)
assert torch.cat([y, y]).device == torch.zeros_like(y).device == y.new_ones(2).device == y.device
assert [t.device.index for t in (torch.randn(2, device=a.device), torch.tensor([1, 2], device="xla:1"))] == [3, 1]
with torch.device("xla:1"):
    assert torch.zeros(2).device.index == 1
assert (y + torch.tensor(2.0)).device == y.device, "a number of the CPU goes along"
torch.accelerator.set_device_index(1)
assert torch.accelerator.current_accelerator() == torch.device("xla") and torch.accelerator.current_device_index() == 1
assert x.to(3).device.index == 3 and x.to(2, torch.float64).device == y.device and x.to(True).device.type == "cpu"
torch.accelerator.set_device_index(0)
i = torch.tensor([1, 0])
assert torch.equal(y[i].cpu(), x[i]) and y[i].device == y.device
a[0] = 5
a[1:] += 1
assert a.tolist() == [5, 2, 2] and a.cpu().device.type == "cpu" and held_by(a) == {devices[3]}
with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"):
    y + x
with pytest.raises(TypeError, match=r"can't convert xla:2 device type tensor to numpy"):
    y.numpy()
with pytest.raises(RuntimeError, match=r"there is no device 'xla:9': the devices of type 'xla' are xla:0 to xla:3"):
    torch.zeros(1, device="xla:9")
w = torch.zeros(2, 3)
assert w.copy_(y).device.type == "cpu" and torch.equal(w, x) and torch.equal(y.copy_(x + 1).cpu(), x + 1)

# ---------------------------------------------------------------- gradients, transforms, files

z = x.clone().requires_grad_()
(z.to("xla:1") * 3).sum().backward()
assert z.grad.device.type == "cpu" and torch.equal(z.grad, torch.full((2, 3), 3.0)), "a gradient comes back"
v = torch.ones(3, device="xla:2")
assert torch.equal(fg.grad(lambda t: (t * v).sum())(y).cpu(), torch.ones(2, 3))
assert fg.vmap(lambda row: (row * v).sum())(y).device == fg.jit(lambda t: t * v)(y).device == y.device
assert torch.func.grad(lambda t: (t * v).sum())(y).device == y.device
file = io.BytesIO()
torch.save({"y": y}, file)
for place, want in ((None, "xla:2"), ("cpu", "cpu"), ({"xla:2": "xla:1"}, "xla:1")):
    file.seek(0)
    found = torch.load(file, map_location=place)["y"]
    assert str(found.device) == want and torch.equal(found.cpu(), y.cpu())
assert pickle.loads(pickle.dumps(y)).device == y.device

# ---------------------------------------------------------------- two models on two devices

torch.manual_seed(0)
here = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
there = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to("xla:3")
there.load_state_dict(here.state_dict())
inputs, targets = torch.randn(32, 8), torch.randn(32, 1)
optimizers = [torch.optim.Adam(m.parameters()) for m in (here, there)]
for _ in range(12):
    losses = []
    for model, optimizer, place in zip((here, there), optimizers, ("cpu", "xla:3")):
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs.to(place)), targets.to(place))
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert losses[0].item() == losses[1].item() and [str(t.device) for t in losses] == ["cpu", "xla:3"]

# ---------------------------------------------------------------- what does not change is copied to a device once


def step():
    optimizers[1].zero_grad()
    loss = F.mse_loss(there(moved_inputs), moved_targets)
    loss.backward()
    optimizers[1].step()
    return loss


moved_inputs, moved_targets = inputs.to("xla:3"), targets.to("xla:3")
compiled = torch.compile(step)
for run in (step, compiled):
    for _ in range(12):
        run().item()
        torch.runtime.synchronize()
    with mock.patch.object(jax, "device_put", wraps=jax.device_put) as put:
        for _ in range(3):
            run().item()
    assert not put.called, "the gradient of the loss, the learning rate"
    assert all(held_by(p) == {devices[3]} for p in there.parameters())
assert torch.ones(2, device="xla:3")._storage_.buffer is torch.ones(2, device="xla:3")._storage_.buffer
assert torch.ones(2, device="xla:3").add_(1).tolist() == [2, 2] and torch.ones(2, device="xla:3").tolist() == [1, 1]
big = torch.rand(1000, device="xla:3")
for _ in range(12):
    before = runtime.stats.bytes_out
    (big.exp() + 1).tanh().sum().item()
    torch.runtime.synchronize()
assert runtime.stats.bytes_out - before == 4, "only the result is computed for others than the program"
p = torch.zeros(2, device="xla:3", requires_grad=True)
descent = torch.optim.SGD([p], lr=1)
for i in range(30):
    descent.param_groups[0]["lr"] = 2.0 ** -(i % 3)
    descent.zero_grad()
    p.sum().backward()
    descent.step()
    torch.runtime.synchronize()
assert p.tolist() == [-10 * 1.75] * 2, "a number that changes is copied again"
places = ["xla:1", "cpu", "xla:2"]
several = [torch.zeros(2, device=place, requires_grad=True) for place in places]
for _ in range(30):
    for q in several:
        q.sum().backward()
        with torch.no_grad():
            q -= 0.5 * q.grad
        q.grad = None
        torch.runtime.synchronize()
for q, place in zip(several, places):
    assert q.tolist() == [-15, -15] and held_by(q) == {devices[torch.device(place).index or 0]}

before = [id(p) for p in there.parameters()]
assert [id(p) for p in there.to("xla:1").parameters()] == before, "so an optimizer made before goes on"
assert all(held_by(p) == held_by(p.grad) == {devices[1]} for p in there.parameters())
optimizer, weight = torch.optim.SGD(there.parameters(), lr=0.1), there[0].weight.cpu()
there.to("xla:3")(inputs.to("xla:3")).sum().backward()
optimizer.step()
assert not torch.equal(weight, there[0].weight.cpu()) and there[0].weight.device.index == 3
with pytest.raises(RuntimeError, match="have incompatible tensor type"):
    weight.data = torch.empty(2, device="meta")
moments = [t for s in optimizers[1].state.values() for k, t in s.items() if k != "step"]
assert all(held_by(t) == {devices[3]} for t in [*there.parameters(), *moments])
assert all(held_by(p) == {devices[0]} and not runtime.ready(p._storage_.buffer).committed for p in here.parameters())
assert torch.compile(there)(inputs.to("xla:3")).device.index == 3

# ---------------------------------------------------------------- torch.cuda, as if these were GPUs

assert not torch.cuda.is_available() and torch.accelerator.device_count() == 4
runtime.accelerators = lambda kind: devices
assert torch.cuda.is_available() and torch.cuda.device_count() == 4 and torch.cuda.get_device_name() == "cpu"
before = torch.cuda.memory_allocated()
big = torch.ones(1000, 1000, device="cuda")
assert big.is_cuda and big.device == torch.device("cuda", 0) and torch.cuda.memory_allocated() == before + big.nbytes
assert torch.cuda.max_memory_allocated() >= big.nbytes and torch.cuda.memory_stats()["allocated_bytes.all.current"]
assert big.cuda() is big and big.cuda(1).device.index == 1
torch.cuda.set_device(2)
assert torch.ones(1).cuda().device.index == torch.cuda.current_device() == 2
with torch.cuda.device(1):
    assert torch.ones(1, device="cuda").device.index == 1
with pytest.raises(RuntimeError, match="does not say how much memory it may use"):
    torch.cuda.mem_get_info()
stream, events = torch.cuda.Stream(), [torch.cuda.Event(enable_timing=True) for _ in range(2)]
events[0].record()
with torch.cuda.stream(stream):
    product = big @ big
events[1].record(stream)
assert 0 < events[0].elapsed_time(events[1]) < 60000 and stream.query()
model, scaler = nn.Linear(4, 4).cuda(), torch.amp.GradScaler("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(torch.ones(2, 4, device="cuda"))
        assert out.dtype == torch.bfloat16 and (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    optimizer.zero_grad()
    scaler.scale(out.float().pow(2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
assert model.weight.device == model.weight.grad.device == torch.device("cuda:2")
assert torch.accelerator.current_accelerator() == torch.device("cuda") and torch.device(1) == torch.device("cuda:1")
assert torch.get_device_module() is torch.cuda
print("done")
