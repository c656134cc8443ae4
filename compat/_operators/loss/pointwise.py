"""Elementwise losses, from ``mse_loss`` to ``kl_div``, and the reduction of losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from compat._core.memory.strides import Layout, broadcast_size, elementwise_strides, preserved_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.operators.opmath import in_single
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks, warn
from compat._core.types.type_promotion import check_cast, promote_types
from compat._operators.arguments import bools_argument, loss_arguments
from compat._operators.loss.reduction_modes import legacy_reduction
from compat._operators.pointwise.arithmetic import check_difference
from compat._operators.pointwise.declare import common
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r

NONE, MEAN, SUM = 0, 1, 2
_REDUCTIONS = {"none": NONE, "mean": MEAN, "elementwise_mean": MEAN, "sum": SUM}

# ---------------------------------------------------------------- shared parts


def reduction_number(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    """PyTorch's number for a reduction.

    Raises:
        ValueError: for an unknown reduction.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS[reduction]


def reduced(loss: Any, reduction: int) -> Any:
    """An array of losses, reduced."""
    if reduction == NONE:
        return loss
    total = r.reduce_sum(loss, axes=tuple(range(type_of(loss).ndim)))
    return total if reduction == SUM else e.div(total, e.number(type_of(loss).size, total))


def reduced_tensor(loss: Tensor, reduction: int) -> Tensor:
    """A tensor of losses, reduced."""
    return loss if reduction == NONE else loss.sum() if reduction == SUM else loss.mean()


def _pair_strides(operands: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """The strides of an elementwise operation on input and target, for losses that are not reduced."""
    pair = [operands[n] for n in ("input", "target")]
    if types[0].shape != pair[0].size:
        return [None]
    return [elementwise_strides([(tuple(p.size), p.stride) for p in pair], types[0].shape)]


def _target_strides(operands: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """The target's memory format, for losses that are not reduced."""
    target: Layout = operands["target"]
    return [preserved_strides(tuple(target.size), target.stride) if types[0].shape == target.size else None]


def _check_floating(kernel: str) -> Callable[..., None]:
    def check(input: Tensor, target: Tensor, *_: Any) -> None:
        d = promote_types(input.dtype, target.dtype)
        if not d.is_floating_point:
            raise lacks(kernel, d)

    return check


def _matched(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The two tensors, broadcast to the same size, with a warning if their sizes differ."""
    if input.shape == target.shape:
        return input, target
    warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )
    size = broadcast_size(tuple(input.shape), tuple(target.shape))
    return tuple(t if t.shape == size else t.expand(size) for t in (input, target))  # type: ignore[return-value]


def _weighted(loss: Tensor, weight: Tensor, reduction: int, by_weight: bool = True) -> Tensor:
    """Losses times weights, reduced; the mean divides by the sum of weights (``by_weight``) or the number of losses."""
    if weight.shape != loss.shape:
        raise ValueError("Inputs and weights must have the same size.")
    loss = loss * weight
    if reduction == NONE:
        return loss
    if reduction == SUM:
        return loss.sum()
    return loss.sum() / weight.sum() if by_weight else loss.mean()


# ---------------------------------------------------------------- squares and absolute values


@aten(
    "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    node="MseLossBackward0", saves="self target reduction", names="", dtypes="common", layout=_pair_strides,
    check=_check_floating("mse_cpu"),
)  # fmt: skip
def mse_pairs(input, target, reduction):
    return reduced(e.square(e.sub(input, target)), reduction)


@function("F.mse_loss")
def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Squared differences.

    Args:
        input, target: tensors of one size.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element.
        weight: factors of the elements; the mean divides by their sum.
        size_average, reduce: deprecated arguments that determine the reduction.

    Raises:
        ValueError: for an unknown reduction.
        NotImplementedError: for tensors that are not floating-point.

    Example:
        >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0]))
        tensor(5.)
    """
    how = reduction_number(reduction, size_average, reduce)
    input, target = _matched(input, target)
    if weight is not None:
        return _weighted(input.sub(target) ** 2, weight, how)
    return mse_pairs.function(input, target, how)


@function("F.l1_loss")
def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Absolute differences; arguments as for ``mse_loss``.

    Example:
        >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0]))
        tensor(2.)
    """
    how = reduction_number(reduction, size_average, reduce)
    input, target = _matched(input, target)
    loss = input.sub(target).abs()
    if weight is not None:
        return _weighted(loss, weight, how)
    return reduced_tensor(loss, how)


@aten(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",
    node="SmoothL1LossBackward0", saves="self target reduction beta", names="", dtypes="common", layout=_pair_strides,
    check=_check_floating("smooth_l1_cpu"),
)  # fmt: skip
def smooth_l1_pairs(input, target, reduction, beta):
    return reduced(_smooth_l1(input, target, beta), reduction)


@in_single
def _smooth_l1(input: Any, target: Any, beta: float) -> Any:
    distance = e.absolute(e.sub(input, target))
    quadratic = np.multiply(e.square(_small(distance, np.less(distance, beta))), 0.5 / beta)
    return np.where(np.less(distance, beta), quadratic, np.subtract(distance, 0.5 * beta))


def _small(distance: Any, is_small: Any) -> Any:
    """The small distances, and zero for others: the derivative of the square of infinity would be NaN."""
    return np.where(is_small, distance, 0.0)


@function("F.smooth_l1_loss")
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """Half the squared difference over ``beta`` up to ``beta``, beyond that the difference minus ``beta / 2``.

    Raises:
        RuntimeError: for a negative ``beta``.

    Example:
        >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0.5, 3.0]), torch.tensor([0.0, 0.0]), reduction="none")
        tensor([0.1250, 2.5000])
    """
    how = reduction_number(reduction, size_average, reduce)
    input, target = _matched(input, target)
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return smooth_l1_pairs.function(input, target, how, float(beta))


def _check_huber(input: Tensor, target: Tensor, *_: Any) -> None:
    check_cast(common((input, target)), input.dtype)
    _check_floating("huber_cpu")(input, target)


@aten(
    "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",
    node="HuberLossBackward0", saves="self target reduction delta", names="", layout=_pair_strides, check=_check_huber,
)  # fmt: skip
def huber_pairs(input, target, reduction, delta):
    distance = e.absolute(np.subtract(input, target))
    quadratic = np.multiply(e.square(_small(distance, np.less_equal(distance, delta))), 0.5)
    linear = np.multiply(np.subtract(distance, 0.5 * delta), delta)
    loss = np.where(np.less_equal(distance, delta), quadratic, linear)
    return reduced(np.astype(loss, type_of(input).dtype), reduction)


@function("F.huber_loss")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared difference up to ``delta``, beyond that ``delta`` times (the difference minus ``delta / 2``).

    Raises:
        RuntimeError: for a ``delta`` that is not positive.

    Example:
        >>> torch.nn.functional.huber_loss(torch.tensor([0.5, 3.0]), torch.tensor([0.0, 0.0]), reduction="none")
        tensor([0.1250, 2.5000])
    """
    how = reduction_number(reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    input, target = _matched(input, target)
    if weight is not None:
        return _weighted(huber_pairs.function(input, target, NONE, float(delta)), weight, how, by_weight=False)
    return huber_pairs.function(input, target, how, float(delta))


# ---------------------------------------------------------------- binary cross entropy


def _check_binary(input: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> None:
    if input.dtype is not target.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.scalar_name} but expected {input.dtype.scalar_name}")
    _check_floating("binary_cross_entropy")(input, target)
    if weight is not None:
        check_cast(weight.dtype, input.dtype)


def _inspect_binary(input: Tensor, target: Tensor, *_: Any) -> None:
    for t, name in ((input, "input"), (target, "target")):
        values = values_of(t)
        if not ((values >= 0) & (values <= 1)).all():
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")


#: The lower bound of logarithms.
_LEAST_LOG = -100.0
#: The minimum variance to divide by, a float32 number.
_LEAST_VARIANCE = float(numpy.float32(1e-12))


@aten(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor",
    node="BinaryCrossEntropyBackward0", saves="self target weight reduction", names="", layout=_pair_strides,
    check=_check_binary, values=_inspect_binary, gradients=Gradients(without="weight"),
)  # fmt: skip
def binary_pairs(input, target, weight, reduction):
    log_p, log_not_p = (np.maximum(e.log(p), _LEAST_LOG) for p in (input, np.subtract(1.0, input)))
    loss = np.subtract(np.multiply(np.subtract(target, 1.0), log_not_p), np.multiply(target, log_p))
    return reduced(loss if weight is None else np.multiply(loss, np.astype(weight, type_of(loss).dtype)), reduction)


@binary_pairs.backward
def binary_pairs_backward(ct: Any, input: Any, target: Any, weight: Any, reduction: int) -> Any:
    ct = ct if weight is None else np.multiply(ct, np.astype(weight, type_of(input).dtype))
    ct = np.divide(ct, type_of(input).size) if reduction == MEAN else ct
    variance = np.maximum(np.multiply(np.subtract(1.0, input), input), _LEAST_VARIANCE)
    log_p, log_not_p = (np.maximum(e.log(p), _LEAST_LOG) for p in (input, np.subtract(1.0, input)))
    input_ct = np.multiply(ct, np.divide(np.subtract(input, target), variance))
    return input_ct, np.multiply(ct, np.subtract(log_not_p, log_p))


@function("F.binary_cross_entropy")
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``-(target * log(input) + (1 - target) * log(1 - input))`` for probabilities; logarithms are at least -100.

    Args:
        input, target: tensors of one size, with elements between 0 and 1.
        weight: factors of the elements; broadcasts.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element.

    Raises:
        ValueError: for different sizes.
        RuntimeError: for elements out of range.

    Example:
        >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.0]))
        tensor(0.6931)
    """
    how = reduction_number(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(broadcast_size(tuple(target.shape), tuple(weight.shape)))
    return binary_pairs.function(input, target, weight, how)


def _check_logits(input, target, weight, pos_weight, reduction):
    if not input.dtype.is_floating_point:
        raise lacks("log_sigmoid_cpu", input.dtype)
    if target.dtype is dtypes.bool_:
        check_difference(target, target)
    if pos_weight is not None:
        check_difference(pos_weight, 1)
    check_cast(input.dtype, target.dtype)
    for factor in (pos_weight, weight):
        if factor is not None:
            check_cast(factor.dtype, target.dtype)
    for first, second in ((pos_weight, target), (input, weight)):
        if first is not None and second is not None:
            broadcast_size(tuple(first.shape), tuple(second.shape))


@aten(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=Mean) -> Tensor",
    node="BinaryCrossEntropyWithLogitsBackward0", saves="self target weight pos_weight reduction", names="",
    layout=_target_strides, check=_check_logits, gradients=Gradients(without="weight pos_weight"),
)  # fmt: skip
def logit_pairs(input, target, weight, pos_weight, reduction):
    dtype = type_of(target).dtype  # the result's, since PyTorch computes in place
    # -log(sigmoid(x)) without overflow.
    neg_log_sigmoid = np.add(np.log1p(e.exp(e.neg(e.absolute(input)))), np.maximum(e.neg(input), 0.0))
    if pos_weight is not None:
        factor = np.add(np.multiply(np.subtract(np.astype(pos_weight, dtype), 1.0), target), 1.0)
        neg_log_sigmoid = np.multiply(factor, neg_log_sigmoid)
    loss = np.add(np.multiply(np.subtract(1.0, target), input), neg_log_sigmoid)
    loss = np.astype(loss, dtype)
    return reduced(loss if weight is None else np.multiply(loss, np.astype(weight, dtype)), reduction)


@function("F.binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``binary_cross_entropy`` of ``sigmoid(input)``, without overflow.

    Args:
        pos_weight: factors of the term ``target * log(...)``; broadcasts.

    Raises:
        ValueError: for different sizes.

    Example:
        >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)
    """
    how = reduction_number(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return logit_pairs.function(input, target, weight, pos_weight, how)


@composite(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=Mean) -> Tensor",
    names="torch.binary_cross_entropy_with_logits",
)  # fmt: skip
def binary_cross_entropy_with_logits_number(input, target, weight=None, pos_weight=None, reduction=MEAN):
    """``torch.nn.functional.binary_cross_entropy_with_logits`` with a number as the reduction; sizes broadcast.

    Raises:
        RuntimeError: for sizes that do not broadcast.
    """
    broadcast_size(tuple(target.shape), tuple(input.shape))
    return logit_pairs.function(input, target, weight, pos_weight, reduction)


# ---------------------------------------------------------------- divergence


@composite(
    "kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor",
    names="torch.kl_div",
)
def kl_div_number(input: Tensor, target: Tensor, reduction: int = MEAN, *, log_target: bool = False) -> Tensor:
    """``torch.nn.functional.kl_div`` with the reduction as a number.

    Raises:
        RuntimeError: for tensors of integers.
    """
    loss_arguments("kl_div", ("input", input, Tensor), ("target", target, Tensor), ("reduction", reduction, int))
    bools_argument("kl_div", log_target=log_target)
    if min(input.dtype.category, target.dtype.category) < dtypes.FLOATING:
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if input.dtype.is_complex or target.dtype.is_complex:
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if log_target:
        loss = target.exp() * target.sub(input)
    else:
        loss = names_of("torch")["xlogy"](target, target) - target * input
    return reduced_tensor(loss, reduction)


@function("F.kl_div")
def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """The Kullback-Leibler divergence ``target * (log(target) - input)``; ``input`` are logarithms of probabilities.

    Args:
        reduction: ``"batchmean"`` (the definition), ``"mean"`` over all elements, ``"sum"`` or ``"none"``.
        log_target: whether ``target`` are logarithms, too.

    Example:
        >>> p = torch.tensor([[0.5, 0.5]])
        >>> torch.nn.functional.kl_div(torch.tensor([[0.25, 0.75]]).log(), p, reduction="batchmean")
        tensor(0.1438)
    """
    if size_average is not None or reduce is not None:
        how = reduction_number(reduction, size_average, reduce)
    else:
        if reduction == "mean":
            warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' "
                "divides only by the batch size, and aligns with the KL div math definition.'mean' will be changed to "
                "behave the same as 'batchmean' in the next major release."
            )
        how = SUM if reduction == "batchmean" else reduction_number(reduction)
    loss = kl_div_number(input, target, how, log_target=log_target)
    return loss / input.shape[0] if reduction == "batchmean" and input.dim() else loss
