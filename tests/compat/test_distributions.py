"""Distributions: samples, densities, moments, gradients, divergences, transforms, errors, as in PyTorch."""

from typing import Any

import pytest

import compat as torch
from compat.distributions._validity import satisfied
from tests.compat import scripts
from tests.compat.scripts import assert_same, cases, observe

#: Distributions based on gamma samples: PyTorch approximates the derivatives of these by series.
OF_GAMMAS = ("Beta(", "Chi2(", "Dirichlet(", "FisherSnedecor(", "Gamma(", "StudentT(", "_standard_gamma(")


@pytest.mark.parametrize(("source", "want"), cases("distributions"))
def test_golden(source: str, want: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tolerance = 3e-4 if any(name in source for name in OF_GAMMAS) else 5e-6
    monkeypatch.setitem(scripts.TOLERANCE, "float32", tolerance)
    assert_same(observe(torch, source), want)


def test_shares_are_drawn_by_a_function_of_the_distributions_own() -> None:
    concentration = torch.tensor([1.0, 2.0], requires_grad=True)
    shares = torch.distributions.Dirichlet(concentration).rsample()
    assert shares.grad_fn.name() == "_DirichletBackward"
    (found,) = torch.autograd.grad(shares[0], concentration)
    assert found.isfinite().all() and found[0] > 0 > found[1]
    assert torch._sample_dirichlet(concentration).grad_fn.name() == "torch::autograd::NotImplemented"


_NUMBERS = [
    [0.0, 1.0], [0.25, 0.75], [0.5, 0.6], [-1.0, 2.0], [float("nan"), 1.0], [float("inf"), 0.0], [3.0, 2.5], [1.0, 1.0],
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.float16, torch.bool])
@pytest.mark.parametrize("numbers", _NUMBERS)
def test_small_values_are_checked_as_by_the_operations(numbers: list[float], dtype: Any) -> None:
    c = torch.distributions.constraints
    sets = [
        c.boolean, c.real, c.real_vector, c.positive, c.nonnegative, c.greater_than(0.5), c.less_than(2),
        c.unit_interval, c.half_open_interval(0, 1), c.integer_interval(0, 2), c.nonnegative_integer, c.one_hot,
        c.simplex, c.multinomial(2), c.independent(c.unit_interval, 1), c.interval(torch.zeros(2), torch.ones(2)),
    ]  # fmt: skip
    if dtype is torch.bool:
        sets = [c.boolean, c.real, c.one_hot]
    if not dtype.is_floating_point and any(n != n or n in (float("inf"), 2.5) for n in numbers):
        return
    for each in sets:
        value = torch.tensor(numbers, dtype=torch.float64).to(dtype)
        assert satisfied(each, value) == bool(each.check(value).all()), each
        if each.event_dim == 0:
            assert satisfied(each, value[0]) == bool(each.check(value[0]).all()), each


def test_a_constraint_of_the_users_gets_the_tensor() -> None:
    seen = []

    class Positive(type(torch.distributions.constraints.positive)):  # type: ignore[misc]
        def check(self, value: Any) -> Any:
            seen.append(type(value))
            return super().check(value)

    assert satisfied(Positive(0.0), torch.ones(2)) and not satisfied(Positive(0.0), torch.zeros(2))
    assert seen == [torch.Tensor, torch.Tensor]


def test_a_mode_sees_the_operations_of_a_check() -> None:
    seen = []

    class Seen(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    value = torch.ones(2)
    with Seen():
        assert satisfied(torch.distributions.constraints.positive, value)
    assert "aten.gt.Scalar" in seen or "aten.lt.Scalar" in seen
