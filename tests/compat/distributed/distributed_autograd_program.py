"""Gradients of computations over two workers, compared with those of the same computation in one process."""

import sys

import pytest

import compat as torch
import compat.distributed as dist
import compat.distributed.autograd as dist_autograd
import compat.distributed.rpc as rpc
from compat import nn
from compat.distributed.nn import RemoteModule
from compat.distributed.optim import DistributedOptimizer
from compat.nn.parallel import DistributedDataParallel

r, n = int(sys.argv[1]), int(sys.argv[2])
net = nn.Linear(3, 2)


def weights(seed: int) -> nn.Linear:
    layer, generator = nn.Linear(3, 3), torch.Generator().manual_seed(seed)  # threads of a worker share the default one
    with torch.no_grad():
        for p in layer.parameters():
            p.uniform_(-0.5, 0.5, generator=generator)
    return layer


def same(x):  # type: ignore[no-untyped-def]
    return x


def through(x):  # type: ignore[no-untyped-def]
    """Back to the caller, and from there to here again: gradients cross four times."""
    return rpc.rpc_sync("w0", same, args=(x * 2,)) * x


def two(x, y):  # type: ignore[no-untyped-def]
    return x * 2, y * 3


def parameters(module: rpc.RRef) -> list[rpc.RRef]:
    return [rpc.RRef(p) for p in module.local_value().parameters()]


def gradients(context_id: int) -> list:
    return list(dist_autograd.get_gradients(context_id).values())


def fail_backward(x):  # type: ignore[no-untyped-def]
    y = x * 1
    y.register_hook(lambda grad: 1 / 0)
    return y


def both_directions() -> None:
    x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    with dist_autograd.context() as context_id:
        loss = (rpc.rpc_sync("w1", through, args=(x * y,)) + x).sum()
        assert loss.grad_fn.next_functions[0][0].next_functions[0][0].name() == "RecvRpcBackward"
        dist_autograd.backward(context_id, [loss])
        found = dist_autograd.get_gradients(context_id)
    # loss = 2 (x y)^2 + x
    assert found[x].tolist() == [4 * 9 + 1, 4 * 2 * 16 + 1] and found[y].tolist() == [4 * 3, 4 * 4 * 4]
    assert x.grad is None
    with pytest.raises(RuntimeError, match="Could not find autograd context with id"):
        dist_autograd.get_gradients(context_id)


def unused_results() -> None:
    """A result that the loss does not use, and an operand whose other user does not lead to it."""
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with dist_autograd.context() as context_id:
        h = x * 3
        rpc.rpc_sync("w1", same, args=(h,))
        used, _ = rpc.rpc_sync("w1", two, args=(h, y))
        dist_autograd.backward(context_id, [used.sum(), h.sum()], retain_graph=True)
        found = dist_autograd.get_gradients(context_id)
        assert found[x].tolist() == [9, 9] and found[y].tolist() == [0, 0]
        dist_autograd.backward(context_id, [h.sum()])  # accumulates
        assert dist_autograd.get_gradients(context_id)[x].tolist() == [12, 12]


def training() -> None:
    """A module here, two there, and an optimizer for all; the losses are those of one process."""
    local, inner, last = weights(0), weights(1), weights(2)
    one = nn.Sequential(local, nn.Tanh(), inner, last)
    expected, found = [], []
    inputs = torch.arange(12.0).reshape(4, 3) / 10
    alone = torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        alone.zero_grad()
        loss = (one(inputs) ** 2).mean()
        loss.backward()
        alone.step()
        expected.append(loss.item())
    mine, theirs = weights(0), rpc.remote("w1", weights, args=(1,))
    module = RemoteModule("w1/cpu", weights_module, args=(2,))
    rrefs = [rpc.RRef(p) for p in mine.parameters()] + rpc.rpc_sync("w1", parameters, args=(theirs,))
    optimizer = DistributedOptimizer(torch.optim.SGD, rrefs + module.remote_parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        with dist_autograd.context() as context_id:
            hidden = theirs.remote().forward(torch.tanh(mine(inputs)))
            loss = (module(hidden.to_here()) ** 2).mean()
            dist_autograd.backward(context_id, [loss])
            assert len(dist_autograd.get_gradients(context_id)) == 2
            assert len(rpc.rpc_sync("w1", gradients, args=(context_id,))) == 4
            optimizer.step(context_id)
        found.append(loss.item())
    assert found == pytest.approx(expected, rel=1e-5)  # float32, four steps
    assert mine.weight.grad is None
    with pytest.raises(ValueError, match="Method ``parameters`` not supported for RemoteModule"):
        module.parameters()
    assert rpc.rpc_sync("w1", len, args=(rpc.rpc_sync("w1", RemoteModule.remote_parameters, args=(module,)),)) == 2


def weights_module(seed: int) -> nn.Module:
    return weights(seed)


def errors() -> None:
    x = torch.ones(2, requires_grad=True)
    with dist_autograd.context() as context_id:
        with pytest.raises(RuntimeError, match="Already have an autograd context id for this thread"):
            dist_autograd.context().__enter__()
        with pytest.raises(RuntimeError, match="No tensors provided"):
            dist_autograd.backward(context_id, [])
        with pytest.raises(RuntimeError, match="requires_grad not set on root"):
            dist_autograd.backward(context_id, [torch.ones(())])
        with pytest.raises(RuntimeError, match="is not a scalar"):
            dist_autograd.backward(context_id, [x])
        with pytest.raises(RuntimeError, match="Could not find autograd context"):
            dist_autograd.backward(12345, [x.sum()])
        loss = rpc.rpc_sync("w1", fail_backward, args=(x,)).sum()
        with pytest.raises(ZeroDivisionError, match="On WorkerInfo"):
            dist_autograd.backward(context_id, [loss])


def data_parallel_loss(scale: float) -> list:
    """Both workers, in one context each: gradients of the module are averaged in the context."""
    model = DistributedDataParallel(net)
    x = torch.ones(1, 3) * scale
    with dist_autograd.context() as context_id:
        y = rpc.rpc_sync(f"w{1 - r}", same, args=(x,))
        dist_autograd.backward(context_id, [model(y).sum()])
        found = dist_autograd.get_gradients(context_id)
        assert net.weight.grad is None
        return [found[net.weight][0, 0].item(), found[net.bias][0].item()]


with pytest.raises(RuntimeError, match="Need to initialize distributed autograd"):
    dist_autograd.context().__enter__()
options = rpc.TensorPipeRpcBackendOptions(init_method=sys.argv[3])
dist.init_process_group("gloo", init_method=sys.argv[3], rank=r, world_size=n)
rpc.init_rpc(f"w{r}", rank=r, world_size=n, rpc_backend_options=options)
if r == 0:
    both_directions()
    unused_results()
    training()
    errors()
    other = rpc.rpc_async("w1", data_parallel_loss, args=(3.0,))
    assert data_parallel_loss(1.0) == other.wait() == [2.0, 1.0]
rpc.shutdown()
dist.destroy_process_group()
print("done")
