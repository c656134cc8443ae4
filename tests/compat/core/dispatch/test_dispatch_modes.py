"""Dispatch modes: intercepted calls, and the use of their results."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import compat as torch
import compat.nn.functional as F
from compat.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode


class Names(TorchDispatchMode):
    def __init__(self, name: str = ""):
        super().__init__()
        self.name = name
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(self.name + str(func))
        return func(*args, **(kwargs or {}))


def test_operations_by_their_names() -> None:
    """As in PyTorch 2.13, except for the detaching of saved tensors and for numbers that PyTorch turns into tensors."""
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    with Names() as mode:
        y = F.linear(x, w, torch.ones(4)).relu() + 1
        y.view(-1)[1:].sum(0, keepdim=True).mul_(2)
        x.mean(0), x.max(0), x.pow(2), x / 2, x > 0, torch.where(x > 0, x, 0.0), F.log_softmax(x, 1)
    assert mode.seen == [
        "aten.ones.default", "aten.t.default", "aten.addmm.default", "aten.relu.default", "aten.add.Tensor",
        "aten.view.default", "aten.slice.Tensor", "aten.sum.dim_IntList", "aten.mul_.Tensor",
        "aten.mean.dim", "aten.max.dim", "aten.pow.Tensor_Scalar", "aten.div.Tensor", "aten.gt.Scalar",
        "aten.gt.Scalar", "aten.where.self", "aten._log_softmax.default",
    ]  # fmt: skip


def test_the_innermost_mode_overrides_first_and_alone() -> None:
    with Names("outer ") as outer, Names("inner ") as inner:
        assert _get_current_dispatch_mode() is inner
        torch.ones(3).sin()
    assert _get_current_dispatch_mode() is None
    torch.ones(3).sin()
    names = ["aten.ones.default", "aten.sin.default"]
    assert inner.seen == [f"inner {name}" for name in names] and outer.seen == [f"outer {name}" for name in names]


def test_other_threads_are_not_seen() -> None:
    with Names() as mode:
        thread = threading.Thread(target=lambda: torch.ones(3).cos())
        thread.start()
        thread.join()
    assert mode.seen == []


def test_backward_is_intercepted_too() -> None:
    x = torch.ones(3, requires_grad=True)
    y = torch.add(x, x, alpha=2).sum()
    with Names() as mode:
        y.backward()
    names = ["ones_like.default", "sum_backward.default", "add_backward.default", "add.Tensor"]
    assert mode.seen == [f"aten.{name}" for name in names]
    assert x.grad.tolist() == [3.0] * 3


def test_dispatch_modes_intercept_derivatives_that_are_recorded() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with Twice(torch.ops.aten.sin.default), Names() as mode:
        (grad,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert "aten.pow_backward.default" in mode.seen and torch.equal(grad, 3 * x.detach() ** 2)
    assert torch.autograd.grad(grad.sum(), x)[0].tolist() == [6.0, 12.0]

    class Halves(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = func(*args, **(kwargs or {}))
            return found / 2 if str(func) == "aten.exp_backward.default" else found

    y = x.exp().sum()
    with Halves():
        y.backward()
    assert torch.equal(x.grad, x.detach().exp() / 2)


class Calls(TorchDispatchMode):
    """Records the calls that it intercepts, tensors by their sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args]
        named = {k: tuple(v.shape) if isinstance(v, torch.Tensor) else v for k, v in (kwargs or {}).items()}
        self.seen.append(f"{func} {given} {named}")
        return func(*args, **(kwargs or {}))


CPU = "'device': device(type='cpu'), 'pin_memory': False"


@pytest.mark.parametrize(
    ("call", "seen"),
    [
        (lambda x, out: x[0], ["aten.select.int [(2, 2), 0, 0] {}"]),
        (lambda x, out: x[:, 0:1], ["aten.slice.Tensor [(2, 2), 1, 0, 1] {}"]),
        (lambda x, out: x**2, ["aten.pow.Tensor_Scalar [(2, 2), 2] {}"]),
        (lambda x, out: x // 2, ["aten.floor_divide.default [(2, 2), 2] {}"]),
        (lambda x, out: x.double(), ["aten._to_copy.default [(2, 2)] {'dtype': torch.float64}"]),
        (lambda x, out: torch.abs(x, out=out), ["aten.abs.out [(2, 2)] {'out': (2, 2)}"]),
        (lambda x, out: torch.add(x, x, out=out), ["aten.add.out [(2, 2), (2, 2)] {'out': (2, 2)}"]),
        (lambda x, out: torch.pow(x, 2, out=out), ["aten.pow.Tensor_Scalar_out [(2, 2), 2] {'out': (2, 2)}"]),
        (lambda x, out: torch.eq(x, 1, out=out), ["aten.eq.Scalar_out [(2, 2), 1] {'out': (2, 2)}"]),
        (lambda x, out: torch.zeros(2), [f"aten.zeros.default [[2]] {{{CPU}}}"]),
        (lambda x, out: torch.arange(1, 3), [f"aten.arange.start [1, 3] {{{CPU}}}"]),
        (lambda x, out: torch.ones_like(x), ["aten.ones_like.default [(2, 2)] {'pin_memory': False}"]),
        (lambda x, out: torch.zeros(2, 2, out=out), ["aten.zeros.out [[2, 2]] {'out': (2, 2)}"]),
        (lambda x, out: out.uniform_(), ["aten.uniform_.default [(2, 2)] {}"]),
        (lambda x, out: x.new_zeros(2), ["aten.new_zeros.default [(2, 2), [2]] {'pin_memory': False}"]),
        (
            lambda x, out: x.new_empty_strided((2,), (1,)),
            ["aten.new_empty_strided.default [(2, 2), [2], [1]] {'pin_memory': False}"],
        ),
        (
            lambda x, out: torch.randint_like(x, 1, 3),
            ["aten.randint_like.low_dtype [(2, 2), 1, 3] {'pin_memory': False}"],
        ),
        (lambda x, out: torch.randint(3, (2,)), [f"aten.randint.default [3, [2]] {{{CPU}}}"]),
        (lambda x, out: x.nonzero(), ["aten.nonzero.default [(2, 2)] {}"]),
    ],
)  # fmt: skip
def test_calls_as_pytorch_shows_them(call: Any, seen: list[str]) -> None:
    x, out = torch.Tensor([[1.0, 2.0], [3.0, 4.0]]), torch.Tensor([[0.0, 0.0], [0.0, 0.0]])
    with Calls() as mode:
        call(x, out)
    assert mode.seen == seen


def test_factories_get_the_default_device_in_dispatch_modes() -> None:
    with torch.device("meta"), Calls() as mode:
        made = torch.ones(2)
    assert made.is_meta and "device(type='meta')" in mode.seen[0]


class Twice(TorchDispatchMode):
    """Doubles the results of some operations."""

    def __init__(self, *funcs: Any):
        super().__init__()
        self.funcs = funcs

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        return found * 2 if func in self.funcs else found


def test_results_of_a_mode_have_the_node_of_the_operation() -> None:
    """Values are the mode's, the graph is the operation's; a result that the node saves is the mode's."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with Twice(torch.ops.aten.sin.default, torch.ops.aten.exp.default):
        sin, exp = x.sin(), x.exp()
    assert torch.equal(sin, 2 * x.detach().sin()) and sin.grad_fn.name() == "SinBackward0"
    assert torch.equal(torch.autograd.grad(sin.sum(), x)[0], x.detach().cos())
    assert torch.equal(torch.autograd.grad(exp.sum(), x)[0], 2 * x.detach().exp())


def test_a_view_stays_one() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = x * 1
    with Names():
        view = y.t()
        view.mul_(3)
    assert view._base is y and y.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_an_error_leaves_no_state() -> None:
    class Refuses(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise KeyError(str(func))

    x = torch.ones(2)
    for _ in range(2):
        with pytest.raises(KeyError, match=r"aten\.sin\.default"), Refuses():
            x.sin()
        with pytest.raises(KeyError, match=r"aten\.ones\.default"), Refuses():
            torch.ones(2)
        assert torch.zeros(2).sin().tolist() == [0.0, 0.0]


def test_operations_of_families_and_those_that_write_a_result() -> None:
    x, out = torch.tensor([3.0, 4.0]), torch.empty(2)
    assert torch.ops.aten.linalg_vector_norm(x).item() == 5.0 and torch.ops.aten.fft_fft.default(x)[0].item() == 7.0
    assert torch.ops.aten.add.out(x, x, out=out) is out and out.tolist() == [6.0, 8.0]
    with pytest.raises(AttributeError):
        _ = torch.ops.aten.relu.other
    with pytest.raises(AttributeError):
        _ = torch.ops.aten.linalg_nothing
