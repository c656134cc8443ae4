"""Layouts: strides as in PyTorch, element offsets, overlap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compat as torch
from compat._core.memory.strides import (
    Base,
    broadcast_size,
    dense_layout,
    elementwise_strides,
    is_channels_last,
    is_contiguous,
    is_dense,
    layout_of,
    overlap,
    overlaps_itself,
    preserved_strides,
    view_strides,
)
from compat._core.types import dtype as dtypes

CASES = json.loads((Path(__file__).parents[2] / "golden" / "layout.json").read_text())


def pair(operand: list) -> tuple[tuple, tuple]:
    return tuple(operand[0]), tuple(operand[1])


def test_results_of_elementwise_operations() -> None:
    for case in CASES:
        found = elementwise_strides([pair(o) for o in case["operands"]], tuple(case["size"]))
        assert list(found) == case["elementwise"], case


def test_copies() -> None:
    for case in CASES:
        size, stride = pair(case["operands"][0])
        assert list(preserved_strides(size, stride)) == case["clone"], case


def test_views() -> None:
    for case in CASES:
        size, stride = pair(case["operands"][0])
        found = view_strides(size, stride, tuple(case["new"]))
        assert (None if found is None else list(found)) == case["view"], case


def test_contiguity_of_recorded_layouts() -> None:
    for case in CASES:
        size, stride = pair(case["operands"][0])
        assert is_contiguous(size, stride) == case["contiguous"], case
        assert is_channels_last(size, stride) == case["channels_last"], case


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 4), max_size=5), st.randoms())
def test_dense_layouts_cover_a_buffer(shape: list[int], random: Any) -> None:
    order = list(range(len(shape)))
    random.shuffle(order)
    stride, step = [0] * len(shape), 1
    for d in reversed(order):
        stride[d] = step
        step *= max(shape[d], 1)
    assert is_dense(tuple(shape), tuple(stride))
    made = dense_layout(tuple(shape), tuple(stride), dtypes.float32)
    assert made.whole
    assert made.base.numel == int(np.prod(shape))
    assert made.size == tuple(shape)
    assert made.stride == tuple(stride)


def test_layouts_are_interned() -> None:
    base = Base((4, 6), dtypes.float32)
    assert Base((4, 6), dtypes.float32) is base
    assert Base((4, 6), dtypes.float64) is not base
    assert layout_of(base, (6,), (1,), 0) is layout_of(base, (6,), (1,), 18)
    assert layout_of(base, (6,), (1,), 0) is not layout_of(base, (6,), (1,), 0, conj=True)


def test_broadcasting_names_mismatched_sizes() -> None:
    assert broadcast_size((2, 1), (3,), ()) == (2, 3)
    with pytest.raises(
        RuntimeError,
        match=r"The size of tensor a \(2\) must match the size of tensor b \(3\) at non-singleton dimension 1",
    ):
        broadcast_size((4, 2), (3,))


def test_overlap() -> None:
    base = Base((8,), dtypes.float32)
    first, second = layout_of(base, (4,), (1,), 0), layout_of(base, (4,), (1,), 4)
    assert overlap(first, 0, second, 4) == "none"
    assert overlap(first, 0, second, 2) == "partial"
    assert overlap(first, 0, first, 0) == "full"
    assert overlap(layout_of(base, (4,), (2,), 0), 0, first, 1) == "unknown"
    assert overlaps_itself((3, 2), (0, 1))
    assert not overlaps_itself((1, 2), (0, 1))


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0)])
def test_resized_out_has_the_memory_order_of_the_result(order: tuple[int, ...]) -> None:
    x = torch.rand(2, 3, 4).permute(order)
    for call in (torch.exp, lambda t, **k: torch.add(t, t, **k), lambda t, **k: torch.eq(t, t, **k)):
        found = call(x)
        out = torch.empty(0, dtype=found.dtype)
        assert call(x, out=out) is out and out.stride() == found.stride() == x.stride()
        assert torch.equal(out, found)
        ready = torch.empty(x.shape, dtype=found.dtype)
        assert call(x, out=ready).is_contiguous() and torch.equal(ready, found)


def test_triangles_are_row_major() -> None:
    x = torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert x.tril().is_contiguous() and x.triu().is_contiguous() and torch.rand(4, 5).T.tril().is_contiguous()
    assert x.clone().tril_().stride() == x.stride()
