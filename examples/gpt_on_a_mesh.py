"""A GPT on eight devices, written twice: with ``shard_map`` and explicit collectives, and with shardings alone.

Both compute the loss and the gradients of the program for one device. Run it: ``python examples/gpt_on_a_mesh.py``.
"""

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.parallel import NamedSharding, collectives, device_put, make_mesh, shard_map, virtual_devices
from funcgrad.parallel import PartitionSpec as P

LAYERS, WIDTH, HEADS, WORDS, LENGTH, BATCH = 4, 32, 8, 64, 16, 8
virtual_devices(8)
mesh = make_mesh((2, 4), ("data", "model"))
rng = np.random.default_rng(0)
weights = lambda *shape: rng.normal(size=shape, scale=0.1).astype("float32")
params = {
    "embedding": weights(WORDS, WIDTH), "positions": weights(LENGTH, WIDTH), "qkv": weights(LAYERS, 3, WIDTH, WIDTH),
    "out": weights(LAYERS, WIDTH, WIDTH), "up": weights(LAYERS, WIDTH, 4 * WIDTH),
    "down": weights(LAYERS, 4 * WIDTH, WIDTH),
}  # fmt: skip
tokens = rng.integers(0, WORDS, (BATCH, LENGTH + 1))
mask = np.tril(np.ones((LENGTH, LENGTH), bool))


def normed(x):
    return (x - x.mean(-1, keepdims=True)) / fnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def layer(x, p, total):
    q, k, v = fnp.einsum("btw,cwh->cbth", normed(x), p["qkv"])
    q, k, v = (a.reshape(*a.shape[:2], -1, WIDTH // HEADS) for a in (q, k, v))  # the heads of this device
    scores = fnp.where(mask, fnp.einsum("bthi,bshi->bhts", q, k) / (WIDTH // HEADS) ** 0.5, -np.inf)
    mixed = fnp.einsum("bhts,bshi->bthi", fg.nn.softmax(scores), v)
    x = x + total(mixed.reshape(*x.shape[:2], -1) @ p["out"])
    return x + total(fg.nn.gelu(normed(x) @ p["up"]) @ p["down"])


def loss(params, tokens, total=lambda x: x):
    x = params["embedding"][tokens[:, :-1]] + params["positions"]
    layers = {name: params[name] for name in ("qkv", "out", "up", "down")}
    x, _ = fg.scan(lambda x, p: (layer(x, p, total), None), x, layers)
    logits = fg.nn.log_softmax(normed(x) @ params["embedding"].T)
    return -fnp.mean(fnp.take_along_axis(logits, tokens[:, 1:, None], -1))


# Heads and hidden units are sharded along "model", sequences along "data".
divided = {
    "embedding": P(), "positions": P(), "qkv": P(None, None, None, "model"), "out": P(None, "model"),
    "up": P(None, None, "model"), "down": P(None, "model"),
}  # fmt: skip
by_parts = shard_map(  # the sum over the other devices' parts; the mean of all sequences is that of the shards' means
    lambda params, tokens: fg.pmean(loss(params, tokens, lambda x: fg.psum(x, "model")), "data"),
    mesh=mesh, in_specs=(divided, P("data")), out_specs=P(),
)  # fmt: skip
where = {name: NamedSharding(mesh, spec) for name, spec in divided.items()}
placed = device_put(params, where), device_put(tokens, NamedSharding(mesh, P("data")))

alone, wanted = fg.jit(fg.value_and_grad(loss))(params, tokens)
for name, f in (("by parts", by_parts), ("by shardings", loss)):
    step = fg.jit(fg.value_and_grad(f))
    value, gradients = step(*placed)
    apart = max(float(abs(np.asarray(gradients[p]) - wanted[p]).max() / abs(wanted[p]).max()) for p in params)
    sums = sum(c.count for c in collectives(step.lower(*placed).compile()) if c.kind == "all-reduce")
    print(f"{name}: loss {value:.5f}, on one device {alone:.5f}; gradients differ by {apart:.0e}; {sums} sums")
    assert abs(value - alone) < 1e-5 and apart < 1e-5
    assert all(g.sharding.is_equivalent_to(where[p], g.ndim) for p, g in gradients.items()), "where parameters are"
