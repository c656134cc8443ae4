"""Collectives in a training step of a GPT on eight devices: counted in the compiled HLO, and computed by hand."""

import os
import sys
from collections import Counter
from pathlib import Path

from gpt import GPT, WHOLE, plan

import compat as torch
import compat.nn.functional as F
from compat import runtime
from compat.distributed.fsdp import fully_shard
from compat.distributed.tensor import Shard, distribute_module, init_device_mesh
from compat.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from funcgrad import parallel

how, dump = sys.argv[1], Path(sys.argv[2])
BATCH, LENGTH, WIDTH = 16, 32, 64
parallel.virtual_devices(8)
mesh = init_device_mesh("cpu", (8,))
torch.manual_seed(0)
model = GPT(d=WIDTH, t=LENGTH)
match how:
    case "data":
        distribute_module(model, mesh)
    case "sharded":
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    case "tensor":
        parallelize_module(model, mesh, plan(False))
placements = [WHOLE if how == "tensor" else Shard(0)]
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def step(batch):
    inputs, targets = (x.redistribute(mesh, placements) for x in (batch[:, :-1], batch[:, 1:]))
    optimizer.zero_grad()
    loss = F.cross_entropy(model(inputs).reshape(-1, 64), targets.reshape(-1))
    loss.backward()
    optimizer.step()
    return loss.item()


for _ in range(3):
    step(torch.randint(0, 64, (BATCH, LENGTH + 1)))
    runtime.synchronize()
runtime.reset_stats()
step(torch.randint(0, 64, (BATCH, LENGTH + 1)))
stats = runtime.stats()
assert (stats["windows"], stats["hits"], stats["one_by_one"]) == (1, 1, 0), stats  # the step is one program
found: dict[str, Counter] = {}
compiled = max(dump.glob("*after_optimizations.txt"), key=os.path.getsize)
for exchange in parallel.collectives(compiled.read_text()):
    assert exchange.devices == 8 and exchange.bounded
    found.setdefault(exchange.kind, Counter())[exchange.bytes] += exchange.count

parameters = Counter(p.nbytes for p in model.parameters())
scalars = Counter({4: 2})  # the loss, and the number of targets that it averages
activation, positions = BATCH * LENGTH * WIDTH * 4, model.pos.weight.nbytes
if how == "data":  # each gradient is summed once
    wanted = {"all-reduce": parameters + scalars}
elif how == "sharded":  # and each parameter gathered once; XLA looks the few positions up in shards and sums them
    wanted = {
        "all-reduce": parameters + scalars + Counter([positions]), "all-gather": parameters - Counter([positions]),
    }  # fmt: skip
else:
    # A row-wise layer sums its results; a column-wise one, except an embedding, its arguments' gradients.
    styles = {path: style for path, style in plan(False).items() if path not in ("tok", "pos")}
    layers = {path: len(model.blocks) if "*" in path else 1 for path in styles}
    sums = sum(layers[path] for path, style in styles.items() if isinstance(style, ColwiseParallel | RowwiseParallel))
    # Results that must be replicated: those of the embeddings and of the head, as long as the activations.
    wanted = {"all-reduce": Counter({activation: sums}), "all-gather": Counter([activation, activation, positions])}
assert found == wanted, (found, wanted)
print("done")
