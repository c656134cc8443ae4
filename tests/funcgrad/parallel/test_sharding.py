"""On a mesh of eight virtual devices: inputs are sharded, and so are results and gradients."""

from __future__ import annotations

import os
import subprocess
import sys

CASES = {"sharding_constraint": 0}

SCRIPT = r"""
import re
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import funcgrad as fg, funcgrad.numpy as fnp

assert len(jax.devices()) == 8
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
on = lambda *spec: NamedSharding(mesh, P(*spec))
rng = np.random.default_rng(0)
host = {"w": rng.normal(size=(16, 32)), "v": rng.normal(size=(32, 4)), "b": rng.normal(size=(32,))}
where = {"w": on(None, "model"), "v": on("model", None), "b": on("model")}
x = rng.normal(size=(8, 16))
params = jax.device_put(host, where)
batch = jax.device_put(x, on("data", None))

def loss(p, x):
    h = fnp.tanh(x @ p["w"] + p["b"])
    h = fg.scan(lambda c, _: (fnp.sin(c), None), h, length=3)[0]
    return fnp.mean(fg.checkpoint(lambda h: h @ p["v"])(h) ** 2)

def same(a, b, spec):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-12)
    assert a.sharding.is_equivalent_to(spec, a.ndim), (a.sharding, spec)

# Forwards: the result of a sharded layer is sharded as its inputs say.
layer = fg.jit(lambda p, x: fnp.tanh(x @ p["w"] + p["b"]))
same(layer(params, batch), np.tanh(x @ host["w"] + host["b"]), on("data", "model"))

# The gradient has the parameters' shardings, and the numbers of one device.
value, gradients = fg.jit(fg.value_and_grad(loss))(params, batch)
alone = fg.grad(loss)(host, x)
for name in host:
    same(gradients[name], alone[name], where[name])

# A whole step: parameters stay where they are.
step = fg.jit(lambda p, x: {k: p[k] - 0.1 * g for k, g in fg.grad(loss)(p, x).items()}, donate_argnums=0)
for _ in range(2):
    params = step(params, batch)
for name in host:
    assert params[name].sharding.is_equivalent_to(where[name], params[name].ndim)

# Batched over an axis that is sharded, with a collective along it.
shares = fg.jit(fg.vmap(lambda row: row / fg.psum(row, "i"), axis_name="i"))(batch)
same(shares, x / x.sum(0), on("data", None))

# The program for several devices exchanges what it must, and no more than the program says.
text = fg.jit(fg.grad(loss)).lower(params, batch).compile().as_text()
assert "all-reduce" in text
# A sharding constraint on an intermediate value holds for its cotangent too, and under vmap for each batch element.
def said(x):
    return fg.with_sharding_constraint({"y": fnp.sin(x), "n": 3}, {"y": on("model", "data"), "n": None})["y"]

rows = rng.normal(size=(2, 4))
same(fg.jit(said)(rows), np.sin(rows), on("model", "data"))
total = lambda x: fnp.sum(fg.with_sharding_constraint(x, on("model")))
same(fg.jit(fg.grad(total))(rows), np.ones((2, 4)), on("model"))
same(fg.jit(fg.jvp, static_argnums=0)(said, (rows,), (rows,))[1], np.cos(rows) * rows, on("model", "data"))
three = rng.normal(size=(2, 3, 4))
text = fg.jit(fg.vmap(said, in_axes=1)).lower(three).as_text()
assert '[{"model"}, {?}, {"data"}]' in text, text
np.testing.assert_allclose(fg.jit(fg.vmap(said, in_axes=1))(three), np.sin(np.moveaxis(three, 1, 0)))
with jax.set_mesh(mesh):
    same(fg.jit(lambda x: fg.with_sharding_constraint(x * 2, P("model")))(rows), rows * 2, on("model"))

# Where arguments and results are, said at the function.
place = dict(in_shardings=({"x": on("data")},), out_shardings=on(None))
double = fg.jit(lambda p, n: {"y": p["x"] * n}, static_argnums=1, **place)
same(double({"x": batch}, 2)["y"], 2 * x, on(None))
assert double.lower({"x": x}, 2).compile().input_shardings[0][0]["x"].is_equivalent_to(on("data"), 2)

for wrong, error, text in [
    (on("data", "model"), ValueError, r"names 2 axes, but f64\[4\] has 1"),
    ("data", TypeError, "wants a Sharding or a PartitionSpec, got 'data'"),
]:
    try:
        fg.jit(lambda x: fg.with_sharding_constraint(x, wrong))(np.ones(4))
        raise AssertionError("accepted")
    except error as found:
        assert re.search(text, str(found)), found
print("done")
"""


def test_a_mesh() -> None:
    environment = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=8", JAX_PLATFORMS="cpu")
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
