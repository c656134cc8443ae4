"""Samples of gamma and Dirichlet distributions, differentiable with respect to the parameters.

The derivative is taken at constant cumulative probability, by implicit reparameterization (M. Figurnov et al.,
"Implicit reparameterization gradients", NeurIPS 2018).
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
from compat._operators.random.vmap_random import batched_tensor, parameter_values
from funcgrad import custom_jvp
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.special.functions import betainc_by_parameters, gamma_sample_slope


def _sample_slope(shape: Any, sample: Any) -> Any:
    """The derivatives of gamma samples by their shape parameters, in float64, since large parameters cancel digits."""
    wide = [np.astype(x, fdtypes.float64) for x in (shape, sample)]
    return np.astype(gamma_sample_slope(*wide), type_of(sample).dtype)


@custom_jvp
def _sample(shape: Any, values: Any) -> Any:
    return e.stop_gradient(values)  # a new array, which the node can save


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
    (shapes,), vmaps = parameter_values(input)
    values = samplers.standard_gamma(engine_of("_standard_gamma", generator), shapes)
    return _gamma_drawn.function(input, batched_tensor(values, vmaps, input.dtype))


@pointwise(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    names="torch._standard_gamma_grad", dtypes=Dtypes(promote="common", numbers=True), out=False,
)  # fmt: skip
def standard_gamma_grad(input, output):
    """The derivatives of gamma samples ``output`` with respect to their shape parameters ``input``."""
    return _sample_slope(input, output)


# ---------------------------------------------------------------- Dirichlet


def _beta_slope(x: Any, alpha: Any, total: Any) -> Any:
    """The derivative of a sample ``x`` of Beta(``alpha``, ``total - alpha``) by ``alpha``, divided by ``1 - x``."""
    beta = np.subtract(total, alpha)
    slope = betainc_by_parameters(alpha, beta, x, orders=(1, 0))
    one = e.number(1, x)
    log_density = np.add(
        np.multiply(np.subtract(alpha, one), np.log(x)), np.multiply(np.subtract(beta, one), np.log1p(e.neg(x)))
    )
    log_density = np.add(log_density, np.subtract(e.lgamma(total), np.add(e.lgamma(alpha), e.lgamma(beta))))
    return e.neg(np.divide(slope, np.multiply(np.exp(log_density), np.subtract(one, x))))


@pointwise(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    names="torch._dirichlet_grad", dtypes=Dtypes(promote="common", numbers=True), out=False,
)  # fmt: skip
def dirichlet_grad(x, alpha, total):
    """The derivatives of elements of Dirichlet samples by their parameters, over the sums of the other elements."""
    return _beta_slope(x, alpha, total)


@aten("_sample_dirichlet(Tensor self, Tensor values) -> Tensor", names="", gradients=Gradients(undefined=True))
def _dirichlet_drawn(input, values):
    return values


@composite("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", names="torch._sample_dirichlet")
def sample_dirichlet(input: Tensor, generator: Any = None) -> Tensor:
    """Samples of Dirichlet distributions with the parameters along the last dimension, along which they add up to one.

    They have no gradient, unlike samples of ``torch.distributions.Dirichlet``.

    Example:
        >>> torch._sample_dirichlet(torch.ones(3)).sum().round()
        tensor(1.)
    """
    (parameters,), vmaps = parameter_values(input)
    kind = numpy.dtype(input.dtype.numpy)
    gammas = samplers.standard_gamma(engine_of("_sample_dirichlet", generator), parameters.astype(numpy.float64))
    shares = (gammas / gammas.sum(-1, keepdims=True)).astype(kind)
    below_one = numpy.nextafter(kind.type(1), kind.type(0))
    values = numpy.clip(shares, numpy.finfo(kind).tiny, below_one)
    return _dirichlet_drawn.function(input, batched_tensor(values, vmaps, input.dtype))
