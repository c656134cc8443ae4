"""Short-time Fourier transforms and their windows."""

import warnings
from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("signal"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_frequencies_in_the_dtype_and_size_of_out() -> None:
    out = torch.empty((), dtype=torch.float64)
    with pytest.warns(UserWarning, match=r"The number of elements in the out tensor of shape \[\] is 1 which does not"):
        torch.fft.fftfreq(4, 0.5, out=out)
    assert (out.tolist(), out.dtype) == ([0.0, 0.5, -1.0, -0.5], torch.float64)
    with pytest.raises(RuntimeError, match=r"dtype Double does not match dtype of out parameter \(Float\)"):
        torch.fft.rfftfreq(4, out=torch.empty(3), dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.linspace(0, 1, 4, out=torch.empty(3)).shape == (4,)
