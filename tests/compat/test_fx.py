"""``torch.fx``: graphs of functions, their code, and transformations of them."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from typing import Any

import pytest

import compat as torch
from compat import fx
from compat.fx._compatibility import compatibility
from compat.fx._symbolic_trace import is_fx_tracing
from compat.fx.experimental import optimization
from compat.fx.proxy import GraphAppendingTracer, TraceError


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)
        self.scale = torch.nn.Parameter(torch.ones(4))
        self.inner = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x: Any, factor: float = 2, *, unused: Any = None) -> Any:
        z = self.linear(x) + self.scale * factor + self.shift
        a, b = torch.chunk(z, 2, dim=1)
        z = torch.cat([a, b], 1)[:, 1:3].relu()
        return {"out": self.inner[0](z.reshape(-1, x.shape[0])), "both": (z, -z)}


# As PyTorch writes it.
CODE = """
def forward(self, x, factor = 2, unused = None):
    linear = self.linear(x)
    scale = self.scale
    mul = scale * factor;  scale = factor = None
    add = linear + mul;  linear = mul = None
    shift = self.shift
    add_1 = add + shift;  add = shift = None
    chunk = torch.chunk(add_1, 2, dim = 1);  add_1 = None
    getitem = chunk[0]
    getitem_1 = chunk[1];  chunk = None
    cat = torch.cat([getitem, getitem_1], 1);  getitem = getitem_1 = None
    getitem_2 = cat[(slice(None, None, None), slice(1, 3, None))];  cat = None
    relu = getitem_2.relu();  getitem_2 = None
    getattr_1 = x.shape;  x = None
    getitem_3 = getattr_1[0];  getattr_1 = None
    reshape = relu.reshape(-1, getitem_3);  getitem_3 = None
    inner_0 = getattr(self.inner, "0")(reshape);  reshape = None
    neg = -relu
    return {'out': inner_0, 'both': (relu, neg)}
"""


def test_a_module_as_pytorch_writes_it() -> None:
    net = Net()
    traced = fx.symbolic_trace(net)
    assert traced.code.strip() == CODE.strip() and isinstance(traced, fx.GraphModule)
    assert type(traced).__name__ == "Net" and list(traced.state_dict()) == [
        "scale", "shift", "linear.weight", "linear.bias",
    ]  # fmt: skip
    x = torch.randn(2, 3)
    assert torch.equal(traced(x)["out"], net(x)["out"])
    assert torch.equal(traced(x, factor=3)["both"][1], net(x, factor=3)["both"][1])
    traced(x)["out"].sum().backward()
    assert net.linear.weight.grad is not None
    assert not is_fx_tracing()


def test_the_text_of_a_graph() -> None:
    graph = fx.symbolic_trace(lambda x, y=1: torch.add(x, y, alpha=2).sum()).graph
    assert str(graph).splitlines() == [
        "graph():",
        "    %x : [num_users=1] = placeholder[target=x]",
        "    %y : [num_users=1] = placeholder[target=y](default=1)",
        "    %add : [num_users=1] = call_function[target=torch.add](args = (%x, %y), kwargs = {alpha: 2})",
        "    %sum_1 : [num_users=1] = call_method[target=sum](args = (%add,), kwargs = {})",
        "    return sum_1",
    ]


def test_copies_and_pickles_compute_the_same() -> None:
    net, x = Net(), torch.randn(2, 3)
    traced = fx.symbolic_trace(net)
    for other in (copy.deepcopy(traced), copy.copy(traced), pickle.loads(pickle.dumps(traced))):
        assert torch.equal(other(x)["out"], net(x)["out"]) and other.code == traced.code
    copied = copy.deepcopy(traced)
    with torch.no_grad():
        copied.scale.add_(1)
    assert not torch.equal(copied(x)["both"][0], net(x)["both"][0])


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: x if x.sum() > 0 else -x, TraceError, "cannot be used as inputs to control flow"),
        (lambda x: [-part for part in x], TraceError, "Proxy object cannot be iterated"),
        (len, RuntimeError, "'len' is not supported in symbolic tracing by default"),
    ],
)
def test_symbolic_trace_of_data_dependent_functions_raises(function: Any, error: type[Exception], text: str) -> None:
    before = torch.nn.Module.__call__
    with pytest.raises(error, match=text):
        fx.symbolic_trace(function)
    assert torch.nn.Module.__call__ is before and math.sqrt(4) == 2 and not is_fx_tracing()


def counted(x: Any) -> Any:
    """Reads a value, so it cannot be traced."""
    return x * int(x.numel())


fx.wrap("counted")


def test_wrapped_functions_and_those_of_math_become_calls() -> None:
    traced = fx.symbolic_trace(lambda x: counted(x) * math.sqrt(x.shape[0]))
    assert traced(torch.ones(4)).tolist() == [8, 8, 8, 8]
    assert traced.graph.find_nodes(op="call_function")[0].target is counted
    assert pickle.loads(pickle.dumps(traced))(torch.ones(4)).tolist() == [8, 8, 8, 8]
    assert counted(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level of a module"):
        fx.wrap("counted")
    with pytest.raises(RuntimeError, match="Unsupported type for global function"):
        fx.wrap(3)


def test_all_that_is_left_by_place_and_by_name() -> None:
    traced = fx.symbolic_trace(lambda x, *rest, **named: x + rest[0] * named["scale"])
    assert traced(torch.ones(1), torch.ones(1), scale=3.0).tolist() == [4]
    assert [n.target for n in traced.graph.find_nodes(op="placeholder")] == ["x", "*rest", "**named"]


def test_concrete_arguments_decide() -> None:
    traced = fx.symbolic_trace(lambda x, flip: -x if flip else x, concrete_args={"flip": True})
    assert traced(torch.ones(1), True).tolist() == [-1]


def test_tensors_from_outside_become_attributes() -> None:
    constant = torch.tensor([1.0, 2.0])
    traced = fx.symbolic_trace(lambda x: x * constant + constant)
    assert traced(torch.ones(2)).tolist() == [2, 4]
    assert [n.target for n in traced.graph.find_nodes(op="get_attr")] == ["_tensor_constant0"] * 2


def test_a_graph_is_changed() -> None:
    traced = fx.symbolic_trace(lambda x: torch.sigmoid(x) + 1)
    old = traced.graph.find_nodes(op="call_function", target=torch.sigmoid)[0]
    with pytest.raises(RuntimeError, match="Tried to erase Node sigmoid but it still had 1 users in the graph"):
        traced.graph.erase_node(old)
    with traced.graph.inserting_after(old):
        new = traced.graph.call_function(torch.relu, old.args)
    assert [n.name for n in old.replace_all_uses_with(new)] == ["add"] and old.next is new and new.prev is old
    assert traced.graph.eliminate_dead_code() and not traced.graph.eliminate_dead_code()
    traced.graph.lint()
    traced.recompile()
    assert traced(torch.tensor([-1.0])).tolist() == [1] and "sigmoid" not in traced.code
    new.update_arg(0, 3)
    assert new.args == (3,) and new.all_input_nodes == []


def test_lint_reports_wrong_graphs() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    late = graph.call_function(torch.neg, (x,))
    early = graph.call_function(torch.neg, (late,))
    late.prepend(early)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()
    with pytest.raises(AssertionError, match="op jump is not a valid op"):
        graph.create_node("jump", "x")
    other = fx.Graph()
    other.output(x)
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other.lint()


def test_a_graph_built_by_hand() -> None:
    graph = fx.Graph()
    tracer = GraphAppendingTracer(graph)
    a, b = (fx.Proxy(graph.placeholder(name), tracer) for name in "ab")
    weight = fx.Proxy(graph.get_attr("w"), tracer)
    graph.output(((2**a) @ b + weight).node)
    net = fx.GraphModule({"w": torch.ones(2)}, graph, class_name="Powers")
    assert type(net).__name__ == "Powers" and list(net.state_dict()) == ["w"]
    assert net(torch.ones(2, 2), torch.eye(2)).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(RuntimeError, match="Node referenced target w but that target was not provided in root!"):
        fx.GraphModule({}, graph)


def test_a_graph_in_another() -> None:
    inner = fx.symbolic_trace(lambda x: x.exp() + 1).graph
    graph = fx.Graph()
    start = graph.placeholder("y")
    values = {inner.find_nodes(op="placeholder")[0]: start}
    graph.output(graph.graph_copy(inner, values))
    assert fx.GraphModule({}, graph)(torch.zeros(1)).tolist() == [2]
    assert [n.name for n in reversed(graph.nodes)] == ["output", "add", "exp", "y"] and len(graph.nodes) == 4


def test_interpreters_and_transformers() -> None:
    net, x = Net(), torch.randn(2, 3)
    traced = fx.symbolic_trace(net)
    assert torch.equal(fx.Interpreter(traced).run(x)["out"], net(x)["out"])
    assert fx.Transformer(traced).transform().code == traced.code

    class Swapped(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(operator.sub if target is operator.add else target, args, kwargs)

    swapped = Swapped(fx.symbolic_trace(lambda x: x + 1)).transform()
    assert swapped(torch.ones(1)).tolist() == [0]
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x, but one was not passed in!"):
        fx.Interpreter(traced).run()


def test_leaves_are_chosen_by_the_tracer() -> None:
    class Through(fx.Tracer):
        def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
            return not isinstance(m, torch.nn.ReLU)

    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    assert [n.target for n in Through().trace(net).nodes][-1] == "output"
    assert [n.op for n in fx.Tracer().trace(net).nodes] == ["placeholder", "call_module", "call_module", "output"]


def test_modules_of_a_graphs_module() -> None:
    traced = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
    assert traced.add_submodule("extra.deep", torch.nn.Linear(1, 1)) and "extra.deep" in dict(traced.named_modules())
    traced.delete_all_unused_submodules()
    assert [name for name, _ in traced.named_modules()] == ["", "0", "1"]
    assert traced.delete_submodule("1") and not traced.delete_submodule("nothing")
    assert "def forward" in traced.print_readable(print_output=False)


def test_layers_are_fused_and_dropout_removed() -> None:
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3)
    )
    net(torch.randn(4, 1, 4, 4))
    net.eval()
    x = torch.randn(2, 1, 4, 4)
    fused = optimization.fuse(net)
    assert [type(m).__name__ for m in fused.children()] == ["Conv2d", "ReLU", "Dropout", "Flatten", "Linear"]
    torch.testing.assert_close(fused(x), net(x), atol=1e-5, rtol=1e-4)  # products in another order
    assert len(list(net.children())) == 7
    assert not any("3" in n.name for n in optimization.remove_dropout(fused).graph.nodes)
    net.train()
    with pytest.raises(AssertionError, match="only for eval"):
        optimization.fuse(net)


def test_a_result_used_twice_is_not_fused() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv1d(1, 1, 1), torch.nn.BatchNorm1d(1)

        def forward(self, x: Any) -> Any:
            y = self.conv(x)
            return self.norm(y) + y

    assert len(list(optimization.fuse(Twice().eval()).children())) == 2


def test_compatibility_is_recorded_in_the_docstring() -> None:
    @compatibility(is_backward_compatible=False)
    def f() -> None:
        """Does nothing."""

    assert (f.__doc__ or "").startswith("Does nothing.")
    assert "experimental" in (f.__doc__ or "")


def test_parameters_of_a_tracer_that_overrides_create_proxy() -> None:
    class Named(fx.Tracer):
        def create_proxy(
            self, kind: str, target: Any, args: Any, kwargs: Any, name: Any = None, type_expr: Any = None, *_: Any
        ) -> Any:
            return super().create_proxy(kind, target, args, kwargs, name, type_expr)

    class Scale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: Any) -> Any:
            return x * self.weight

    for constant in (False, True):
        graph = Named(param_shapes_constant=constant).trace(Scale())
        assert [node.op for node in graph.nodes] == ["placeholder", "get_attr", "call_function", "output"]
        assert [node.op for node in list(graph.nodes)[2]._input_nodes] == ["placeholder", "get_attr"]


def test_nodes_of_a_replaced_pattern_are_removed() -> None:
    traced = fx.symbolic_trace(lambda x, y: torch.cat([x, y]).sum() + 1)
    made = fx.subgraph_rewriter.replace_pattern_with_filters(
        traced, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b]), [lambda *parts: True]
    )
    assert [str(n.name) for n in made[0].replacements] == ["stack"]
    assert [n.name for n in traced.graph.nodes] == ["x", "y", "stack", "add", "output"]
    rejected = fx.subgraph_rewriter.replace_pattern_with_filters(
        traced, lambda a, b: torch.stack([a, b]), lambda a, b: torch.cat([a, b]), [lambda *parts: False]
    )
    assert rejected == []


def test_the_insertion_point_without_a_block() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.neg, (x,))
    graph.output(y)
    graph.inserting_after(x)
    between = graph.call_function(torch.sigmoid, (x,))
    with graph.inserting_before(y):
        graph.call_function(torch.exp, (between,))
    graph.call_function(torch.relu, (x,))
    assert [n.name for n in graph.nodes] == ["x", "relu", "sigmoid", "exp", "neg", "output"]
    graph.lint()
