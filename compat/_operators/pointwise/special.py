"""Special functions: error functions, gamma functions, sigmoid and logit, entropies."""

from __future__ import annotations

import math
from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Dtypes
from compat._core.operators.op import pointwise
from compat._core.operators.opmath import in_single, scaled
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import wrong_argument
from compat._core.types.scalar_conversion import fits
from compat._operators.pointwise.declare import as_dtype_of, binary, not_numbers_alone, refuses, unary, zeros_like
from compat._operators.pointwise.scalars import add_number, mul_number
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e

# ---------------------------------------------------------------- error functions

# Explicit backward formulas round float16 and bfloat16 after the same steps as PyTorch's, where derived ones do not.


def _gaussian(x: Any) -> Any:
    """``exp(-x**2)``."""
    return e.exp(-e.square(x))


erf = unary(
    "erf",
    "ErfBackward0",
    e.erf,
    "The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0.",
    saves="self",
    aliases="special.erf",
    check=refuses("erf_vml_cpu", "complex"),
    backward=lambda ct, input: scaled(_gaussian(input), 2 / math.sqrt(math.pi)) * ct,
)
erfc = unary(
    "erfc",
    "ErfcBackward0",
    e.erfc,
    "``1 - erf(input)``, accurate where that is small.",
    saves="self",
    aliases="special.erfc",
    check=refuses("erfc_vml_cpu", "complex"),
    backward=lambda ct, input: scaled(_gaussian(input), -2 / math.sqrt(math.pi)) * ct,
)
erfinv = unary(
    "erfinv",
    "ErfinvBackward0",
    e.erf_inv,
    "The inverse of the error function.",
    saves="self",
    aliases="special.erfinv",
    check=refuses("erfinv_vml_cpu", "complex"),
    backward=lambda ct, input: scaled(e.exp(e.square(e.erf_inv(input))), math.sqrt(math.pi) / 2) * ct,
)


@composite("special_ndtr(Tensor self) -> Tensor", names="special.ndtr", out=True)
def ndtr(input: Tensor) -> Tensor:
    """The probability that a standard normal variable is smaller.

    Args:
        input: a tensor.
        out: a tensor to write the result into.

    Example:
        >>> torch.special.ndtr(torch.tensor([0.0]))
        tensor([0.5000])
    """
    x = input if input.dtype.category >= dtype.FLOATING else input.to(dtype.get_default_dtype())
    return mul_number(add_number(erf.function(mul_number(x, math.sqrt(0.5))), 1.0), 0.5)


# ---------------------------------------------------------------- gamma functions

lgamma = unary(
    "lgamma",
    "LgammaBackward0",
    e.lgamma,
    "The logarithm of the absolute value of the gamma function.",
    saves="self",
    aliases="special.gammaln",
    check=refuses("lgamma_vml_cpu", "complex"),
)
digamma = unary(
    "digamma",
    "DigammaBackward0",
    in_single(e.digamma),
    "The derivative of the logarithm of the gamma function.",
    saves="self",
    aliases="special.digamma special.psi",
    check=refuses("digamma", "complex"),
    backward=lambda ct, input: ct * in_single(e.trigamma)(input),
)


def _check_polygamma(input: Tensor, n: int) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    refuses("polygamma", "complex")(input)


@pointwise(
    "polygamma(Tensor self, int n) -> Tensor",
    node="PolygammaBackward0", saves="n self", names="", dtypes="float", check=_check_polygamma, out=True,
)  # fmt: skip
def _polygamma(input, n):
    return _digamma_derivative(input, n)


def _digamma_derivative(x: Any, n: int) -> Any:
    """The ``n``-th derivative of digamma; for ``n >= 2`` it is infinite at the poles, the integers up to 0."""
    if n < 2:
        return e.digamma(x) if n == 0 else e.trigamma(x)
    zero = e.number(0, x)
    pole = np.logical_and(x <= zero, x == np.floor(x))
    return np.where(pole, e.number(math.inf if n % 2 else -math.inf, x), e.polygamma(e.number(n, x), x))


@_polygamma.backward
def _polygamma_backward(ct: Any, input: Any, n: int) -> Any:
    return ct * _digamma_derivative(input, n + 1)


@composite("polygamma(int n, Tensor self) -> Tensor", names="torch.polygamma special.polygamma")
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The ``n``-th derivative of ``digamma``.

    Args:
        n: the order of the derivative; not negative.
        input: a tensor.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for a negative ``n``.

    Example:
        >>> torch.polygamma(1, torch.tensor([1.0]))
        tensor([1.6449])
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise wrong_argument("polygamma", "n", 1, "int", n)
    n = n.__index__()
    return _polygamma.function(input, n) if out is None else _polygamma.function(input, n, out=out)


@composite("polygamma(int n, Tensor self) -> Tensor", names="Tensor.polygamma", errors="own")
def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """The ``n``-th derivative of ``digamma``."""
    return polygamma(n, self)


@composite("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", names="Tensor.polygamma_", errors="own")
def _polygamma_inplace(self: Tensor, n: int) -> Tensor:
    """The ``n``-th derivative of ``digamma``, written into the tensor."""
    return _polygamma.inplace(self, n)


def _check_mvlgamma(input: Tensor, p: int) -> None:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")


@pointwise(
    "mvlgamma(Tensor self, int p) -> Tensor",
    node="MvlgammaBackward0", saves="p self",
    names="torch.mvlgamma Tensor.mvlgamma special.multigammaln Tensor.mvlgamma_", dtypes="float", check=_check_mvlgamma,
)  # fmt: skip
def mvlgamma(input, p):
    """The logarithm of the multivariate gamma function of dimension ``p``, up to the sign.

    Source: the definition, ``pi**(p (p - 1) / 4)`` times the product of ``gamma(x - j / 2)`` for ``j`` below ``p``.

    Args:
        input: a tensor of numbers above ``(p - 1) / 2``.
        p: the dimension.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for a ``p`` below 1.

    Example:
        >>> torch.mvlgamma(torch.tensor([2.0]), 1)
        tensor([0.])
    """
    total = as_dtype_of(p * (p - 1) / 4 * math.log(math.pi), input)
    for j in range(p):
        total = total + e.lgamma(input - e.number(j / 2, input))
    return total


# ---------------------------------------------------------------- sigmoid and logit


def _sigmoid_slope(ct: Any, result: Any) -> Any:
    return ct * np.conj(e.number(1, result) - result) * np.conj(result)


def _sigmoid_backward(ct: Any, result: Any) -> Any:
    """Rounds after each step for float16, but only after the last one for bfloat16."""
    each_step = type_of(result).dtype == dtype.float16.numpy
    return (_sigmoid_slope if each_step else in_single(_sigmoid_slope))(ct, result)


sigmoid = unary(
    "sigmoid",
    "SigmoidBackward0",
    e.logistic,
    "``1 / (1 + exp(-input))``.",
    saves="result",
    aliases="special.expit F.sigmoid",
    backward=_sigmoid_backward,
)


def _check_logit(input: Tensor, eps: float | None = None) -> None:
    refuses("logit_cpu", "complex")(input)


@pointwise(
    "logit(Tensor self, float? eps=None) -> Tensor",
    node="LogitBackward0", saves="eps self", names="torch.logit Tensor.logit special.logit Tensor.logit_ torch.logit_",
    dtypes=Dtypes(promote="float", fits=fits("eps")), check=_check_logit,
)  # fmt: skip
def logit(input, eps):
    """``log(input / (1 - input))``, the inverse of ``sigmoid``.

    Args:
        input: a tensor of numbers between 0 and 1.
        eps: if given, elements are clamped to ``[eps, 1 - eps]`` first.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for complex tensors.

    Example:
        >>> torch.logit(torch.tensor([0.5]))
        tensor([0.])
    """
    one = e.number(1, input)
    if eps is not None:
        low = as_dtype_of(eps, input)
        input = np.where(input < low, low, np.where(input > one - low, one - low, input))
    return e.log(input / (one - input))


@logit.backward
def _logit_backward(ct: Any, input: Any, eps: Any) -> Any:
    zero, one = e.number(0, input), e.number(1, input)
    low: Any = zero if eps is None else as_dtype_of(eps, input)
    inside = np.logical_and(input >= low, input <= one - low)
    outside = e.number(numpy.nan, ct) if eps is None else np.where(input == input, zeros_like(ct), input)
    return np.where(inside, ct / (input * (one - input)), outside)


# ---------------------------------------------------------------- entropies


def _entr(x: Any) -> Any:
    zero = e.number(0, x)
    positive = x > zero
    inside = -x * e.log(np.where(positive, x, e.number(1, x)))
    return np.where(positive, inside, np.where(x < zero, e.number(-numpy.inf, x), x * zero))


def _entr_backward(ct: Any, input: Any) -> Any:
    return ct * np.where(input > e.number(0, input), -e.log(input) - e.number(1, input), _entr_slope(input))


def _entr_slope(x: Any) -> Any:
    """The derivative of ``entr`` for ``x <= 0``: infinite at 0, NaN below."""
    return np.where(x == e.number(0, x), e.number(numpy.inf, x), e.number(numpy.nan, x))


entr = unary(
    "special_entr",
    "SpecialEntrBackward0",
    _entr,
    "``-input * log(input)``; 0 for 0, and minus infinity for negative elements.",
    saves="self",
    names="special.entr",
    out=True,
    backward=_entr_backward,
)


def _xlog1py(x: Any, y: Any) -> Any:
    below = y <= e.number(-1, y)
    safe = np.logical_and(x == e.number(0, x), np.logical_or(below, y == e.number(numpy.inf, y)))
    return np.where(safe, zeros_like(x * y), x * e.log1p(np.where(safe, e.number(0, y), y)))


def _xlog1py_backward(ct: Any, input: Any, other: Any) -> Any:
    zero = np.logical_and(input == e.number(0, input), other <= e.number(-1, other))
    return np.where(zero, zeros_like(ct), ct * e.log1p(other)), ct * input / (other + e.number(1, other))


xlog1py = binary(
    "special_xlog1py",
    "SpecialXlog1PyBackward0",
    _xlog1py,
    "``input * log(1 + other)``, and 0 where ``input`` is 0.",
    saves="other self",
    names="special.xlog1py",
    out=True,
    dtypes="float",
    overloads="default self_scalar other_scalar",
    arguments=Arguments(alone=not_numbers_alone("special_xlog1py")),
    backward=_xlog1py_backward,
)
