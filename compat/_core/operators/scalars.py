"""Arithmetic with a number, as PyTorch's own compositions do it: with nodes of their own."""

from __future__ import annotations

from typing import Any

from compat._core.operators.op import op
from compat._core.operators.signature import Array, Scalar
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of

_HIDDEN = dict(names="", strides="like:input")


def _as(value: Any, like: Any) -> Any:
    return np.astype(value, type_of(like).dtype)


@op("AddBackward1", name="add", **_HIDDEN)
def add_number(input: Array, other: Scalar) -> Any:
    return np.add(input, _as(other, input))


@op("MulBackward1", saved="other", name="mul", **_HIDDEN)
def mul_number(input: Array, other: Scalar) -> Any:
    return np.multiply(input, _as(other, input))


@op("DivBackward1", saved="other", name="div", **_HIDDEN)
def div_number(input: Array, other: Scalar) -> Any:
    return np.divide(input, _as(other, input))
