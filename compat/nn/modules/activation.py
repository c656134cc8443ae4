"""Activation functions, and softmax."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import warn
from compat.nn import functional as F
from compat.nn import init
from compat.nn.modules.module import Module
from compat.nn.modules.utils import described, empty, requalified
from compat.nn.parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


@requalified("__init__")
class _Inplace(Module):
    """An activation function without settings that can overwrite its input."""

    inplace: bool

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


def _with_inplace(module: Any, *names: str) -> str:
    return described(module, *names) + (", inplace=True" if module.inplace else "")


class ReLU(_Inplace):
    """``max(0, x)``.

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class SELU(_Inplace):
    """``scale * (max(0, x) + min(0, alpha * (exp(x) - 1)))`` with the two constants that keep mean 0 and variance 1.

    Source: G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.SELU()(torch.tensor([-1.0, 1.0]))
        tensor([-1.1113,  1.0507])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_Inplace):
    """``x * sigmoid(x)``.

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.SiLU()(torch.tensor([-1.0, 1.0]))
        tensor([-0.2689,  0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """``x * tanh(log(1 + exp(x)))``.

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Mish()(torch.tensor([-1.0, 1.0]))
        tensor([-0.3034,  0.8651])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class Hardsigmoid(_Inplace):
    """``clamp(x / 6 + 1 / 2, 0, 1)``.

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """``x * clamp(x / 6 + 1 / 2, 0, 1)``.

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Hardswish()(torch.tensor([-4.0, 1.0, 4.0]))
        tensor([-0.0000, 0.6667, 4.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardtanh(Module):
    """``clamp(x, min_val, max_val)``.

    Args:
        min_val, max_val: the bounds.
        inplace: whether to overwrite the input.

    Raises:
        AssertionError: unless ``max_val`` is the greater one.

    Example:
        >>> torch.nn.Hardtanh(-2, 2)(torch.tensor([-3.0, 1.0]))
        tensor([-2.,  1.])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        super().__init__()
        if min_value is not None:
            _renamed("min_value", "min_val")
            min_val = min_value
        if max_value is not None:
            _renamed("max_value", "max_val")
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if not max_val > min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(self, "min_val", "max_val")


def _renamed(old: str, new: str) -> None:
    warn(f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning)


class ReLU6(Hardtanh):
    """``clamp(x, 0, 6)``.

    Args:
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.ReLU6()(torch.tensor([-1.0, 3.0, 9.0]))
        tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


@requalified("__init__")
class _Alpha(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return _with_inplace(self, "alpha")


class ELU(_Alpha):
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere.

    Args:
        alpha: minus the limit for negative numbers.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.ELU()(torch.tensor([-1.0, 1.0]))
        tensor([-0.6321,  1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """``x`` where positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere.

    Args:
        alpha: minus the limit for negative numbers.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.CELU(2.0)(torch.tensor([-1.0, 1.0]))
        tensor([-0.7869,  1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Module):
    """``x`` where positive, ``negative_slope * x`` elsewhere.

    Args:
        negative_slope: the factor of negative numbers.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.LeakyReLU(0.1)(torch.tensor([-1.0, 1.0]))
        tensor([-0.1000,  1.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(self, "negative_slope")


class PReLU(Module):
    """``x`` where positive, ``weight * x`` elsewhere, with a learned weight.

    Args:
        num_parameters: the number of weights: 1, or the number of channels (dimension 1).
        init: the initial value of the weights.

    Example:
        >>> torch.nn.PReLU()(torch.tensor([-1.0, 1.0]))
        tensor([-0.2500,  1.0000], grad_fn=<PreluKernelBackward0>)
    """

    weight: Any

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty((num_parameters,), device, dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resets the weight to its initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return described(self, "num_parameters")


class RReLU(Module):
    """The input where positive, otherwise times a slope: random in training, else the mean of the bounds.

    Args:
        lower, upper: the bounds of the slopes.
        inplace: whether to overwrite the input.
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(self, "lower", "upper")


class Threshold(Module):
    """``x`` where it exceeds ``threshold``, ``value`` elsewhere.

    Args:
        threshold: the threshold.
        value: the value of elements that are not above the threshold.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Threshold(0.5, -1.0)(torch.tensor([0.4, 0.6]))
        tensor([-1.0000,  0.6000])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _with_inplace(self, "threshold", "value")


@requalified("__init__")
class _Lambd(Module):
    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Lambd):
    """``x`` where ``|x|`` exceeds ``lambd``, else 0.

    Args:
        lambd: the bound.

    Example:
        >>> torch.nn.Hardshrink()(torch.tensor([0.4, 0.6]))
        tensor([0.0000, 0.6000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Lambd):
    """``x`` moved towards 0 by ``lambd``, and 0 where ``|x|`` is at most ``lambd``.

    Args:
        lambd: the bound.

    Example:
        >>> torch.nn.Softshrink()(torch.tensor([0.4, 0.75]))
        tensor([0.0000, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x`` exceeds ``threshold``.

    Args:
        beta: the sharpness.
        threshold: where ``beta * x`` is greater, the result is ``x``.

    Example:
        >>> torch.nn.Softplus()(torch.tensor([0.0, 30.0]))
        tensor([ 0.6931, 30.0000])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return described(self, "beta", "threshold")


class GLU(Module):
    """The first half of the input along ``dim`` times the sigmoid of the second.

    Args:
        dim: the dimension that is halved.

    Example:
        >>> torch.nn.GLU()(torch.tensor([2.0, 0.0]))
        tensor([1.])
    """

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return described(self, "dim")


class GELU(Module):
    """``x`` times the standard normal distribution function of ``x``.

    Args:
        approximate: ``"none"``, or ``"tanh"`` for an approximation by the hyperbolic tangent.

    Example:
        >>> torch.nn.GELU()(torch.tensor([-1.0, 1.0]))
        tensor([-0.1587,  0.8413])
    """

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return described(self, "approximate")


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    Example:
        >>> torch.nn.Sigmoid()(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Any:
        return input.sigmoid()


class LogSigmoid(Module):
    """``-log(1 + exp(-x))``.

    Example:
        >>> torch.nn.LogSigmoid()(torch.tensor([0.0, 1.0]))
        tensor([-0.6931, -0.3133])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent.

    Example:
        >>> torch.nn.Tanh()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Any:
        return input.tanh()


class Tanhshrink(Module):
    """``x - tanh(x)``.

    Example:
        >>> torch.nn.Tanhshrink()(torch.tensor([-1.0, 1.0]))
        tensor([-0.2384,  0.2384])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Softsign(Module):
    """``x / (1 + |x|)``.

    Example:
        >>> torch.nn.Softsign()(torch.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


@requalified("__init__")
class _AlongDim(Module):
    """Base of modules along one dimension; None is deprecated and selects 0 (for 0, 1 or 3 dimensions) or 1."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return described(self, "dim")


class Softmax(_AlongDim):
    """``exp(x) / exp(x).sum(dim)``.

    Args:
        dim: the dimension along which the result adds up to 1.

    Example:
        >>> torch.nn.Softmax(dim=0)(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """The logarithm of softmax along ``dim``.

    Args:
        dim: the dimension along which the probabilities sum to one.

    Example:
        >>> torch.nn.LogSoftmax(dim=0)(torch.zeros(2))
        tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    """Softmax of ``-x`` along ``dim``.

    Args:
        dim: the dimension along which the results sum to one.

    Example:
        >>> torch.nn.Softmin(dim=0)(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (channels, height, width), or of the same with a batch.

    Example:
        >>> torch.nn.Softmax2d()(torch.zeros(2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)
