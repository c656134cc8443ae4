"""Losses composed of other operations: embedding, ranking and likelihood losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.op import aten
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat._core.types.errors import size_text, warn
from compat._core.types.memory_format import contiguous_format
from compat._operators.arguments import loss_arguments, tensor_argument
from compat._operators.create.factories import empty_like, ones_like, zeros_like
from compat._operators.linalg.cdist import pairwise_distance
from compat._operators.loss.pointwise import MEAN, reduced_tensor, reduction_number
from compat._operators.pointwise.scalars import add_number, mul_number
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of


def _publish(name: str, loss: Callable[..., Tensor], arguments: str, errors: Any = "after") -> None:
    """Publishes a loss in ``torch``, where the reduction is a number."""
    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"``torch.nn.functional.{name}`` with the reduction as a number."
    composite(f"{name}({arguments}) -> Tensor", names=f"torch.{name}", errors=errors)(loss)


def _where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return names_of("torch")["where"](condition, x, y)


def _zeros_like(x: Tensor) -> Tensor:
    return names_of("torch")["zeros_like"](x)


# ---------------------------------------------------------------- embeddings


def _cosine_embedding(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = MEAN) -> Tensor:
    n = target.dim()
    if n not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.dim() == input2.dim() == n + 1:
        raise RuntimeError(
            f"{n}D target tensor expects {n + 1}D input tensors, but found inputs with sizes "
            f"{size_text(input1.shape)} and {size_text(input2.shape)}."
        )
    dim, epsilon = (n,), 1e-12
    product = (input1 * input2).sum(dim)
    squares = [add_number((x * x).sum(dim), epsilon) for x in (input1, input2)]
    cosine = product / (squares[0] * squares[1]).sqrt()
    zero = _zeros_like(cosine)
    positive = _where(target == 1, ones_like(cosine) - cosine, zero)
    negative = _where(target == -1, _sub_number.function(cosine, margin).clamp_min_(0), zero)
    return reduced_tensor(positive + negative, reduction)


@aten("sub.Scalar(Tensor self, Scalar number) -> Tensor", node="SubBackward1", names="", layout="like:input")
def _sub_number(input, number):
    return np.subtract(input, np.astype(number, type_of(input).dtype))


_publish(
    "cosine_embedding_loss",
    _cosine_embedding,
    "Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean",
)


@function("F.cosine_embedding_loss")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``1 - cos`` for pairs with target 1, ``max(0, cos - margin)`` for pairs with target -1.

    Args:
        input1, input2: ``(n, d)``, or ``(d,)``.
        target: ``(n,)``, or a number, of 1 and -1.

    Raises:
        RuntimeError: for incompatible numbers of dimensions.

    Example:
        >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
        >>> torch.nn.functional.cosine_embedding_loss(x, y, torch.tensor([1]))
        tensor(1.)
    """
    return _cosine_embedding(input1, input2, target, margin, reduction_number(reduction, size_average, reduce))


def _hinge_embedding(self: Any, target: Any, margin: float = 1.0, reduction: int = MEAN) -> Tensor:
    zero = _zeros_like(self)
    hinge = (names_of("torch")["full_like"](self, margin) - self).clamp_min_(0)
    return reduced_tensor(_where(target != 1, hinge, zero) + _where(target != -1, self, zero), reduction)


_publish(
    "hinge_embedding_loss",
    _hinge_embedding,
    "Tensor self, Tensor target, float margin=1.0, int reduction=Mean",
    "before",
)


@function("F.hinge_embedding_loss")
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The input, a distance, where the target is 1; ``max(0, margin - input)`` where it is -1.

    Example:
        >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([0.5, 0.5]), torch.tensor([1.0, -1.0]))
        tensor(0.5000)
    """
    return _hinge_embedding(input, target, margin, reduction_number(reduction, size_average, reduce))


def _margin_ranking(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = MEAN) -> Tensor:
    return reduced_tensor(add_number(-target * (input1 - input2), margin).clamp_min_(0), reduction)


_publish(
    "margin_ranking_loss",
    _margin_ranking,
    "Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean",
    "before",
)


@function("F.margin_ranking_loss")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``max(0, -target * (input1 - input2) + margin)``.

    Raises:
        RuntimeError: for different numbers of dimensions.

    Example:
        >>> torch.nn.functional.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
        tensor(2.)
    """
    how = reduction_number(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _margin_ranking(input1, input2, target, margin, how)


# ---------------------------------------------------------------- triplets


def _same_dimensions(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    a, p, n = anchor.dim(), positive.dim(), negative.dim()
    if not a == p == n:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {a}D, positive {p}D, and negative {n}D inputs"
        )


def _triplet_margin(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: int = MEAN,
) -> Tensor:  # fmt: skip
    _same_dimensions(anchor, positive, negative)
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = names_of("torch")["minimum"](far, pairwise_distance(positive, negative, p, eps))
    margins: Any = add_number(near, margin)
    return reduced_tensor((margins - far).clamp_min(0), reduction)


_publish(
    "triplet_margin_loss",
    _triplet_margin,
    "Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, "
    "int reduction=Mean",
    "before",
)


@function("F.triplet_margin_loss")
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
    swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``max(0, |anchor - positive| - |anchor - negative| + margin)``.

    Args:
        anchor, positive, negative: ``(n, d)``, or ``(d,)``.
        margin: the minimum difference of the distances.
        p: the order of the norm.
        eps: a number to add to the differences.
        swap: whether to use the distance between positive and negative if it is smaller.

    Raises:
        ValueError: unless the margin is positive.
        RuntimeError: for different numbers of dimensions.

    Example:
        >>> a, b = torch.zeros(1, 2), torch.ones(1, 2)
        >>> torch.nn.functional.triplet_margin_loss(a, a, b, margin=2.0, eps=0.0)
        tensor(0.5858)
    """
    how = reduction_number(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _triplet_margin(anchor, positive, negative, margin, p, eps, swap, how)


def _check_reduction(reduction: str, ending: str = "is not a valid value for reduction") -> int:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} {ending}")
    return reduction_number(reduction)


@function("F.triplet_margin_with_distance_loss")
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``triplet_margin_loss`` with any distance; by default ``torch.pairwise_distance``.

    Raises:
        ValueError: unless the margin is positive.
        RuntimeError: for different numbers of dimensions.
    """
    how = _check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _same_dimensions(anchor, positive, negative)
    distance: Callable[[Tensor, Tensor], Any] = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = names_of("torch")["minimum"](far, distance(positive, negative))
    return reduced_tensor(names_of("torch")["clamp_min"](margin + near - far, 0), how)


# ---------------------------------------------------------------- likelihoods


@function("F.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over the classes, the last dimension, of the binary cross entropy of ``sigmoid(input)``.

    Args:
        weight: factors of the classes.

    Example:
        >>> torch.nn.functional.multilabel_soft_margin_loss(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]))
        tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        how = reduction_number(reduction, size_average, reduce)
    else:
        how = _check_reduction(reduction, "is not valid")
    logsigmoid = names_of("F")["logsigmoid"]
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    last = input.dim() - 1
    return reduced_tensor(loss.sum(dim=last) / input.shape[last], how)


def _poisson_nll(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    tensors = ("input", input, Tensor), ("target", target, Tensor)
    rest = ("log_input", log_input, bool), ("full", full, bool), ("eps", eps, float), ("reduction", reduction, int)
    loss_arguments("poisson_nll_loss", *tensors, *rest)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * add_number(input, eps).log()
    if full:  # Stirling's approximation of the log factorial
        log_of_2_pi_n = mul_number.function(target, 2 * math.pi).log()
        log_factorial = target * target.log() - target + mul_number.function(log_of_2_pi_n, 0.5)
        loss = loss + log_factorial.masked_fill(target <= 1, 0)
    return reduced_tensor(loss, reduction)


_publish(
    "poisson_nll_loss",
    _poisson_nll,
    "Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction",
)


@function("F.poisson_nll_loss")
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative log likelihood of counts with Poisson distributions.

    Args:
        input: the rates, or, with ``log_input``, their logarithms.
        target: the counts.
        full: whether to add Stirling's approximation of the log factorial.
        eps: a number to add to the rates before taking their logarithms.

    Raises:
        ValueError: for an unknown reduction.

    Example:
        >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([2.0]))
        tensor(1.)
    """
    if size_average is not None or reduce is not None:
        how = reduction_number(reduction, size_average, reduce)
    else:
        how = _check_reduction(reduction)
    return _poisson_nll(input, target, log_input, full, eps, how)


def _variance(input: Tensor, var: Any) -> Any:
    """The variances as a tensor that broadcasts to the input."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return var * ones_like(input)
    if not var._layout_.base.traced and bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape == input.shape:
        return var
    if input.shape[:-1] == var.shape:
        return var.unsqueeze(-1)
    if input.dim() != var.dim() or sum(m for n, m in zip(input.shape, var.shape) if n != m) != 1:
        raise ValueError("var is of incorrect size")
    return var


@function("F.gaussian_nll_loss")
def gaussian_nll_loss(
    input: Any, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative log likelihood of values with normal distributions.

    Args:
        input: the means.
        target: the values.
        var: the variances: a tensor of the size of ``input`` or with one element for each row, or a number.
        full: whether to add the constant term.
        eps: the minimum of the variances.

    Raises:
        ValueError: for negative variances, and variances of an incompatible size.

    Example:
        >>> torch.nn.functional.gaussian_nll_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
        tensor(2.)
    """
    variance = _variance(input, var)
    how = _check_reduction(reduction, "is not valid")
    variance = variance.clone()
    with no_grad():  # the gradient ignores the clamp
        variance.clamp_(min=eps)
    loss = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return reduced_tensor(loss, how)


# ---------------------------------------------------------------- samples


@function("F.gumbel_softmax")
def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Differentiable samples from categorical distributions given by logits.

    Args:
        tau: the temperature; samples with low temperatures are nearly one-hot.
        hard: whether the result is one-hot, with the gradient of the sample that is not.
        dim: the dimension of the classes.

    Source: E. Jang et al., "Categorical reparameterization with Gumbel-softmax", ICLR 2017.

    Example:
        >>> sample = torch.nn.functional.gumbel_softmax(torch.zeros(4), hard=True)
        >>> sample.sum()
        tensor(1.)
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    tensor_argument("empty_like", "input", 1, logits)
    noise = -empty_like(logits, memory_format=contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    indices = soft.max(dim, keepdim=True)[1]
    one_hot = zeros_like(logits, memory_format=contiguous_format).scatter_(dim, indices, 1.0)
    return one_hot - soft.detach() + soft
