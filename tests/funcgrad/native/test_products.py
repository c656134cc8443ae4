"""Products by the native kernel, compared with NumPy's in float64."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.native import contraction
from funcgrad.native.contraction import native_dot
from funcgrad.native.rewriting import rewritten

pytestmark = pytest.mark.usefixtures("kernels")


def product(spec: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``einsum`` by the kernel."""
    operands, out = spec.split("->")
    labels = [tuple(map(ord, part)) for part in (*operands.split(","), out)]
    names = ("x_labels", "y_labels", "out_labels")
    return np.asarray(jax.jit(lambda *xy: native_dot.lower(*xy, **dict(zip(names, labels, strict=True))))(x, y))


def numbers(seed: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def check(spec: str, sizes: dict[str, int], dtype: Any) -> None:
    first, second = spec.partition("->")[0].split(",")
    x = numbers(0, tuple(sizes[a] for a in first), dtype)
    y = numbers(1, tuple(sizes[a] for a in second), dtype)
    wanted = np.einsum(spec, x.astype(np.float64), y.astype(np.float64))
    depth = math.prod(sizes[a] for a in set(first) & set(second) - set(spec.partition("->")[2]))
    # Each step of a sum rounds once; partial sums grow with the square root of the depth.
    np.testing.assert_allclose(product(spec, x, y), wanted, rtol=0, atol=2 * np.finfo(dtype).eps * (depth + 4))


SPECS = (
    "ab,bc->ac", "ab,cb->ac", "ba,bc->ac", "ba,cb->ac", "ab,bc->ca", "ba,bc->ca",
    "nab,nbc->nac", "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "bhkq,bkhd->bqhd", "abcd,cdef->abef", "acbd,dcef->faeb",
)  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=10)
@given(data=st.data())
def test_products_of_any_layout_and_size(spec: str, dtype: Any, data: st.DataObject) -> None:
    letters = sorted(set(spec) - set(",->"))
    most = {2: 150, 3: 90}.get(spec.index(","), 11)
    sizes = {letter: data.draw(st.integers(1, most), label=letter) for letter in letters}
    check(spec, sizes, dtype)


@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(1, 1, 1), (8, 513, 48), (9, 1500, 49), (300, 64, 65), (7, 3, 200), (640, 512, 130)]
)
@pytest.mark.parametrize("spec", ["ab,bc->ac", "ab,cb->ac", "ba,bc->ca"])
def test_at_the_edges_of_tiles_panels_and_blocks(spec: str, rows: int, depth: int, columns: int) -> None:
    check(spec, {"a": rows, "b": depth, "c": columns}, np.float32)


@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(200, 900, 300), (1000, 70, 400), (70, 2100, 260), (530, 1030, 129), (129, 520, 700)]
)
@pytest.mark.parametrize("spec", ["ab,bc->ac", "ab,cb->ac", "ba,bc->ac", "nba,nbc->nac"])
def test_several_ranges_of_rows_and_groups_of_panels(spec: str, rows: int, depth: int, columns: int) -> None:
    check(spec, {"n": 2, "a": rows, "b": depth, "c": columns}, np.float32)


def test_packed_rows_that_are_not_adjacent() -> None:
    check("kab,kc->bac", {"k": 600, "a": 20, "b": 30, "c": 200}, np.float64)


def attention(q: Any, k: Any) -> Any:
    """Scores of attention heads, whose axis is moved to the front before and to the back after."""
    heads = fnp.transpose(q, (0, 2, 1, 3)) @ fnp.transpose(k, (0, 2, 3, 1))
    return fnp.transpose(heads, (0, 2, 1, 3))


def test_transposes_are_taken_into_the_product() -> None:
    q, k = numbers(0, (3, 40, 4, 16), np.float32), numbers(1, (3, 48, 4, 16), np.float32)
    program = rewritten(fg.trace(attention, q, k))
    assert [e.primitive for e in program.equations] == [native_dot]
    wanted = np.einsum("bqhd,bkhd->bqhk", q.astype(np.float64), k)
    np.testing.assert_allclose(fg.jit(attention)(q, k), wanted, atol=1e-5)


def test_a_turned_result_that_others_use_is_kept() -> None:
    def f(x: Any, y: Any) -> Any:
        out = x.T @ y
        return out.T, out + 1.0

    x, y = numbers(0, (64, 50), np.float32), numbers(1, (64, 40), np.float32)
    assert native_dot in [e.primitive for e in rewritten(fg.trace(f, x, y)).equations]
    turned, more = fg.jit(f)(x, y)
    np.testing.assert_allclose(turned, (x.T @ y).T, atol=1e-4)
    np.testing.assert_allclose(more, x.T @ y + 1, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        (np.ones((512, 512), np.float32), np.ones((512, 512), np.float32), "a large plain product"),
        (np.ones((2, 8, 8), np.float32), np.ones((2, 8, 8), np.float32), "small"),
        (np.ones((9, 64, 64), np.float16), np.ones((9, 64, 64), np.float16), "float16"),
        (np.ones((9, 64, 64), np.complex64), np.ones((9, 64, 64), np.complex64), "complex"),
        (np.ones((9, 64, 64), np.int32), np.ones((9, 64, 64), np.int32), "integers"),
        (np.ones((9, 0, 64), np.float32), np.ones((9, 64, 64), np.float32), "empty"),
    ],
)
def test_operations_left_to_xla(x: np.ndarray, y: np.ndarray, why: str) -> None:
    program = fg.trace(lambda x, y: x @ y, x, y)
    assert rewritten(program) is program


def test_gradients_and_batches_go_by_the_same_kernel() -> None:
    def loss(w: Any, x: Any) -> Any:
        return fnp.sum(fnp.tanh(x @ w) ** 2)

    w, x = numbers(0, (96, 80), np.float64), numbers(1, (5, 70, 96), np.float64)
    found = fg.jit(fg.vmap(fg.grad(loss), in_axes=(None, 0)))(w, x)
    for i in range(5):
        t = np.tanh(x[i] @ w)
        np.testing.assert_allclose(found[i], x[i].T @ (2 * t * (1 - t**2)), rtol=1e-9, atol=1e-10)


def test_the_same_bits_whatever_runs_beside() -> None:
    x, y = numbers(0, (4, 200, 300), np.float32), numbers(1, (4, 300, 100), np.float32)
    first = product("nab,nbc->nac", x, y)
    for _ in range(20):
        assert np.array_equal(product("nab,nbc->nac", x, y), first)


def test_exported_programs_have_no_kernel_of_this_machine() -> None:
    pytest.importorskip("flatbuffers")
    q, k = numbers(0, (3, 40, 4, 16), np.float32), numbers(1, (3, 48, 4, 16), np.float32)
    text = jax.export.export(jax.jit(fg.interop.to_jax(attention)))(q, k).mlir_module()
    assert "funcgrad_dot" not in text


def test_pays_only_for_offsets_that_fit() -> None:
    huge = fg.ArrayType((1 << 16, 1 << 16), np.dtype(np.float32))
    assert not contraction.pays(huge, huge, ((0,), (0,)), ((), ()))
