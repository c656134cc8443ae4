"""``while_loop``: repeats a step while a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_leaves, tree_map
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._higher_order_ops.cond import decided
from compat._operators.create.from_data import tensor
from funcgrad import control

__all__ = ["while_loop"]


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple | list) -> Any:
    """Repeats ``carried = body_fn(*carried)`` while ``cond_fn(*carried)``.

    Under ``vmap`` with a batched condition each batch element stops when its own condition is false.

    Args:
        cond_fn: returns a bool, or a 0-d bool tensor.
        body_fn: returns a tuple, or a list, like ``carried_inputs``, of the same sizes and dtypes.
        carried_inputs: a tuple of tensors, ints, or pytrees of them.

    Returns:
        The final carry.

    Raises:
        RuntimeError: if a function is not callable, or the condition is not a bool.
        AssertionError: if the carry has leaves that are not tensors or ints, or a step returns others.

    Example:
        >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, torch.ones(2)))
        (3, tensor([8., 8.]))
    """
    _check(cond_fn, body_fn, carried_inputs)
    holds = _bool(cond_fn(*carried_inputs))
    if isinstance(holds, Tensor) and not decided(holds):
        carried = tree_map(lambda x: x if isinstance(x, Tensor) else tensor(x), tuple(carried_inputs))
        return control.while_loop(lambda xs: _bool(cond_fn(*xs)), lambda xs: tuple(_like(xs, body_fn(*xs))), carried)
    if not holds:
        return tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, tuple(carried_inputs))
    carried = tuple(carried_inputs)
    while holds:
        carried = _like(carried, body_fn(*carried))
        holds = _bool(cond_fn(*carried))
    return carried


def _check(cond_fn: Any, body_fn: Any, carried: Any) -> None:
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried, (tuple, list)):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried)}")
    leaves = tree_leaves(carried)
    if not all(isinstance(x, (Tensor, int)) for x in leaves):
        raise AssertionError(f"{leaves} can only be tensors or ints but got {tuple(map(type, leaves))}")


def _bool(holds: Any) -> Any:
    if isinstance(holds, bool) or (isinstance(holds, Tensor) and not holds.dim() and holds.dtype is dtype.bool_):
        return holds
    raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {holds}")


def _like(before: Any, after: Any) -> Any:
    if not isinstance(after, (tuple, list)):
        raise AssertionError(f"body_fn should return a tuple but got {type(after)}")
    if len(after) != len(before):
        raise AssertionError(
            f"body_fn should return the same number of elements as carried_inputs, got {len(after)} vs {len(before)}"
        )
    check_carried("body_fn_output and carried_inputs", tuple(after), tuple(before))
    return after


def check_carried(names: str, one: Any, other: Any) -> None:
    """Checks that the carry after a step is like that before it.

    Raises:
        RuntimeError: if structures, sizes or dtypes differ.
    """
    (first, tree), (second, wanted) = tree_flatten(one), tree_flatten(other)
    if tree != wanted:
        raise RuntimeError(f"Expected {names} to have the same structure but got lhs:{tree} and rhs:{wanted}")
    for i, (a, b) in enumerate(zip(first, second)):
        for what in ("shape", "dtype"):
            mine, theirs = getattr(a, what, None), getattr(b, what, None)
            if mine != theirs:
                raise RuntimeError(
                    f"Expected {names} to have same metadata but found:\npair[{i}] differ in '{what}: {mine} vs "
                    f"{theirs}'"
                )
