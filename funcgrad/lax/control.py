"""Choices and barriers, as JAX calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from funcgrad import control
from funcgrad.core import trees
from funcgrad.core.tracing import is_array, typed
from funcgrad.primitives.markers import barrier_p

__all__ = ["cond", "optimization_barrier", "platform_dependent", "switch"]


class _Absent:
    """Marks an operand that is not given, as None may be one."""

    def __repr__(self) -> str:
        return "not given"


_ABSENT = _Absent()


def _operands(name: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _ABSENT:
        return operands
    if operands:
        raise TypeError(f"{name}: operands are given by position or by the name operand, not both")
    return (operand,)


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _ABSENT,
) -> Any:
    """One of two functions of the operands, as an array decides; see ``funcgrad.cond``.

    Args:
        pred: one bool, or a number that counts as true unless it is zero.
        true_fun, false_fun: take the operands and return pytrees of the same structure, shapes and dtypes.
        operands: pytrees of arrays.
        operand: one operand, by name.

    Returns:
        The chosen function's result.

    Raises:
        TypeError: if results differ, something is no array, or operands are given in both ways.

    Example:
        >>> print(cond(True, lambda x: x + 1.0, lambda x: x * 2.0, operand=3.0))
        4.0
    """
    return control.cond(pred, true_fun, false_fun, *_operands("cond", operands, operand))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _ABSENT) -> Any:
    """The function of that number, of the operands; see ``funcgrad.switch``.

    Args:
        index: one integer; below zero it is the first function's, beyond the last the last one's.
        branches: take the operands and return pytrees of the same structure, shapes and dtypes.
        operands: pytrees of arrays.
        operand: one operand, by name.

    Returns:
        The chosen function's result.

    Raises:
        TypeError: if the index is no integer, results differ, something is no array, or operands are given in both
            ways.
        ValueError: if there are no functions.

    Example:
        >>> print(switch(1, [lambda x: x + 1.0, lambda x: x * 2.0], 3.0))
        6.0
    """
    return control.switch(index, branches, *_operands("switch", operands, operand))


def optimization_barrier(operand: Any, /) -> Any:
    """Arrays unchanged, with a barrier: XLA optimizes operations before and after it separately.

    Args:
        operand: a pytree of arrays.

    Returns:
        A pytree like it.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(optimization_barrier(2.0))
        2.0
    """
    leaves, tree = trees.flatten(operand)
    if not all(map(is_array, leaves)):
        raise TypeError(f"optimization_barrier: takes a pytree of arrays, got {operand!r}")
    return trees.unflatten(tree, barrier_p(*map(typed, leaves)) if leaves else [])


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The function for the present platform.

    Args:
        args: of the function.
        default: the function for other platforms.
        per_platform: functions by the name of a platform: ``cpu``, ``cuda``, ``rocm`` or ``tpu``.

    Returns:
        The chosen function's result.

    Raises:
        NotImplementedError: where there is neither.

    Example:
        >>> print(platform_dependent(3.0, cpu=lambda x: x + 1.0, default=lambda x: x + 1.0))
        4.0
    """
    platform = jax.default_backend()
    names = ("cuda", "gpu") if platform == "gpu" else (platform,)
    chosen = next((per_platform[n] for n in names if n in per_platform), default)
    if chosen is None:
        raise NotImplementedError(
            f"platform_dependent: there is no function for {platform!r} among {', '.join(per_platform)}, and no default"
        )
    return chosen(*args)
