"""What ``funcgrad.lax`` asks of operands: one dtype and as many axes, for nothing is converted in silence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import dtypes, trees
from funcgrad.numpy.promotion import astype
from funcgrad.tracing import is_array, type_of, typed


def checked(name: str, x: Any) -> Any:
    """``x``, an array or a number.

    Raises:
        TypeError: for anything else, sequences of numbers too.
    """
    x = trees.array_of(x)
    if not is_array(x):
        raise TypeError(f"{name}: got {x!r} of type {type(x).__name__}, wanted an array or a number")
    return x


def same_dtype(name: str, *xs: Any) -> list[Any]:
    """Arrays of one dtype; a Python number takes that of the arrays, which must be able to hold it.

    Raises:
        TypeError: where arrays have different dtypes, or a number does not fit.
    """
    xs = tuple(checked(name, x) for x in xs)
    types = [type_of(x) for x in xs]
    dtype, weak = types[0].dtype, types[0].weak
    for t in types[1:]:
        dtype, weak = dtypes.promote_weak(dtype, weak, t.dtype, t.weak)
    if any(t.dtype != dtype for t in types if not t.weak):
        raise TypeError(
            f"{name}: operands must have one dtype, got {' and '.join(map(str, types))}; convert them with "
            "lax.convert_element_type, or use funcgrad.numpy, which promotes"
        )
    return [typed(x) if t.dtype == dtype else astype(x, dtype) for x, t in zip(xs, types, strict=True)]


def same_rank(name: str, xs: Sequence[Any]) -> None:
    """Asks for as many axes in each array, but in scalars.

    Raises:
        ValueError: where there are not.
    """
    types = [type_of(x) for x in xs]
    if len({t.ndim for t in types} - {0}) > 1:
        raise ValueError(
            f"{name}: arrays must have as many axes as each other, or none, got {' and '.join(map(str, types))}; "
            "funcgrad.numpy adds axes where they are missing"
        )


def axis_of(name: str, axis: Any, ndim: int) -> int:
    """An axis counted from the front.

    Raises:
        TypeError: for what is no integer.
        ValueError: for one that is out of range.
    """
    if not isinstance(axis, int | np.integer):
        raise TypeError(f"{name}: an axis must be an integer, got {axis!r}")
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: axis {axis} is out of range for an array of {ndim} axes")
    return int(axis) % ndim


def axes_of(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Several axes, each once, counted from the front; see ``axis_of``."""
    found = tuple(axis_of(name, a, ndim) for a in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: axes {tuple(axes)} name an axis twice")
    return found


def sizes_of(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of integers that are not negative.

    Raises:
        TypeError: for sizes that are no integers, traced ones too.
        ValueError: for negative ones.
    """
    if not isinstance(shape, Sequence | np.ndarray) or not all(isinstance(n, int | np.integer) for n in shape):
        raise TypeError(
            f"{name}: a shape must be a sequence of integers, known when the program is traced, got {shape!r}"
        )
    if any(n < 0 for n in shape):
        raise ValueError(f"{name}: sizes must not be negative, got {tuple(shape)}")
    return tuple(map(int, shape))
