"""Writing into tensors that a transformed function captured."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch

_WRITES = {
    "aten::mul_.Tensor": lambda y, x: y.mul_(2),
    "aten::add_.Tensor": lambda y, x: y.detach().view(-1).add_(1),
    "aten::copy_": lambda y, x: y.__setitem__(0, 1.0),
    "aten::fill_.Scalar": lambda y, x: y.fill_(1),
    "aten::normal_": lambda y, x: y.normal_(),
    "aten::unsqueeze_": lambda y, x: y.unsqueeze_(0),
    "aten::resize_": lambda y, x: y.resize_(2),
    "aten::set_.source_Tensor": lambda y, x: y.set_(x),
}


def _grad(f: Callable[..., Any]) -> Any:
    return torch.func.grad(f)(torch.ones(3))


def _jvp(f: Callable[..., Any]) -> Any:
    return torch.func.jvp(f, (torch.ones(3),), (torch.ones(3),))


def _inner(f: Callable[..., Any]) -> Any:
    return _grad(lambda z: _grad(lambda x: f(x * z)).sum())


def _mapped(f: Callable[..., Any]) -> Any:
    return _grad(lambda z: torch.func.vmap(f)(torch.stack([z, z])).sum())


def _after(write: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: (write(x), x.sum())[1]


def _message(called: str) -> str:
    return re.escape(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
        f"({called}) that would mutate a captured Tensor. This is not supported; please rewrite the function being "
        "transformed to explicitly accept the mutated Tensor(s) as inputs."
    )


@pytest.mark.parametrize("called", _WRITES)
@pytest.mark.parametrize("transform", [_grad, _jvp])
def test_captured_tensors_are_not_written(transform: Any, called: str) -> None:
    y = torch.zeros(3)
    with pytest.raises(RuntimeError, match=_message(called)):
        transform(_after(lambda x: _WRITES[called](y, x)))
    assert y.tolist() == [0.0] * 3
    _WRITES[called](y, torch.ones(3))  # afterwards it is an ordinary tensor


@pytest.mark.parametrize("transform", [_inner, _mapped])
def test_captures_of_nested_transforms_are_not_written(transform: Any) -> None:
    y = torch.zeros(3)
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        transform(_after(lambda x: y.mul_(2)))


def test_tensors_of_the_outer_transform_are_captured_by_the_inner_one() -> None:
    def outer(z: Any) -> Any:
        made = torch.zeros(3)
        made.add_(1)
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            _grad(_after(lambda x: made.mul_(2)))
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            _grad(_after(lambda x: z.mul_(2)))
        return (z * made.mul_(3)).sum()

    assert _grad(outer).tolist() == [3.0] * 3


@pytest.mark.parametrize("transform", [_grad, _jvp, _inner, _mapped])
def test_functions_may_write_their_own_tensors(transform: Any) -> None:
    def f(x: Any) -> Any:
        made = x * 0
        made[1:].copy_(x[1:])
        made.add_(torch.zeros(3).add_(1))
        return made.sum()

    transform(f)


def test_results_of_an_inner_transform_may_be_written() -> None:
    def outer(z: Any) -> Any:
        found = torch.func.grad(lambda x: (x**3).sum())(z)
        return found.mul_(2).sum()

    assert _grad(outer).tolist() == [12.0] * 3


def test_arguments_may_be_written() -> None:
    kept = [torch.zeros(3), torch.zeros(3)]
    f = lambda x, first, *, second: (x * first.add_(1) * second.add_(2)).sum()
    assert torch.func.grad(f)(torch.ones(3), kept[0], second=kept[1]).tolist() == [2.0] * 3
    assert [t.tolist() for t in kept] == [[1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize("jacobian", [torch.func.jacfwd, torch.func.jacrev])
def test_other_arguments_of_jacobians_may_be_written(jacobian: Any) -> None:
    y = torch.zeros(3)
    assert jacobian(lambda x, y: y.add_(1) * x)(torch.ones(3), y).tolist() == torch.eye(3).tolist()
    assert y.tolist() == [1.0] * 3


def test_vmap_may_write_captured_tensors() -> None:
    y = torch.zeros(3)
    torch.func.vmap(_after(lambda x: y.add_(1)))(torch.ones(2, 3))
    assert y.tolist() == [1.0] * 3


def test_lists_and_results_are_written_wherever_they_were_made() -> None:
    row, out = torch.zeros(3), torch.zeros(3)
    _grad(_after(lambda x: torch._foreach_add_([row], 1.0)))
    _grad(_after(lambda x: torch.add(torch.ones(3), 1, out=out)))
    assert (row.tolist(), out.tolist()) == ([1.0] * 3, [2.0] * 3)


def test_running_statistics_move_wherever_they_are() -> None:
    mean, var, x = torch.zeros(2), torch.ones(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    torch.func.grad(lambda x: torch.nn.functional.batch_norm(x, mean, var, training=True).sum())(x)
    assert torch.allclose(mean, torch.tensor([0.2, 0.3])) and torch.allclose(var, torch.tensor([1.1, 1.1]))


_IN_A_NEW_PROCESS = """
import compat as torch
{before}
y = torch.zeros(3)
try:
    torch.func.grad(lambda x: ({write}, x.sum())[1])(torch.ones(3))
except RuntimeError as error:
    print(error)
"""
_OVERRIDES = """
class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})
Own([1.0]).add(1)
"""


@pytest.mark.parametrize("before", ["", _OVERRIDES])
@pytest.mark.parametrize(
    ("called", "write"), [("aten::mul_.Tensor", "y.mul_(2)"), ("aten::set_.source_Tensor", "y.set_(x)")]
)
def test_the_overload_is_named_whatever_ran_before(called: str, write: str, before: str) -> None:
    program = _IN_A_NEW_PROCESS.format(before=before, write=write)
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert re.search(_message(called), ended.stdout)
