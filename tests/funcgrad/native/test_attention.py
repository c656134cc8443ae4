"""Attention by the native kernels, compared with NumPy's in float64 and with derivatives of its single operations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import nn
from funcgrad.native import rewritten
from funcgrad.nn import fused_attention
from funcgrad.nn.fused_attention import attention, attention_cotangents, forward
from funcgrad.runtime.estimate import compile_cost
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import FEW32, MANY32

pytestmark = pytest.mark.usefixtures("kernels")

ORDERS = list(permutations(range(4)))


@pytest.fixture(autouse=True, scope="module")
def of_any_size() -> Iterator[None]:
    """Small attention is one operation, too."""
    with mock.patch.object(fused_attention, "_LEAST_WORK", 0):
        yield


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def reference(query: Any, key: Any, value: Any, mask: Any, scale: float, causal: bool, queries: int) -> list[Any]:
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    scores = scale * query @ key.swapaxes(2, 3)
    rows, keys = scores.shape[2:]
    if mask is not None:
        times = 1 if mask.shape[2] in (1, rows) else rows // mask.shape[2]
        scores = scores + np.tile(np.asarray(mask, np.float64), (1, 1, times, 1))
    if causal:
        scores = np.where(np.arange(rows)[:, None] % queries >= np.arange(keys), scores, -np.inf)
    most = scores.max(3, keepdims=True)
    weights = np.exp(scores - np.where(most == -np.inf, 0, most))
    total = np.where(most == -np.inf, 1, weights.sum(3, keepdims=True))
    logarithms = np.where(most == -np.inf, 0, most + np.log(total))
    return [weights / total @ value, logarithms[..., 0]]


def on(function: Any, orders: list[tuple[int, ...]], arrays: list[np.ndarray], **params: Any) -> tuple[list, list[str]]:
    """Results of a function for arrays in any order of axes, and the names of the program's operations."""

    def body(*xs: Any) -> Any:
        turned = [fnp.transpose(x, np.argsort(o)) if x.ndim == 4 else x for x, o in zip(xs, orders, strict=True)]
        return function(*turned, **params)

    turned = [np.transpose(x, o) if x.ndim == 4 else x for x, o in zip(arrays, orders, strict=True)]
    program = rewritten(fg.trace(body, *turned))
    return [np.asarray(x) for x in fg.jit(body)(*turned)], [e.primitive.name for e in program.equations]


@settings(max_examples=60)
@given(data=st.data())
def test_results_and_gradients(data: st.DataObject) -> None:
    draw = data.draw
    n, heads, groups, width, other = (draw(st.integers(1, 3)) for _ in range(5))
    queries, keys = draw(st.sampled_from([1, 5, 31, 40])), draw(st.sampled_from([1, 7, 16, 33, 70, 300]))
    width, other = width * 9 - 4, other * 8
    rows, causal, scale = queries * groups, draw(st.booleans()), draw(st.sampled_from([0.2, 1.0, -0.5]))
    query, key, value = (
        numbers(0, n, heads, rows, width),
        numbers(1, n, heads, keys, width),
        numbers(2, n, heads, keys, other),
    )
    mask = None
    if draw(st.booleans()):
        shape = [draw(st.sampled_from(sizes)) for sizes in ((1, n), (1, heads), (1, queries, rows), (1, keys))]
        mask = numbers(3, *shape)
        mask[numbers(4, *shape) > draw(st.sampled_from([0.5, 10.0]))] = -np.inf
    operands = [query, key, value] + ([] if mask is None else [mask])
    params = {"scale": scale, "causal": causal, "queries": queries}
    orders = [draw(st.sampled_from(ORDERS)) for _ in range(4)]
    found, names = on(attention, orders[: len(operands)], operands, **params)
    assert names.count("native_attention_forward") == 1
    wanted = reference(query, key, value, mask, **params)
    for mine, exact, name in zip(found, wanted, ("averages", "logarithms"), strict=True):
        assert_close(mine, exact.astype(np.float32), name, FEW32 * 5)

    ct, ct_logarithms = numbers(5, n, heads, rows, other), numbers(6, n, heads, rows)
    double = [x.astype(np.float64) for x in operands]

    def by_operations(*three: Any) -> Any:
        out, logarithms = forward(*three, *double[3:], **params)
        return fnp.sum(out * ct.astype(np.float64)) + fnp.sum(logarithms * ct_logarithms.astype(np.float64))

    exact = fg.jit(fg.grad(by_operations, (0, 1, 2)))(*double[:3])
    given_operands = [ct, query, key, value, *found, ct_logarithms, *operands[3:]]
    orders = [draw(st.sampled_from(ORDERS)) for _ in given_operands]
    grads, names = on(attention_cotangents, orders, given_operands, **params)
    assert names.count("native_attention_backward") == (n * heads > 1)
    for mine, true, name in zip(grads, exact, ("query", "key", "value"), strict=True):
        assert_close(mine, np.asarray(true, np.float32), name, MANY32)


def test_longer_sequences_than_a_block_of_any_kind_holds() -> None:
    operands = [numbers(i, 1, 2, n, 64) for i, n in enumerate((300, 1500, 1500))]
    for causal in (False, True):
        params: dict[str, Any] = {"scale": 0.125, "causal": causal, "queries": 300}
        found, _ = on(attention, [ORDERS[0]] * 3, operands, **params)
        for mine, exact in zip(found, reference(*operands, None, **params), strict=True):
            assert_close(mine, exact.astype(np.float32), "results", MANY32)


def test_numbers_that_are_not_finite_stay_in_their_rows() -> None:
    query, key, value = (numbers(i, 2, 2, 40, 8) for i in range(3))
    query[0, 1, 3, 2], value[1, 0, 20, 5] = np.nan, np.inf
    found, _ = on(attention, [ORDERS[0]] * 3, [query, key, value], scale=1.0, causal=True, queries=40)
    with np.errstate(invalid="ignore"):
        wanted, logarithms = reference(query, key, value, None, 1.0, True, 40)
    strange = ~np.isfinite(wanted)
    assert strange.any()
    np.testing.assert_array_equal(np.isnan(found[1]), np.isnan(logarithms))
    assert np.isnan(found[0][0, 1, 3]).all() and np.isfinite(found[0][0, 1, [2, 4]]).all()
    # Infinity by a weight of zero is not a number, for queries before that key: their weights are not computed.
    assert (found[0][1, 0, 20:, 5] == np.inf).all()
    assert np.isfinite(np.delete(found[0][1, 0], 5, axis=1)).all()


def test_a_row_without_keys_has_no_gradients() -> None:
    mask = np.zeros((1, 1, 30, 40), np.float32)
    mask[0, 0, 4] = -np.inf
    query, key, value = numbers(0, 2, 1, 30, 8), numbers(1, 2, 1, 40, 8), numbers(2, 2, 1, 40, 8)

    def loss(*xs: Any) -> Any:
        out, _ = attention(*xs, mask, scale=1.0, causal=False, queries=30)
        return fnp.sum(out[:, :, 4] ** 2 + out[:, :, 4])

    for gradient in fg.jit(fg.grad(loss, (0, 1, 2)))(query, key, value):
        np.testing.assert_array_equal(np.asarray(gradient), 0)


def second_order(dtype: Any, function: Any) -> list[np.ndarray]:
    operands = [numbers(i, 2, 2, 20, 8).astype(dtype) for i in range(3)]
    direction = [numbers(9 + i, 2, 2, 20, 8).astype(dtype) for i in range(3)]

    def loss(*xs: Any) -> Any:
        out, logarithms = function(*xs, scale=0.3, causal=True, queries=20)
        return fnp.sum(out**3) + fnp.sum(logarithms**2)

    def inner(*xs: Any) -> Any:
        return sum(fnp.sum(g * d) for g, d in zip(fg.grad(loss, (0, 1, 2))(*xs), direction, strict=True))

    return [np.asarray(x, np.float32) for x in fg.jit(fg.grad(inner, (0, 1, 2)))(*operands)]


def test_second_derivatives() -> None:
    for mine, exact in zip(second_order(np.float32, attention), second_order(np.float64, forward), strict=True):
        assert_close(mine, exact, "second derivatives", MANY32)


@pytest.mark.parametrize("dims", [(0, 0, 0, None), (1, None, 4, None), (0, 0, 0, 1), (None, 0, 0, 0)])
def test_vmap_merges_batches(dims: tuple[int | None, ...]) -> None:
    shapes = [(2, 2, 20, 8), (2, 2, 30, 8), (2, 2, 30, 8), (1, 2, 20, 30)]
    arrays = [
        numbers(i, *(s if d is None else (*s[:d], 5, *s[d:])))
        for i, (s, d) in enumerate(zip(shapes, dims, strict=True))
    ]

    def both(*xs: Any) -> Any:
        def loss(*xs: Any) -> Any:
            return fnp.sum(attention(*xs, scale=0.3, causal=False, queries=20)[0] ** 2)

        return fg.grad(loss, (0, 1, 2))(*xs)

    batched = fg.vmap(both, dims)
    found = fg.jit(batched)(*arrays)
    names = [e.primitive.name for e in rewritten(fg.trace(batched, *arrays)).equations]
    assert names.count("native_attention_forward") == names.count("native_attention_backward") == 1
    for i in range(5):
        one = fg.jit(both)(*[x if d is None else np.take(x, i, d) for x, d in zip(arrays, dims, strict=True)])
        for mine, wanted in zip(found, one, strict=True):
            assert_close(np.asarray(mine)[i], np.asarray(wanted), "one of the batch", FEW32)


def test_scores_are_never_stored_and_nothing_is_transposed() -> None:
    query = np.zeros((1, 2048, 4, 32), np.float32)

    def loss(*xs: Any) -> Any:
        return fnp.sum(nn.dot_product_attention(*xs, is_causal=True) ** 2)

    program = rewritten(fg.trace(fg.grad(loss, (0, 1, 2)), query, query, query))
    largest = max(v.type.size for e in program.equations for v in e.outputs)
    assert largest == query.size
    assert "transpose" not in [e.primitive.name for e in program.equations]


def test_the_compile_time_is_that_of_one_operation() -> None:
    operands = [numbers(i, 2, 2, 20, 8) for i in range(3)]
    as_one, single = (
        fg.trace(lambda *xs, f=f: f(*xs, scale=1.0, causal=True, queries=20), *operands) for f in (attention, forward)
    )
    assert compile_cost(as_one) < compile_cost(single) / 2


def test_bits_do_not_depend_on_the_run() -> None:
    operands = [numbers(i, 4, 4, 200, 32) for i in range(3)]
    first, _ = on(attention, [ORDERS[0]] * 3, operands, scale=0.2, causal=True, queries=200)
    for _ in range(5):
        again, _ = on(attention, [ORDERS[0]] * 3, operands, scale=0.2, causal=True, queries=200)
        for x, y in zip(first, again, strict=True):
            np.testing.assert_array_equal(x.view(np.uint32), y.view(np.uint32))
