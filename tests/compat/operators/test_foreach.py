"""``torch._foreach_...``: one node for a whole list, with PyTorch's names, edges, saved attributes and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch


def _list() -> list[torch.Tensor]:
    return [torch.full((2,), 0.5, requires_grad=True) for _ in range(2)]


def _saved(node: Any) -> list[str]:
    return [n.removeprefix("_saved_") for n in dir(node) if n.startswith("_saved_")]


@pytest.mark.parametrize(
    ("run", "name", "edges", "saved"),
    [
        (lambda: torch._foreach_exp(_list()), "ForeachExpBackward0", 2, []),
        (lambda: torch._foreach_add(_list(), 1.0), "ForeachAddBackward1Scalar", 2, []),
        (lambda: torch._foreach_mul(_list(), [1.0, 2.0]), "ForeachMulBackward1ScalarList", 2, []),
        (lambda: torch._foreach_sub(_list(), _list()), "ForeachSubBackward0List", 4, []),
        (lambda: torch._foreach_mul(_list(), torch.ones((), requires_grad=True)), "ForeachMulBackward0Tensor", 3, []),
        (lambda: torch._foreach_div(_list(), _list()), "ForeachDivBackward0", 4, ["other", "self"]),
        (lambda: torch._foreach_clamp_max(_list(), 1.0), "ForeachClampMaxBackward0Scalar", 2, []),
        (lambda: torch._foreach_clamp_max(_list(), _list()), "ForeachClampMaxBackward1List", 4, []),
        (lambda: torch._foreach_maximum(_list(), 1.0), "ForeachMaximumBackward0", 2, ["scalar", "self"]),
        (lambda: torch._foreach_minimum(_list(), [1.0, 2.0]), "ForeachMinimumBackward1", 2, ["scalars", "self"]),
        (lambda: torch._foreach_pow(_list(), 2.0), "ForeachPowBackward0Scalar", 2, []),
        (lambda: torch._foreach_pow(_list(), [2.0, 3.0]), "ForeachPowBackward1", 2, ["exponent", "self"]),
        (lambda: torch._foreach_pow(2.0, _list()), "ForeachPowBackward2", 2, ["exponent", "result", "self"]),
        (lambda: torch._foreach_addcmul(_list(), _list(), _list()), "ForeachAddcmulBackward0Scalar", 6, []),
        (lambda: torch._foreach_lerp(_list(), _list(), 0.5), "ForeachLerpBackward0Scalar", 4, []),
        (lambda: torch._foreach_lerp(_list(), _list(), _list()), "ForeachLerpBackward1List", 6, []),
        (lambda: torch._foreach_norm(_list()), "ForeachNormBackward0", 2, ["ord", "result", "self"]),
        (lambda: torch._foreach_max(_list()), "ForeachMaxBackward1", 2, []),
    ],
    ids=lambda v: v if type(v) is str else "",
)
def test_a_list_has_one_node(run: Callable[[], Any], name: str, edges: int, saved: list[str]) -> None:
    first, second = run()
    node = first.grad_fn
    assert node is second.grad_fn
    assert (first.output_nr, second.output_nr) == (0, 1)
    assert (node.name(), len(node.next_functions), _saved(node)) == (name, edges, saved)
    assert all(f is not None for f, _ in node.next_functions)
    assert type(node).__name__ == (name if saved else "CppFunction")


def test_saved_values_are_lists_of_all_tensors() -> None:
    a, b = _list()
    node = torch._foreach_pow(2.0, [a, b])[0].grad_fn
    assert node._saved_self == 2.0
    assert [t.tolist() for t in node._saved_exponent] == [[0.5, 0.5], [0.5, 0.5]]
    assert [t.grad_fn for t in node._saved_result] == [node, node]
    assert len(node._raw_saved_exponent) == 2
    assert torch._foreach_maximum([a, b], [1, 2.0])[0].grad_fn._saved_scalars == (1, 2.0)


def test_tensors_without_grad_have_empty_edges() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(3)
    out = torch._foreach_mul([a, b], 2.0)
    assert out[1].requires_grad
    assert [f is None for f, _ in out[0].grad_fn.next_functions] == [False, True]
    (out[0].sum() + out[1].sum()).backward()
    assert a.grad.tolist() == [2.0, 2.0]


def test_foreach_gradients_of_a_shared_factor_are_summed() -> None:
    a, factor = [torch.full((2,), 0.5), torch.full((3,), 0.5)], torch.ones((), requires_grad=True)
    first, second = torch._foreach_mul(a, factor)
    (first.sum() + 2 * second.sum()).backward()
    assert factor.grad.item() == 4.0


def test_the_gradient_is_halved_where_a_number_is_met() -> None:
    x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    torch._foreach_maximum([x], 1.0)[0].sum().backward()
    assert x.grad.tolist() == [0.0, 0.5, 1.0]


def test_gradients_of_gradients() -> None:
    x = torch.full((2,), 0.5, requires_grad=True)
    first, second = torch._foreach_exp([x, x])
    (grad,) = torch.autograd.grad((first * second).sum(), x, create_graph=True)
    (again,) = torch.autograd.grad(grad.sum(), x)
    torch.testing.assert_close(again, 4 * torch.exp(2 * x.detach()))


def test_a_single_result_is_enough() -> None:
    a, b = _list()
    first, second = torch._foreach_exp([a, b])
    (got,) = torch.autograd.grad(second.sum(), b, retain_graph=True)
    torch.testing.assert_close(got, second.detach())
    assert torch.autograd.grad(first.sum(), b, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="a second time"):
        second.sum().backward()


def test_in_place_each_tensor_has_its_own() -> None:
    clones = [t.clone() for t in _list()]
    torch._foreach_exp_(clones)
    assert [t.grad_fn.name() for t in clones] == ["ExpBackward0", "ExpBackward0"]
