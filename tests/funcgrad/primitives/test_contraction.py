"""The contraction, compared with ``jax.lax.dot_general``; and matmul with ``jax.numpy``."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

import funcgrad as fg
from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import contraction as p
from tests.funcgrad.oracle import Case, Draw, a_dtype, a_shape, check, check_eager, examples, normal


def a_placing(draw: Draw, free: int, shared: int) -> list[int]:
    return draw(st.permutations(range(free + shared)))


def dot(draw: Draw) -> Case:
    """Axes of every kind, in any order for either operand."""
    batch, contracted = a_shape(draw, most=2, sizes=(2, 3, 1, 0)), a_shape(draw, most=2, sizes=(3, 2, 1, 0))
    operands, dims = [], []
    dtype = a_dtype(draw, np.int32)
    for _ in range(2):
        free = a_shape(draw, most=2, sizes=(2, 4, 1))
        sizes = [*batch, *contracted, *free]
        order = a_placing(draw, len(free), len(batch) + len(contracted))
        operands.append(normal([sizes[i] for i in order], dtype))
        at = [order.index(i) for i in range(len(batch) + len(contracted))]
        dims.append((tuple(at[: len(batch)]), tuple(at[len(batch) :])))
    (bx, cx), (by, cy) = dims
    return Case(
        lambda x, y: p.dot(x, y, contract=(cx, cy), batch=(bx, by)),
        lambda x, y: lax.dot_general(x, y, ((cx, cy), (bx, by)), precision="highest"),
        operands,
    )


def dot_in_single(draw: Draw) -> Case:
    """Matrices, or batches of them, of half precision, with sums in float32."""
    lead = a_shape(draw, most=1, sizes=(2, 1))
    dtype = draw(st.sampled_from([dtypes.float16, dtypes.bfloat16]))
    n = len(lead)
    axes: Any = ((n + 1,), (n,)), (tuple(range(n)), tuple(range(n)))

    def theirs(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, axes, precision="highest", preferred_element_type=np.float32)

    operands = [normal((*lead, 3, 4), dtype), normal((*lead, 4, 2), dtype)]
    ours = lambda x, y: p.dot_in_single(x, y, contract=axes[0], batch=axes[1])
    return Case(ours, theirs, operands, differences=False, order=1)


CASES = {"dot": dot, "dot_in_single": dot_in_single}


@given(st.data())
@examples(4)
def test_dot_in_single(data: Any) -> None:
    check(dot_in_single(data.draw), data.draw(st.integers(0, 99)), tolerance=2e-2)


@given(st.data())
@examples(10)
def test_dot(data: Any) -> None:
    check(dot(data.draw), data.draw(st.integers(0, 99)))


@given(st.data())
@examples(1)
def test_operation_by_operation(data: Any) -> None:
    check_eager(dot(data.draw))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (3,)),
        ((3,), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((2, 0), (0, 3)),
    ],
)  # fmt: skip
def test_matmul(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    check(
        Case(
            p.matmul, lambda x, y: jnp.matmul(x, y, precision="highest"), [normal(x, float), normal(y, float)], order=1
        )
    )


@pytest.mark.parametrize(
    ("x", "y", "contract", "batch"),
    [
        ((5, 128), (5, 3), ((0,), (0,)), ((), ())),
        ((2, 3, 256), (3, 4, 2), ((0, 1), (2, 0)), ((), ())),
        ((4, 2, 32), (3, 4, 2), ((0,), (1,)), ((1,), (2,))),
        ((2, 4, 8, 16), (4, 2, 3), ((1,), (0,)), ((0,), (1,))),
    ],
)
def test_contractions_that_transpose_an_operand_on_the_cpu(
    x: tuple[int, ...], y: tuple[int, ...], contract: p.Both, batch: p.Both
) -> None:
    operands = [np.ones(x, np.float32), np.ones(y, np.float32)]
    assert p.worth_turning(*operands, contract, batch)
    case = Case(
        lambda x, y: p.dot(x, y, contract=contract, batch=batch),
        lambda x, y: lax.dot_general(x, y, (contract, batch), precision="highest"),
        [normal(x, np.float32), normal(y, np.float32)],
        order=1,
    )
    check(case)
    assert "optimization_barrier" in fg.jit(case.ours).lower(*operands).as_text()


@pytest.mark.parametrize(
    ("x", "y", "axis"),
    [((5, 100), (5, 3), 0), ((5, 128), (5, 100), 0), ((128, 5), (5, 3), 1)],
    ids=["rows apart", "as many columns", "not transposed"],
)
def test_contractions_that_do_not_transpose_an_operand(x: tuple[int, ...], y: tuple[int, ...], axis: int) -> None:
    assert not p.worth_turning(np.ones(x, np.float32), np.ones(y, np.float32), ((axis,), (0,)), ((), ()))
    assert not p.worth_turning(np.ones((5, 128), np.int32), np.ones((5, 3), np.int32), ((0,), (0,)), ((), ()))


X = ArrayType((2, 3), dtypes.float32)


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        (X, X, ValueError, r"axes \(1,\) of f32\[2,3\] with axes \(0,\) of f32\[2,3\]"),
        (X, ArrayType((3, 2), dtypes.float64), TypeError, r"f32\[2,3\] and f64\[3,2\]"),
    ],
)
def test_invalid_operands_are_named(x: ArrayType, y: ArrayType, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^dot: .*{message}"):
        p.dot.output_types([x, y], {"contract": ((1,), (0,)), "batch": ((), ())})


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((2, 3), (2, 3), r"f64\[2,3\] has 3 columns but f64\[2,3\] has 2 rows"),
        ((), (2, 3), r"f64\[\] and f64\[2,3\]"),
        ((4, 2, 3), (5, 3, 2), r"\(4,\) and \(5,\)"),
    ],
)
def test_matrices_that_do_not_fit_are_named(x: tuple[int, ...], y: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^matmul: .*{message}"):
        p.matmul(np.zeros(x), np.zeros(y))
