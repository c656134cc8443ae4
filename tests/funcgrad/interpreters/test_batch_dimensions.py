"""Merged batch dimensions are kept separate: the same results, with products over all of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.interpreters.batch_dimensions import unmerged
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.primitives.contraction import dot

RNG = np.random.default_rng(0)
Q, K, V = (RNG.normal(size=(2, 3, 4, 5)).astype("float32") for _ in range(3))
BATCHES = {"contract": ((2,), (1,)), "batch": ((0,), (0,))}


def attention(q: Any, k: Any, v: Any, centred: bool = False) -> Any:
    """With batch and heads merged for products, split for the softmax, and the scale in between."""
    merged = [fnp.reshape(x, (6, 4, 5)) for x in (q, k, v)]
    scores = dot(merged[0] * 0.4, fnp.transpose(merged[1], (0, 2, 1)), **BATCHES)
    weights = fg.nn.softmax(fnp.reshape(scores, (2, 3, 4, 4)))
    mean = fnp.reshape(fnp.mean(weights, -1), (6, 4, 1))
    weights = fnp.reshape(weights, (6, 4, 4))
    weights = weights - mean if centred else weights
    return fnp.reshape(dot(weights, merged[2], **BATCHES), (2, 3, 4, 5))


def check(f: Any, *arrays: Any) -> str:
    program = fg.trace(f, *arrays)
    found = unmerged(program)
    for a, b in zip(evaluate(found, arrays), evaluate(program, arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return str(found)


def test_products_take_all_batch_dimensions() -> None:
    for f in (
        attention,
        partial(attention, centred=True),
        fg.grad(lambda q, k, v: fnp.sum(attention(q, k, v) ** 2), argnums=(0, 1, 2)),
    ):
        assert "[6," in str(fg.trace(f, Q, K, V))
        text = check(f, Q, K, V)
        assert "[6," not in text and "batch=((0, 1), (0, 1))" in text, text


@pytest.mark.parametrize(
    "f",
    [
        lambda q, k: fnp.reshape(q, (6, 4, 5)) + 1.0,  # the merged value is a result
        lambda q, k: dot(fnp.reshape(q, (6, 4, 5)), fnp.reshape(k, (6, 5, 4)), **BATCHES),  # not split as it was before
        lambda q, k: dot(
            fnp.reshape(q, (6, 4, 5)), fnp.reshape(fnp.reshape(k, (3, 2, 4, 5)), (6, 5, 4)), **BATCHES
        ),  # merged of other dimensions
        lambda q, k: fnp.reshape(q, (6, 4, 5)) * fnp.arange(6.0, dtype="float32")[:, None, None] - fnp.ones((1, 4, 5)),
        lambda q, k: fnp.transpose(fnp.reshape(q, (6, 4, 5)), (1, 0, 2)),
        lambda q, k: fnp.reshape(q, (120,)) @ fnp.reshape(k, (120,)),
        lambda q, k: fnp.reshape(fnp.reshape(q, (6, 4, 5)) * 2.0, (3, 2, 20)),
    ],
)
def test_programs_that_cannot_be_rewritten_compute_the_same(f: Any) -> None:
    check(f, Q, K)
