"""``optim``: steps, state, schedulers, clipping."""

import importlib
import inspect
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat._operators.tensor import multi_tensor
from funcgrad.core.caching import Cache
from funcgrad.runtime.deferred import settings
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), [*cases("optim"), *cases("schedules")])
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def _model() -> tuple[Any, Any]:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    return net, torch.ones(5, 3)


def _step(net: Any, x: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_numbers_are_no_part_of_the_program(name: str) -> None:
    net, x = _model()
    optimizer = getattr(torch.optim, name)(net.parameters(), lr=0.1)
    for _ in range(2):  # SGD's second step is another program: with momentum, there is a buffer then
        _step(net, x, optimizer)
    compiled = len(multi_tensor._programs)
    for lr in (0.2, 0.3, 1):
        optimizer.param_groups[0]["lr"] = lr
        _step(net, x, optimizer)
    assert len(multi_tensor._programs) == compiled


def test_all_groups_are_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = _model()
    optimizer = torch.optim.Adam([{"params": net[0].parameters()}, {"params": net[1].parameters(), "lr": 0.5}])
    runs: list[int] = []
    compile_ = multi_tensor._compile

    def counted(jobs: Any) -> Any:
        program = compile_(jobs)
        return program._replace(run=lambda *buffers: runs.append(1) or program.run(*buffers))

    monkeypatch.setattr(multi_tensor, "_programs", Cache(multi_tensor._programs._group))
    monkeypatch.setattr(multi_tensor, "_compile", counted)
    for _ in range(3):
        _step(net, x, optimizer)
    assert len(runs) == 3 and len(multi_tensor._programs) == 1


def test_storages_of_several_classes_are_written_together() -> None:
    memory, whole = np.zeros(2, np.float32), torch.zeros(4)
    parameters = [torch.zeros(2), whole[:2].detach(), whole[2:].detach(), torch.from_numpy(memory)]
    for p in parameters:
        p.requires_grad_().grad = torch.ones(2)
    torch.optim.SGD(parameters, lr=1.0).step()
    assert [p.tolist() for p in parameters] == [[-1.0, -1.0]] * 4 and memory.tolist() == [-1.0, -1.0]
    assert [p._version for p in parameters] == [1, 2, 2, 1]  # PyTorch's


def test_equal_step_counts_are_one_buffer() -> None:
    net, x = _model()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(2):
        _step(net, x, optimizer)
    assert len({id(state["step"].untyped_storage().buffer) for state in optimizer.state.values()}) == 1


def test_nothing_is_changed_by_a_step_that_fails() -> None:
    p, q = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p, q], lr=0.1)
    p.grad = q.grad = torch.ones(2)
    with torch.inference_mode():
        q.data = torch.ones(2)
    q._counter_ = None
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        optimizer.step()
    assert p.tolist() == [1.0, 1.0]


_STEPS = {
    "adam": ("exp_avg exp_avg_sq max_exp_avg_sq step", dict(amsgrad=True, weight_decay=0.1)),
    "adamw": ("exp_avg exp_avg_sq max_exp_avg_sq step", dict(amsgrad=True, maximize=True)),
    "adamax": ("exp_avg exp_inf step", dict(weight_decay=0.1)),
    "nadam": ("exp_avg exp_avg_sq mu_product step", dict(momentum_decay=0.01)),
    "radam": ("exp_avg exp_avg_sq step", dict(weight_decay=0.1)),
    "rmsprop": ("square_avg grad_avg momentum_buffer step", dict(momentum=0.9, centered=True)),
    "adagrad": ("sum step", dict(lr_decay=0.1)),
    "adadelta": ("square_avg acc_delta step", dict(weight_decay=0.1)),
    "asgd": ("ax mu eta step", dict(t0=1)),
    "rprop": ("prev step_size step", {}),
    "sgd": ("momentum_buffer", dict(momentum=0.9, nesterov=True)),
}


@pytest.mark.parametrize("name", _STEPS)
def test_an_optimizer_is_its_function_with_the_state_kept(name: str) -> None:
    module = importlib.import_module(f"compat.optim.{name}")
    cls = next(v for k, v in vars(module).items() if k.lower() == name and isinstance(v, type))
    names, settings = _STEPS[name]
    w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    grads = [torch.tensor([0.5, -1.0]), torch.tensor([-0.2, -0.3])]
    optimizer = cls([w], lr=0.1, **settings)
    w.grad = grads[0]
    optimizer.step()
    kept = [[v.clone()] for v in map(optimizer.state[w].get, names.split())]
    p, group = w.detach().clone(), optimizer.param_groups[0]
    wanted = list(inspect.signature(getattr(module, name)).parameters)[2 + len(kept) :]
    given = {k: v for k, v in group.items() if k in wanted} | dict(zip(("beta1", "beta2"), group.get("betas", ())))
    given |= dict(zip(("etaminus", "etaplus"), group.get("etas", ())))
    given |= dict(zip(("step_size_min", "step_size_max"), group.get("step_sizes", ())))
    w.grad = grads[1]
    optimizer.step()
    getattr(torch.optim._functional, name)([p], grads[1:], *kept, **{k: v for k, v in given.items() if k in wanted})
    assert torch.equal(p, w) and p._version == 1
    assert all(torch.equal(k[0], optimizer.state[w][n]) for n, k in zip(names.split(), kept))


def test_steps_as_functions_want_step_counts_as_tensors() -> None:
    ones = torch.ones(2)
    with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of singleton tensors"):
        torch.optim.rprop.rprop(
            [ones], [ones], [ones], [ones], [1], step_size_min=0, step_size_max=1, etaminus=0.5, etaplus=2
        )


def test_reduce_lr_on_plateau_needs_min_lr_of_new_groups() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizer = torch.optim.SGD(parameters[:1], lr=0.1)
    one = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.05)
    each = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.05])
    optimizer.add_param_group({"params": parameters[1:]})
    for schedule in (one, each):
        schedule.step(1.0)
    one.step(2.0)
    assert one.get_last_lr() == [0.05, 0.05]
    with pytest.raises(RuntimeError, match=r"`optimizer` \(2\) differs from when .* was initialized \(1\)"):
        each.step(2.0)


def test_schedules_keep_settings_as_they_were_given() -> None:
    rate, top = torch.tensor(0.1), torch.tensor(0.2)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, rate, top, step_size_up=2, max_momentum=top)
    averaging = torch.optim.swa_utils.SWALR(optimizer, top)
    rate.mul_(0.5), top.mul_(0.5)
    assert schedule.base_lrs[0] == torch.tensor(0.1) and schedule.max_lrs[0] == torch.tensor(0.2)
    assert averaging.optimizer.param_groups[0]["swa_lr"] == torch.tensor(0.2)
    assert optimizer.param_groups[0]["max_momentum"] == torch.tensor(0.2)


def test_schedules_in_a_row_may_be_made_of_several() -> None:
    schedules = torch.optim.lr_scheduler
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.05)
    both = schedules.ChainedScheduler([schedules.LinearLR(optimizer, 0.1), schedules.ConstantLR(optimizer, 0.1)])
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        row = schedules.SequentialLR(optimizer, [both, schedules.ConstantLR(optimizer, 0.5)], [2])
    rates = []
    for _ in range(4):
        rates += row.get_last_lr()
        optimizer.step()
        row.step()
    assert rates == pytest.approx([0.0005, 0.0014, 0.025, 0.025])


def test_the_curvature_of_complex_parameters_is_that_of_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    # To the bit, so every operation must run in the same way: not first by NumPy, nor compiled together with others.
    monkeypatch.setattr(settings, "by_numpy", False)
    monkeypatch.setattr(settings, "limit", 1)
    w, pair = torch.nn.Parameter(torch.tensor([1 + 2j, -1j])), torch.nn.Parameter(torch.tensor([[1.0, 2], [0, -1]]))
    for p, real in ((w, torch.view_as_real), (pair, lambda t: t)):
        optimizer = torch.optim.LBFGS([p], line_search_fn="strong_wolfe")

        def closure(p: Any = p, real: Any = real, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = ((real(p) - 1) ** 4 + real(p) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
    assert torch.equal(torch.view_as_real(w), pair)


@pytest.mark.parametrize("named", [True, False])
def test_a_group_has_names_where_the_others_have(named: bool) -> None:
    p, q = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([p] if named else [("p", p)])
    with pytest.raises(ValueError, match=f"cannot add param group {'with' if named else 'without'} names"):
        optimizer.add_param_group({"params": [("q", q)] if named else [q]})


def test_the_deprecated_base_class_of_schedules() -> None:
    class Halved(torch.optim.lr_scheduler._LRScheduler):
        def get_lr(self) -> list[Any]:
            return [base / 2 for base in self.base_lrs]

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    assert isinstance(Halved(optimizer), torch.optim.lr_scheduler.LRScheduler)
    assert optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize("name", ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "NAdam", "RMSprop"])
def test_states_of_older_versions_are_understood(name: str) -> None:
    w, v = [torch.nn.Parameter(torch.tensor([[1.0, 2.0]])) for _ in range(2)]
    old, new = [getattr(torch.optim, name)([p], lr=0.1) for p in (w, v)]
    w.grad = v.grad = torch.tensor([[0.5, -1.0]])
    old.step()
    new.step()
    saved = old.state_dict()
    for kept in saved["state"].values():  # they kept numbers, and did not have all of the settings
        kept.update({k: t.item() for k, t in kept.items() if k in ("step", "mu_product", "eta", "mu")})
    for setting in ("foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"):
        saved["param_groups"][0].pop(setting, None)
    old.load_state_dict(saved)
    old.step()
    new.step()
    assert torch.equal(w, v) and isinstance(old.state[w]["step"], torch.Tensor)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RMSprop", "Adamax", "Rprop", "Adadelta", "RAdam"])
def test_gradients_flow_through_several_steps(name: str) -> None:
    """PyTorch's own step cannot be differentiated for some of these, and that of others counts in single precision."""
    start = torch.tensor([0.5, -0.25], dtype=torch.float64)
    first = torch.tensor([0.75, -1.5], dtype=torch.float64)

    def after(start: Any, first: Any, differentiable: bool = True) -> Any:
        p = start.clone() if differentiable else start.clone().requires_grad_()
        optimizer = getattr(torch.optim, name)([p], lr=0.1, differentiable=differentiable)
        for scale in (1.0, 2.0, 0.5):
            p.grad = first * scale
            optimizer.step()
        return p

    usual = after(start, first, differentiable=False).detach()
    # Three steps of a few dozen float64 operations, which are one program there and several here.
    np.testing.assert_allclose(after(start, first).numpy(), usual.numpy(), rtol=1e-12)
    inputs = start.requires_grad_(), first.requires_grad_()
    assert torch.autograd.gradcheck(after, inputs)
