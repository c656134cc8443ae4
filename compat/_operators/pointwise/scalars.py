"""Arithmetic with a number, with the nodes that it has in PyTorch's composite operators."""

from __future__ import annotations

from typing import Any

from compat._core.operators.op import aten
from compat._operators.pointwise.declare import as_dtype_of
from funcgrad import numpy as np


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
