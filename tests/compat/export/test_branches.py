"""``torch.cond`` in exported and compiled programs: both branches are kept."""

from __future__ import annotations

import io
from typing import Any

import pytest

import compat as torch
from compat._dynamo.exc import UserError
from compat.fx.experimental.proxy_tensor import make_fx


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("scale", torch.ones(3))
        self.shift = torch.ones(3) * 3

    def forward(self, x: Any, y: Any) -> Any:
        def positive(x: Any) -> Any:
            return self.linear(x) + y, x + 2

        def negative(x: Any) -> Any:
            return x * self.scale + self.shift, x + 1

        a, b = torch.cond(x.sum() > 0, positive, negative, (x,))
        return a + b


def _both(f: Any) -> Any:
    return torch.stack([f(torch.ones(3) * sign, torch.ones(3)) for sign in (1.0, -1.0)])


def test_an_exported_program_has_both_branches() -> None:
    net = Net()
    program = torch.export.export(net, (torch.ones(3), torch.ones(3)))
    targets = [str(getattr(n.target, "__name__", n.target)) for n in program.graph.nodes if n.op != "placeholder"]
    assert targets[2:5] == ["true_graph_0", "false_graph_0", "cond"]
    assert program.graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond)
    assert "aten.addmm" in program.graph_module.true_graph_0.code
    assert "aten.mul" in program.graph_module.false_graph_0.code
    for other in (program.module(), program.run_decompositions().module()):
        torch.testing.assert_close(_both(other), _both(net))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    torch.testing.assert_close(_both(torch.export.load(file).module()), _both(net))
    assert "stablehlo.case" in program.stablehlo.stablehlo
    module = program.module()
    module(torch.ones(3), torch.ones(3)).sum().backward()
    assert module.linear.weight.grad.tolist() == [[1.0] * 3] * 3


def test_branches_nest_and_have_dynamic_sizes() -> None:
    class Nested(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            def inner(x: Any) -> Any:
                return torch.cond(x[0] > 1, lambda x: x * 2, lambda x: x * 3, (x,))

            return torch.cond(x.sum() > 0, inner, lambda x: x.cos(), (x,))

    size = torch.export.Dim("size")
    program = torch.export.export(Nested(), (torch.ones(3),), dynamic_shapes=({0: size},))
    for value in (1.0, 2.0, -1.0):
        x = torch.full((5,), value)
        torch.testing.assert_close(program.module()(x), Nested()(x))

    class Sized(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda x: x + x.shape[0], lambda x: x.cos(), (x,))

    with pytest.raises(UserError, match="differ at another size"):
        torch.export.export(Sized(), (torch.ones(3),), dynamic_shapes=({0: size},))


def test_branches_must_be_alike_and_write_nothing() -> None:
    for other, message in ((lambda x: x[:1], "same structure, sizes"), (lambda x: x.add_(1), "writes into one")):
        with pytest.raises(RuntimeError, match=message):
            make_fx(lambda x, f=other: torch.cond(x.sum() > 0, torch.sin, f, (x,)))(torch.ones(3))


def test_a_compiled_call_selects_with_the_gradient_of_the_branch_taken() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)

    def f(x: Any, s: Any) -> Any:
        return torch.cond(s > 0, lambda x: (x * w).sqrt(), lambda x: x.cos() * w, (x,))

    compiled = torch.compile(f, fullgraph=True)
    for sign in (1.0, -1.0, 2.0, -2.0):
        found = []
        for function in (f, compiled):
            x.grad = w.grad = None
            y = function(x, torch.tensor(sign))
            y.sum().backward()
            found.append([y.detach(), x.grad, w.grad])
        for expected, actual in zip(*found):
            torch.testing.assert_close(actual, expected, equal_nan=True)


def test_a_backend_gets_both_branches() -> None:
    graphs = []

    def backend(gm: Any, inputs: Any) -> Any:
        graphs.append(gm)
        return gm.forward

    compiled = torch.compile(lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), backend=backend)
    for value, f in ((1.0, torch.sin), (-1.0, torch.cos)):
        torch.testing.assert_close(compiled(torch.tensor([value])), f(torch.tensor([value])))
    assert len(graphs) == 1 and graphs[0].graph.find_nodes(op="get_attr", target="cond_false_0")
