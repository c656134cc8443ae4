"""Results that depend on the values of traced tensors are recorded or raise, and are never constants of the graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import nn
from compat._dynamo.exc import Unsupported
from compat.fx.experimental.proxy_tensor import make_fx
from compat.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

F = nn.functional
Function = Callable[[torch.Tensor], Any]

#: Functions that a trace records although they depend on values.
RECORDED: dict[str, Function] = {
    "mask": lambda x: x[x > 0],
    "where with one operand": lambda x: x[torch.where(x > 0)],
    "nonzero": lambda x: x.nonzero(),
    "masked_select": lambda x: torch.masked_select(x, x > 0),
    "unique": lambda x: torch.unique(x.sign()),
    "unique_consecutive": lambda x: torch.unique_consecutive(x.sign()),
    "bincount": lambda x: torch.bincount((x > 0).long()),
    "repeat_interleave": lambda x: x.repeat_interleave((x > 0).long()),
    "dropout": lambda x: F.dropout(x, 0.5),
    "feature dropout": lambda x: F.dropout1d(x.view(2, 2, 1), 0.5),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.5, training=True),
    "normal": lambda x: torch.normal(x.abs()),
    "normal with a deviation": lambda x: torch.normal(x, x.abs()),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "multinomial": lambda x: torch.multinomial(x.abs(), 2),
    "random in place": lambda x: x + torch.empty(4).uniform_(),
    "random permutation": lambda x: x[torch.randperm(4)],
    "a mask written through": lambda x: _written(x, x > 0),
    "singular values": lambda x: torch.linalg.svd(x.view(2, 2))[1],
    "isin": lambda x: torch.isin(x, torch.tensor([1.0])),
    "a constant written into": lambda x: torch.tensor([1.0, 2.0, 3.0, 4.0]).add_(x),
    "numbers of constants": lambda x: x * torch.tensor([2.0, 3.0]).tolist()[1],
}


def _written(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[mask] = 0.0
    return y


#: Functions whose graph would be right only for the example, and the expected error.
REFUSED: dict[str, tuple[Function, str]] = {
    "item": (lambda x: x * x.sum().item(), "item"),
    "tolist": (lambda x: torch.tensor(x.tolist()), "tolist"),
    "numpy": (lambda x: torch.from_numpy(x.numpy() * 2), "numpy"),
    "a NumPy function": (lambda x: torch.as_tensor(np.sin(x)), "array"),
    "a branch": (lambda x: x if x.sum() > 0 else -x, "bool"),
    "int": (lambda x: x * int(x.sum()), "int"),
    "equal": (lambda x: x * torch.equal(x, x + 1), "equal"),
    "allclose": (lambda x: x * torch.allclose(x, x + 1), "allclose"),
    "contains": (lambda x: x * (1.0 in x), "contains"),
    "a storage's bytes": (lambda x: torch.tensor(x.untyped_storage().tolist()), "tolist"),
    "text": (lambda x: x * len(f"{x[0]:.3f}"), "format"),
    "a size of a mask": (lambda x: x * x[x > 0].shape[0], "shape"),
    "len of a mask": (lambda x: x * len(x.nonzero()), "len"),
    "vmap": (lambda x: torch.vmap(torch.sin)(x) + 1, ""),
}


@pytest.mark.parametrize("name", RECORDED)
def test_data_dependent_operations_are_recorded(name: str) -> None:
    function = RECORDED[name]
    graph = make_fx(function)(torch.tensor([1.0, -2.0, 3.0, -4.0]))
    for other in ([-1.0, 2.0, -3.0, 4.0], [0.5, 1.0, 1.5, 2.0]):
        x = torch.tensor(other)
        torch.manual_seed(1)
        found = graph(x)
        torch.manual_seed(1)
        assert torch.equal(found, function(x)), name


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_would_be_constants_of_the_graph_are_refused(name: str) -> None:
    function, said = REFUSED[name]
    with pytest.raises(RuntimeError, match=rf"(?s){said}.* at test_data_dependence.py:\d+.*constant of the graph"):
        make_fx(function)(torch.tensor([1.0, -2.0, 3.0, -4.0]))


@pytest.mark.parametrize("name", REFUSED)
def test_a_backend_gets_no_graph_with_such_constants(name: str) -> None:
    function, _ = REFUSED[name]
    compiled = torch.compile(function, backend=lambda graph, _: graph)
    x, y = torch.tensor([1.0, -2.0, 3.0, -4.0]), torch.tensor([-1.0, 2.0, -3.0, -4.0])
    for t in (x, y, x):
        torch.manual_seed(1)
        found = compiled(t)
        torch.manual_seed(1)
        torch.testing.assert_close(found, function(t))
    with pytest.raises(Unsupported, match="the call is not one graph"):
        torch.compile(function, backend=lambda graph, _: graph, fullgraph=True)(x)


@pytest.mark.parametrize("name", RECORDED)
def test_a_backend_gets_data_dependent_operations(name: str) -> None:
    function = RECORDED[name]
    graphs: list[Any] = []
    compiled = torch.compile(function, backend=lambda graph, _: graphs.append(graph) or graph, fullgraph=True)
    compiled(torch.tensor([1.0, -2.0, 3.0, -4.0]))
    x = torch.tensor([-1.0, 2.0, -3.0, 4.0])
    torch.manual_seed(1)
    found = compiled(x)
    torch.manual_seed(1)
    assert torch.equal(found, function(x)) and len(graphs) == 1


class Scaled(nn.Module):
    """A module that branches on its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale if self.scale > 0 else -x


def test_export_refuses_branches_on_inputs_and_weights() -> None:
    with pytest.raises(GuardOnDataDependentSymNode, match=r"bool at test_data_dependence.py.*if self.scale > 0"):
        torch.export.export(Scaled(), (torch.ones(2),))


def test_tensors_are_as_before_when_a_trace_has_ended() -> None:
    memory = np.array([1.0, -1.0], np.float32)
    x = torch.from_numpy(memory)
    kind = type(x._storage_)
    kept: list[torch.Tensor] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        kept.append(x[x > 0])
        return x * x.sum().item()

    with pytest.raises(RuntimeError, match="item"):
        make_fx(function)(x)
    assert type(x._storage_) is kind and type(kept[0]) is torch.Tensor
    memory[1] = -2.0
    assert kept[0].shape == (1,) and x.tolist() == [1.0, -2.0]
    assert torch.rand(1).shape == (1,)


def test_texts_of_traced_tensors_are_no_constants(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        print(x)
        return x + 1

    assert make_fx(function)(torch.ones(2))(torch.zeros(2)).tolist() == [1.0, 1.0]
    assert capsys.readouterr().out == "tensor([1., 1.])\n"


def test_a_copy_of_a_traced_tensor_is_no_constant() -> None:
    with pytest.raises(RuntimeError, match="deep_copy at"):
        make_fx(lambda x: copy.deepcopy(x) * 2)(torch.ones(2))


def test_a_part_of_a_module_that_is_put_to_evaluation_is_another_graph() -> None:
    net = nn.Sequential(nn.Dropout(1.0), nn.Linear(2, 2))
    compiled = torch.compile(net, backend=lambda graph, _: graph)
    x = torch.ones(1, 2)
    compiled(x)
    net[0].eval()
    assert torch.equal(compiled(x), net(x))
