"""Samples of gamma and Dirichlet distributions, differentiable with respect to the parameters.

The derivative is that at a constant cumulative probability: implicit reparametrization (M. Figurnov et al., "Implicit
reparameterization gradients", NeurIPS 2018).
"""

from __future__ import annotations

from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes, Gradients
from compat._core.operators.op import aten, pointwise
from compat._core.random.generator import engine_of
from compat._core.tensor.tensor import Tensor
from compat._operators import samplers
from compat._operators.random.vmap_random import drawn, given
from funcgrad import custom_jvp
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.special.functions import betainc_by_parameters, gamma_sample_slope


def _sample_slope(shape: Any, sample: Any) -> Any:
    """The derivatives of gamma samples by their shape parameters; in float64, as large parameters cancel digits."""
    wide = [np.astype(x, fdtypes.float64) for x in (shape, sample)]
    return np.astype(gamma_sample_slope(*wide), type_of(sample).dtype)


@custom_jvp
def _sample(shape: Any, values: Any) -> Any:
    return e.stop_gradient(values)  # a new value, which the node can save


_sample.defjvps(lambda t, sample, shape, values: np.multiply(t, _sample_slope(shape, sample)), None)


@aten(
    "_gamma_drawn(Tensor self, Tensor values) -> Tensor",
    node="StandardGammaBackward0", saves="self! result!", names="",
)  # fmt: skip
def _gamma_drawn(input, values):
    return _sample(input, values)


@_gamma_drawn.backward
def _gamma_drawn_backward(ct: Any, input: Any, result: Any) -> Any:
    return np.multiply(ct, _sample_slope(input, result)), None


@composite("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", names="torch._standard_gamma")
def standard_gamma(input: Tensor, generator: Any = None) -> Tensor:
    """Samples of gamma distributions with the shape parameters in ``input`` and rate 1.

    Example:
        >>> torch._standard_gamma(torch.ones(2)).shape
        torch.Size([2])
    """
    (shapes,), over = given(input)
    values = samplers.standard_gamma(engine_of("_standard_gamma", generator), np_(shapes))
    return _gamma_drawn.function(input, drawn(values, over, input.dtype))


def np_(values: Any) -> numpy.ndarray:
    """A copy in row-major order, unless the values are."""
    return numpy.asarray(values, order="C")


@pointwise(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    names="torch._standard_gamma_grad", dtypes=Dtypes(promote="common", numbers=True), out=False,
)  # fmt: skip
def standard_gamma_grad(input, output):
    """The derivatives of gamma samples ``output`` with respect to their shape parameters ``input``."""
    return _sample_slope(input, output)


# ---------------------------------------------------------------- Dirichlet


def _slope(x: Any, alpha: Any, total: Any) -> Any:
    """The derivative by ``alpha`` of a sample ``x`` of Beta(``alpha``, ``total - alpha``), over ``1 - x``."""
    beta = np.subtract(total, alpha)
    moved = betainc_by_parameters(alpha, beta, x, orders=(1, 0))
    one = e.number(1, x)
    logs = np.add(
        np.multiply(np.subtract(alpha, one), np.log(x)), np.multiply(np.subtract(beta, one), np.log1p(e.neg(x)))
    )
    logs = np.add(logs, np.subtract(e.lgamma(total), np.add(e.lgamma(alpha), e.lgamma(beta))))
    return e.neg(np.divide(moved, np.multiply(np.exp(logs), np.subtract(one, x))))


@pointwise(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    names="torch._dirichlet_grad", dtypes=Dtypes(promote="common", numbers=True), out=False,
)  # fmt: skip
def dirichlet_grad(x, alpha, total):
    """The derivative of each element of Dirichlet samples by its own parameter, over the sum of the other elements."""
    return _slope(x, alpha, total)


@aten("_sample_dirichlet(Tensor self, Tensor values) -> Tensor", names="", gradients=Gradients(undefined=True))
def _dirichlet_drawn(input, values):
    return values


@composite("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", names="torch._sample_dirichlet")
def sample_dirichlet(input: Tensor, generator: Any = None) -> Tensor:
    """Samples of Dirichlet distributions with the parameters along the last dimension, along which they add up to one.

    They have no gradient; samples of ``torch.distributions.Dirichlet`` have one.

    Example:
        >>> torch._sample_dirichlet(torch.ones(3)).sum().round()
        tensor(1.)
    """
    (parameters,), over = given(input)
    kind = numpy.dtype(input.dtype.numpy)
    gammas = samplers.standard_gamma(engine_of("_sample_dirichlet", generator), np_(parameters).astype(numpy.float64))
    shares = (gammas / gammas.sum(-1, keepdims=True)).astype(kind)
    below_one = numpy.nextafter(kind.type(1), kind.type(0))
    values = numpy.clip(shares, numpy.finfo(kind).tiny, below_one)
    return _dirichlet_drawn.function(input, drawn(values, over, input.dtype))
