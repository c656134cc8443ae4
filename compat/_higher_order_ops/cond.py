"""``cond``: one of two functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.dispatch.overrides import state
from compat._core.pytree.trees import tree_all
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import local
from compat._core.transforms import vmap_checks
from compat._core.transforms.grad_mode import no_grad
from compat._higher_order_ops._branches import record_conditional, returned, trace_branches
from compat.fx._dispatch_trace import Recorder
from funcgrad import control, runtime

__all__ = ["cond"]


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple | list = ()) -> Any:
    """``true_fn(*operands)`` or ``false_fn(*operands)``.

    If the predicate is concrete, only the chosen branch runs. Under ``vmap`` over predicates, and without values, both
    are traced, and must return tensors of the same sizes and dtypes; so they are by ``torch.export``, which keeps both
    in the graph. A call that ``torch.compile`` captures computes both, and selects.

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
    recorder = _recorder()
    if recorder is not None:
        own = getattr(recorder, "conditional", None)
        record = functools.partial(record_conditional, recorder, higher_order_cond) if own is None else own
        return record(pred, (true_fn, false_fn), tuple(operands))
    if runtime.capturing():
        return _selected(pred.reshape(()), (true_fn, false_fn), tuple(operands))
    if decided(pred):
        return true_fn(*operands) if pred else false_fn(*operands)
    return control.cond(pred.reshape(()), true_fn, false_fn, *operands)


def higher_order_cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """``torch.ops.higher_order.cond``: ``torch.cond`` as graphs call it."""
    return cond(pred, true_fn, false_fn, tuple(operands))


higher_order_cond.__name__ = higher_order_cond.__qualname__ = "cond"
higher_order_cond.__module__ = "torch.ops.higher_order"


def _recorder() -> Any:
    """The innermost trace that records both branches; None if there is none."""
    modes = [*state.modes, *local.modes]
    return next((m for m in reversed(modes) if hasattr(m, "conditional") or isinstance(m, Recorder)), None)


def _selected(pred: Tensor, functions: tuple[Any, Any], operands: tuple[Any, ...]) -> Any:
    """Both branches, and the selected results, for a program that is the same for each predicate.

    A tensor passes its gradient only through the branch that is taken: one of another branch may be ``nan``.
    """
    where: Any = names_of("torch")["where"]
    with no_grad():
        found = trace_branches(functions, operands)
    results = []
    for graph, taken in zip(found.graphs, (pred, pred.logical_not())):
        given = [where(taken, t, t.detach()) if t.requires_grad else t for t in (*found.operands, *found.lifted)]
        results.append(graph(*given))
    pairs = zip(*results)
    return returned(found, [where(pred, a, b) if isinstance(a, Tensor) else a for a, b in pairs])


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
