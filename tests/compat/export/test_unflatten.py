"""``torch.export.unflatten``, and the signature of programs."""

from __future__ import annotations

import io
from typing import Any

import pytest

import compat as torch
from compat import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.register_buffer("scale", torch.full((3,), 2.0), persistent=False)

    def forward(self, x: Any, y: Any) -> Any:
        h = torch.relu(self.lin(x))
        return h * self.scale + y, h


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.BatchNorm1d(3)
        self.unused = nn.Parameter(torch.ones(1))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        first, second = self.blocks
        x, h = second(*first(x, x + 1))
        x, _ = first(first(x, h)[0], first.lin.bias)
        return {"x": self.norm(x), "h": h}


def test_a_tree_of_modules_with_the_weights_and_results_of_the_exported_one() -> None:
    torch.manual_seed(0)
    net, x = Net(), torch.randn(4, 3)
    tree = torch.export.unflatten(torch.export.export(net, (x,)))
    assert {"blocks.0.lin", "blocks.1.lin", "norm"} <= {name for name, _ in tree.named_modules()}
    assert tree.state_dict().keys() >= net.state_dict().keys()
    found, want = tree(x), net(x)
    assert found.keys() == want.keys() and all(torch.equal(found[k], want[k]) for k in want)
    for results in found, want:
        results["x"].pow(3).sum().backward()
    assert torch.equal(tree.get_parameter("blocks.0.lin.weight").grad, net.blocks[0].lin.weight.grad)
    second = tree.get_submodule("blocks.1")
    assert torch.equal(second.lin(x), net.blocks[1].lin(x))
    assert all(torch.equal(a, b) for a, b in zip(second(x, x), net.blocks[1](x, x)[::-1]))  # in the order of nodes


def test_later_calls_of_a_module_are_told_apart() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.Tanh()

        def forward(self, x: Any) -> Any:
            return self.act(self.act(x))

    program = torch.export.export(Twice(), (torch.ones(2),))
    calls = [list(n.meta["nn_module_stack"]) for n in program.graph.nodes if n.op == "call_function"]
    assert calls == [["", "act"], ["", "act@1"]]
    tree = torch.export.unflatten(program)
    assert [n.target for n in tree.graph.find_nodes(op="call_module")] == ["act", "act"]
    assert torch.equal(tree.act(torch.ones(2)), torch.ones(2).tanh())


def test_the_module_is_as_it_was_before() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout())
    before, state = {k: v.clone() for k, v in net.state_dict().items()}, torch.get_rng_state()
    torch.export.export(net, (torch.randn(4, 3, generator=torch.Generator().manual_seed(0)),))
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


#: What PyTorch 2.13 prints, but for the names of nodes.
_SIGNATURE = """
# inputs
p_unused: PARAMETER target='unused'
p_blocks_0_lin_weight: PARAMETER target='blocks.0.lin.weight'
p_blocks_0_lin_bias: PARAMETER target='blocks.0.lin.bias'
p_blocks_1_lin_weight: PARAMETER target='blocks.1.lin.weight'
p_blocks_1_lin_bias: PARAMETER target='blocks.1.lin.bias'
p_norm_weight: PARAMETER target='norm.weight'
p_norm_bias: PARAMETER target='norm.bias'
b_calls: BUFFER target='calls' persistent=True
b_blocks_0_scale: BUFFER target='blocks.0.scale' persistent=False
b_blocks_1_scale: BUFFER target='blocks.1.scale' persistent=False
b_norm_running_mean: BUFFER target='norm.running_mean' persistent=True
b_norm_running_var: BUFFER target='norm.running_var' persistent=True
b_norm_num_batches_tracked: BUFFER target='norm.num_batches_tracked' persistent=True
x: USER_INPUT
"""


def test_the_signature_also_of_a_saved_program() -> None:
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(Net(), (torch.randn(4, 3),), dynamic_shapes={"x": {0: batch}})
    file = io.BytesIO()
    torch.export.save(program, file)
    for p in program, torch.export.load(file):
        signature = p.graph_signature
        assert str(signature).startswith(_SIGNATURE) and str(p).count("_OUTPUT") == 2
        assert signature.inputs_to_buffers["b_calls"] == "calls" and signature.buffers_to_mutate == {}
        assert signature.non_persistent_buffers == ("blocks.0.scale", "blocks.1.scale")
        assert list(p.constants) == list(signature.non_persistent_buffers)
        assert str(p.range_constraints) == "{batch: VR[2, 64]}"
        assert [name for name, _ in p.named_buffers()] == list(signature.buffers)
        with pytest.raises(NotImplementedError, match=r"train\(\) is not supported"):
            p.module().train()
