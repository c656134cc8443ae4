"""Dropout: products with random masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compat._core.memory.strides import contiguous_layout
from compat._core.operators.composite import composite
from compat._core.random.generator import default_generator
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.errors import warn, wrong_argument
from compat._core.types.type_promotion import check_cast
from compat._operators import samplers
from compat._operators.arguments import tensor_argument
from compat._operators.create.factories import zeros
from compat._operators.random.factories import random_like
from compat._operators.random.vmap_random import random_tensor


def _check(p: float, error: type[Exception] = RuntimeError) -> None:
    if not 0.0 <= p <= 1.0:
        text = p if error is ValueError else f"{p:g}"
        raise error(f"dropout probability has to be between 0 and 1, but got {text}")


def _scale(dtype: np.dtype, p: float) -> Any:
    """The factor of the elements that are not dropped; for 16-bit floats it is computed in float32."""
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    return (wide.type(1) / wide.type(1 - p)).astype(dtype)


def _mask(n: int, dtype: np.dtype, p: float) -> np.ndarray:
    """``n`` elements of a mask: ones with probability ``1 - p``, else zeros."""
    return samplers.bernoulli(default_generator.engine, n, dtype, 1 - p)


def _multiplied(input: Any, mask: Tensor, inplace: bool) -> Tensor:
    return input.mul_(mask) if inplace else input * mask


def _feature_size(t: Tensor) -> tuple[int, ...]:
    """The size of a mask that has one element for each channel."""
    if t.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*t.shape[:2], *[1] * (t.dim() - 2))


def _dropped(input: Any, p: float, train: bool, inplace: bool, feature: bool = False, alpha: bool = False) -> Tensor:
    """Dropout of all kinds.

    Args:
        feature: whether to drop whole channels of samples.
        alpha: whether dropped elements become the infimum of ``selu``, and the result has mean 0 and variance 1.
    """
    name = f"{'feature_' * feature}{'alpha_' * alpha}dropout{'_' * inplace}"
    tensor_argument(name, "input", 1, input)
    if p is None or isinstance(p, str):
        raise wrong_argument(name, "p", 2, "float", p)
    if not isinstance(train, (bool, np.bool_)):
        raise wrong_argument(name, "train", 3, "bool", train)
    _check(p)
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:
        return _multiplied(input, zeros((), dtype=input.dtype), inplace)
    check_cast(dtypes.get_default_dtype(), input.dtype)
    kind = np.dtype(input.dtype.numpy)

    def mask_of(draw: Any) -> Tensor:
        if mode.watched:  # dispatch modes intercept ``bernoulli_``, as in PyTorch
            empty = input.new_empty(_feature_size(input)) if feature else names_of("torch")["empty_like"](input)
            mask = empty.bernoulli_(1 - p)
            return mask if alpha else mask.mul_(_scale(kind, p).item())
        if not feature:
            return random_like(input, draw, input.dtype, sequential=True)
        return random_tensor(draw, contiguous_layout(_feature_size(input), input.dtype, device=input.device))

    if not alpha:
        factor = _scale(kind, p)
        return _multiplied(input, mask_of(lambda n, dtype: _mask(n, dtype, p) * factor), inplace)
    scale = _alpha_scale(p)
    mask: Any = mask_of(lambda n, dtype: _mask(n, dtype, p))
    shift = (mask - 1).mul_(_ALPHA * scale).add_(_ALPHA * scale * p)
    multiplied = _multiplied(input, mask.mul_(scale), inplace)
    return multiplied.add_(shift) if inplace else multiplied + shift


_ALPHA = 1.7580993408473766  # minus the infimum of selu


def _alpha_scale(p: float) -> float:
    return 1 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))


def _declare(name: str, **kind: bool) -> None:
    """The functions ``torch.NAME`` and ``torch.NAME_``."""

    def dropout(input: Tensor, p: float, train: bool) -> Tensor:
        return _dropped(input, p, train, False, **kind)

    def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
        return _dropped(input, p, train, True, **kind)

    for each, full, tensor in ((dropout, name, "Tensor"), (dropout_, f"{name}_", "Tensor(a!)")):
        each.__name__ = each.__qualname__ = full
        each.__doc__ = f"As ``torch.nn.functional.{name}``" + (", in place." if each is dropout_ else ".")
        composite(f"{full}({tensor} self, float p, bool train) -> {tensor}", names=f"torch.{full}")(each)


_declare("dropout")
_declare("feature_dropout", feature=True)
_declare("alpha_dropout", alpha=True)
_declare("feature_alpha_dropout", feature=True, alpha=True)


@function("F.dropout")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets elements to zero with probability ``p``, and divides the others by ``1 - p``, in training.

    Args:
        training: if False, the input is returned unchanged.
        inplace: whether to overwrite the input.

    Raises:
        ValueError: unless ``p`` is between 0 and 1.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.nn.functional.dropout(torch.ones(4), 0.5)
        tensor([0., 0., 2., 0.])
    """
    _check(p, ValueError)
    return _dropped(input, p, training, inplace)


@function("F.alpha_dropout")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, for networks with ``selu``.

    Source: G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.

    Example:
        >>> torch.nn.functional.alpha_dropout(torch.ones(2), training=False)
        tensor([1., 1.])
    """
    _check(p, ValueError)
    return _dropped(input, p, training, inplace, alpha=True)


@function("F.feature_alpha_dropout")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """``alpha_dropout`` of whole channels (dimension 1).

    Example:
        >>> torch.nn.functional.feature_alpha_dropout(torch.ones(1, 2), training=False)
        tensor([[1., 1.]])
    """
    _check(p, ValueError)
    return _dropped(input, p, training, inplace, feature=True, alpha=True)


@function("F.dropout1d")
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (batch, channels, length) or (channels, length).

    Raises:
        ValueError: unless ``p`` is between 0 and 1.
        RuntimeError: for another number of dimensions.

    Example:
        >>> torch.nn.functional.dropout1d(torch.ones(1, 2, 3), training=False).shape
        torch.Size([1, 2, 3])
    """
    _check(p, ValueError)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _channel_dropout(input, input.dim() == 3, p, training, inplace)


@function("F.dropout2d")
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (batch, channels, height, width), or of (batch, channels, length).

    Raises:
        ValueError: unless ``p`` is between 0 and 1.

    Example:
        >>> torch.nn.functional.dropout2d(torch.ones(1, 2, 3, 3), training=False).shape
        torch.Size([1, 2, 3, 3])
    """
    _check(p, ValueError)
    if input.dim() not in (3, 4):
        _warn("dropout2d", input.dim(), 2, (3, 4))
    if input.dim() == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will "
            "change in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, "
            "W). To maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _dropped(input, p, training, inplace, feature=True)


@function("F.dropout3d")
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (batch, channels, depth, height, width), or without the batch dimension.

    Raises:
        ValueError: unless ``p`` is between 0 and 1.

    Example:
        >>> torch.nn.functional.dropout3d(torch.ones(1, 2, 3, 3, 3), training=False).shape
        torch.Size([1, 2, 3, 3, 3])
    """
    _check(p, ValueError)
    if input.dim() not in (4, 5):
        _warn("dropout3d", input.dim(), 3, (4, 5))
    return _channel_dropout(input, input.dim() == 5, p, training, inplace)


def _channel_dropout(input: Any, batched: bool, p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout of channels of an input with or without a batch dimension."""
    if batched:
        return _dropped(input, p, training, inplace, feature=True)
    one = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result: Any = _dropped(one, p, training, inplace, feature=True)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def _warn(name: str, got: int, spatial: int, expected: Sequence[int]) -> None:
    warn(
        f"{name}: Received a {got}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. To retain the behavior and silence this warning, please use dropout instead. Note that {name} "
        f"exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel dimension, "
        f"and an optional batch dimension (i.e. {expected[0]}D or {expected[1]}D inputs)."
    )
