"""Placements of operators' results on two devices, compared with PyTorch 2.13 (two processes with gloo)."""

import compat as torch
import compat.nn.functional as F
from compat.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from funcgrad.parallel import virtual_devices

virtual_devices(2)
mesh = init_device_mesh("cpu", (2,))


def d(*size, to=None):
    """A tensor sharded along a dimension, or replicated."""
    t = torch.randn(*size) if to != "int" else torch.randint(0, 4, size)
    return lambda dim: distribute_tensor(t, mesh, [Replicate() if dim is None else Shard(dim)])


x, w, v, bias, table = d(4, 6), d(6, 8), d(8, 6), d(8), d(4, 6)
batch, other, words = d(2, 4, 6), d(2, 6, 8), d(2, 3, to="int")

# "P" is Partial in PyTorch: a summand, maximum or product on each device. Here XLA reduces within the operator.
FOUND_IN_PYTORCH = {
    "R": [lambda s: x(s(0)).var(0), lambda s: (x(s(1)) @ w(s(0))).relu()],
    "P": [
        lambda s: x(s(1)) @ w(s(0)), lambda s: x(s(1)) @ w(None), lambda s: x(None) @ w(s(0)),
        lambda s: torch.addmm(bias(None), x(s(1)), w(s(0))), lambda s: F.linear(x(s(1)), v(s(1))),
        lambda s: F.linear(x(s(1)), v(s(1)), bias(None)), lambda s: F.linear(batch(s(2)), v(s(1))),
        lambda s: torch.bmm(batch(s(2)), other(s(1))), lambda s: x(s(0)).sum(), lambda s: x(s(0)).sum(0),
        lambda s: x(s(0)).sum(0, keepdim=True), lambda s: x(s(0)).mean(), lambda s: x(s(0)).mean(0),
        lambda s: x(s(0)).max(), lambda s: x(s(0)).amax(0), lambda s: x(s(0)).prod(), lambda s: x(s(0)).norm(),
        lambda s: F.embedding(words(None), table(s(0))), lambda s: (x(s(1)) @ w(s(0))) * 2,
        lambda s: (x(s(1)) @ w(s(0))).t(), lambda s: (x(s(1)) @ w(s(0))).view(-1),
    ],
    "S0": [
        lambda s: x(s(0)) @ w(None), lambda s: x(s(0)) @ w(s(0)), lambda s: x(s(0)).sum(1),
        lambda s: x(s(0)).softmax(1), lambda s: F.embedding(words(s(0)), table(None)),
        lambda s: F.layer_norm(x(s(0)), (6,)), lambda s: x(s(0)) + x(s(1)), lambda s: x(s(0)) + x(None),
    ],
    "S1": [
        lambda s: x(None) @ w(s(1)), lambda s: x(s(0)) @ w(s(1)), lambda s: F.linear(x(None), v(s(0)), bias(s(0))),
        lambda s: x(s(0)).t(),
    ],
    "S2": [lambda s: F.embedding(words(None), table(s(1)))],
}  # fmt: skip
here = {"R": Replicate(), "P": Replicate(), "S0": Shard(0), "S1": Shard(1), "S2": Shard(2)}
for kind, calls in FOUND_IN_PYTORCH.items():
    for i, call in enumerate(calls):
        y = call(lambda dim: dim)
        assert y.placements == (here[kind],), (kind, i, y.placements)
        torch.testing.assert_close(y.full_tensor(), call(lambda dim: None).full_tensor())
print("done")
