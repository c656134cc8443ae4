"""``rrelu``: the randomized leaky rectified linear unit."""

from __future__ import annotations

from typing import Any

import numpy

from compat._core.memory.meta import on_meta
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Dtypes, Gradients
from compat._core.operators.op import aten
from compat._core.random.generator import engine_of
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.transforms import vmap_checks
from compat._core.types.errors import lacks
from compat._core.types.scalar_conversion import fits, widened
from compat._operators import samplers
from compat._operators.arguments import tensor_argument
from compat._operators.pointwise.declare import NEGATIVE_LEAK, without_backward
from funcgrad import numpy as np
from funcgrad.primitives import elementwise as e


@aten(
    "rrelu(Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training) -> Tensor",
    node="RreluWithNoiseBackward0", saves="self! noise! lower upper training", names="",
    dtypes=Dtypes(fits=fits("lower upper", widened)), layout="like:input", arguments=Arguments(static="lower upper"),
    gradients=Gradients(without="noise"),
)  # fmt: skip
def rrelu_with_noise(input, noise, lower, upper, training):
    slope = noise if training else e.number((lower + upper) / 2, input)
    negative = np.less_equal(input, 0) if training else np.logical_not(np.greater(input, 0))
    return np.where(negative, np.multiply(input, slope), input)


@aten(
    "rrelu_(Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training) -> Tensor",
    node="RreluWithNoiseBackward1", saves="result! noise! lower upper training", names="",
    dtypes=Dtypes(fits=fits("lower upper", widened)), layout="like:input", arguments=Arguments(static="lower upper"),
    gradients=Gradients(without="noise"),
)  # fmt: skip
def rrelu_in_place(input, noise, lower, upper, training):
    return rrelu_with_noise.body(input, noise, lower, upper, training)


@rrelu_in_place.backward
def rrelu_in_place_backward(ct: Any, noise: Any, lower: float, upper: float, training: bool, result: Any) -> Any:
    if _drawn(lower, upper, training):
        return np.multiply(ct, noise)
    negative = np.logical_not(np.greater(result, 0))
    return np.multiply(ct, np.where(negative, e.number((lower + upper) / 2, result), e.number(1, ct)))


def _drawn(lower: float, upper: float, training: bool) -> bool:
    """Whether the slopes are random: in training, with distinct bounds."""
    return training and upper - lower > 1e-6


def _noise(input: Tensor, lower: float, upper: float, training: bool, generator: Any) -> Tensor:
    """In training a slope for each nonpositive element, in order, and 1 elsewhere; else an empty tensor, as in
    PyTorch."""
    if not training or on_meta(input):
        return names_of("torch")["empty_like"](input)
    values = array_of(input)
    noise = numpy.ones(values.shape, values.dtype)
    negative = values <= 0
    drawn = samplers.uniform(engine_of("rrelu", generator), int(negative.sum()), numpy.float64, lower, upper)
    noise[negative] = drawn.astype(values.dtype)
    return from_array(noise, input.dtype)


def _check(input: Any, lower: float, upper: float) -> None:
    tensor_argument("rrelu", "input", 1, input)
    if vmap_checks.mapping():
        raise RuntimeError("vmap: we do not yet support aten::rrelu. Please file an issue")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not input.dtype.is_floating_point:
        raise lacks("rrelu_out_cpu", input.dtype)


@composite(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    names="torch.rrelu",
)
def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """As ``torch.nn.functional.rrelu``."""
    _check(input, lower, upper)
    noise = _noise(input, lower, upper, training, generator)
    return rrelu_with_noise.function(input, noise, lower, upper, training)


@composite(
    "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor(a!)",
    names="torch.rrelu_ F.rrelu_",
)
def rrelu_(input, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """``rrelu`` in place."""
    _check(input, lower, upper)
    noise = _noise(input, lower, upper, training, generator)
    found = rrelu_in_place.inplace(input, noise, lower, upper, training)
    return without_backward(found, NEGATIVE_LEAK) if lower + upper < 0 and not _drawn(lower, upper, training) else found


@function("F.rrelu")
def functional_rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """The input where it is positive, elsewhere times a slope: random in training, else the mean of the bounds.

    Args:
        lower, upper: the bounds of the slopes.
        training: whether slopes are drawn, one per element.
        inplace: whether to overwrite the input.

    Source: B. Xu et al., "Empirical evaluation of rectified activations in convolutional network", 2015.

    Example:
        >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 1.0]), 0.25, 0.75)
        tensor([-0.5000,  1.0000])
    """
    return (rrelu_ if inplace else rrelu)(input, lower, upper, training)
