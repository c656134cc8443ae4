"""Distributions: samples, densities, moments, gradients, divergences, transforms, errors, as PyTorch has them."""

from typing import Any

import pytest

import compat as torch
from tests.compat import scripts
from tests.compat.scripts import assert_same, cases, observe

#: What is made of gamma numbers: PyTorch approximates the derivatives of their samples by series.
OF_GAMMAS = ("Beta(", "Chi2(", "Dirichlet(", "FisherSnedecor(", "Gamma(", "StudentT(", "_standard_gamma(")


@pytest.mark.parametrize(("source", "want"), cases("distributions"))
def test_golden(source: str, want: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tolerance = 3e-4 if any(name in source for name in OF_GAMMAS) else 5e-6
    monkeypatch.setitem(scripts.TOLERANCE, "float32", tolerance)
    assert_same(observe(torch, source), want)
