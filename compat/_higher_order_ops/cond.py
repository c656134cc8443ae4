"""``cond``: one of two functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import tree_all
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import vmap_checks
from funcgrad import control

__all__ = ["cond"]


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple | list = ()) -> Any:
    """``true_fn(*operands)`` or ``false_fn(*operands)``.

    If the predicate is concrete, only the chosen branch runs. Under ``vmap`` over predicates, and without values, both
    are traced, and must return tensors of the same sizes and dtypes.

    Args:
        pred: a number, or a tensor of one element.
        operands: tensors, or pytrees of them.

    Raises:
        RuntimeError: for an invalid predicate, branch or operand.

    Example:
        >>> torch.cond(torch.tensor(True), torch.neg, torch.abs, (torch.tensor([1.0, -2.0]),))
        tensor([-1.,  2.])
        >>> f = lambda x: torch.cond(x > 0, torch.neg, torch.exp, (x,))
        >>> torch.vmap(f)(torch.tensor([3.0, 0.0]))
        tensor([-3.,  1.])
    """
    if isinstance(pred, (bool, int, float)):
        return true_fn(*operands) if pred else false_fn(*operands)
    _check(pred, true_fn, false_fn, operands)
    if decided(pred):
        return true_fn(*operands) if pred else false_fn(*operands)
    return control.cond(pred.reshape(()), true_fn, false_fn, *operands)


def decided(pred: Tensor) -> bool:
    """Whether a tensor has a concrete, unbatched value."""
    return vmap_checks.shown(pred._storage_.buffer)


def _check(pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> None:
    if not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not tree_all(lambda t: isinstance(t, Tensor), operands):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but "
            f"got {operands}."
        )
