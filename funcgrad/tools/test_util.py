"""Compares derivatives with finite differences, for tests of functions and derivative rules.

Example:
    >>> import funcgrad.numpy as fnp
    >>> from funcgrad.tools.test_util import check_grads
    >>> check_grads(lambda x: fnp.sin(x) * x, (np.array([0.5, 2.0]),), order=2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.arguments.flatten import check_leaves, kind, zero_tangent
from funcgrad.core import dtypes, trees
from funcgrad.core.tracing import type_of
from funcgrad.transforms.autodiff import jvp, vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

#: The step of differences, and the relative tolerance of derivatives, by significand.
_STEPS = {dtypes.float64: 1e-6, dtypes.float32: 1e-2}
_TOLERANCES = {dtypes.float64: 1e-6, dtypes.float32: 2e-2}


def _inexact(x: Any) -> bool:
    return dtypes.is_inexact(type_of(x).dtype)


def _precision(leaves: Sequence[Any]) -> np.dtype:
    """The least precise dtype among those differentiated."""
    found = [
        dtypes.real_of(d) if dtypes.is_complex(d) else d for d in (type_of(x).dtype for x in leaves if _inexact(x))
    ]
    if not found:
        raise TypeError("check_grads: none of the arguments is floating, so there is nothing to differentiate by")
    least = min(found, key=lambda d: d.itemsize)
    if least not in _STEPS:
        raise TypeError(f"check_grads: differences of {least} numbers say nothing; give float32 or float64")
    return least


def _random(like: Any, rng: np.random.Generator) -> Any:
    """A pytree like another with random numbers; float0 zeros for integers."""

    def one(x: Any) -> Any:
        found = type_of(x)
        if not _inexact(x):
            return zero_tangent(x)
        values = rng.normal(size=found.shape)
        if dtypes.is_complex(found.dtype):
            values = values + 1j * rng.normal(size=found.shape)
        return np.asarray(values, found.dtype)

    return trees.map(one, like)


def _moved(args: Any, tangents: Any, step: float) -> Any:
    def one(x: Any, t: Any) -> Any:
        return np.asarray(x) + np.asarray(step * np.asarray(t), type_of(x).dtype) if _inexact(x) else x

    return trees.map(one, args, tangents)


def _difference(f: Callable[..., Any], args: tuple, tangents: tuple, step: float) -> Any:
    """The central difference of ``f`` along ``tangents``."""
    up, down = (f(*_moved(args, tangents, s * step)) for s in (0.5, -0.5))
    return trees.map(lambda a, b: (np.asarray(a) - np.asarray(b)) / step if _inexact(a) else 0.0, up, down)


def _compare(what: str, got: Sequence[Any], wanted: Sequence[Any], tolerance: float) -> None:
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        worst = float(np.max(np.abs(a - b), initial=0.0))
        if not worst <= tolerance * scale:
            raise AssertionError(f"{what}, result {i}: is {a}, differences say {b}; they are {worst:.1e} apart")


def check_jvp(f: Callable[..., Any], args: tuple, *, tolerance: float | None = None, seed: int = 0) -> None:
    """Compares the forward derivative of ``f`` along a random direction with a central difference.

    Args:
        f: takes and returns pytrees of arrays.
        args: a tuple of its arguments, float32 or float64, or complex.
        tolerance: relative to the largest element; by default according to the dtype.
        seed: the seed of the random directions.

    Returns:
        None.

    Raises:
        AssertionError: if they differ by more, with both values.
        TypeError: for arguments without differences: only integers, 16-bit floats, non-arrays.

    Example:
        >>> check_jvp(lambda x: x * x, (np.float64(3.0),))
    """
    least = _precision(trees.leaves(args))
    tangents = _random(args, np.random.default_rng(seed))
    _, got = jvp(f, args, tangents)
    live = [i for i, x in enumerate(trees.leaves(f(*args))) if _inexact(x)]
    wanted = trees.leaves(_difference(f, args, tangents, _STEPS[least]))
    got = trees.leaves(got)
    _compare("jvp", [got[i] for i in live], [wanted[i] for i in live], tolerance or _TOLERANCES[least])


def check_vjp(f: Callable[..., Any], args: tuple, *, tolerance: float | None = None, seed: int = 0) -> None:
    """Compares the reverse derivative of ``f`` with a central difference, both paired with random directions.

    Args:
        f, args, tolerance, seed: as for ``check_jvp``.

    Returns:
        None.

    Raises:
        AssertionError: if they differ by more, with both values.
        TypeError: for arguments without differences: only integers, 16-bit floats, non-arrays.

    Example:
        >>> check_vjp(lambda x: x * x, (np.float64(3.0),))
    """
    least = _precision(trees.leaves(args))
    rng = np.random.default_rng(seed)
    tangents = _random(args, rng)
    out, pull = vjp(f, *args)
    cotangent = _random(out, rng)
    back = trees.leaves(pull(cotangent))
    moved = trees.leaves(_difference(f, args, tangents, _STEPS[least]))

    def paired(xs: Sequence[Any], ys: Sequence[Any], like: Sequence[Any]) -> float:
        # Cotangents are paired without conjugation.
        return sum(float(np.sum(np.asarray(x) * np.asarray(y)).real) for x, y, z in zip(xs, ys, like) if _inexact(z))

    got = paired(back, trees.leaves(tangents), trees.leaves(args))
    wanted = paired(trees.leaves(cotangent), moved, trees.leaves(out))
    _compare("vjp", [got], [wanted], tolerance or _TOLERANCES[least])


def check_grads(
    f: Callable[..., Any],
    args: tuple,
    order: int = 1,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    tolerance: float | None = None,
    seed: int = 0,
) -> None:
    """Compares the derivatives of ``f`` up to ``order`` with differences, in all combinations of ``modes``.

    Args:
        f: takes and returns pytrees of arrays.
        args: a tuple of its arguments, float32 or float64, or complex.
        order: the maximum order of derivatives.
        modes: a subset of ``"fwd"`` and ``"rev"``.
        tolerance: relative to the largest element; by default according to the dtype.
        seed: the seed of the random directions.

    Returns:
        None.

    Raises:
        AssertionError: if a derivative is wrong, with it and the difference.
        TypeError: for arguments without differences: only integers, 16-bit floats, non-arrays.
        ValueError: for an unknown mode.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> check_grads(fnp.exp, (np.float64(1.0),), order=3, modes=["rev"])
    """
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"check_grads: args must be a tuple, one entry per argument, got {kind(args)}")
    args = tuple(args)
    check_leaves("check_grads", [f"argument {i}" for i in range(len(args))], args)
    unknown = [m for m in modes if m not in ("fwd", "rev")]
    if unknown:
        raise ValueError(f'check_grads: modes are "fwd" and "rev", got {unknown[0]!r}')
    rng = np.random.default_rng(seed + 1)
    for mode in modes:
        if mode == "fwd":
            check_jvp(f, args, tolerance=tolerance, seed=seed)
        else:
            check_vjp(f, args, tolerance=tolerance, seed=seed)
        if order < 2:
            continue
        if mode == "fwd":
            tangents = _random(args, rng)

            def derivative(*xs: Any, t: Any = tangents) -> Any:
                return jvp(f, xs, t)[1]
        else:
            cotangent = _random(f(*args), rng)

            def derivative(*xs: Any, t: Any = cotangent) -> Any:
                return vjp(f, *xs)[1](t)

        check_grads(derivative, args, order - 1, modes, tolerance=tolerance, seed=seed + 1)
