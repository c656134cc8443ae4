"""Modules as functions of their parameters, as in ``functorch``."""

from __future__ import annotations

import pytest

import compat as torch
from compat.func._functorch import FunctionalModule
from compat.func._functorch.stateless import combine_state_for_ensemble, make_functional, make_functional_with_buffers


def test_make_functional_with_buffers() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    f, params, buffers = make_functional_with_buffers(model)
    assert [p.shape for p in params] == [p.shape for p in model.parameters()]
    assert not any(p is q for p, q in zip(params, model.parameters()))
    x = torch.arange(8.0).reshape(4, 2)
    got = f(params, buffers, x)
    assert (buffers[2].item(), model[1].num_batches_tracked.item()) == (1, 0)
    assert torch.equal(got, model(x))
    assert all(p.device.type == "meta" for p in f.parameters())
    with pytest.raises(RuntimeError, match=r"`model` has buffers. Please use make_functional_with_buffers\(model\)"):
        make_functional(model)


def test_parameters_in_two_places() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    f, params = make_functional(model)
    assert isinstance(f, FunctionalModule)
    assert f.names_map["0.weight"] == ["0.weight", "1.weight"]
    x = torch.ones(3, 2)
    assert torch.equal(f(params, x), model(x))
    grads = torch.func.grad(lambda p: f(p, x).sum())(params)
    model(x).sum().backward()
    for grad, p in zip(grads, model.parameters()):
        torch.testing.assert_close(grad, p.grad)


def test_without_gradients() -> None:
    f, params = make_functional(torch.nn.Linear(2, 3), disable_autograd_tracking=True)
    assert not any(p.requires_grad for p in params)
    assert not f(params, torch.ones(2)).requires_grad


def test_an_ensemble() -> None:
    models = [torch.nn.Linear(2, 3) for _ in range(4)]
    f, params, buffers = combine_state_for_ensemble(models)
    x = torch.ones(5, 2)
    got = torch.vmap(f, (0, 0, None))(params, buffers, x)
    for i, model in enumerate(models):
        torch.testing.assert_close(got[i], model(x).detach())


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "Expected at least one model, got 0"),
        ([torch.nn.Linear(2, 3), torch.nn.ReLU()], "all models to be of the same class"),
        ([torch.nn.Linear(2, 3), torch.nn.Linear(2, 3).eval()], "have the same training/eval mode"),
    ],
)
def test_modules_that_cannot_be_combined_are_refused(models: list, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        combine_state_for_ensemble(models)
