"""``torch.fx.passes``: metadata of values, splitting, ordered passes, partitions by support. Expected texts are
PyTorch's."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import compat as torch
from compat import fx, nn
from compat._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from compat.fx.passes.fake_tensor_prop import FakeTensorProp
from compat.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from compat.fx.passes.infra.pass_base import PassBase, PassResult
from compat.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper, this_before_that_pass_constraint
from compat.fx.passes.operator_support import OperatorSupport, OpSupports, any_chain, chain, create_op_support
from compat.fx.passes.shape_prop import ShapeProp, TensorMetadata
from compat.fx.passes.split_module import split_module


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, x: Any, image: Any) -> Any:
        a, b = self.lin(x).split(2, 1)
        return a + b, self.conv(image), x.size(0)


def test_shape_prop_notes_tensors_and_types() -> None:
    net = fx.symbolic_trace(Net())
    image = torch.ones(2, 1, 5, 5).to(memory_format=torch.channels_last)
    result = ShapeProp(net).propagate(torch.ones(2, 4), image)
    assert result[2] == 2
    metas = {n.name: n.meta.get("tensor_meta") for n in net.graph.nodes}
    part = TensorMetadata(torch.Size([2, 2]), torch.float32, True, (4, 1), None, False, {})
    assert metas["split"] == (part, part) and metas["getitem"] == part
    assert metas["size"] is None and metas["image"].memory_format is torch.contiguous_format
    assert metas["conv"] == TensorMetadata(
        torch.Size([2, 2, 3, 3]), torch.float32, True, (18, 1, 6, 2), torch.channels_last, False, {}
    )
    types = {n.name: n.meta["type"] for n in net.graph.nodes}
    assert (types["size"], types["split"], types["add"]) == (int, tuple, torch.Tensor)


def test_shape_prop_names_the_node_that_fails() -> None:
    net = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4)))
    with pytest.raises(RuntimeError, match=r"^ShapeProp error for: node=%_0 : \[num_users=1\] = call_module\[target=0"):
        ShapeProp(net).propagate(torch.ones(2, 3))


def test_fake_values_need_no_memory() -> None:
    net = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    mode = FakeTensorMode()
    shown = ShapeProp(net, mode).propagate(torch.ones(3, 4))
    assert isinstance(shown, FakeTensor) and shown.shape == (3, 4)
    assert type(FakeTensorProp(net, mode).propagate(torch.ones(5, 4))) is FakeTensor
    assert [n.meta["val"].shape for n in net.graph.find_nodes(op="call_module")] == [(5, 4), (5, 4)]
    assert not isinstance(net(torch.ones(1, 4)), FakeTensor)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.param = nn.Parameter(torch.ones(3, 4))
        self.linear = nn.Linear(4, 5)

    def forward(self, x: Any, y: Any) -> Any:
        z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
        return z + self.linear(y).clamp(min=0.0, max=1.0)


def test_split_module_passes_values_from_part_to_part() -> None:
    net = Twice()
    traced, names = fx.symbolic_trace(net), {}
    numbers = {node.name: n % 3 for n, node in enumerate(n for n in traced.graph.nodes if n.op.startswith("call"))}
    split = split_module(traced, net, lambda node: numbers[node.name], names)
    assert split.code.strip() == (
        "def forward(self, x, y):\n"
        "    param = self.param\n"
        "    submod_0 = self.submod_0(x, param, y);  x = param = y = None\n"
        "    getitem = submod_0[0]\n"
        "    getitem_1 = submod_0[1];  submod_0 = None\n"
        "    submod_1 = self.submod_1(getitem, getitem_1);  getitem = getitem_1 = None\n"
        "    getitem_2 = submod_1[0]\n"
        "    getitem_3 = submod_1[1];  submod_1 = None\n"
        "    submod_2 = self.submod_2(getitem_2, getitem_3);  getitem_2 = getitem_3 = None\n"
        "    return submod_2"
    )
    assert names == {"submod_0.linear": "linear", "submod_1.linear": "linear"}
    assert [name for name, _ in split.named_children()] == ["submod_0", "submod_1", "submod_2"]
    assert split.submod_0.linear is net.linear
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    assert torch.equal(split(x, y), net(x, y))


def test_split_module_refuses_parts_that_use_each_other() -> None:
    net = Twice()
    with pytest.raises(RuntimeError, match=r"^cycle exists between partitions!$"):
        split_module(fx.symbolic_trace(net), net, lambda node: int(node.name not in ("add", "clamp")))


def test_split_module_names_submodules_and_nodes() -> None:
    net = Twice()
    split = split_module(
        fx.symbolic_trace(net), net, lambda node: int(node.name not in ("add", "linear", "clamp")),
        keep_original_order=True, keep_original_node_name=True, keep_original_input_name=False, partition_affix="pp",
        tuple_return=True,
    )  # fmt: skip
    assert [name for name, _ in split.named_children()] == ["submod_pp_0", "submod_pp_1"]
    assert [n.name for n in split.submod_pp_1.graph.nodes] == [
        "arg_0",
        "arg_1",
        "linear_1",
        "clamp_1",
        "add_1",
        "output",
    ]
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    assert torch.equal(split(x, y), net(x, y))


class Products(PassBase):
    def __init__(self) -> None:
        self.order: list[str] = []

    def requires(self, graph_module: Any) -> None:
        self.order.append("requires")

    def call(self, graph_module: Any) -> PassResult:
        self.order.append("call")
        found = graph_module.graph.find_nodes(op="call_function", target=operator.add)
        for node in found:
            node.target = operator.mul
        graph_module.recompile()
        return PassResult(graph_module, bool(found))

    def ensures(self, graph_module: Any) -> None:
        self.order.append("ensures")


def test_passes_run_until_nothing_is_modified() -> None:
    one, net, checked = Products(), fx.symbolic_trace(lambda x: x + x), []
    manager = PassManager([one], steps=5, run_checks_after_each_pass=True)
    manager.add_checks(checked.append)
    result = manager(net)
    assert result.modified and result.graph_module is net and net(torch.tensor(3.0)) == 9
    assert one.order == ["requires", "call", "ensures"] * 2
    assert checked == [net] * 3
    with pytest.raises(TypeError, match=r"^PassManager check function should only take in one variable, a module$"):
        manager.add_checks(lambda a, b: None)


def test_constraints_order_passes() -> None:
    ran: list[str] = []

    def first(gm: Any) -> PassResult:
        ran.append("first")
        return PassResult(gm, False)

    def second(gm: Any) -> None:
        ran.append("second")

    wrapped = pass_result_wrapper(second)
    before = this_before_that_pass_constraint(wrapped, first)
    net = fx.symbolic_trace(lambda x: x)
    assert PassManager([first, wrapped], [before])(net).modified
    assert ran == ["second", "first"]
    with pytest.raises(RuntimeError, match=r"^Circular dependency detected within the following passes: \[<function"):
        PassManager([first, wrapped], [before, this_before_that_pass_constraint(first, wrapped)])(net)
    with pytest.raises(
        Exception, match=r"^An error occurred when running the 'second' pass after the following passes: \['f"
    ):
        PassManager([first, second])(net)


def supported(*targets: Any) -> Any:
    return create_op_support(lambda modules, node: node.op == "call_function" and node.target in targets)


def f(x: Any, y: Any) -> Any:
    return torch.sigmoid(torch.relu(torch.add(x, y))) + torch.mul(x, y)


def test_partitions_are_as_large_as_they_can_be() -> None:
    net = fx.symbolic_trace(f)
    partitioner = CapabilityBasedPartitioner(net, supported(torch.add, torch.mul, torch.relu, operator.add))
    parts = partitioner.propose_partitions()
    assert [(p.id, sorted(n.name for n in p.nodes)) for p in parts] == [(1, ["add_1", "mul"]), (3, ["add", "relu"])]
    fused = partitioner.fuse_partitions(parts)
    assert fused is net and fused.code.strip() == (
        "def forward(self, x, y):\n"
        "    fused_1 = self.fused_1(x, y)\n"
        "    sigmoid = torch.sigmoid(fused_1);  fused_1 = None\n"
        "    fused_0 = self.fused_0(x, y, sigmoid);  x = y = sigmoid = None\n"
        "    return fused_0"
    )
    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(fused(x, y), f(x, y))


def test_partitions_of_one_call_are_left_out_unless_allowed() -> None:
    for allowed, names in ((False, []), (True, ["fused_0"])):
        partitioner = CapabilityBasedPartitioner(fx.symbolic_trace(f), supported(torch.relu), allowed)
        assert [name for name, _ in partitioner.partition_and_fuse().named_children()] == names


def test_a_partition_with_several_results() -> None:
    def g(x: Any) -> Any:
        a, b = torch.split(x, 1)
        return torch.sin(a), torch.cos(a + b)

    net = fx.symbolic_trace(g)
    fused = CapabilityBasedPartitioner(net, supported(torch.split, operator.getitem, operator.add)).partition_and_fuse()
    x = torch.randn(2, 3)
    assert [n.target for n in fused.graph.find_nodes(op="call_module")] == ["fused_0"]
    assert all(map(torch.equal, fused(x), g(x)))
    apart = CapabilityBasedPartitioner(fx.symbolic_trace(g), supported(torch.sin, torch.cos))
    assert [sorted(n.name for n in p.nodes) for p in apart.propose_partitions()] == [["cos", "sin"]]
    apart.skip_horizontal_fusion = True
    assert apart.propose_partitions() == []


def test_support_by_names_and_dtypes() -> None:
    net = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    ShapeProp(net).propagate(torch.ones(1, 2))
    modules, (lin, relu) = dict(net.named_modules()), net.graph.find_nodes(op="call_module")
    name = "torch.nn.modules.linear.Linear"
    single, double = (OperatorSupport({name: (((kind,),), {})}) for kind in (torch.float32, torch.float64))
    assert single.is_node_supported(modules, lin) and not double.is_node_supported(modules, lin)
    assert not single.is_node_supported(modules, relu)
    declined = OpSupports.decline_if_input_dtype(torch.float32), OpSupports.decline_if_node_in_names({"_1"})
    assert not chain(single, declined[0]).is_node_supported(modules, lin)
    assert chain(single, declined[1]).is_node_supported(modules, lin)
    assert any_chain(single, declined[0]).is_node_supported(modules, lin)


def test_repr_of_a_graph_module_has_no_code() -> None:
    net = fx.symbolic_trace(lambda x: x + 1)
    assert repr(net) == "<lambda>()" and "def forward(self, x):" in str(net)
