"""``check_grads``: it accepts correct derivatives and names wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.tools.test_util import check_grads, check_jvp, check_vjp

X = np.array([0.5, 2.0, -1.0])


@fg.custom_vjp
def wrong(x: Any) -> Any:
    return fnp.sin(x)


wrong.defvjp(lambda x: (fnp.sin(x), x), lambda x, ct: (1.001 * ct * fnp.cos(x),))


@fg.custom_vjp
def wrong_twice(x: Any) -> Any:
    return fnp.sin(x)


def _hidden(x: Any) -> Any:
    # The right value, with a part of it hidden from the derivative.
    return fnp.cos(fg.stop_gradient(x))


wrong_twice.defvjp(lambda x: (fnp.sin(x), x), lambda x, ct: (ct * _hidden(x),))


def test_correct_derivatives_pass() -> None:
    check_grads(lambda x: fnp.sin(x) * x, (X,), order=3)
    check_grads(lambda p, y: {"out": (p["a"] * y, fnp.sum(p["b"]))}, ({"a": X, "b": [X]}, np.float64(2)), order=2)
    check_grads(lambda z: z * fnp.conj(z) * z, (X + 1j,), order=2)
    check_grads(fnp.tanh, (X.astype(np.float32),), order=1)
    check_grads(lambda x, n: x * n, (X, np.arange(3)), order=1)


def test_wrong_derivatives_are_named() -> None:
    with pytest.raises(AssertionError, match=r"^vjp, result 0: is .* differences say"):
        check_vjp(wrong, (X,))
    with pytest.raises(AssertionError, match=r"^jvp, result 0"):
        check_jvp(wrong, (X,))
    with pytest.raises(AssertionError, match="vjp"):
        check_grads(wrong, (X,), modes=["rev"])


def test_second_derivatives_are_checked() -> None:
    check_grads(wrong_twice, (X,), order=1)
    with pytest.raises(AssertionError, match="apart"):
        check_grads(wrong_twice, (X,), order=2)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(TypeError, match="args must be a tuple"):
        check_grads(fnp.sin, X)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="none of the arguments is floating"):
        check_grads(fnp.sin, (np.arange(3),))
    with pytest.raises(TypeError, match="say nothing"):
        check_grads(fnp.sin, (X.astype(np.float16),))
    with pytest.raises(ValueError, match="modes are"):
        check_grads(fnp.sin, (X,), modes=["backwards"])
