"""``soft_margin_loss``, ``multi_margin_loss``, ``multilabel_margin_loss``."""

from __future__ import annotations

from typing import Any

from compat._core.memory.strides import broadcast_size
from compat._core.operators.declaration import Arguments, Dtypes, Gradients
from compat._core.operators.op import aten
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks, size_text
from compat._core.types.scalar_conversion import fits
from compat._core.types.type_promotion import check_cast
from compat._operators.loss.pointwise import reduced, reduction_number
from compat._operators.pointwise.declare import common
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.shape import iota, reshape

# ---------------------------------------------------------------- two classes


def _check_soft_margin(input: Tensor, target: Tensor, reduction: int) -> None:
    if target.requires_grad:
        raise RuntimeError(
            "The function 'soft_margin_loss' is not differentiable with respect to argument 'target'. This input "
            "cannot have requires_grad True."
        )
    if input.dtype is dtypes.bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    size = broadcast_size(tuple(input.shape), tuple(target.shape))
    if size != tuple(input.shape):  # PyTorch multiplies the input in place
        raise RuntimeError(
            f"output with shape {size_text(input.shape)} doesn't match the broadcast shape {size_text(size)}"
        )
    check_cast(common((input, target)), input.dtype)
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        check_cast(dtypes.get_default_dtype(), input.dtype)


@aten(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    node="SoftMarginLossBackward0", saves="self target reduction", names="", check=_check_soft_margin,
    gradients=Gradients(without="target"),
)  # fmt: skip
def soft_margin_pairs(input, target, reduction):
    target = np.astype(target, type_of(input).dtype)
    return reduced(np.log1p(e.exp(np.multiply(e.neg(target), input))), reduction)


@function("F.soft_margin_loss")
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``log(1 + exp(-target * input))``.

    Args:
        input: scores.
        target: 1 or -1 for each score.

    Example:
        >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)
    """
    return soft_margin_pairs.function(input, target, reduction_number(reduction, size_average, reduce))


# ---------------------------------------------------------------- one class


def _rows_of(x: Any) -> tuple[int, int]:
    """The numbers of rows and of classes; a vector is one row."""
    shape = type_of(x).shape
    return (shape[0], shape[1]) if len(shape) == 2 else (1, shape[0] if shape else 1)


def _check_scores(input: Tensor) -> None:
    n = input.dim()
    if n > 2 or (n == 2 and not input.shape[1]) or (n == 1 and not input.shape[0]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {size_text(input.shape)}"
        )


def _check_single_or_double(kernel: str, input: Tensor) -> None:
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise lacks(kernel, input.dtype)


def _check_scalar_type(t: Tensor, expected: dtypes.dtype) -> None:
    if t.dtype is not expected:
        raise RuntimeError(f"expected scalar type {expected.scalar_name} but found {t.dtype.scalar_name}")


def _check_multi_margin(input, target, p, margin, weight, reduction):
    _check_scores(input)
    rows, classes = (input.shape[0], input.shape[1]) if input.dim() == 2 else (1, max(input.numel(), 1))
    if target.dim() > 1 or target.numel() != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{rows}], but got {size_text(target.shape)}. Input has shape "
            f"{size_text(input.shape)}."
        )
    if weight is not None and (weight.dim() > 1 or weight.numel() != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {size_text(weight.shape)}")
    _check_single_or_double("multi_margin_loss_cpu_kernel", input)
    _check_scalar_type(target, dtypes.int64)
    if weight is not None:
        _check_scalar_type(weight, input.dtype)


def _inspect_multi_margin(input: Tensor, target: Tensor, *_: Any) -> None:
    values = values_of(target)
    if values.size and (values.min() < 0 or values.max() >= (input.shape[-1] if input.dim() else 1)):
        raise RuntimeError("target out of range")


@aten(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
    "reduction=Mean) -> Tensor",
    node="MultiMarginLossBackward0", saves="self target p margin weight reduction", names="",
    dtypes=Dtypes(fits=fits("margin")), check=_check_multi_margin, values=_inspect_multi_margin,
    arguments=Arguments(static="p margin"), gradients=Gradients(without="target weight"),
)  # fmt: skip
def multi_margin_rows(input, target, p, margin, weight, reduction):
    rows, classes = _rows_of(input)
    scores, target = reshape(input, shape=(rows, classes)), reshape(target, shape=(rows, 1))
    is_target = np.equal(iota(shape=(rows, classes), axis=1, dtype=fdtypes.int64), target)
    zero = e.number(0, scores)
    target_scores = np.expand_dims(r.reduce_sum(np.where(is_target, scores, zero), axes=(1,)), 1)
    hinge = np.add(np.subtract(scores, target_scores), margin)
    hinge = np.where(np.greater(hinge, 0), hinge, zero)  # zero for NaN
    loss = e.square(hinge) if p == 2 else hinge
    if weight is not None:
        factors = r.reduce_sum(np.where(is_target, reshape(weight, shape=(1, classes)), zero), axes=(1,))
        loss = np.multiply(loss, np.expand_dims(np.astype(factors, type_of(scores).dtype), 1))
    losses = np.divide(r.reduce_sum(np.where(is_target, zero, loss), axes=(1,)), classes)
    return reduced(losses if type_of(input).ndim == 2 else reshape(losses, shape=()), reduction)


@function("F.multi_margin_loss")
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over the other classes of ``max(0, margin - (score of the target - score)) ** p``.

    Args:
        input: scores, ``(n, classes)`` or ``(classes,)``.
        target: classes, ``(n,)``.
        p: 1 or 2.
        weight: factors of the target classes.

    Raises:
        ValueError: for an unsupported ``p``.
        RuntimeError: if sizes do not match, and for a target out of range.

    Example:
        >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.5, 1.0]]), torch.tensor([0]))
        tensor(0.7500)
    """
    how = reduction_number(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return multi_margin_rows.function(input, target, p, margin, weight, how)


# ---------------------------------------------------------------- several classes


def _check_multilabel(input: Tensor, target: Tensor, reduction: int) -> None:
    _check_scores(input)
    if target.shape != input.shape and not (input.dim() <= 1 and target.numel() == max(input.numel(), 1)):
        raise RuntimeError(
            f"inconsistent target size: {size_text(target.shape)} for input of size: {size_text(input.shape)}"
        )
    _check_single_or_double("multilabel_margin_loss_forward_out_frame", input)
    _check_scalar_type(target, dtypes.int64)


def _inspect_multilabel(input: Tensor, target: Tensor, *_: Any) -> None:
    values = values_of(target)
    if values.size and (values.min() < -1 or values.max() >= (input.shape[-1] if input.dim() else 1)):
        raise RuntimeError("argument #2 'target' is out of range")


@aten(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    node="MultilabelMarginLossBackward0", saves="self target is_target! reduction", names="", check=_check_multilabel,
    values=_inspect_multilabel, arguments=Arguments(results="output is_target"),
    gradients=Gradients(without="target", constant=(1,)),
)  # fmt: skip
def multilabel_margin_rows(input, target, reduction):
    rows, classes = _rows_of(input)
    scores, target = (reshape(x, shape=(rows, classes)) for x in (input, target))
    # The targets of a row end at the first -1.
    valid = np.equal(np.cumsum(np.astype(np.less(target, 0), fdtypes.int64), axis=1), 0)
    numbers = iota(shape=(rows, classes, classes), axis=2, dtype=fdtypes.int64)
    one_hot = np.logical_and(np.equal(np.expand_dims(target, 2), numbers), np.expand_dims(valid, 2))
    is_target = r.reduce_any(one_hot, axes=(1,))
    zero = e.number(0, scores)
    target_scores = r.reduce_sum(np.where(one_hot, np.expand_dims(scores, 1), zero), axes=(2,))
    hinge = np.maximum(np.add(np.subtract(np.expand_dims(scores, 1), np.expand_dims(target_scores, 2)), 1.0), 0.0)
    counted = np.logical_and(np.expand_dims(valid, 2), np.logical_not(np.expand_dims(is_target, 1)))
    losses = np.divide(r.reduce_sum(np.where(counted, hinge, zero), axes=(1, 2)), classes)
    loss = reduced(losses if type_of(input).ndim == 2 else reshape(losses, shape=()), reduction)
    return loss, np.astype(reshape(is_target, shape=type_of(input).shape), type_of(input).dtype)


@function("F.multilabel_margin_loss")
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The sum of ``max(0, 1 - (score of a target - score of another class))``, over the number of classes.

    Args:
        input: scores, ``(n, classes)`` or ``(classes,)``.
        target: the classes of each row, followed by -1, of the size of ``input``.

    Raises:
        RuntimeError: if sizes do not match, and for a target out of range.

    Example:
        >>> torch.nn.functional.multilabel_margin_loss(torch.tensor([0.5, 1.0]), torch.tensor([0, -1]))
        tensor(0.7500)
    """
    return multilabel_margin_rows.function(input, target, reduction_number(reduction, size_average, reduce))[0]
