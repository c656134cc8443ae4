"""The precision of float32 products and convolutions: PyTorch's settings, old and new, and their effect on programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jax
import pytest

import compat as torch
import funcgrad as fg
import funcgrad.numpy as fnp
from compat._core.config import precision
from funcgrad import lax
from funcgrad.core.precision import set_precision

PLACES = (
    "", "cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn",
)  # fmt: skip
UNSET = dict.fromkeys(PLACES, "none") | {"cudnn.conv": "tf32", "cudnn.rnn": "tf32"}
CUDA = ("cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn")


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(precision, "_state", precision._State())
    yield
    set_precision(products=None, convolutions=None)


def place(name: str) -> Any:
    found: Any = torch.backends
    for part in filter(None, name.split(".")):
        found = getattr(found, part)
    return found


def settings() -> dict[str, str]:
    return {name: place(name).fp32_precision for name in PLACES}


def everywhere(value: str, *but: str) -> dict[str, str]:
    return {name: value for name in PLACES if name not in but}


# As PyTorch 2.13 answers after each assignment.
SEQUENCES: dict[str, list[tuple[str, str, dict[str, str]]]] = {
    "of all": [("", "tf32", everywhere("tf32")), ("", "none", UNSET), ("", "ieee", everywhere("ieee"))],
    "of a backend": [
        ("cudnn", "tf32", UNSET | dict.fromkeys(CUDA, "tf32")),
        ("cudnn", "none", UNSET),
        ("cuda.matmul", "tf32", UNSET | {"cuda.matmul": "tf32"}),
    ],
    "that a backend lacks": [
        ("", "bf16", everywhere("bf16") | dict.fromkeys(CUDA, "none")),
        ("cudnn", "ieee", everywhere("bf16") | dict.fromkeys(CUDA, "ieee")),
    ],
    "explicitly none": [
        ("cudnn.conv", "none", UNSET | {"cudnn.conv": "none"}),
        ("", "tf32", everywhere("tf32")),
        ("", "none", UNSET | {"cudnn.conv": "none"}),
    ],
    "of oneDNN, which is that of all": [
        ("mkldnn", "ieee", everywhere("ieee")),
        ("mkldnn.matmul", "bf16", everywhere("ieee") | {"mkldnn.matmul": "bf16"}),
    ],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_settings_are_inherited(name: str) -> None:
    assert settings() == UNSET
    for at, value, wanted in SEQUENCES[name]:
        place(at).fp32_precision = value
        assert settings() == wanted, (at, value)


def test_old_settings_change_new_ones() -> None:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    assert (matmul.allow_tf32, cudnn.allow_tf32, torch.get_float32_matmul_precision()) == (False, True, "highest")
    matmul.allow_tf32 = True
    assert (matmul.fp32_precision, torch.get_float32_matmul_precision()) == ("tf32", "high")
    torch.set_float32_matmul_precision("medium")
    assert (matmul.allow_tf32, torch.backends.mkldnn.matmul.fp32_precision) == (True, "bf16")
    torch.set_float32_matmul_precision("highest")
    assert (matmul.allow_tf32, matmul.fp32_precision) == (False, "ieee")
    with cudnn.flags(allow_tf32=False):
        assert (cudnn.allow_tf32, cudnn.conv.fp32_precision, cudnn.enabled) == (False, "none", False)
    assert (cudnn.allow_tf32, cudnn.conv.fp32_precision, cudnn.enabled) == (True, "tf32", True)


def test_contradictions_are_reported() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    for read in (torch.get_float32_matmul_precision, lambda: torch.backends.cuda.matmul.allow_tf32):
        with pytest.raises(RuntimeError, match="you have used mix of the legacy and new APIs"):
            read()
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    with pytest.raises(RuntimeError, match="cuDNN conv and cuDNN RNN have different TF32 flags"):
        _ = torch.backends.cudnn.allow_tf32


def test_wrong_values_are_refused_and_change_nothing() -> None:
    with pytest.raises(RuntimeError, match="Unknown precision: x"):
        torch.backends.fp32_precision = "x"
    with pytest.raises(RuntimeError, match="backend 'cuda' does not support precision 'bf16'"):
        torch.backends.cudnn.conv.fp32_precision = "bf16"
    with pytest.raises(TypeError, match="Invoked with: 'cuda', 'matmul', 3"):
        torch.backends.cuda.matmul.fp32_precision = 3
    for owner in (torch.backends.cuda.matmul, torch.backends.cudnn):
        with pytest.raises(RuntimeError, match="set_allow_tf32_cublas expects a bool, but got int"):
            owner.allow_tf32 = 1
    with pytest.raises(AttributeError, match="Unknown attribute x"):
        torch.backends.cuda.matmul.x = 1
    with pytest.raises(ValueError, match="a precision is one of highest, high, default or None, got 'low'"):
        set_precision(products="low", convolutions=None)
    assert settings() == UNSET


def on_gpu(f: Any, *xs: Any) -> str:
    """The program of a function for a GPU."""
    return jax.export.export(fg.jit(f).compiled, platforms=["cuda"])(*xs).mlir_module()


def precisions(f: Any, *xs: Any) -> set[str]:
    return set(re.findall(r"HIGHEST|HIGH", on_gpu(f, *xs)))


def test_programs_have_the_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    x, image = fnp.ones((64, 64)), fnp.ones((2, 3, 8, 8))
    product = lambda: precisions(lambda x: x @ x, x)
    convolution = lambda: precisions(lambda x: lax.conv(x, x, (1, 1), "VALID"), image)
    assert (product(), convolution()) == ({"HIGHEST"}, {"HIGHEST"})
    monkeypatch.setattr(precision.runtime, "expected", lambda: True)
    precision.apply()
    assert (product(), convolution()) == ({"HIGHEST"}, {"HIGH"}), "as PyTorch on a GPU"
    torch.set_float32_matmul_precision("high")
    assert product() == {"HIGH"}
    torch.set_float32_matmul_precision("medium")
    torch.backends.cudnn.allow_tf32 = False
    assert (product(), convolution()) == (set(), {"HIGHEST"}), "the default is not written"


def test_jaxs_configuration_is_followed() -> None:
    x = fnp.ones((64, 64))
    with jax.default_matmul_precision("tensorfloat32"):
        assert precisions(lambda x: x @ x, x) == {"HIGH"}
    assert precisions(lambda x: x @ x, x) == {"HIGHEST"}


def test_compiled_programs_are_compiled_again() -> None:
    f, x = fg.jit(lambda x: x @ x), fnp.ones((3, 3))
    step, t = torch.compile(lambda x: x @ x), torch.ones(3, 3)
    for call in (lambda: f(x).tolist(), lambda: step(t).tolist()):
        wanted = call()
        set_precision(products="high", convolutions=None)
        assert f.compiled._cache_size() == 0
        assert call() == wanted
        set_precision(products=None, convolutions=None)
    f(x)
    assert f.compiled._cache_size() == 1
    set_precision(products=None, convolutions=None)  # what it is already
    assert f.compiled._cache_size() == 1
