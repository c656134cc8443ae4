"""The graph as users see it: edges, hooks, saved tensors, anomalies, modes, custom functions; and its memory."""

from __future__ import annotations

import gc
import re
import warnings
import weakref
from typing import Any

import jax
import pytest

import compat as torch
from compat._core.autograd.saved_variable import HookStack
from compat.autograd import forward_ad
from compat.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from funcgrad import runtime
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("autograd"))
def test_as_recorded(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


@pytest.mark.parametrize(("source", "want"), cases("custom_functions"))
def test_custom_functions_as_recorded(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


# ---------------------------------------------------------------- anomalies


def _explained(run: Any) -> tuple[str, str]:
    """The error of a backward pass in anomaly mode, and the warning before it."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError) as error, torch.autograd.set_detect_anomaly(True):
            run()
    return str(error.value), str(seen[-1].message)


def test_an_anomaly_shows_the_line_that_made_the_node() -> None:
    def run() -> None:
        x = torch.zeros(2, requires_grad=True)
        y = x.sqrt()  # the line
        (y * 0).sum().backward()

    error, explanation = _explained(run)
    assert error == "Function 'SqrtBackward0' returned nan values in its 0th output."
    assert explanation.startswith("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n")
    assert explanation.rstrip().splitlines()[-1].strip().startswith("y = x.sqrt()  # the line")


def test_anomalies_in_double_backward_show_both_stacks() -> None:
    def run() -> None:
        x = torch.zeros(2, requires_grad=True)
        (g,) = torch.autograd.grad((x**1.5).sum(), x, create_graph=True)
        (torch.sqrt(g) * 0).sum().backward()

    _, explanation = _explained(run)
    assert "Traceback of forward call" in explanation
    with torch.autograd.set_detect_anomaly(True):
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.grad_fn.metadata["parent_"] is y.grad_fn


def test_an_error_names_the_line_that_changed_a_saved_tensor() -> None:
    def run() -> None:
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        z = y.sum()
        y.mul_(3)  # the line that modified it
        z.backward()

    error, _ = _explained(run)
    assert "is at version 1; expected version 0 instead" in error
    assert error.rstrip().endswith("y.mul_(3)  # the line that modified it")


def test_without_anomaly_mode_nothing_is_recorded() -> None:
    x = torch.ones(2, requires_grad=True)
    assert HookStack.used == 0
    assert x.exp().grad_fn.metadata == {}


# ---------------------------------------------------------------- programs of nodes


def test_a_node_shows_its_program() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    shown = str((x @ torch.ones(3, 2)).grad_fn.program())
    assert re.match(r"mm_backward\(a: f32\[2,2\], b: f32\[3,2\]\) \{\n  c: f32\[2,3\] = dot a b ", shown)
    assert str((x + 1).grad_fn.program()) == "add_backward(a: f32[2,3]) {\n  return a\n}"
    assert "transpose" in str(x.t().grad_fn.program())
    assert str(x.exp().grad_fn.next_functions[0][0].program()) == "AccumulateGrad(a: f32[2,3]) {\n  return a\n}"


def test_custom_and_copying_nodes_show_their_programs() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    assert str(_Sine.apply(x).grad_fn.program()).count("mul") == 2
    base = x * 1
    base[0].mul_(3)
    program = base.grad_fn.program()
    assert [tuple(t.shape) for t in program.output_types] == [(2, 3)]
    assert x.grad is None


class _Sine(torch.autograd.Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 10 * grad * ctx.saved_tensors[0].cos()

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return 100 * tangent * ctx.saved_tensors[0].cos()


# ---------------------------------------------------------------- custom functions in transforms


def test_each_transform_gets_the_rule_that_was_given() -> None:
    x = torch.tensor(0.0)
    assert torch.func.grad(_Sine.apply)(x).item() == 10
    assert torch.func.jvp(_Sine.apply, (x,), (torch.tensor(1.0),))[1].item() == 100
    assert torch.func.jacrev(_Sine.apply)(torch.zeros(2)).diagonal().tolist() == [10, 10]
    assert torch.func.jacfwd(lambda x: _Sine.apply(x[0]).reshape(1))(torch.zeros(2)).tolist() == [[100, 0]]


def test_forward_over_reverse_goes_through_the_given_backward() -> None:
    x = torch.tensor(0.5, dtype=torch.float64)
    direction = torch.tensor(1.0, dtype=torch.float64)
    _, second = torch.func.jvp(torch.func.grad(_Sine.apply), (x,), (direction,))
    torch.testing.assert_close(second, -10 * x.sin())


def test_an_outer_tensor_stays_in_its_graph() -> None:
    w = torch.tensor(2.0, requires_grad=True)
    torch.func.grad(lambda x: _Sine.apply(x) * w)(torch.tensor(0.0)).backward()
    assert w.grad.item() == 10


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, count: int) -> Any:
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        ctx.count = count
        return count * (x * y)

    @staticmethod
    def jvp(ctx: Any, dx: Any, dy: Any, _: None) -> Any:
        x, y = ctx.saved_tensors
        return ctx.count * (y * dx + x * dy)

    @staticmethod
    def vjp(ctx: Any, grad: Any) -> Any:
        x, y = ctx.saved_tensors
        return ctx.count * grad * y, ctx.count * grad * x, None


def test_a_dual_number_stays_in_the_graph() -> None:
    x, y = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    with forward_ad.dual_level():
        out = _Weighted.apply(forward_ad.make_dual(x, torch.tensor(1.0)), y, 4)
        assert forward_ad.unpack_dual(out).tangent.item() == 8
        out.backward()
    assert (x.grad.item(), y.grad.item()) == (8, 4)


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, right: bool) -> Any:
        ctx.mark_dirty(x)
        ctx.right = right
        return x.mul_(2)

    @staticmethod
    def jvp(ctx: Any, tangent: Any, _: None) -> Any:
        return tangent.mul_(2) if ctx.right else tangent


def test_a_dual_number_changed_in_place_keeps_its_tangent() -> None:
    with forward_ad.dual_level():
        tangent = torch.ones(2)
        x = forward_ad.make_dual(torch.ones(2), tangent)
        assert _Doubled.apply(x, True) is x
        primal, moved = forward_ad.unpack_dual(x)
        assert moved is tangent
        assert (primal.tolist(), tangent.tolist()) == ([2, 2], [2, 2])
        with pytest.raises(RuntimeError, match="jvp function must modify the corresponding gradient inplace"):
            _Doubled.apply(x, False)


class _Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, as_is: bool) -> Any:
        y = x.clone()
        ctx.mark_non_differentiable(y)
        return (x, y) if as_is else (x.clone(), y)

    @staticmethod
    def jvp(ctx: Any, tangent: Any, _: None) -> Any:
        return tangent * 1, tangent * 1


@pytest.mark.parametrize(
    ("as_is", "text"), [(True, "the jvp is not returning a view"), (False, "should return None at that position")]
)
def test_impossible_tangents_raise(as_is: bool, text: str) -> None:
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match=text):
        _Wrong.apply(forward_ad.make_dual(torch.ones(2), torch.ones(2)), as_is)


class _Deep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x = (x.detach() - 1).requires_grad_()
        return ctx.x.detach()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.x.item() > 0:
            with torch.enable_grad():
                _Deep.apply(ctx.x).backward()
        return grad


def test_backward_passes_deep_inside_of_one_another() -> None:
    x = torch.tensor(400.0, requires_grad=True)
    _Deep.apply(x).backward()
    assert x.grad.item() == 1


def test_no_grad_holds_inside_grad() -> None:
    def f(x: Any) -> Any:
        with torch.no_grad():
            constant = x * x
        return x - constant

    assert torch.func.grad(f)(torch.tensor(3.0)).item() == 1


# ---------------------------------------------------------------- references and memory


def _steps(count: int) -> list[int]:
    """The number of arrays at some steps of a training loop."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data, found = torch.randn(16, 4), []
    for i in range(count):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
        if i % (count // 8) == count // 8 - 1:
            gc.collect()
            runtime.flush_all()
            runtime.wait()  # background compilation keeps constants of its own
            found.append(len(jax.live_arrays()))
    return found


def test_two_thousand_steps_hold_a_flat_number_of_arrays() -> None:
    counts = _steps(2000)
    # An array kept every hundredth step would be 15 more.
    assert max(counts[2:]) <= counts[2] + 8, counts


def _dies(run: Any) -> bool:
    """Whether a function's graph is freed with its result, without the cycle collector."""
    gc.disable()
    try:
        x = torch.ones((), requires_grad=True)
        nodes = [run(x).grad_fn]
        for node in nodes:
            nodes += [n for n, _ in node.next_functions if n is not None]
        refs = [weakref.ref(n) for n in nodes]
        del nodes, node
        return all(r() is None for r in refs)
    finally:
        gc.enable()


def _wave(x: Any) -> Any:
    return x.sin().exp().sin()


@pytest.mark.parametrize(
    "run",
    [
        _wave,
        lambda x: checkpoint(_wave, x, use_reentrant=False),
        lambda x: checkpoint(lambda x: checkpoint(_wave, x, use_reentrant=False), x, use_reentrant=False),
        lambda x: torch.autograd.grad(_wave(x), x, create_graph=True)[0],
        lambda x: _Sine.apply(x) * 2,
    ],
)
def test_a_graph_is_freed_with_its_result(run: Any) -> None:
    assert _dies(run)


def test_a_hundred_thousand_nodes_go_backward() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y.view(1)
    handle = y.register_hook(lambda g: g * 2)  # not the whole graph at once: node by node
    y.backward()
    handle.remove()
    assert x.grad.item() == 2


# ---------------------------------------------------------------- checkpoints


def test_a_checkpoint_with_more_operations_raises_unless_it_stops_early() -> None:
    calls = []

    def run(x: Any) -> Any:
        calls.append(1)
        return x.sin().exp() if len(calls) == 1 else x.sin().exp().sin()

    x = torch.ones(1, requires_grad=True)
    checkpoint(run, x, use_reentrant=False).backward()
    calls.clear()
    with set_checkpoint_early_stop(False):
        y = checkpoint(run, x, use_reentrant=False)
    with pytest.raises(RuntimeError, match="trying to save more tensors during recomputation"):
        y.backward()


def test_reentrant_checkpoint_refuses_grad() -> None:
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"checkpoint is incompatible with \.grad\(\)"):
        torch.autograd.grad(checkpoint(torch.exp, x, use_reentrant=True), x)
    checkpoint(torch.exp, x, use_reentrant=True).backward()
    assert x.grad is not None


def test_only_inputs_is_where_scripts_put_it() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    (grad,) = torch.autograd.grad(x * x, x, None, None, False, True, True)
    assert grad.item() == 4.0
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        torch.autograd.grad(x * x, x, only_inputs=False)


def test_a_result_in_a_view_that_is_gone_stays_in_the_graph() -> None:
    x = torch.tensor([1.0, -1.0, 0.5], requires_grad=True)
    y = x.clone()
    y[1:].sigmoid_()
    (once,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (twice,) = torch.autograd.grad(once.sum(), x)
    s = torch.sigmoid(x.detach())
    assert torch.allclose(twice, (s * (1 - s) * (1 - 2 * s)) * torch.tensor([0.0, 1.0, 1.0]))


def test_a_leaf_that_has_moved_into_the_graph_takes_no_gradient() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    x.requires_grad_(False)
    x.mul_(torch.ones(1, requires_grad=True))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"^leaf variable has been moved into the graph interior$"):
            y.backward(retain_graph=True)
    assert torch.autograd.grad(y, x, allow_unused=True) == (None,)


def test_hooks_of_a_functions_node_get_none_for_other_results_than_tensors() -> None:
    class Several(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
            return 2 * x, 3, 2 * y, None

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return 2 * grads[0], 2 * grads[2]

    x, y = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    a, _, b, _ = Several.apply(x, y)
    node = a.grad_fn
    assert [m.shape for m in node._input_metadata] == [[2], [], [3], []]
    node.register_prehook(lambda grads: (grads[0] * 10, None, grads[2], None))
    node.register_hook(lambda _, grads: seen.append(len(grads)))
    seen: list[int] = []
    (a.sum() + b.sum()).backward()
    assert (x.grad.tolist(), y.grad.tolist(), seen) == ([20.0, 20.0], [2.0, 2.0, 2.0], [4])
