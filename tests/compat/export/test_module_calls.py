"""``module_call_graph`` and ``preserve_module_call_signature``; ``torch.export.passes``."""

from __future__ import annotations

import io
from typing import Any

import pytest

import compat as torch
from compat import nn
from compat.export.exported_program import ModuleCallEntry
from compat.export.graph_signature import ConstantArgument, TensorArgument
from compat.export.passes import move_to_device_pass
from compat.utils._pytree import tree_structure


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin, self.act = nn.Linear(4, 4), nn.ReLU()

    def forward(self, x: Any, *, scale: float = 1.0) -> Any:
        y = self.act(self.lin(x))
        return y, {"z": y * scale}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Block(), Block()
        self.head = nn.Sequential(nn.Linear(4, 2), nn.Dropout())

    def forward(self, x: Any) -> Any:
        y, first = self.a(x)
        y, second = self.b(y, scale=2.0)
        return self.head(y + first["z"]), second


PATHS = ["", "a", "a.lin", "a.act", "b", "b.lin", "b.act", "head", "head.0", "head.1"]


def exported(*preserved: str) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    net, x = Net().eval(), torch.randn(2, 4)
    return net, x, torch.export.export(net, (x,), preserve_module_call_signature=preserved)


def test_every_module_has_an_entry() -> None:
    _, x, program = exported()
    assert [e.fqn for e in program.module_call_graph] == PATHS
    whole, *others = program.module_call_graph
    assert whole.signature.in_spec == tree_structure(((x,), {}))
    assert whole.signature.out_spec == tree_structure((x, {"z": x}))
    assert whole.signature.forward_arg_names == ["x"]
    assert whole.signature.inputs == whole.signature.outputs == []
    assert others == [ModuleCallEntry(path) for path in PATHS[1:]]


def check_signatures(program: Any) -> None:
    signatures = {e.fqn: e.signature for e in program.module_call_graph}
    assert list(signatures) == PATHS
    assert [path for path in PATHS if signatures[path]] == ["", "a", "b", "head"]
    b = signatures["b"]
    assert b.inputs == [TensorArgument("relu"), ConstantArgument("", 2.0)]
    assert b.outputs == [TensorArgument("relu_1"), TensorArgument("mul_1")]
    assert b.in_spec == tree_structure(((0,), {"scale": 2.0})) and b.out_spec == tree_structure((0, {"z": 0}))
    assert signatures["a"].inputs == [TensorArgument("x")] and signatures["head"].inputs == [TensorArgument("add")]


def test_preserved_modules_have_their_signatures() -> None:
    *_, program = exported("a", "b", "head")
    check_signatures(program)
    check_signatures(program.run_decompositions({}))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    check_signatures(torch.export.load(file))


def test_an_unknown_module_raises() -> None:
    with pytest.raises(AttributeError, match=r"^'Net' object has no attribute 'nope'$"):
        exported("nope")


@pytest.mark.parametrize("decomposed", [False, True])
def test_preserved_modules_can_be_called_and_replaced(decomposed: bool) -> None:
    net, x, program = exported("a", "b")
    tree = torch.export.unflatten(program.run_decompositions({}) if decomposed else program)
    for found, want in ((tree(x), net(x)), (tree.b(x, scale=2.0), net.b(x, scale=2.0))):
        assert torch.equal(found[0], want[0]) and torch.equal(found[1]["z"], want[1]["z"])
    with pytest.raises(TypeError, match=r"^InterpreterModule\.forward takes arguments like TreeSpec"):
        tree.b(x)

    class Other(nn.Module):
        def forward(self, x: Any, scale: float) -> Any:
            return x, {"z": x * scale}

    tree.b = net.b = Other()
    assert torch.equal(tree(x)[0], net(x)[0]) and torch.equal(tree(x)[1]["z"], net(x)[1]["z"])


def test_later_calls_of_a_preserved_module_have_their_own_entries() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()

        def forward(self, x: Any) -> Any:
            y, _ = self.block(x, scale=2.0)
            return self.block(y, scale=3.0)[1]["z"], y

    net, x = Twice(), torch.randn(2, 4)
    program = torch.export.export(net, (x,), preserve_module_call_signature=("block",))
    assert [e.fqn for e in program.module_call_graph] == ["", "block", "block.lin", "block.act", "block@1"]
    tree = torch.export.unflatten(program)
    assert all(map(torch.equal, tree(x), net(x)))


def test_a_preserved_module_that_uses_weights_of_another_one_is_refused() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.out = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, x: Any) -> Any:
            return self.out(self.embed(x))

    program = torch.export.export(Tied(), (torch.ones(1, 4),), preserve_module_call_signature=("out",))
    with pytest.raises(NotImplementedError, match=r"^unflatten: the module 'out' uses p_embed_weight, no argument"):
        torch.export.unflatten(program)


def test_a_program_moves_to_another_device() -> None:
    class Made(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))
            self.register_buffer("b", torch.ones(3))

        def forward(self, x: Any) -> Any:
            return x + self.w + self.b + torch.rand(3, device="cpu")

    program = torch.export.export(Made(), (torch.ones(3),))
    assert move_to_device_pass(program, {"cuda:0": "meta"}).state_dict["w"].device.type == "cpu"
    assert move_to_device_pass(program, "meta") is program
    assert {name: t.device.type for name, t in program.state_dict.items()} == {"w": "meta", "b": "meta"}
    assert isinstance(program.state_dict["w"], nn.Parameter)
    assert [t.device.type for t in program.example_inputs[0]] == ["meta"]
    assert program.module()(torch.ones(3, device="meta")).device.type == "meta"
