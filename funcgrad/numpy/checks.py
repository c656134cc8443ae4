"""What functions ask of arguments that are no arrays: whole numbers, sizes, options; and of sequences of arrays."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import numpy as np

from funcgrad import dtypes
from funcgrad.arguments import kind
from funcgrad.numpy.promotion import asoperand
from funcgrad.primitives.shape import Dims
from funcgrad.tracing import is_array, type_of


def whole(n: Any, what: str) -> int:
    """``n`` as a Python int.

    Args:
        n: an int, or an array of one without axes.
        what: the function and its argument, as a message names them: ``"tile: reps"``.

    Raises:
        TypeError: for anything else.
        ConcretizationError: for a traced one.

    Example:
        >>> whole(np.int8(3), "roll: shift")
        3
    """
    try:
        return operator.index(n)
    except TypeError:
        if is_array(n) and not type_of(n).ndim and dtypes.is_integer(type_of(n).dtype):
            raise  # it is traced, and says so
        raise TypeError(f"{what} must be an int, got {kind(n)}") from None


def whole_numbers(numbers: Any, what: str) -> Dims:
    """An int, or a sequence of ints, as a tuple.

    Raises:
        TypeError: for anything else.
        ConcretizationError: for traced ones.

    Example:
        >>> whole_numbers(3, "tile: reps"), whole_numbers([2, 3], "tile: reps")
        ((3,), (2, 3))
    """
    if isinstance(numbers, str) or not np.iterable(numbers):
        try:
            return (whole(numbers, what),)
        except TypeError:
            if is_array(numbers):
                raise
            raise TypeError(f"{what} must be an int or a sequence of ints, got {kind(numbers)}") from None
    return tuple([whole(n, what) for n in numbers])


def dims_of(shape: Any, name: str) -> Dims:
    """The shape of a new array.

    Raises:
        TypeError: for what is no int or sequence of ints.
        ValueError: for negative sizes.
        ConcretizationError: for traced ones.

    Example:
        >>> dims_of(3, "zeros")
        (3,)
    """
    dims = whole_numbers(shape, f"{name}: shape")
    if any(n < 0 for n in dims):
        raise ValueError(f"{name}: shape must not be negative, got {shape}")
    return dims


def count_of(n: Any, what: str) -> int:
    """How many, as a Python int.

    Raises:
        TypeError: for what is no int.
        ValueError: for a negative one.
        ConcretizationError: for a traced one.

    Example:
        >>> count_of(3, "linspace: num")
        3
    """
    number = whole(n, what)
    if number < 0:
        raise ValueError(f"{what} must not be negative, got {number}")
    return number


def one_of(value: Any, options: Collection[Any], what: str) -> None:
    """Raises where ``value`` is none of the options.

    Raises:
        ValueError: then, with all of them in the message.

    Example:
        >>> one_of("C", ("C", "F"), "reshape: order")
    """
    if not any(value is option or (isinstance(value, str) and value == option) for option in options):
        wanted = ", ".join("None" if option is None else f'"{option}"' for option in options)
        raise ValueError(f"{what} must be one of {wanted}, got {value!r}")


def operands(arrays: Any, name: str) -> list[Any]:
    """The arrays of a sequence, or the slices of an array, as operands.

    Raises:
        TypeError: for what is no sequence of arrays.
        ValueError: for an empty one.

    Example:
        >>> operands((1, 2.0), "stack")
        [1, 2.0]
    """
    if isinstance(arrays, str | dict | set) or not np.iterable(arrays):
        raise TypeError(f"{name}: wants a sequence of arrays, got {kind(arrays)}")
    found = [asoperand(x, name) for x in arrays]
    if not found:
        raise ValueError(f"{name}: wants at least one array, got none")
    return found


__all__ = ["count_of", "dims_of", "one_of", "operands", "whole", "whole_numbers"]
