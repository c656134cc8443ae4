"""Operators and methods of traced arrays, against NumPy's."""

from __future__ import annotations

import operator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import assert_close

A = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -4.0]])
B = np.array([[2.0, 0.5, -3.0], [1.0, 2.0, 0.5]])
N = np.array([[5, -7, 2], [3, 0, -4]])
M = np.array([[2, 3, -3], [1, 2, 5]])

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def both_ways(op: Any, x: Any, others: list[Any]) -> Any:
    """The operator between a traced array and other values, in either order."""
    got = fg.jit(lambda x: [(op(x, y), op(y, x)) for y in others])(x)
    for (a, b), y in zip(got, others, strict=True):
        plain = np.asarray(y) if not isinstance(y, int | float) else y
        assert_close(a, np.asarray(op(x, plain)), f"{op.__name__} with {type(y).__name__}")
        assert_close(b, np.asarray(op(plain, x)), f"{op.__name__} after {type(y).__name__}")


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS, ids=lambda op: op.__name__)
def test_floats(op: Any) -> None:
    both_ways(op, A, [B, jnp.asarray(B), np.float64(1.5), B[0], 2.5, 3, jnp.asarray(B)[0]])


@pytest.mark.parametrize("op", [*ARITHMETIC[:3], *ARITHMETIC[4:], *BITS[:3], *COMPARISONS], ids=lambda op: op.__name__)
def test_integers(op: Any) -> None:
    both_ways(op, np.where(N == 0, 1, N), [M, jnp.asarray(M), np.int64(3), 2])


def test_shifts() -> None:
    for op in BITS[3:]:
        both_ways(op, np.abs(N) + 1, [np.abs(M), 2])


def test_powers() -> None:
    out = fg.jit(lambda a, n: (a**2, a**-1, a**0.5, 2.0**a, a**n, n**2, 2 ** abs(n), a ** np.float64(2)))(abs(A), N)
    wanted = (A**2, abs(A) ** -1, abs(A) ** 0.5, 2.0 ** abs(A), abs(A) ** N, N**2, 2 ** abs(N), A**2)
    for a, b in zip(out, wanted, strict=True):
        assert_close(a, b, "power")


def test_unary_and_the_rest() -> None:
    out = fg.jit(
        lambda a, n: (
            -a,
            +a,
            abs(a),
            ~n,
            ~(a > 0),
            a @ a.T,
            np.ones(2) @ a,
            a @ np.ones(3),
            *divmod(a, 2.0),
            *divmod(7.0, a),
        )
    )(A, N)
    wanted = (-A, +A, abs(A), ~N, ~(A > 0), A @ A.T, np.ones(2) @ A, A @ np.ones(3), *divmod(A, 2.0), *divmod(7.0, A))
    for a, b in zip(out, wanted, strict=True):
        assert_close(a, b, "unary")


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS, operator.matmul, operator.pow], ids=lambda op: op.__name__)
def test_operators_with_foreign_objects_use_their_reflected_methods(op: Any) -> None:
    class Other:
        def __radd__(self, other: Any) -> str:
            return "mine"

        __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rmatmul__ = __rpow__ = __radd__
        __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __radd__  # type: ignore[assignment]
        __hash__ = None  # type: ignore[assignment]

    seen = []
    fg.jit(lambda x: (seen.append(op(x, Other())), x)[1])(A)
    assert seen == ["mine"]
    if op in (operator.eq, operator.ne):  # Python's own result, identity
        fg.jit(lambda x: (seen.append(op(x, "no")), x)[1])(A)
        assert seen[1] is (op is operator.ne)
    else:
        wanted = "an index was asked" if op is operator.mul else "unsupported operand|not supported between"
        with pytest.raises(TypeError, match=wanted):  # a string times an index is Python's
            fg.jit(lambda x: op(x, "no"))(A)


METHODS: dict[str, Any] = {
    "sum": lambda x: x.sum(axis=0),
    "prod": lambda x: x.prod(1),
    "max": lambda x: x.max(axis=1, keepdims=True),
    "min": lambda x: x.min(),
    "mean": lambda x: x.mean(0),
    "var": lambda x: x.var(axis=1, ddof=1),
    "std": lambda x: x.std(),
    "all": lambda x: (x > -9).all(),
    "any": lambda x: (x > 9).any(axis=0),
    "argmax": lambda x: x.argmax(axis=1),
    "argmin": lambda x: x.argmin(),
    "ptp": lambda x: x.max(axis=0) - x.min(axis=0),
    "cumsum": lambda x: x.cumsum(axis=1),
    "cumprod": lambda x: x.cumprod(0),
    "reshape": lambda x: x.reshape(3, -1) + x.reshape((3, 2)),
    "transpose": lambda x: x.transpose() + x.transpose(1, 0) + x.transpose((1, 0)) + x.T + x.mT,
    "ravel": lambda x: x.ravel() + x.flatten(),
    "squeeze": lambda x: x[None].squeeze(0),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "repeat": lambda x: x.repeat(2, axis=1),
    "take": lambda x: x.take(np.array([2, 0]), axis=1),
    "diagonal": lambda x: x.diagonal(1),
    "trace": lambda x: x.trace(),
    "dot": lambda x: x.dot(x.T),
    "argsort": lambda x: x.argsort(axis=1),
    "astype": lambda x: x.astype(np.float32).astype("int32"),
    "round": lambda x: x.round(1),
    "clip": lambda x: x.clip(-1, 1),
    "conj": lambda x: (x + 1j * x).conj(),
    "parts": lambda x: (x + 2j * x).real + (x + 2j * x).imag + x.real,
    "copy": lambda x: x.copy(),
    "shape": lambda x: x * (x.ndim + x.size + x.shape[0] + len(x) + x.dtype.itemsize),
    "searchsorted": lambda x: np.array([1.0, 2.0]) + x.ravel()[:2].searchsorted(x.ravel()[:2] * 0),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    f = METHODS[name]
    x = np.abs(A) if name == "searchsorted" else A
    assert_close(fg.jit(f)(x), np.asarray(f(x)), name)


def test_sort_returns_the_sorted() -> None:
    """Unlike NumPy's method, which sorts in place: arrays are immutable."""
    assert_close(fg.jit(lambda x: x.sort(axis=0))(A), np.sort(A, axis=0), "sort")


def test_truth_and_hash() -> None:
    assert fg.grad(lambda x: x * 2 if x else x)(0.0) == 1.0
    assert fg.grad(lambda x: {x: x}[x] * 2)(1.0) == 2.0
    assert fg.grad(lambda x: x if x in (x, 3) else x * 9)(1.0) == 1.0


def test_sums_of_lists() -> None:
    assert_close(fg.grad(lambda x: sum([x, x * x, 3]))(np.float64(2)), np.float64(5), "Python's sum")
    assert_close(fg.grad(lambda x: max(x, x * x) + min(x, 0.0) + round(x))(np.float64(2)), np.float64(4), "max")
    assert_close(
        fg.jit(lambda x: fnp.asarray([[x, 1.0], [2, x]]))(np.float64(2)), np.array([[2.0, 1], [2, 2]]), "lists"
    )
