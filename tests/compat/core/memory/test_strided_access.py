"""Lenses against NumPy's as_strided: reading and writing any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat._core.memory import strided_access
from compat._core.memory.strides import Base, contiguous_strides, layout_of, overlaps_itself
from compat._core.types import dtype as dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.interpreters.staging import stage


def strided(array: np.ndarray, size: tuple, stride: tuple, offset: int) -> np.ndarray:
    flat = array.reshape(-1)[offset:]
    return np.lib.stride_tricks.as_strided(flat, size, [s * array.itemsize for s in stride])


@st.composite
def views(draw: Any) -> tuple[tuple, tuple, tuple, int]:
    """A base shape, and the size, stride and offset after a chain of views."""
    base = tuple(draw(st.lists(st.integers(1, 5), min_size=0, max_size=4)))
    size, stride, offset = list(base), list(contiguous_strides(base)), 0
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(
            st.sampled_from(
                ["transpose", "slice", "select", "expand", "unsqueeze", "flatten", "split", "unfold", "diagonal"]
            )
        )
        d = draw(st.integers(0, len(size) - 1)) if size else 0
        if kind == "unsqueeze":
            size.insert(d, 1)
            stride.insert(d, draw(st.sampled_from([1, 7])))
        elif not size:
            continue
        elif kind == "transpose":
            k = draw(st.integers(0, len(size) - 1))
            size[d], size[k], stride[d], stride[k] = size[k], size[d], stride[k], stride[d]
        elif kind == "slice":
            start = draw(st.integers(0, size[d] - 1))
            step = draw(st.integers(1, 3))
            offset += start * stride[d]
            size[d], stride[d] = len(range(start, size[d], step)), stride[d] * step
        elif kind == "select":
            offset += draw(st.integers(0, size[d] - 1)) * stride[d]
            del size[d], stride[d]
        elif kind == "expand" and size[d] == 1:
            size[d], stride[d] = draw(st.integers(1, 3)), 0
        elif kind == "flatten" and d + 1 < len(size) and stride[d] == size[d + 1] * stride[d + 1]:
            size[d : d + 2], stride[d : d + 2] = [size[d] * size[d + 1]], [stride[d + 1]]
        elif kind == "split" and size[d] == 4:
            size[d : d + 1], stride[d : d + 1] = [2, 2], [2 * stride[d], stride[d]]
        elif kind == "unfold":
            window = draw(st.integers(1, size[d]))
            step = draw(st.integers(1, 2))
            size.append(window)
            stride.append(stride[d])
            size[d], stride[d] = (size[d] - window) // step + 1, stride[d] * step
        elif kind == "diagonal" and len(size) >= 2:
            n, step = min(size[0], size[1]), stride[0] + stride[1]
            size[:2], stride[:2] = [n], [step]
    return base, tuple(size), tuple(stride), offset


@settings(deadline=None, max_examples=150)
@given(views())
def test_read_and_write(view: tuple) -> None:
    base, size, stride, offset = view
    array = np.arange(int(np.prod(base)), dtype=np.float32).reshape(base)
    layout = layout_of(Base(base, dtypes.float32), size, stride, offset)
    wanted = strided(array, size, stride, offset)
    for at in (offset, np.int64(offset)):
        np.testing.assert_array_equal(np.asarray(strided_access.read(array, layout, at)), wanted)
    np.testing.assert_array_equal(strided_access.to_numpy(array, layout, offset), wanted)
    if overlaps_itself(size, stride) or layout.access[0] == "gather":
        return
    value = -1 - np.arange(int(np.prod(size)), dtype=np.float32).reshape(size)
    changed = array.copy()
    strided(changed, size, stride, offset)[...] = value
    written = np.asarray(strided_access.write(array, layout, offset, value))
    assert written.shape == base
    np.testing.assert_array_equal(written, changed)


@settings(deadline=None, max_examples=40)
@given(views())
def test_the_transpose_of_reading_adds_where_it_read(view: tuple) -> None:
    base, size, stride, offset = view
    array = np.zeros(base, np.float32)
    layout = layout_of(Base(base, dtypes.float32), size, stride, offset)
    ct = 1 + np.arange(int(np.prod(size)), dtype=np.float32).reshape(size)
    _, pullback = vjp_flat(lambda x: [strided_access.read(x, layout, offset)], [array])
    wanted = np.zeros(base, np.float32)
    np.add.at(wanted.reshape(-1), strided(np.arange(wanted.size).reshape(base), size, stride, offset), ct)
    np.testing.assert_allclose(np.asarray(pullback([ct])[0]), wanted)


def test_how_layouts_are_reached() -> None:
    """Views of the common kinds need no gather, and similar ones share a layout."""
    base = Base((6, 8), dtypes.float32)
    first, second = layout_of(base, (8,), (1,), 0), layout_of(base, (8,), (1,), 16)
    assert first is second
    assert first.access == ("grid", (6, 8), (None, (0, 1)))
    assert layout_of(base, (8, 6), (1, 8), 0).access == ("whole",)
    assert layout_of(base, (3, 8), (16, 1), 8).access == ("grid", (6, 8), ((0, 2), (1, 1)))
    assert layout_of(base, (6,), (9,), 0).access[0] == "shifted"
    assert layout_of(base, (10,), (1,), 3).access == ("shifted", (1,))
    assert layout_of(base, (6, 2, 2), (8, 4, 1), 0).access[0] == "grid"
    assert layout_of(base, (5, 3), (2, 1), 0).access == ("gather",)
    assert layout_of(base, (0, 3), (2, 1), 0).access == ("empty",)


def test_overlapping_windows_write_and_read_back() -> None:
    base = Base((8,), dtypes.float32)
    layout = layout_of(base, (3, 4), (2, 1), 0)
    values = strided(np.arange(10, 18, dtype=np.float32), (3, 4), (2, 1), 0).copy()
    written = np.asarray(strided_access.write(np.zeros(8, np.float32), layout, 0, values))
    np.testing.assert_array_equal(written, np.arange(10, 18))


@pytest.mark.parametrize(
    "have", ["uint8", "int16", "int32", "float32", "float64", "int64", "complex64", "complex128", "float16", "bfloat16"]
)
@pytest.mark.parametrize("want", ["uint8", "int8", "int16", "float32", "int64", "complex64", "bfloat16"])
def test_bytes_as_another_dtype(have: str, want: str) -> None:
    a, b = dtypes.NAMES[have], dtypes.NAMES[want]
    rng = np.random.default_rng(0)
    array = rng.integers(0, 255, (2, 16 * a.itemsize), np.uint8).view(a.numpy)
    shape = (2, array.shape[1] * a.itemsize // b.itemsize)
    layout = layout_of(Base(array.shape, a), shape, contiguous_strides(shape), 0, b)
    wanted = array.view(b.numpy)
    read = np.asarray(strided_access.read(array, layout, 0))
    assert read.dtype == wanted.dtype
    assert read.tobytes() == wanted.tobytes()
    back = np.asarray(strided_access.write(np.zeros_like(array), layout, 0, wanted))
    assert back.tobytes() == array.tobytes()


def test_conjugate_and_negative_views() -> None:
    z = np.array([1 + 2j, 3 - 4j], np.complex64)
    base = Base((2,), dtypes.complex64)
    conj = layout_of(base, (2,), (1,), 0, conj=True)
    np.testing.assert_array_equal(np.asarray(strided_access.read(z, conj)), z.conj())
    np.testing.assert_array_equal(strided_access.to_numpy(z, conj), z.conj())
    np.testing.assert_array_equal(np.asarray(strided_access.write(z, conj, 0, z.conj())), z)
    minus_imag = layout_of(base, (2,), (2,), 1, dtypes.float32, neg=True)
    np.testing.assert_array_equal(np.asarray(strided_access.read(z, minus_imag, 1)), -z.imag)
    np.testing.assert_array_equal(
        np.asarray(strided_access.write(z, minus_imag, 1, np.float32([1, 1]))), [1 - 1j, 3 - 1j]
    )


def test_offsets_need_quotients_and_remainders_only_along_several_axes() -> None:
    """A column is found by its offset alone; one row of a column by a quotient and a remainder."""

    def names(size: tuple, stride: tuple) -> list[str]:
        layout = layout_of(Base((3, 4), dtypes.float32), size, stride, 1)
        types = [ArrayType((3, 4), np.dtype(np.float32)), ArrayType((), np.dtype(np.int64))]
        program = stage(lambda x, offset: [strided_access.read(x, layout, offset)], types)
        return [equation.primitive.name for equation in program.equations]

    assert not {"div", "rem"} & set(names((3,), (4,))) and "dynamic_slice" in names((3,), (4,))
    assert names((), ()).count("rem") == names((), ()).count("div") == 1
