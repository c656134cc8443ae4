"""Branches and barriers, by JAX's names."""

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
    """Marks an operand that is not given, as None is a valid operand."""

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
    """One of two functions of the operands, chosen by an array; see ``funcgrad.cond``.

    Args:
        pred: a scalar bool, or a number; nonzero is true.
        true_fun, false_fun: take the operands and return pytrees of the same structure, shapes and dtypes.
        operands: pytrees of arrays.
        operand: one operand, by name.

    Returns:
        The chosen function's result.

    Raises:
        TypeError: if the results differ, a leaf is not an array, or operands are given in both ways.

    Example:
        >>> print(cond(True, lambda x: x + 1.0, lambda x: x * 2.0, operand=3.0))
        4.0
    """
    return control.cond(pred, true_fun, false_fun, *_operands("cond", operands, operand))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _ABSENT) -> Any:
    """Calls the branch with that index on the operands; see ``funcgrad.switch``.

    Args:
        index: a scalar integer; clamped to the range of branches.
        branches: take the operands and return pytrees of the same structure, shapes and dtypes.
        operands: pytrees of arrays.
        operand: one operand, by name.

    Returns:
        The chosen function's result.

    Raises:
        TypeError: if the index is not an integer, results differ, a leaf is not an array, or operands are given in both
            ways.
        ValueError: if ``branches`` is empty.

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
    """Calls the function for the current platform.

    Args:
        args: the arguments of the function.
        default: the function for other platforms.
        per_platform: functions by the name of a platform: ``cpu``, ``cuda``, ``rocm`` or ``tpu``.

    Returns:
        The function's result.

    Raises:
        NotImplementedError: if there is neither a function for the platform nor a default.

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
