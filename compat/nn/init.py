"""``torch.nn.init``: initialization of tensors.

Every function fills its tensor in place, outside the graph, and returns it. The same seed draws the same numbers as in
PyTorch.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.tensor.torch_function import handle_torch_function, has_torch_function
from compat._core.transforms.grad_mode import no_grad
from compat._core.types.errors import warn
from compat._operators.random.factories import randperm
from compat._operators.random.inplace import truncated_normal_

__all__ = [
    "calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_", "dirac_",
    "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_", "uniform",
    "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal",
    "orthogonal", "sparse",
]  # fmt: skip

_KEEPS_SCALE = {"linear", "sigmoid"} | {f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)}
_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4} | dict.fromkeys(_KEEPS_SCALE, 1)


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor of weights that compensates for a nonlinearity's effect on the variance.

    Args:
        nonlinearity: ``"linear"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``, …
        param: the negative slope of ``"leaky_relu"``, 0.01 if left out.

    Raises:
        ValueError: for an unknown nonlinearity or a slope that is not a number.

    Example:
        >>> calculate_gain("leaky_relu", 1.0)
        1.0
    """
    if nonlinearity != "leaky_relu":
        if nonlinearity not in _GAINS:
            raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
        return _GAINS[nonlinearity]
    if param is None:
        param = 0.01
    elif isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + param**2))


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """The fan-in and fan-out of a weight (out, in, *kernel)."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    outputs, inputs, *kernel = tensor.shape
    field = math.prod(kernel)
    return inputs * field, outputs * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def _overridable(fill: Callable[..., Any]) -> Callable[..., Any]:
    """A function that the type of its tensor, and modes, override; overrides get all arguments by name."""
    signature = inspect.signature(fill)

    @functools.wraps(fill)
    def wrapped(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not has_torch_function((tensor,)):
            return fill(tensor, *args, **kwargs)
        given = signature.bind(tensor, *args, **kwargs)
        given.apply_defaults()
        return handle_torch_function(wrapped, (tensor,), **given.arguments)

    return wrapped


# ---------------------------------------------------------------- constants and distributions


@_overridable
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Uniform numbers from ``[a, b)``.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> uniform_(torch.empty(2), generator=generator)
        tensor([0.4963, 0.7682])
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@_overridable
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Normal numbers.

    Args:
        mean, std: of the distribution.
        generator: the random number generator.

    Example:
        >>> torch.nn.init.normal_(torch.empty(2, 3)).shape
        torch.Size([2, 3])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


_no_grad_uniform_, _no_grad_normal_ = uniform_, normal_


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Normal numbers, redrawn outside ``[a, b]``; warns if nearly all of them are outside.

    Args:
        mean, std: of the distribution, before truncation.
        a, b: the bounds.
        generator: the random number generator.

    Example:
        >>> bool((torch.nn.init.trunc_normal_(torch.empty(9)).abs() <= 2).all())
        True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )
    with no_grad():
        return truncated_normal_(tensor, mean, std, a, b, generator=generator)


@_overridable
def constant_(tensor: Any, val: float) -> Any:
    """The number ``val`` everywhere.

    Example:
        >>> torch.nn.init.constant_(torch.empty(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


_no_grad_fill_ = constant_


def ones_(tensor: Any) -> Any:
    """Ones.

    Example:
        >>> torch.nn.init.ones_(torch.empty(2))
        tensor([1., 1.])
    """
    with no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Any) -> Any:
    """Zeros.

    Example:
        >>> torch.nn.init.zeros_(torch.empty(2))
        tensor([0., 0.])
    """
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Any) -> Any:
    """The identity matrix: a linear layer then preserves as many of its inputs as it has outputs.

    Raises:
        ValueError: unless the tensor has two dimensions.

    Example:
        >>> torch.nn.init.eye_(torch.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    _check_matrix(tensor)
    return _copied(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Ones at the centre of the kernel from input channel i to output channel i, the identity of a convolution.

    Args:
        tensor: a weight of shape (out, in, *kernel) with one to three kernel dimensions.
        groups: each group of output channels gets its own identity.

    Raises:
        ValueError: for another number of dimensions, or outputs that ``groups`` does not divide.

    Example:
        >>> torch.nn.init.dirac_(torch.empty(1, 1, 3))
        tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    outputs, inputs, *kernel = tensor.shape
    values = np.zeros(tensor.shape)
    centre = tuple(n // 2 for n in kernel)
    for output in range(outputs):
        channel = output % (outputs // groups)
        if channel < inputs:
            values[(output, channel, *centre)] = 1
    return _copied(tensor, values)


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Normal numbers, a fraction ``sparsity`` of every column set to zero.

    Source: J. Martens, "Deep learning via Hessian-free optimization", ICML 2010.

    Raises:
        ValueError: unless the tensor has two dimensions.

    Example:
        >>> int((torch.nn.init.sparse_(torch.empty(4, 2), sparsity=0.5) == 0).sum())
        4
    """
    _check_matrix(tensor)
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0, std, generator=generator)
    values = np.array(array_of(tensor))
    for column in range(columns):
        values[array_of(randperm(rows))[:zeros], column] = 0
    return _copied(tensor, values)


# ---------------------------------------------------------------- by fan-in and fan-out


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Uniform numbers of variance ``gain**2 * 2 / (inputs + outputs)``.

    Source: X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    AISTATS 2010.

    Args:
        gain: the factor of the standard deviation.
        generator: the random number generator.

    Raises:
        ValueError: for fewer than two dimensions.

    Example:
        >>> bool((torch.nn.init.xavier_uniform_(torch.empty(3, 3)).abs() <= 1).all())
        True
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal numbers of variance ``gain**2 * 2 / (inputs + outputs)``.

    Args:
        gain: the factor of the standard deviation.
        generator: the random number generator.

    Raises:
        ValueError: for fewer than two dimensions.

    Example:
        >>> torch.nn.init.xavier_normal_(torch.empty(3, 3)).shape
        torch.Size([3, 3])
    """
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor: Tensor, gain: float) -> float:
    return gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))


@_overridable
def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Uniform numbers of variance ``gain**2 / fan``.

    Source: K. He et al., "Delving deep into rectifiers", ICCV 2015.

    Args:
        a: the negative slope, for ``"leaky_relu"``.
        mode: ``"fan_in"`` keeps the variance in the forward pass, ``"fan_out"`` in the backward pass.
        nonlinearity: a name for ``calculate_gain``.

    Raises:
        ValueError: for fewer than two dimensions, or an unknown mode or nonlinearity.

    Example:
        >>> bool((torch.nn.init.kaiming_uniform_(torch.empty(2, 6), nonlinearity="relu").abs() <= 1).all())
        True
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Normal numbers of variance ``gain**2 / fan``; the arguments are those of ``kaiming_uniform_``.

    Example:
        >>> torch.nn.init.kaiming_normal_(torch.empty(2, 6)).shape
        torch.Size([2, 6])
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation; None, with a warning, for an empty tensor."""
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """A matrix with orthonormal rows or columns, whichever are fewer, times ``gain``.

    All dimensions after the first are flattened into columns.

    Source: A. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks",
    ICLR 2014.

    Raises:
        ValueError: for fewer than two dimensions.

    Example:
        >>> (lambda q: torch.allclose(q @ q.mT, torch.eye(2), atol=1e-6))(torch.nn.init.orthogonal_(torch.empty(2, 4)))
        True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    shape = (rows, tensor.numel() // rows)
    values = array_of(normal_(tensor.detach().new_empty(shape), generator=generator))
    q, r = np.linalg.qr(values.T if shape[0] < shape[1] else values)
    q = q * np.sign(np.diagonal(r))  # makes the distribution uniform
    return _copied(tensor, (q.T if shape[0] < shape[1] else q).reshape(tensor.shape) * values.dtype.type(gain))


# ---------------------------------------------------------------- shared


def _check_matrix(tensor: Tensor) -> None:
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")


def _copied(tensor: Any, values: np.ndarray) -> Any:
    with no_grad():
        return tensor.copy_(from_array(np.asarray(values, order="C")))


def _renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under its deprecated name without the trailing underscore."""
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning)
        return function(*args, **kwargs)

    deprecated.__name__ = old
    deprecated.__doc__ = f"A deprecated name of ``{new}``."
    return deprecated


uniform = _renamed(uniform_)
normal = _renamed(normal_)
constant = _renamed(constant_)
eye = _renamed(eye_)
dirac = _renamed(dirac_)
xavier_uniform = _renamed(xavier_uniform_)
xavier_normal = _renamed(xavier_normal_)
kaiming_uniform = _renamed(kaiming_uniform_)
kaiming_normal = _renamed(kaiming_normal_)
orthogonal = _renamed(orthogonal_)
sparse = _renamed(sparse_)
