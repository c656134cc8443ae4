"""Opmath: kernels on float16, bfloat16 and float8 compute in float32 and round once, as PyTorch's do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any

from compat._core.types import dtype
from funcgrad import custom_jvp
from funcgrad import numpy as np
from funcgrad.core.tracing import Tracer, type_of
from funcgrad.primitives import elementwise as e

#: The NumPy dtypes of 8 bits, and of at most 16 bits.
EIGHTS = frozenset(d.numpy for d in dtype.FLOAT8)
HALVES = EIGHTS | {dtype.float16.numpy, dtype.bfloat16.numpy}
#: The dtype in which these are computed.
SINGLE: Any = dtype.float32.numpy


def in_single(body: Callable[..., Any], kinds: Collection[Any] = HALVES) -> Callable[..., Any]:
    """The body of an operation, with float16 and bfloat16 operands cast to float32 and the result rounded to their
    dtype.

    Otherwise each step of the body would round; a body with one step needs no opmath.

    Args:
        kinds: the dtypes of operands for which this is done.

    Example:
        >>> from compat._core.operators.op import pointwise
        >>> def third(input):
        ...     return input * 0.1 / 0.3
        >>> once = pointwise("once(Tensor self) -> Tensor", names="")(in_single(third))
        >>> twice = pointwise("twice(Tensor self) -> Tensor", names="")(third)
        >>> import compat as torch
        >>> x = torch.tensor(11.0, dtype=torch.bfloat16)
        >>> once(x), twice(x)
        (tensor(3.6719, dtype=torch.bfloat16), tensor(3.6562, dtype=torch.bfloat16))
    """

    @wraps(body)
    def widened(*operands: Any, **named: Any) -> Any:
        kind = next((type_of(x).dtype for x in (*operands, *named.values()) if is_half(x, kinds)), None)
        if kind is None:
            return body(*operands, **named)
        result = body(*map(single, operands), **{name: single(x) for name, x in named.items()})
        return tuple(_narrow(r, kind) for r in result) if isinstance(result, tuple) else _narrow(result, kind)

    return widened


def _narrow(x: Any, kind: Any) -> Any:
    return np.astype(x, kind) if type_of(x).dtype == SINGLE else x


def scaled(x: Any, number: Any) -> Any:
    """The product of an array and a number that is not rounded to float16 or bfloat16 before.

    Example:
        >>> from compat._core.operators.op import pointwise
        >>> def third(input):
        ...     return scaled(input, 0.3337)
        >>> import compat as torch
        >>> declared = pointwise("third(Tensor self) -> Tensor", names="")(third)
        >>> declared(torch.tensor(11.0, dtype=torch.bfloat16))
        tensor(3.6719, dtype=torch.bfloat16)
    """
    return in_single(lambda x: np.multiply(x, e.number(number, x)))(x)


def is_half(x: Any, kinds: Collection[Any] = HALVES) -> bool:
    """Whether a value is a tracer with a dtype of at most 16 bits, or with one of ``kinds``."""
    return isinstance(x, Tracer) and type_of(x).dtype in kinds


def single(x: Any) -> Any:
    """A value in float32 if ``is_half``, else unchanged."""
    return np.astype(x, SINGLE) if is_half(x) else x


def rounded(number: Any, like: Any) -> Any:
    """A number rounded to the dtype of a float16 or bfloat16 array, as PyTorch passes it to such kernels."""
    return np.astype(number, type_of(like).dtype) if is_half(like) else number


@custom_jvp
def _scaled(x: Any, factor: Any, of_gradient: Any) -> Any:
    return np.multiply(factor, x)


_scaled.defjvps(lambda t, out, x, factor, of_gradient: np.multiply(of_gradient, t), None, None)


def scaled_apart(x: Any, factor: Any, of_gradient: Any) -> Any:
    """``factor * x``, whose derivative is ``of_gradient``: PyTorch's formulas round numbers elsewhere than its kernels.

    Both products of a float16 or bfloat16 array are rounded once.

    Example:
        >>> from compat._core.operators.op import pointwise
        >>> def third(input):
        ...     return scaled_apart(input, rounded(0.3337, input), 0.3337)
        >>> import compat as torch
        >>> declared = pointwise("third(Tensor self) -> Tensor", names="", node="ThirdBackward0")(third)
        >>> x = torch.tensor(7.0, dtype=torch.bfloat16, requires_grad=True)
        >>> torch.autograd.grad(declared(x), x, torch.tensor(7.0, dtype=torch.bfloat16))
        (tensor(2.3281, dtype=torch.bfloat16),)
        >>> declared(x.detach())
        tensor(2.3438, dtype=torch.bfloat16)
    """

    def product(x: Any) -> Any:
        kind = type_of(x).dtype
        return _scaled(x, np.astype(factor, kind), np.astype(of_gradient, kind))

    return in_single(product)(x)
