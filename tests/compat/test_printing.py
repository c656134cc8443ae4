"""Printing compared with the output of real PyTorch (recorded by make_printing_golden.py)."""

from __future__ import annotations

import importlib.util
import json
import pathlib
from collections.abc import Iterator

import numpy as np
import pytest

from compat._core.types import dtype
from compat._operators.tensor import format as printing

HERE = pathlib.Path(__file__).parent
GOLDEN = json.loads((HERE / "printing_golden.json").read_text())

_spec = importlib.util.spec_from_file_location("make_printing_golden", HERE / "make_printing_golden.py")
assert _spec is not None
assert _spec.loader is not None
_maker = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_maker)
ARRAYS = _maker.arrays()


@pytest.fixture(autouse=True)
def _default_options() -> Iterator[None]:
    yield
    printing.set_printoptions(profile="default")


def test_the_golden_file_is_of_these_cases() -> None:
    assert [{k: v for k, v in g.items() if k != "text"} for g in GOLDEN] == _maker.cases()
    assert len(GOLDEN) >= 150


@pytest.mark.parametrize("case", GOLDEN, ids=lambda c: f"{c['array']} {c['options'] or ''} {c['suffix']}".strip())
def test_as_pytorch_prints(case: dict) -> None:
    printing.set_printoptions(**case["options"])
    array = ARRAYS[case["array"]]
    text = printing.tensor_text(
        array,
        dtype.from_numpy(array.dtype),
        requires_grad=bool(case["suffix"]),
        grad_fn="MulBackward0" if case["suffix"] == "grad_fn" else None,
    )
    assert text == case["text"]


def test_bfloat16_is_printed_as_float32() -> None:
    array = np.array([0.5, 1.0]).astype(dtype.bfloat16.numpy)
    assert printing.tensor_text(array, dtype.bfloat16) == "tensor([0.5000, 1.0000], dtype=torch.bfloat16)"


def test_the_default_dtype_is_not_named() -> None:
    dtype.set_default_dtype(dtype.float64)
    try:
        assert printing.tensor_text(np.array([1.0]), dtype.float64) == "tensor([1.])"
        assert printing.tensor_text(np.array([1.0], np.float32), dtype.float32) == "tensor([1.], dtype=torch.float32)"
        assert printing.tensor_text(np.array([1j]), dtype.complex128) == "tensor([0.+1.j])"
    finally:
        dtype.set_default_dtype(dtype.float32)


def test_a_device_comes_before_the_dtype() -> None:
    from compat._core.types.device import device

    text = printing.tensor_text(np.array([1], np.int32), dtype.int32, device=device("cuda", 0))
    assert text == "tensor([1], device='cuda:0', dtype=torch.int32)"


def test_printoptions_come_back_after_the_block() -> None:
    before = printing.get_printoptions()
    with printing.printoptions(precision=1, sci_mode=True):
        assert printing.array_text(np.array([1.5])) == "[1.5e+00]"
    assert printing.get_printoptions() == before


def test_an_unknown_profile_changes_nothing() -> None:
    before = printing.get_printoptions()
    printing.set_printoptions(precision=5, profile="long")
    assert printing.get_printoptions() == before | {"precision": 5}
    printing.set_printoptions(profile="default")
