"""Checks of operands for ``funcgrad.lax``: equal dtypes and ranks, since nothing is converted implicitly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core import dtypes, trees
from funcgrad.core.tracing import is_array, type_of, typed
from funcgrad.numpy.promotion import astype


def checked(name: str, x: Any) -> Any:
    """``x``, checked to be an array or a number.

    Raises:
        TypeError: for anything else, including sequences of numbers.
    """
    x = trees.array_of(x)
    if not is_array(x):
        raise TypeError(f"{name}: got {x!r} of type {type(x).__name__}, wanted an array or a number")
    return x


def same_dtype(name: str, *xs: Any) -> list[Any]:
    """Arrays of one dtype; a Python number takes that dtype, which must be able to represent it.

    Raises:
        TypeError: if arrays have different dtypes, or a number is not representable.
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
    """Checks that all arrays except scalars have the same rank.

    Raises:
        ValueError: if ranks differ.
    """
    types = [type_of(x) for x in xs]
    if len({t.ndim for t in types} - {0}) > 1:
        raise ValueError(
            f"{name}: arrays must have as many axes as each other, or none, got {' and '.join(map(str, types))}; "
            "funcgrad.numpy adds axes where they are missing"
        )


def axes_of(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a sequence as distinct non-negative integers.

    Raises:
        TypeError: for an argument that is not a sequence of integers.
        ValueError: for one that is out of range or repeated.
    """
    return validate.axes(name, validate.sequence(name, "axes", axes), ndim)


def sizes_of(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of non-negative integers.

    Raises:
        TypeError: for an argument that is not a sequence of concrete integers.
        ValueError: for negative ones.
    """
    return validate.shape(name, "shape", validate.sequence(name, "shape", shape))
