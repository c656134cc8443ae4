"""Distributions: samples, densities, moments, gradients, divergences, transforms, errors, as in PyTorch."""

from typing import Any

import pytest

import compat as torch
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
