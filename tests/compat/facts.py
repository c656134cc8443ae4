"""The result of an expression of tensors as plain data: values, strides, the backward graph, gradients, errors.

The golden files hold PyTorch's results (``golden/make_ops.py`` writes them); the tests compare them with compat's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parent / "golden"


class Inputs:
    """Creates the tensors that expressions start from, with the same numbers in any library.

    Called as ``x(2, 3)`` it gives floats with ``requires_grad``; ``x.plain(2, 3)`` without; ``x.ints(2, 3)`` integers;
    ``x.last(1, 2, 3, 4)`` channels-last floats; ``x.of(0.0, nan)`` floats given one by one.
    """

    def __init__(self, torch: Any):
        self.torch = torch
        self.leaves: list[Any] = []
        self.rng = np.random.default_rng(0)

    def plain(self, *shape: int, dtype: str = "float64") -> Any:
        return self.torch.tensor(self.rng.standard_normal(shape), dtype=getattr(self.torch, dtype))

    def ints(self, *shape: int, dtype: str = "int64") -> Any:
        return self.torch.tensor(self.rng.integers(0, 9, shape), dtype=getattr(self.torch, dtype))

    def __call__(self, *shape: int, dtype: str = "float64") -> Any:
        made = self.plain(*shape, dtype=dtype).requires_grad_()
        self.leaves.append(made)
        return made

    def of(self, *values: float, dtype: str = "float64") -> Any:
        made = self.torch.tensor(values, dtype=getattr(self.torch, dtype)).requires_grad_()
        self.leaves.append(made)
        return made

    def last(self, *shape: int) -> Any:
        return self(*shape).contiguous(memory_format=self.torch.channels_last)


def _array(t: Any) -> np.ndarray:
    return np.asarray(t.detach().numpy(force=True))


def _plain(value: Any) -> Any:
    """A saved attribute as plain data."""
    if hasattr(value, "detach"):
        return f"tensor {list(value.shape)}"
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value if isinstance(value, bool | int | float | None) else str(value)


def _graph(fn: Any) -> Any:
    if fn is None:
        return None
    return [fn.name().removeprefix("torch::autograd::"), [[_graph(f), i] for f, i in fn.next_functions]]


def _outputs(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [t for v in value for t in _outputs(v)]
    return [value] if hasattr(value, "detach") else []


def _described(t: Any) -> dict[str, Any]:
    found = dict(
        shape=list(t.shape),
        dtype=str(t.dtype).removeprefix("torch."),
        stride=list(t.stride()),
        values=_array(t).ravel().tolist(),
    )
    fn = t.grad_fn
    if fn is not None:
        found["graph"] = _graph(fn)
        found["saved"] = {n: _plain(getattr(fn, n)) for n in sorted(dir(fn)) if n.startswith("_saved_")}
    return found


def observe(torch: Any, source: str) -> dict[str, Any]:
    """The result of ``source``, in which ``torch``, ``F`` and ``x`` (see ``Inputs``) are defined."""
    inputs = Inputs(torch)
    try:
        outputs = _outputs(
            eval(
                source,
                {"torch": torch, "F": torch.nn.functional, "x": inputs, "nan": float("nan"), "inf": float("inf")},
            )
        )
        described = [_described(t) for t in outputs]  # with deferral, errors that depend on values are raised here
    except Exception as error:  # the error is what is observed
        return dict(error=type(error).__name__, message=str(error).split("\n")[0])
    found: dict[str, Any] = dict(outputs=described)
    recorded = [t for t in outputs if t.requires_grad]
    if recorded and inputs.leaves:
        rng = np.random.default_rng(1)
        cotangents = [torch.tensor(rng.standard_normal(tuple(t.shape)), dtype=t.dtype) for t in recorded]
        try:
            grads = torch.autograd.grad(recorded, inputs.leaves, cotangents, allow_unused=True)
        except (NotImplementedError, RuntimeError) as error:
            return json.loads(json.dumps(found | dict(error=type(error).__name__, message=str(error).split("\n")[0])))
        found["grads"] = [None if g is None else _array(g).ravel().tolist() for g in grads]
    return json.loads(json.dumps(found))


def cases(family: str) -> list[tuple[str, dict[str, Any]]]:
    """The golden expressions of a family, and PyTorch's results."""
    return list(json.loads((GOLDEN / f"{family}.json").read_text()).items())


def assert_same(got: dict[str, Any], want: dict[str, Any]) -> None:
    """Numbers may differ by rounding; everything else must be equal."""
    if "error" in want or "error" in got:
        assert got == want
        return
    assert len(got["outputs"]) == len(want["outputs"])
    for g, w in zip(got["outputs"], want["outputs"]):
        assert {k: v for k, v in g.items() if k != "values"} == {k: v for k, v in w.items() if k != "values"}
        _close(g["values"], w["values"], w["dtype"])
    assert ("grads" in got) == ("grads" in want)
    for g, w in zip(got.get("grads", []), want.get("grads", [])):
        assert (g is None) == (w is None)
        if w is not None:
            _close(g, w, want["outputs"][0]["dtype"])


def _close(got: list[Any], want: list[Any], dtype: str) -> None:
    # Sums of at most a few hundred products: their rounding, in the dtype of the result.
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
