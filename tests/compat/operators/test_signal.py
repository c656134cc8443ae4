"""Fourier transforms and windows."""

import warnings
from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("signal"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: torch.fft.ifftn(x, out=torch.empty(0)), RuntimeError, "fftn expects a complex output tensor"),
        (lambda x: torch.fft.irfft2(x, out=x), RuntimeError, "irfftn expects a floating point output tensor"),
        (lambda x: torch.fft.ihfftn(x, norm="none"), RuntimeError, 'Invalid normalization mode: "none"'),
        (lambda x: torch.fft.ihfft2(x, dim=(0, 2)), IndexError, "Dimension out of range"),
        (torch.fft.ihfftn, RuntimeError, "Only supports floating-point dtypes, but found: ComplexFloat"),
        (torch.fft.rfftn, RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        call(torch.ones(2, 2, dtype=torch.complex64))


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
