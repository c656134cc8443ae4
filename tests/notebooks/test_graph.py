"""The graph step by step: when there is one, the backward pass, versions, detaching, freezing, loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import compat as torch
from compat import Tensor, nn

TWICE = "Trying to backward through the graph a second time"


def leaf(value: float) -> Tensor:
    return torch.tensor(value, requires_grad=True)


def test_no_graph_without_gradients() -> None:
    a, b = torch.tensor(2.0), torch.tensor(3.0)
    c = a * b
    for t in (a, b, c):
        assert (t.grad, t.grad_fn, t.is_leaf, t.requires_grad) == (None, None, True, False)


def test_one_product() -> None:
    a, b = leaf(2.0), torch.tensor(3.0)
    c = a * b
    assert (c.data.item(), c.is_leaf, c.requires_grad) == (6.0, False, True)
    ((node, number), other) = c.grad_fn.next_functions
    assert (node.name(), number, other) == ("torch::autograd::AccumulateGrad", 0, (None, 0))
    assert node.variable is a and c.grad_fn._saved_other is b
    c.backward()
    assert (a.grad.item(), b.grad) == (3.0, None)


def test_two_products() -> None:
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    e = (a * b) * d
    e.backward()
    assert [t.grad.item() for t in (a, b, d)] == [12.0, 8.0, 6.0]


def test_in_place_writes_of_saved_tensors_are_detected() -> None:
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    c = a * b
    e = c * d
    assert c._version == 0
    c += 1
    assert c._version == 1
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.* is at version 1; expected version 0"):
        e.backward()


def test_in_place_writes_of_saved_data_are_detected() -> None:
    a, b = leaf(2.0).data, leaf(3.0)
    e = a * b
    a += 1
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.* is at version 1; expected version 0"):
        e.backward()


def test_in_place_writes_of_unsaved_tensors_are_allowed() -> None:
    a, b, d = leaf(2.0), leaf(3.0), leaf(4.0)
    c = a * b
    e = c + d
    c += 1
    e.backward()
    assert [t.grad.item() for t in (a, b, d)] == [3.0, 2.0, 1.0]


def test_unbind() -> None:
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b, c, d = a.unbind()
    assert b.grad_fn is c.grad_fn is d.grad_fn and b.grad_fn.name() == "UnbindBackward0"
    assert [t.output_nr for t in (b, c, d)] == [0, 1, 2]
    e = b * c * d
    first = e.grad_fn.next_functions[0][0]
    assert first.next_functions == ((b.grad_fn, 0), (b.grad_fn, 1))
    assert e.grad_fn.next_functions[1] == (b.grad_fn, 2)
    e.backward()
    assert a.grad.tolist() == [6.0, 3.0, 2.0]


def everything() -> dict[str, Tensor]:
    a, b, d, f = (torch.tensor(2.0) for _ in range(4))
    c = a * b
    c.requires_grad = True
    e = c * d
    g = f * e
    h = leaf(2.0)
    i = g / h
    j = i + h
    return dict(a=a, b=b, c=c, d=d, e=e, f=f, g=g, h=h, i=i, j=j, k=j * i)


def test_a_graph_with_all_kinds_of_nodes() -> None:
    t = everything()
    assert "".join(name for name, v in t.items() if v.is_leaf) == "abcdfh"
    assert "".join(name for name, v in t.items() if v.requires_grad) == "ceghijk"
    assert t["j"].grad_fn.next_functions[0][0] is t["i"].grad_fn is t["k"].grad_fn.next_functions[1][0]
    assert t["j"].grad_fn.next_functions[1][0] is t["i"].grad_fn.next_functions[1][0]
    t["i"].retain_grad()
    t["k"].backward()
    # k = (i + h) * i with i = 4 c / h, c = 4, h = 2
    c, h = 4.0, 2.0
    i = 4 * c / h
    by_i = 2 * i + h
    assert t["i"].grad.item() == by_i
    assert t["c"].grad.item() == by_i * 4 / h
    assert t["h"].grad.item() == i - by_i * 4 * c / h**2
    assert t["i"].retains_grad and not t["j"].retains_grad


def test_values_freed_by_backward() -> None:
    k = everything()["k"]
    k.backward()
    assert k.grad_fn.next_functions[0][0].name() == "AddBackward0"
    with pytest.raises(RuntimeError, match=TWICE):
        _ = k.grad_fn._saved_self
    with pytest.raises(RuntimeError, match=TWICE):
        k.backward()


def test_values_kept_without_the_graph() -> None:
    k = everything()["k"]
    m = k.detach()
    assert (m.is_leaf, m.grad_fn, m.requires_grad) == (True, None, False) and m.data_ptr() == k.data_ptr()
    assert (m.numpy(), k.item(), k.tolist(), type(k.item())) == (80.0, 80.0, 80.0, float)
    with pytest.raises(RuntimeError, match=r"Use tensor\.detach\(\)\.numpy\(\) instead"):
        k.numpy()
    assert torch.arange(4).view(2, 2).tolist() == [[0, 1], [2, 3]]


def test_the_gradient_argument_of_backward_is_used() -> None:
    x = leaf(3.0)
    (x**2).backward(gradient=torch.tensor(0.05))
    assert x.grad.item() == pytest.approx(0.3)


# ---------------------------------------------------------------- freezing


@pytest.fixture
def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 1))


def test_freezing_a_module(model: nn.Sequential) -> None:
    assert model[0].requires_grad_(False) is model[0]
    asked = [False, False, True, True, True, True]
    assert [p.requires_grad for p in model.parameters()] == asked
    model(torch.randn(4, 2)).sum().backward()
    assert [p.grad is not None for p in model.parameters()] == asked


def stepped(parameters: Iterable[Tensor]) -> tuple[list[int], list[list[int]]]:
    """The keys of an optimizer's state, and of its groups, after a step with one more group."""
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    optimizer.add_param_group({"params": parameters})
    optimizer.step()
    state = optimizer.state_dict()
    return list(state["state"]), [group["params"] for group in state["param_groups"]]


def test_the_state_has_the_places_of_the_parameters(model: nn.Sequential) -> None:
    model[0].requires_grad_(False)
    model(torch.randn(4, 2)).sum().backward()
    assert stepped(model.parameters()) == ([3, 4, 5, 6], [[0], [1, 2, 3, 4, 5, 6]])
    assert stepped([p for p in model.parameters() if p.requires_grad]) == ([1, 2, 3, 4], [[0], [1, 2, 3, 4]])


def test_duplicate_parameters_in_groups(model: nn.Sequential) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group({"params": model[0].parameters()})


def test_no_grad_and_inference_mode(model: nn.Sequential) -> None:
    with torch.no_grad():
        assert not model(torch.randn(4, 2)).requires_grad
    with torch.inference_mode():
        result = model(torch.randn(4, 2))
    assert result.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        result * torch.ones(1, requires_grad=True)


def test_eval_is_about_dropout_and_batch_norm(model: nn.Sequential) -> None:
    assert model.eval() is model and not any(m.training for m in model.modules())
    assert torch.equal(model[2](torch.ones(4)), torch.ones(4))
    mean = model[1].running_mean.clone()
    assert model(torch.randn(4, 2)).requires_grad
    assert torch.equal(model[1].running_mean, mean)
    model.train()
    assert all(m.training for m in model.modules())
    model(torch.randn(4, 2))
    assert not torch.equal(model[1].running_mean, mean)


def test_train_may_be_overridden() -> None:
    class Adapter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[bool] = []

        def train(self, mode: bool = True) -> Any:
            self.asked.append(mode)
            return super().train(mode)

    net = nn.Sequential(Adapter())
    net.eval()
    net.train()
    assert net[0].asked == [False, True]


def test_asking_afterwards() -> None:
    w = torch.ones(2, requires_grad=True)
    f = w * 2
    assert f.requires_grad_() is f and not f.is_leaf
    text = r"you can only change requires_grad flags of leaf variables\."
    for change in (lambda: setattr(f, "requires_grad", False), lambda: f.requires_grad_(False)):
        with pytest.raises(RuntimeError, match=f"{text} If you want to use a computed variable"):
            change()
    with pytest.raises(RuntimeError, match=text) as refused:
        f.requires_grad = True
    assert "use a computed variable" not in str(refused.value)


# ---------------------------------------------------------------- parameters made from results, loops


def test_a_parameter_made_twice_begins_a_graph() -> None:
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    f = nn.Parameter(w * torch.ones(2))
    f.sum().backward()
    assert w.is_leaf and f.is_leaf and w.grad is None and f.grad.tolist() == [1, 1]


def test_a_parameter_made_once_gets_its_gradient() -> None:
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    f = w * torch.ones(2)
    f.sum().backward()
    assert not f.is_leaf and w.grad.tolist() == [1, 1]


def test_a_graph_in_each_iteration() -> None:
    w, x = nn.Parameter(torch.tensor([1.0, 2.0])), torch.ones(2)
    optimizer = torch.optim.SGD([w], lr=0.5)
    losses = []
    for _ in range(3):
        loss = (w * x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == [3.0, 2.0, 1.0] and w.tolist() == [-0.5, 0.5]


def test_a_graph_before_the_loop_is_used_up() -> None:
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    f = w * torch.ones(2)
    f.sum().backward()
    loss = f.sum()
    assert loss.grad_fn.next_functions[0][0] is f.grad_fn
    with pytest.raises(RuntimeError, match=TWICE):
        loss.backward()


def chain(t: Tensor) -> list[str]:
    """The names of the nodes behind a tensor, along their first edges."""
    node, names = t.grad_fn, []
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def test_writing_into_parts_nests_the_graph() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    for i in range(3):
        y[i] = y[i] * 2
        copies = ["torch::autograd::CopySlices"] * (i + 1)
        assert chain(y) == [*copies, "MulBackward0", "torch::autograd::AccumulateGrad"]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_parts_of_a_product_made_in_the_loop_do_not() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for i in range(3):
        part = (x * 1)[i] ** 2
        assert chain(part) == ["PowBackward0", "SelectBackward0", "MulBackward0", "torch::autograd::AccumulateGrad"]
        part.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
