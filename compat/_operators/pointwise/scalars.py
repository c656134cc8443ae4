"""Arithmetic with a number as in PyTorch's composite operators, which have their own nodes for it."""

from __future__ import annotations

from typing import Any

from compat._core.operators.op import aten
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of


def as_dtype_of(value: Any, like: Any) -> Any:
    """A value in the dtype of the array ``like``."""
    return np.astype(value, type_of(like).dtype)


@aten(
    "add.Scalar(Tensor self, Scalar other) -> Tensor",
    node="AddBackward1", names="", layout="like:input",
)  # fmt: skip
def add_number(input: Any, other: Any) -> Any:
    return np.add(input, as_dtype_of(other, input))


@aten(
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    node="MulBackward1", saves="other", names="", layout="like:input",
)  # fmt: skip
def mul_number(input: Any, other: Any) -> Any:
    return np.multiply(input, as_dtype_of(other, input))


@aten(
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    node="DivBackward1", saves="other", names="", layout="like:input",
)  # fmt: skip
def div_number(input: Any, other: Any) -> Any:
    return np.divide(input, as_dtype_of(other, input))
