"""``autocast`` on the CPU: which operations are cast, and how blocks nest and end."""

from typing import Any

import pytest

import compat as torch
from compat.utils._python_dispatch import TorchDispatchMode
from compat.utils.checkpoint import checkpoint
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("autocast_bits"))
def test_rounding_is_that_of_pytorch_to_the_last_bit(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want, exact=True)


@pytest.mark.parametrize(("source", "want"), cases("autocast"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_computes_again_as_it_did(reentrant: bool) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.linspace(-1, 1, 16).view(4, 4).requires_grad_()
    with torch.autocast("cpu"):
        want = torch.autograd.grad(net(x).float().sum(), x)[0]
        y = checkpoint(net, x, use_reentrant=reentrant)
    y.float().sum().backward()
    assert torch.equal(x.grad, want)


def test_compiled_functions_distinguish_autocast_contexts() -> None:
    f = torch.compile(lambda x: x @ x)
    x = torch.ones(2, 2)
    for _ in range(4):
        assert f(x).dtype == torch.float32
        with torch.autocast("cpu"):
            assert f(x).dtype == torch.bfloat16
        with torch.autocast("cpu", dtype=torch.float16):
            assert f(x).dtype == torch.float16


def test_in_place_operators_keep_the_dtype_under_autocast() -> None:
    x = torch.zeros(2, 2)
    with torch.autocast("cpu"):
        assert x.addmm_(torch.eye(2), torch.eye(2)) is x
        assert torch.inner(x, x).dtype == torch.bfloat16
    assert x.tolist() == [[1.0, 0.0], [0.0, 1.0]]


class Calls(TorchDispatchMode):
    """Records operators, with the dtypes of their tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        dtypes = {str(a.dtype).removeprefix("torch.") for a in args if isinstance(a, torch.Tensor)}
        self.seen.append(f"{func} {' '.join(sorted(dtypes))}")
        return func(*args, **(kwargs or {}))


def test_dispatch_modes_see_the_casts_and_then_the_operator() -> None:
    """The list is PyTorch 2.13's; ``einsum`` is cast at the product, whose operands are views by then."""
    x = torch.ones(3, 3)
    with Calls() as calls, torch.autocast("cpu"):
        torch.mm(x, x)
        torch.nn.functional.linear(x, x)
        torch.einsum("ij,jk->ik", x, x)
    copy, half = "aten._to_copy.default float32", "bfloat16"
    assert calls.seen[:6] == [copy, copy, f"aten.mm.default {half}", copy, copy, f"aten.t.default {half}"]
    assert calls.seen.index(f"aten.bmm.default {half}") > calls.seen.index("aten.permute.default float32")


def test_composites_are_cast_with_their_operators() -> None:
    x = torch.rand(3, 4)
    with torch.autocast("cpu"):
        found = [torch.cov(x), torch.corrcoef(x), torch.mv(x, x[0]), x @ x[0]]
    assert [f.dtype for f in found] == [torch.bfloat16, torch.bfloat16, torch.float32, torch.bfloat16]


def test_a_backward_function_called_in_the_block_is_in_it() -> None:
    found = []

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            found.append((torch.mm(g, g).dtype, torch.is_autocast_enabled("cpu")))
            return g

    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        Same.apply(x).sum().backward()
    Same.apply(x).sum().backward()
    assert found == [(torch.bfloat16, True), (torch.float32, False)]


@pytest.mark.parametrize("grad", [False, True])
def test_layers_of_an_lstm_are_cast_one_by_one(grad: bool) -> None:
    net, x = torch.nn.LSTM(3, 4, num_layers=2, bidirectional=True), torch.randn(5, 2, 3)
    with torch.autocast("cpu"), torch.set_grad_enabled(grad):
        found, states = net(x)
    assert {t.dtype for t in (found, *states)} == {torch.bfloat16}
    assert torch.allclose(found.float(), net(x)[0], atol=0.02)  # a few roundings to 8 bits of numbers below 1
    if grad:
        found.float().sum().backward()
        assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in net.parameters())


def test_functions_taken_before_are_cast_and_none_is_replaced() -> None:
    mm, add, matmul = torch.mm, torch.add, torch.Tensor.matmul
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        assert (torch.mm, torch.add, torch.Tensor.matmul) == (mm, add, matmul)
        assert [f(x, x).dtype for f in (mm, add, matmul)] == [torch.bfloat16, torch.float32, torch.bfloat16]
    assert mm(x, x).dtype == torch.float32


def test_a_call_with_out_leaves_others_as_they_are() -> None:
    x, out = torch.ones(2, 2), torch.empty(2, 2)
    with torch.autocast("cpu"):
        assert torch.mm(x, x, out=out) is out and out.dtype == torch.float32
        assert torch.mm(x, x).dtype == torch.bfloat16
