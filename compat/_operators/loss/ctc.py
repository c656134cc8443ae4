"""Connectionist temporal classification: the probability of a label sequence, summed over all alignments.

Source: A. Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with recurrent
neural networks", ICML 2006; names of the variables as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import inf
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Gradients
from compat._core.operators.op import aten
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks
from compat._operators.create.from_data import tensor
from compat._operators.loss.pointwise import MEAN, SUM, reduction_number
from funcgrad import numpy as np
from funcgrad.control.scan import scan
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.indexing import take as take_slices
from funcgrad.primitives.shape import reshape

_CONTEXT = "(while checking arguments for ctc_loss_allocate_outputs)"

# ---------------------------------------------------------------- the lattice


def _log_sum(maximum: Any, exponentials: Callable[[Any], Any]) -> Any:
    """The logarithm of a sum of exponentials, given the maximum of the terms; minus infinity if all terms are.

    Args:
        exponentials: the sum of the exponentials of the terms less a number.
    """
    none = np.equal(maximum, -inf)
    base = np.where(none, e.number(0, maximum), maximum)
    total = exponentials(base)
    return np.where(none, maximum, np.add(base, e.log(np.where(none, e.number(1, total), total))))


def _log_add(*terms: Any) -> Any:
    return _log_sum(
        reduce(np.maximum, terms),
        lambda base: reduce(np.add, [e.exp(np.subtract(term, base)) for term in terms]),
    )


def _log_sum_of_columns(x: Any) -> Any:
    return _log_sum(
        r.reduce_max(x, axes=(1,)),
        lambda base: r.reduce_sum(e.exp(np.subtract(x, np.expand_dims(base, 1))), axes=(1,)),
    )


def _shifted(x: Any, by: int, left: bool) -> Any:
    """The columns shifted by ``by`` positions, to the left or to the right, filled with minus infinity."""
    rows, columns = type_of(x).shape
    fill = np.full((rows, min(by, columns)), -inf, type_of(x).dtype)
    kept = max(columns - by, 0)
    return np.concatenate([x[:, columns - kept :], fill] if left else [fill, x[:, :kept]], axis=1)


class _Lattice:
    """The labels with blanks before, between and after them, and the allowed transitions.

    Args:
        log_probs: ``(T, n, classes)``.
        targets: ``(n, longest)``.
    """

    def __init__(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int):
        self.steps, self.n, self.classes = type_of(log_probs).shape
        longest = type_of(targets).shape[1]
        self.width = 2 * longest + 1
        self.input_lengths = np.astype(input_lengths, fdtypes.int64)
        self.ends = np.expand_dims(np.multiply(np.astype(target_lengths, fdtypes.int64), 2), 1)
        blanks = np.full((self.n, longest, 1), blank, fdtypes.int64)
        pairs = np.concatenate([blanks, np.expand_dims(np.astype(targets, fdtypes.int64), 2)], axis=2)
        pairs = reshape(pairs, shape=(self.n, 2 * longest))
        self.labels = np.concatenate([pairs, np.full((self.n, 1), blank, fdtypes.int64)], axis=1)
        self.positions = np.expand_dims(np.arange(self.width), 0)
        inside = np.less_equal(self.positions, self.ends)
        one_hot = np.equal(np.expand_dims(self.labels, 2), np.arange(self.classes))
        one_hot = np.logical_and(one_hot, np.expand_dims(inside, 2))
        #: (n, width, classes): one-hot labels of the positions.
        self.one_hot = np.astype(one_hot, type_of(log_probs).dtype)
        emitted = np.take_along_axis(np.transpose(log_probs, (1, 0, 2)), self._index(), axis=2)
        emitted = np.where(np.expand_dims(inside, 1), emitted, e.number(-inf, emitted))
        #: (T, n, width): the log probability of each position's label.
        self.emitted = np.transpose(emitted, (1, 0, 2))
        before = self._labels_two_before()
        odd = np.equal(np.remainder(self.positions, 2), 1)
        #: Whether a label may follow the previous one without a blank.
        self.skips = np.logical_and(odd, np.not_equal(self.labels, before))

    def _index(self) -> Any:
        index = np.clip(np.expand_dims(self.labels, 1), 0, self.classes - 1)
        return np.broadcast_to(index, (self.n, self.steps, self.width))

    def _labels_two_before(self) -> Any:
        """The labels two positions before; -1, which is not a label, at the first two positions."""
        none = np.full((self.n, min(2, self.width)), -1, fdtypes.int64)
        kept = max(self.width - 2, 0)
        return np.concatenate([none, self.labels[:, :kept]], axis=1)

    def forward(self) -> Any:
        """``(n, T, width)``: the log probabilities of all prefixes that end at a position and time."""
        start = np.where(np.less(self.positions, 2), self.emitted[0], e.number(-inf, self.emitted))

        def step(alpha: Any, emitted: Any) -> tuple[Any, Any]:
            skipped = np.where(self.skips, _shifted(alpha, 2, False), e.number(-inf, alpha))
            reached = np.add(_log_add(alpha, _shifted(alpha, 1, False), skipped), emitted)
            return reached, reached

        _, rest = scan(step, start, self.emitted[1:])
        return np.transpose(np.concatenate([np.expand_dims(start, 0), rest], axis=0), (1, 0, 2))

    def final(self, alpha: Any) -> Any:
        """The negative log probability of the labels."""
        last = np.clip(np.subtract(self.input_lengths, 1), 0, None)
        index = np.broadcast_to(reshape(last, shape=(self.n, 1, 1)), (self.n, 1, self.width))
        ending = reshape(np.take_along_axis(alpha, index, axis=1), shape=(self.n, self.width))
        at_end = np.logical_or(np.equal(self.positions, self.ends), np.equal(self.positions, np.subtract(self.ends, 1)))
        kept = np.where(at_end, ending, e.number(-inf, ending))
        total = _log_sum_of_columns(kept)
        nothing = np.where(np.equal(self.ends[:, 0], 0), e.number(0, total), e.number(-inf, total))
        return np.negative(np.where(np.equal(self.input_lengths, 0), nothing, total))

    def backward(self) -> Any:
        """``(n, T, width)``: the log probabilities of all suffixes that start at a position and time, inclusive."""
        beginning = np.full((self.n, self.width), -inf, type_of(self.emitted).dtype)
        at_end = np.logical_or(np.equal(self.positions, self.ends), np.equal(self.positions, np.subtract(self.ends, 1)))
        last = np.expand_dims(np.subtract(self.input_lengths, 1), 1)
        skips = np.logical_and(_two_after(self.skips), np.ones((self.n, 1), fdtypes.bool_))

        def step(beta: Any, x: Any) -> tuple[Any, Any]:
            emitted, time = x
            skipped = np.where(skips, _shifted(beta, 2, True), e.number(-inf, beta))
            followed = np.add(_log_add(beta, _shifted(beta, 1, True), skipped), emitted)
            started = np.where(at_end, emitted, e.number(-inf, emitted))
            now = np.where(np.equal(time, last), started, followed)
            now = np.where(np.greater(time, last), e.number(-inf, now), now)
            return now, now

        _, beta = scan(step, beginning, (self.emitted, np.arange(self.steps)), reverse=True)
        return np.transpose(beta, (1, 0, 2))


def _two_after(skips: Any) -> Any:
    """Whether the label two positions after may follow without a blank."""
    n, width = type_of(skips).shape
    none = np.zeros((n, min(2, width)), fdtypes.bool_)
    return np.concatenate([skips[:, min(2, width) :], none], axis=1)


# ---------------------------------------------------------------- the operation


def _in_rows(targets: Any, target_lengths: Any, longest: int) -> Any:
    """The labels with one row for each sequence; they may be given concatenated."""
    if type_of(targets).ndim == 2:
        return targets
    lengths = np.astype(target_lengths, fdtypes.int64)
    starts = np.subtract(np.cumsum(lengths, axis=0), lengths)
    indices = np.add(np.expand_dims(starts, 1), np.expand_dims(np.arange(longest), 0))
    if not type_of(targets).size:
        return np.zeros(type_of(indices).shape, fdtypes.int64)
    return take_slices(targets, indices, axis=0, mode="clip")


@aten(
    "_ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, bool "
    "zero_infinity, int longest) -> Tensor",
    node="CtcLossBackward0",
    saves="log_probs targets input_lengths target_lengths blank zero_infinity result0! result1!", names="",
    arguments=Arguments(integers="input_lengths target_lengths"),
    gradients=Gradients(without="targets input_lengths target_lengths", constant=(1,)),
)  # fmt: skip
def ctc_rows(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, longest):  # fmt: skip
    """The losses of sequences of at most ``longest`` labels, and the log probabilities at each position and time."""
    targets = _in_rows(targets, target_lengths, longest)
    lattice = _Lattice(log_probs, targets, input_lengths, target_lengths, blank)
    alpha = lattice.forward()
    return lattice.final(alpha), alpha


@ctc_rows.backward
def ctc_backward(ct0, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, longest):
    targets = _in_rows(targets, target_lengths, longest)
    lattice = _Lattice(log_probs, targets, input_lengths, target_lengths, blank)
    alpha = lattice.forward()  # recomputed instead of saved, so that it is differentiable
    result0 = lattice.final(alpha)
    alpha_beta = np.add(alpha, lattice.backward())
    emitted = np.transpose(lattice.emitted, (1, 0, 2))
    possible = np.logical_and(np.greater(alpha_beta, -inf), np.greater(emitted, -inf))
    # Both factors include the emission: it is divided out once.
    joint = np.subtract(alpha_beta, np.where(possible, emitted, e.number(0, emitted)))
    joint = np.where(possible, joint, e.number(-inf, alpha_beta))
    loss = reshape(result0, shape=(lattice.n, 1, 1))
    # The posterior probability of each position at each time, given the labels.
    posterior = e.exp(np.add(joint, np.where(np.equal(loss, inf), e.number(0, loss), loss)))
    by_class = np.transpose(np.matmul(posterior, lattice.one_hot), (1, 0, 2))
    grad = np.subtract(e.exp(log_probs), by_class)
    infinite = reshape(np.equal(result0, inf), shape=(1, lattice.n, 1))
    grad = np.where(infinite, e.number(0 if zero_infinity else float("nan"), grad), grad)
    time = np.expand_dims(np.arange(lattice.steps), 1)
    within = np.less(time, np.expand_dims(lattice.input_lengths, 0))
    grad = np.multiply(grad, reshape(ct0, shape=(1, lattice.n, 1)))
    return np.where(np.expand_dims(within, 2), grad, e.number(0, grad))


# ---------------------------------------------------------------- arguments


def _lengths(name: str, given: Any, n: int) -> Tensor:
    if isinstance(given, Tensor):
        if given.dtype.is_floating_point:
            raise RuntimeError(f"{name} must be integral")
        made = given.reshape(-1) if given.dim() == 0 else given
    else:
        made = tensor(list(given), dtype=dtypes.int64)
    if made.shape[0] != n:
        raise RuntimeError(f"{name} must be of size batch_size")
    return made


def _concrete(t: Tensor) -> list[int] | None:
    """The values; None for a traced tensor."""
    return None if t._layout_.base.traced else array_of(t).tolist()


def _check_lengths(steps: int, inputs: Sequence[int], targets: Tensor, lengths: Sequence[int]) -> None:
    for value in inputs:
        if value < 0:
            raise RuntimeError(f"Expected input_lengths to have value at least 0, but got value {value} {_CONTEXT}")
        if value > steps:
            raise RuntimeError(
                f"Expected input_lengths to have value at most {steps}, but got value {value} {_CONTEXT}"
            )
    for value in lengths:
        if value < 0:
            raise RuntimeError(f"Expected target_lengths to have value at least 0, but got value {value} {_CONTEXT}")
    if targets.dim() == 1 and sum(lengths) != targets.shape[0]:
        raise RuntimeError(
            f"Expected tensor to have size {sum(lengths)} at dimension 0, but got size {targets.shape[0]} for argument "
            f"#2 'targets' {_CONTEXT}"
        )
    longest = max(lengths, default=0)
    if targets.dim() == 2 and targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} for "
            f"argument #2 'targets' {_CONTEXT}"
        )


@composite(
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
    "int reduction=Mean, bool zero_infinity=False) -> Tensor",
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
    "int reduction=Mean, bool zero_infinity=False) -> Tensor",
    names="torch.ctc_loss",
)
def ctc_loss_number(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=MEAN, zero_infinity=False):
    """``torch.nn.functional.ctc_loss`` with the reduction as a number."""
    if log_probs.dtype not in (dtypes.float32, dtypes.float64):
        raise lacks("ctc_loss_cpu", log_probs.dtype)
    batched = log_probs.dim() == 3
    if not batched:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
    if not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError("blank must be in label range")
    n = log_probs.shape[1]
    inputs, lengths = _lengths("input_lengths", input_lengths, n), _lengths("target_lengths", target_lengths, n)
    values = _concrete(lengths)
    if values is not None and (input_values := _concrete(inputs)) is not None:
        _check_lengths(log_probs.shape[0], input_values, targets, values)
    if targets.dim() == 2:
        longest = targets.shape[1]
    else:
        longest = targets.shape[0] if values is None else max(values, default=0)
    targets = targets.to(dtypes.int64)
    loss: Any = ctc_rows.function(log_probs, targets, inputs, lengths, blank, zero_infinity, longest)[0]
    if zero_infinity:
        where, zero = names_of("torch")["where"], tensor(0.0, dtype=loss.dtype)
        loss = where(loss == inf, zero, loss)
    if reduction == MEAN:
        return (loss / lengths.to(loss.dtype).clamp_min(1)).mean()
    if reduction == SUM:
        return loss.sum()
    return loss if batched else loss.squeeze(0)


@function("F.ctc_loss")
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """The negative log probability of label sequences with unknown alignment.

    Args:
        log_probs: ``(T, n, classes)``, or ``(T, classes)``: logarithms of probabilities at each time.
        targets: labels other than the blank, ``(n, S)``, or those of all sequences concatenated.
        input_lengths: the number of time steps of each sequence.
        target_lengths: the number of labels of each sequence.
        blank: the class of the blank.
        reduction: ``"mean"`` (over the batch, of losses over the numbers of labels), ``"sum"`` or ``"none"``.
        zero_infinity: whether infinite losses, of sequences that are too short for their labels, become zero.

    Raises:
        RuntimeError: for sizes and lengths that do not match.

    Example:
        >>> log_probs = torch.full((2, 1, 2), 0.5).log()
        >>> torch.nn.functional.ctc_loss(log_probs, torch.tensor([[1]]), [2], [1])
        tensor(0.2877)
    """
    return ctc_loss_number(
        log_probs, targets, input_lengths, target_lengths, blank, reduction_number(reduction), zero_infinity
    )
