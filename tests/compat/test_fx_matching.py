"""``torch.fx``: specialized arguments, common subexpressions, matching and drawing. Expected texts are PyTorch's."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import pytest

import compat as torch
from compat import fx, nn
from compat.fx.experimental.proxy_tensor import make_fx
from compat.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from compat.fx.passes.shape_prop import ShapeProp
from compat.fx.passes.utils.matcher_utils import SubgraphMatcher
from compat.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap


def branch(x: Any, flag: Any, d: Any, k: Any = 3) -> Any:
    return x + 1 if flag else d["a"] * k


def pair(x: Any, t: Any) -> Any:
    return x + t[0] + t[1]


def test_concrete_args_remain_parameters_that_calls_check() -> None:
    made = fx.symbolic_trace(branch, concrete_args={"flag": True})
    assert made.code.strip() == (
        "def forward(self, x, flag_1, d, k = 3):\n"
        "    eq = flag_1 == True;  flag_1 = None\n"
        "    _assert = torch._assert(eq, 'flag has been specialized to have value True but got another value');  "
        "eq = _assert = None\n"
        "    add = x + 1;  x = None\n"
        "    return add"
    )
    assert made(torch.ones(1), True, None).item() == 2
    with pytest.raises(AssertionError, match="flag has been specialized to have value True"):
        made(torch.ones(1), False, None)
    made = fx.symbolic_trace(branch, concrete_args={"flag": None})
    assert made(torch.ones(1), None, {"a": 2}) == 6
    with pytest.raises(AssertionError, match="value None"):
        made(torch.ones(1), 2, {"a": 2})


def test_containers_in_concrete_args_are_flattened() -> None:
    made = fx.symbolic_trace(pair, concrete_args={"t": (fx.PH, 2)})
    assert made.code.strip().splitlines()[:2] == [
        "def forward(self, x, t):",
        "    x, t_1, t_2, = fx_pytree.tree_flatten_spec([x, t], self._in_spec)",
    ]
    assert [n.name for n in made.graph.find_nodes(op="placeholder")] == ["x", "t_1", "t_2"]
    one = torch.ones(1)
    for net in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(made)), fx.Transformer(made).transform()):
        assert net(one, (one, 2)).item() == 4
        with pytest.raises(AssertionError, match="value 2"):
            net(one, (one, 3))
    assert fx.Interpreter(made).run(one, (one, 2)).item() == 4
    assert fx.Interpreter(made).run(one, one, 2, enable_io_processing=False)[0].item() == 4
    nested = fx.symbolic_trace(lambda x, s: {"o": x, "p": [s]}, concrete_args={"s": [fx.PH]})
    assert nested(1, [2]) == {"o": 1, "p": [[2]]}
    with_default = fx.symbolic_trace(branch, concrete_args={"flag": False, "d": {"a": fx.PH, "b": 2}})
    assert with_default(one, False, {"a": one, "b": 2}).item() == 3
    with pytest.raises(NotImplementedError, match="keyword-only"):
        fx.symbolic_trace(lambda t, *, x: t[0] + x, concrete_args={"t": [fx.PH]})


def _code(net: Any) -> str:
    return CSEPass()(net).graph_module.code.strip()


def test_common_subexpressions_are_merged() -> None:
    assert _code(
        fx.symbolic_trace(lambda x: torch.sum(x, dim=[0, 1]) + torch.sum(x, dim=[0, 1]) + x.sin() + x.sin())
    ) == (
        "def forward(self, x):\n"
        "    sum_1 = torch.sum(x, dim = [0, 1])\n"
        "    add = sum_1 + sum_1;  sum_1 = None\n"
        "    sin = x.sin();  x = None\n"
        "    add_1 = add + sin;  add = None\n"
        "    add_2 = add_1 + sin;  add_1 = sin = None\n"
        "    return add_2"
    )
    net = make_fx(lambda x: (x.cos() + 1) * (x.cos() + 1) + (x.cos() + 1.0))(torch.ones(2))
    result = CSEPass()(net)
    assert result.modified and len(result.graph_module.graph.nodes) == 7
    assert torch.equal(result.graph_module(torch.ones(2)), net(torch.ones(2)))
    assert not CSEPass()(result.graph_module).modified


def test_what_differs_with_equal_arguments_is_not_merged() -> None:
    for draws in (lambda x: torch.rand_like(x) + torch.rand_like(x), lambda x: x.bernoulli() + x.bernoulli()):
        assert not CSEPass()(fx.symbolic_trace(draws)).modified
        assert not CSEPass()(make_fx(draws)(torch.ones(2))).modified
    assert CSEPass(banned_ops=set())(fx.symbolic_trace(lambda x: torch.rand_like(x) + torch.rand_like(x))).modified
    assert torch.ops.aten.rand_like in get_CSE_banned_ops()

    def writes(x: Any) -> Any:
        a, b = torch.zeros(2), torch.zeros(2)
        a.add_(x)
        return a, b

    net = make_fx(writes)(torch.ones(2))
    assert not CSEPass()(net).modified
    net = fx.symbolic_trace(lambda x: (x.sin() + x) * x.sin())
    net.graph.find_nodes(op="call_function")[0].target = operator.iadd
    assert not CSEPass()(net).modified


def test_matches_of_a_pattern() -> None:
    graph = fx.symbolic_trace(lambda x, y, z: torch.relu(torch.relu(x + y) + z) * torch.relu(x + z)).graph
    matcher = SubgraphMatcher(fx.symbolic_trace(lambda a, b: torch.relu(a + b)).graph)
    found = matcher.match(graph)
    names = [{k.name: v.name for k, v in m.nodes_map.items()} for m in found]
    assert names[1] == {"relu": "relu_1", "add": "add_1", "a": "relu", "b": "z"}
    assert [str(m.placeholder_nodes) for m in found] == ["[x, y]", "[relu, z]", "[x, z]"]
    assert [str(m.returning_nodes) for m in found] == ["[relu]", "[relu_1]", "[relu_2]"]
    used_inside = fx.symbolic_trace(lambda x, y: torch.relu(x + y) * (x + y)).graph
    assert len(matcher.match(used_inside)) == 1

    def shared(x: Any, y: Any) -> Any:
        s = x + y
        return torch.relu(s) * s

    assert matcher.match(fx.symbolic_trace(shared).graph) == []
    with pytest.raises(ValueError, match="empty pattern"):
        SubgraphMatcher(fx.Graph())


def test_options_of_matching() -> None:
    pattern = fx.symbolic_trace(lambda a: torch.sum(a, dim=1)).graph
    graph = fx.symbolic_trace(lambda a: torch.sum(a, dim=0) + torch.sum(a, dim=1)).graph
    ends = [
        [m.returning_nodes[0].name for m in SubgraphMatcher(pattern, **options).match(graph)]
        for options in ({}, {"ignore_literals": True}, {"match_output": True}, {"match_placeholder": True})
    ]
    assert ends == [["sum_2"], ["sum_1", "sum_2"], [], ["sum_2"]]
    two = SubgraphMatcher(fx.symbolic_trace(lambda a, b: (a + b, a * b)).graph)
    (match,) = two.match(fx.symbolic_trace(lambda x, y: (x + y) - (x * y)).graph)
    assert str(match.anchors) == "[add, mul]" and str(match.placeholder_nodes) == "[x, y]"
    nets = (nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(n))) for n in (1, 3))
    one, three = (fx.symbolic_trace(net).graph for net in nets)
    assert len(SubgraphMatcher(one).match(three)) == 3


def test_a_pattern_may_name_its_nodes() -> None:
    def pattern(a: Any) -> Any:
        c = torch.sin(a)
        return torch.relu(c), {"sin": c}

    graph = fx.symbolic_trace(lambda x: torch.relu(torch.sin(x)) + 1).graph
    (match,) = SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(pattern)).match(graph)
    assert match.name_node_map["sin"].name == "sin"


def test_a_graph_is_drawn() -> None:
    drawer = pytest.importorskip("compat.fx.passes.graph_drawer").FxGraphDrawer
    net = fx.symbolic_trace(lambda x: torch.sum(x, dim=1) + 2)
    try:
        import pydot  # noqa: F401
    except ImportError:
        with pytest.raises(RuntimeError, match="pydot"):
            drawer(net, "net")
        return
    ShapeProp(net).propagate(torch.ones(4, 2))
    text = drawer(net, "net").get_dot_graph().to_string()
    meta = r"|dtype=torch.float32\n|shape=(4,)\n|requires_grad=False\n|stride=(1,)\n"
    assert (
        rf'label="{{name=%sum_1|op_code=call_function\n|target=torch.sum\n|kwargs=\{{dim: 1,\}}|num_users=1\n{meta}}}'
        in text
    )
    assert "fillcolor=CadetBlue1" in text and "sum_1 -> add;" in text
    with pytest.raises(NotImplementedError, match="normalize_args"):
        drawer(net, "net", normalize_args=True)
