"""``run_decompositions`` and the tables of ``torch._decomp``."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest

import compat as torch
import compat._decomp as decomp
import compat.nn.functional as F
from compat.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(4, 3), torch.nn.LayerNorm(3)
        self.register_buffer("shift", torch.ones(3), persistent=False)

    def forward(self, x: Any) -> Any:
        return F.gelu(self.norm(F.silu(self.linear(x)) + self.shift)).softmax(-1)


def _operators(program: Any) -> list[Any]:
    return [n.target for n in program.graph.find_nodes(op="call_function")]


def _program(**options: Any) -> Any:
    torch.manual_seed(0)
    return torch.export.export(Net().eval(), (torch.randn(2, 4),), **options)


def test_the_default_table_leaves_core_operators() -> None:
    program = _program()
    found = _operators(program.run_decompositions())
    assert aten.silu.default in _operators(program)
    assert aten.silu.default not in found and aten.t.default not in found and aten.sigmoid.default in found
    assert {aten.gelu.default, aten.addmm.default, aten._softmax.default} <= set(found)
    table = torch.export.default_decompositions()
    del table[aten.silu.default]
    assert aten.silu.default in _operators(program.run_decompositions(table))
    assert _operators(program.run_decompositions({})) == _operators(program)


def test_a_decomposed_program_computes_the_same_at_every_size() -> None:
    program = _program(dynamic_shapes=({0: torch.export.Dim("batch", max=9)},))
    found = program.run_decompositions(dict(decomp.decomposition_table))
    assert not set(_operators(found)) & set(decomp.decomposition_table)
    assert found.graph_signature.input_specs == program.graph_signature.input_specs
    assert str(found.range_constraints) == str(program.range_constraints)
    assert found.state_dict.keys() == program.state_dict.keys() and found.constants.keys() == {"shift"}
    x = torch.randn(7, 4)
    torch.testing.assert_close(found.module()(x), program.module()(x))
    assert {"norm", "linear"} <= {path for n in found.graph.nodes for path in n.meta.get("nn_module_stack", {})}
    torch.testing.assert_close(torch.export.unflatten(found)(x), program.module()(x))
    file = io.BytesIO()
    torch.export.save(found, file)
    file.seek(0)
    assert torch.equal(torch.export.load(file).module()(x), found.module()(x))


def test_own_decompositions_are_used() -> None:
    calls = []

    def relu(x: Any) -> Any:
        calls.append(x.shape)
        return torch.clamp(x, min=0)

    program = torch.export.export(torch.nn.ReLU(), (torch.randn(3),)).run_decompositions({aten.relu.default: relu})
    assert _operators(program) == [aten.clamp.default] and calls


_X, _Y = torch.linspace(-3, 3, 12).reshape(3, 4), torch.linspace(1, 2, 12).reshape(3, 4)
_CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "lerp.Scalar": ((_X, _Y, 0.3), {}), "lerp.Tensor": ((_X, _Y, torch.tensor(0.3)), {}),
    "rsub.Tensor": ((_X, _Y), {"alpha": 2}), "rsub.Scalar": ((_X, 2.0), {}), "addcmul": ((_X, _X, _Y), {"value": 0.5}),
    "addcdiv": ((_X, _X, _Y), {"value": 0.5}),
    "addmm": ((_X[:, :3], _X, _Y.t()), {"beta": 0.5, "alpha": 2}), "addmv": ((_X[:, 0], _X, _Y[0]), {"alpha": 2}),
    "baddbmm": ((_X[None, :, :3], _X[None], _Y.t()[None]), {"beta": 0}), "mse_loss": ((_X, _Y), {}),
    "huber_loss": ((_X, _Y, 2, 0.7), {}), "smooth_l1_loss": ((_X, _Y, 0, 0.7), {}), "threshold": ((_X, 0.5, 2.0), {}),
    "native_layer_norm": ((_X, [4], _Y[0], None, 1e-5), {}), "_softmax": ((_X, -1), {}),
    "_log_softmax": ((_X, 0), {}), "softplus": ((_X, 2.0, 3.0), {}), "elu": ((_X, 1.5), {}),
    "celu": ((_X, 1.5), {}), "leaky_relu": ((_X, 0.2), {}), "hardtanh": ((_X, -0.5, 2.0), {}),
}  # fmt: skip

#: Of operators whose overloads have other parameters than the functions.
_EXPECTED = {
    "huber_loss": F.huber_loss(_X, _Y, reduction="sum", delta=0.7),
    "smooth_l1_loss": F.smooth_l1_loss(_X, _Y, reduction="none", beta=0.7),
}


@pytest.mark.parametrize("overload", decomp.decomposition_table, ids=str)
def test_decompositions_compute_the_operator(overload: Any) -> None:
    name = str(overload).removeprefix("aten.").removesuffix(".default")
    args, kwargs = _CALLS.get(name, ((_X,), {}))
    expected = _EXPECTED[name] if name in _EXPECTED else overload(*args, **kwargs)
    torch.testing.assert_close(decomp.decomposition_table[overload](*args, **kwargs), expected)


def test_halves_are_computed_in_float32() -> None:
    x = torch.linspace(-3, 3, 50).to(torch.bfloat16)
    assert torch.equal(decomp.decomposition_table[aten.silu.default](x), F.silu(x))


def test_tables() -> None:
    table = decomp.get_decompositions([aten.gelu, aten.lerp, aten.silu.default, aten.sin])
    assert {str(o) for o in table} == {"aten.gelu.default", "aten.lerp.Scalar", "aten.lerp.Tensor", "aten.silu.default"}
    decomp.remove_decompositions(table, [aten.lerp])
    assert aten.lerp.Scalar not in table
    own: dict[Any, Any] = {}

    @decomp.register_decomposition([aten.sin, aten.cos.default], own)
    def zero(x: Any) -> Any:
        return x * 0

    assert own[aten.sin.default] is own[aten.cos.default] is zero
    with pytest.raises(RuntimeError, match=r"duplicate registrations for aten\.cos\.default"):
        decomp.register_decomposition(aten.cos.default, own)(zero)
    graph = make_fx(torch.sin, own)(torch.ones(2))
    assert [n.target for n in graph.graph.find_nodes(op="call_function")] == [aten.mul.Tensor]


def test_a_warning_is_shown_once() -> None:
    from compat._dynamo.utils import warn_once

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for text in ("decompose this", "decompose this", "decompose that"):
            warn_once(text)
    assert [str(w.message) for w in shown] == ["decompose this", "decompose that"]
    assert shown[0].filename == __file__
