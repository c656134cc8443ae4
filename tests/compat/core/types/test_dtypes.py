"""Dtypes as objects, including those without tensors here, since programs keep tables of them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch

#: Name, bytes, floating, signed, abbreviation, and the largest value, eps and smallest normal of ``finfo``.
FLOATS = [
    ("float8_e4m3fn", True, "f8e4m3fn", 448.0, 0.125, 0.015625),
    ("float8_e4m3fnuz", True, "f8e4m3fnuz", 240.0, 0.125, 0.0078125),
    ("float8_e5m2", True, "f8e5m2", 57344.0, 0.25, 2.0**-14),
    ("float8_e5m2fnuz", True, "f8e5m2fnuz", 57344.0, 0.125, 2.0**-15),
    ("float8_e8m0fnu", False, "f8e8m0fnu", 2.0**127, 1.0, 2.0**-127),
]


@pytest.mark.parametrize(("name", "signed", "short", "largest", "eps", "normal"), FLOATS)
def test_floats_of_eight_bits(name: str, signed: bool, short: str, largest: float, eps: float, normal: float) -> None:
    d = getattr(torch, name)
    assert (repr(d), d.itemsize, d.is_floating_point, d.is_signed, d.abbr) == (f"torch.{name}", 1, True, signed, short)
    limits = torch.finfo(d)
    assert (limits.max, limits.eps, limits.smallest_normal, limits.bits) == (largest, eps, normal, 8)
    assert copy.deepcopy(d) is pickle.loads(pickle.dumps(d)) is d
    assert torch.promote_types(d, d) is d
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported, attempted to promote Float8"):
        torch.promote_types(d, torch.float32)
    with pytest.raises(TypeError, match=f"couldn't find storage object {d.scalar_name}Storage"):
        torch.set_default_dtype(d)
    assert torch.ones(2).to(d).float().tolist() == [1.0, 1.0]


REFUSED: list[tuple[str, type[Exception], str, Callable[[], Any]]] = [
    ("quantized", RuntimeError, "isSignedType not supported for quantized types", lambda: torch.quint8.is_signed),
    ("bits", RuntimeError, "Bits types are undefined", lambda: torch.bits8.is_signed),
    ("limits", NotImplementedError, "\"dtype\" not implemented for 'QInt32'", lambda: torch.iinfo(torch.qint32)),
    ("small", TypeError, "requires an integer input type", lambda: torch.iinfo(torch.uint4)),
    ("mixed", RuntimeError, "with quantized numbers", lambda: torch.promote_types(torch.qint8, torch.int8)),
    ("mixed bits", RuntimeError, "Promotion from Bits8 and Int", lambda: torch.promote_types(torch.bits8, torch.int32)),
    ("mixed small", RuntimeError, "types is not supported", lambda: torch.promote_types(torch.uint4, torch.int32)),
    ("complex", RuntimeError, "Unknown Complex ScalarType for QInt8", torch.qint8.to_complex),
    ("arrays", NotImplementedError, "no arrays of torch.quint8", lambda: torch.empty(2, dtype=torch.quint8)),
]


@pytest.mark.parametrize(("error", "text", "call"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_dtypes_without_arithmetic_raise_as_in_pytorch(
    error: type[Exception], text: str, call: Callable[[], Any]
) -> None:
    with pytest.raises(error, match=text):
        call()


def test_names() -> None:
    short = {d: d.abbr for d in (torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float64, torch.complex64)}
    assert list(short.values()) == ["b8", "u8", "i64", "bf16", "f64", "c64"]
    assert [torch.bits8.abbr, torch.bits4x2.abbr, torch.qint32.abbr, torch.uint3.abbr] == [
        "b8x1",
        "b4x2",
        "qint32",
        "uint3",
    ]
    assert torch.qint32.itemsize == 4 and torch.bits16.itemsize == 2 and torch.int4.itemsize == 1
    assert torch.int32.to_real() is torch.int32 and torch.complex64.to_real() is torch.float32
    assert torch.can_cast(torch.float32, torch.uint4) and not torch.can_cast(torch.float32, torch.uint8)
    assert repr(torch.iinfo(torch.int64)) == "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)"


MAKERS = ["rand", "randn", "arange", "eye"]


@pytest.mark.parametrize(
    "name", [n for n in dir(torch) if isinstance(getattr(torch, n), torch.layout) and n.startswith("sparse_")]
)
def test_layouts_that_functions_do_not_make(name: str) -> None:
    layout = getattr(torch, name)
    x = torch.ones(2)
    assert isinstance(layout, torch.layout) and repr(layout) == f"torch.{name}" and x.layout != layout
    assert pickle.loads(pickle.dumps(layout)) is layout
    calls: list[Callable[..., Any]] = [getattr(torch, maker) for maker in MAKERS]
    for call in calls:
        assert call(2, layout=torch.strided).layout is torch.strided
        with pytest.raises(NotImplementedError, match=f"this makes no tensors of layout torch.{name}"):
            call(2, layout=layout)
    for fill in (torch.ones, lambda n, **k: torch.full((n,), 1.0, **k)):
        with pytest.raises(RuntimeError, match=r"full\(\.\.\.\) is not implemented for sparse layout"):
            fill(2, layout=layout)


def test_types_print_as_pytorchs_and_pickle_without_torch_installed() -> None:
    x = torch.ones(2)
    assert [str(type(v)) for v in (x.shape, x.dtype, x.device)] == [
        "<class 'torch.Size'>",
        "<class 'torch.dtype'>",
        "<class 'torch.device'>",
    ]
    for value in (x.shape, x.dtype, x.device):
        assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)
        assert b"torch" not in pickle.dumps(value)
    handle = torch.ones(1, requires_grad=True).register_hook(lambda grad: grad)
    assert repr(handle) == f"<torch.utils.hooks.RemovableHandle object at {hex(id(handle))}>"
