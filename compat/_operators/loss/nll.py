"""``nll_loss`` and ``cross_entropy``."""

from __future__ import annotations

from typing import Any

from compat._core.operators.declaration import Arguments, Gradients
from compat._core.operators.op import Op, aten
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks, size_text
from compat._operators.activation.softmax import log_softmax_of
from compat._operators.arguments import tensor_argument
from compat._operators.indexing.indices import out_of_range
from compat._operators.loss.pointwise import MEAN, NONE, SUM, reduction_number
from compat._operators.pointwise.scalars import div_number, mul_number
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.indexing import take, take_along
from funcgrad.primitives.shape import expanded, iota, reshape

# ---------------------------------------------------------------- negative log likelihood


def _check_classes(input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> None:
    classes = input.shape[min(1, input.dim() - 1)]
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}")
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {size_text(weight.shape)}"
        )
    if weight is not None and weight.requires_grad:
        raise RuntimeError(
            "The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'. This input "
            "cannot have requires_grad True."
        )
    if not input.dtype.is_floating_point:
        raise lacks("nll_loss_out_frame", input.dtype)
    if input.dim() > 2 and target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {weight.dtype.scalar_name}")


def _inspect_classes(input: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int) -> None:
    classes = input.shape[min(1, input.dim() - 1)]
    if out_of_range(target, 0, classes) is None:
        return
    values = values_of(target)
    bad = values[((values < 0) | (values >= classes)) & (values != ignore_index)]
    if bad.size:
        raise IndexError(f"Target {int(bad.flat[0])} is out of bounds.")


def _class_weights(target: Any, weight: Any, ignore_index: int, dtype: Any) -> tuple[Any, Any]:
    """The mask of included targets, and their weights."""
    included = np.not_equal(target, ignore_index)
    if weight is None:
        return included, np.astype(included, dtype)
    weights = take(weight, np.where(included, target, e.number(0, target)), axis=0, mode="clip")
    return included, np.where(included, weights, e.number(0, weights))


def _nll(input, target, weight, reduction, ignore_index):
    axis = min(1, type_of(input).ndim - 1)
    included, factors = _class_weights(target, weight, ignore_index, type_of(input).dtype)
    classes = np.where(included, target, e.number(0, target))
    selected = take_along(input, expanded(classes, axis), axis=axis, mode="clip")
    axes, zero = tuple(range(type_of(target).ndim)), e.number(0, input)
    weighted = np.where(included, np.multiply(reshape(selected, shape=type_of(target).shape), factors), zero)
    if reduction == NONE and axes:
        return np.where(included, e.neg(weighted), zero), np.zeros((), type_of(input).dtype)
    # Subtracted, not negated: an empty loss is 0, not -0.
    total, weights = np.subtract(zero, r.reduce_sum(weighted, axes=axes)), r.reduce_sum(factors, axes=axes)
    return (e.div(total, weights) if reduction == MEAN else total), weights


def _nll_backward(
    ct0: Any, input: Any, target: Any, weight: Any, result1: Any, reduction: int, ignore_index: int
) -> Any:
    axis = min(1, type_of(input).ndim - 1)
    included, factors = _class_weights(target, weight, ignore_index, type_of(input).dtype)
    grad = e.neg(np.multiply(np.divide(ct0, result1) if reduction == MEAN else ct0, factors))
    classes = iota(shape=type_of(input).shape, axis=axis, dtype=fdtypes.int64)
    is_target = np.equal(classes, expanded(target, axis))
    mask = np.logical_and(is_target, expanded(included, axis))
    return np.where(mask, expanded(grad, axis), e.number(0, grad))


def _declare(name: str, node: str) -> Op:
    declared = aten(
        f"{name}(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor, Tensor)",
        node=node, saves="self! target weight total_weight! reduction ignore_index", names="", check=_check_classes,
        values=_inspect_classes, arguments=Arguments(results="output total_weight"),
        gradients=Gradients(without="target weight", constant=(1,)),
    )(_nll)  # fmt: skip
    declared.backward(_nll_backward)
    return declared


nll_loss_forward = _declare("nll_loss_forward", "NllLossBackward0")
nll_loss2d_forward = _declare("nll_loss2d_forward", "NllLoss2DBackward0")


def _nll_vector(input: Tensor, target: Tensor, weight: Tensor | None, how: int, ignore_index: int) -> Tensor:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    return nll_loss_forward.function(input, target, weight, how, ignore_index)[0]


def _nll_image(input: Tensor, target: Tensor, weight: Tensor | None, how: int, ignore_index: int) -> Tensor:
    if target.dim() != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.dim()}"
        )
    if target.shape[1:] != input.shape[2:]:
        raise RuntimeError(f"size mismatch (got input: {size_text(input.shape)} , target: {size_text(target.shape)}")
    return nll_loss2d_forward.function(input, target, weight, how, ignore_index)[0]


def _nll_any(input: Tensor, target: Tensor, weight: Tensor | None, how: int, ignore_index: int) -> Tensor:
    """The loss for classes along the second dimension; inputs of more than two dimensions are reshaped to images."""
    if input.dim() < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {input.dim()})")
    if input.dim() != 1 and target.shape[:1] != input.shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
            f"({target.shape[0] if target.dim() else 0})."
        )
    if input.dim() <= 2:
        return _nll_vector(input, target, weight, how, ignore_index)
    if input.dim() == 4:
        return _nll_image(input, target, weight, how, ignore_index)
    n, c, *spatial = input.shape
    if tuple(target.shape[1:]) != tuple(spatial):
        raise RuntimeError(f"Expected target size {size_text((n, *spatial))}, got {size_text(target.shape)}")
    rows = (1, -1) if input.numel() else (0, 0)
    loss = _nll_image(
        input.contiguous().view(n, c, *rows), target.contiguous().view(n, *rows), weight, how, ignore_index
    )
    return loss.view(n, *spatial) if how == NONE else loss


@function("F.nll_loss")
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative log-probability of the target class.

    Args:
        input: log-probabilities, (C), (N, C) or (N, C, ...).
        target: classes, int64: (), (N) or (N, ...).
        weight: a factor per class; the mean is weighted by it.
        ignore_index: a target to ignore.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per target.

    Raises:
        ValueError, RuntimeError: for sizes and dtypes that do not match.
        IndexError: for a target out of range.

    Example:
        >>> torch.nn.functional.nll_loss(torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([0, 1]))
        tensor(2.5000)
    """
    tensor_argument("nll_loss_nd", "input", 1, input)
    tensor_argument("nll_loss_nd", "target", 2, target)
    return _nll_any(input, target, weight, reduction_number(reduction, size_average, reduce), ignore_index)


# ---------------------------------------------------------------- cross entropy


def _along_classes(weight: Tensor, ndim: int) -> Tensor:
    """A weight per class, broadcastable to (N, C, ...) or (C)."""
    return weight.view(1, -1, *[1] * (ndim - 2)) if ndim > 1 else weight


def _of_probabilities(logs: Tensor, target: Tensor, weight: Tensor | None, how: int, smoothing: float) -> Tensor:
    """The cross entropy for targets that are probabilities of the classes."""
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.scalar_name}"
        )
    axis = min(1, logs.dim() - 1)
    classes = logs.shape[axis]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {size_text(weight.shape)}"
        )
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    product = logs * target
    if weight is not None:
        product = product * _along_classes(weight, logs.dim())
    if how == NONE:
        return -product.sum(axis)
    if how == SUM:
        return -product.sum()
    return div_number.function(-product.sum(), logs.numel() // max(classes, 1))


def _smoothed(
    logs: Tensor, target: Tensor, weight: Tensor | None, how: int, ignore_index: int, smoothing: float
) -> Tensor:
    """The cross entropy with label smoothing."""
    axis = min(1, logs.dim() - 1)
    target_loss = _nll_any(logs, target, weight, how, ignore_index)
    ignored = target.eq(ignore_index)
    uniform_loss = -(logs if weight is None else logs * _along_classes(weight, logs.dim())).sum(axis)
    uniform_loss = uniform_loss.masked_fill_(ignored, 0.0)
    if how == SUM:
        uniform_loss = uniform_loss.sum()
    elif how == MEAN:
        included = ~ignored
        if weight is None:
            uniform_loss = uniform_loss.sum() / included.sum()
        else:
            uniform_loss = uniform_loss.sum() / weight.gather(0, target.masked_select(included).flatten()).sum()
    classes = logs.shape[axis]
    return mul_number.function(target_loss, 1 - smoothing) + mul_number.function(uniform_loss, smoothing / classes)


@function("F.cross_entropy")
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """``nll_loss`` of ``log_softmax(input)`` along the classes.

    Args:
        input: logits, (C), (N, C) or (N, C, ...).
        target: classes, int64: (), (N) or (N, ...); or their probabilities, of the input's size.
        weight: a factor per class.
        ignore_index: a target to ignore.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per target.
        label_smoothing: the probability, from 0 to 1, that the target distributes evenly over all classes.

    Raises:
        ValueError, RuntimeError: for sizes and dtypes that do not match.
        IndexError: for a target out of range.

    Example:
        >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
        tensor(1.3863)
    """
    how = reduction_number(reduction, size_average, reduce)
    tensor_argument("cross_entropy_loss", "input", 1, input)
    tensor_argument("cross_entropy_loss", "target", 2, target)
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    same = input.shape == target.shape
    if same and ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    logs = log_softmax_of.function(input, min(1, input.dim() - 1) if input.dim() else 0)
    if same:
        return _of_probabilities(logs, target, weight, how, label_smoothing)
    if label_smoothing > 0.0:
        return _smoothed(logs, target, weight, how, ignore_index, label_smoothing)
    return _nll_any(logs, target, weight, how, ignore_index)
