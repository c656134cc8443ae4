# packages: tensordict
"""Dictionaries of tensors, stacked, indexed and given to modules."""

import torch
from harness import report
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential

torch.manual_seed(0)
d = TensorDict({"a": torch.randn(4, 3), "b": {"c": torch.arange(4)}}, batch_size=[4])
report("parts", [d[1:3]["a"], d["b", "c"], d.reshape(2, 2)["a"]])
report("stacked", torch.stack([d, d], 0)["a"])
report("arithmetic", (d.select("a") * 2 + 1)["a"])
net = TensorDictSequential(
    TensorDictModule(torch.nn.Linear(3, 5), in_keys=["a"], out_keys=["h"]),
    TensorDictModule(torch.nn.Tanh(), in_keys=["h"], out_keys=["out"]),
)
out = net(d)["out"]
out.sum().backward()
report("module", [out, net[0].module.weight.grad])
parameters = TensorDict.from_module(torch.nn.Linear(3, 2))
report("parameters", parameters["weight"].detach())
report("vmap", torch.vmap(lambda d: d.apply(torch.sin))(d.select("a"))["a"])
ensemble = TensorDict.from_modules(torch.nn.Linear(3, 2), torch.nn.Linear(3, 2), as_module=True)
shape = torch.nn.Linear(3, 2, device="meta")


def call(p, x):
    with p.to_module(shape):
        return shape(x)


several = torch.vmap(call, (0, None))(ensemble, d["a"])
several.sum().backward()
report("ensemble", [several, *[p.grad for p in ensemble.parameters()]])
