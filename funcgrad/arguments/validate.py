"""Checks of arguments that are not arrays: integers, shapes, axes, choices, functions.

Each check names the function, the argument, its value and what was expected, and returns the converted value.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import numpy as np

from funcgrad.arguments.flatten import kind
from funcgrad.core.errors import ConcretizationError, explained


def integer(name: str, what: str, x: Any, least: int | None = None) -> int:
    """A whole number: an int, or an integer array of one element.

    Args:
        name, what: the names of the function and of its argument.
        x: the argument.
        least: the minimum.

    Raises:
        TypeError: for anything else; for a traced number under ``jit``, an error that says what to do.
        ValueError: for one below ``least``.

    Example:
        >>> integer("eye", "n", np.int32(3))
        3
    """
    try:
        found = operator.index(x)
    except ConcretizationError:
        raise
    except TypeError:
        raise TypeError(f"{name}: {what} must be an int, got {kind(x)}") from None
    if least is not None and found < least:
        raise ValueError(f"{name}: {what} must be at least {least}, got {found}")
    return found


def integers(name: str, what: str, x: Any, least: int | None = None) -> tuple[int, ...]:
    """Whole numbers: one or several.

    Raises:
        TypeError: for anything else.
        ValueError: for one that is below ``least``.

    Example:
        >>> integers("roll", "shift", 2), integers("roll", "shift", [1, 2])
        ((2,), (1, 2))
    """
    if np.iterable(x) and not isinstance(x, (str, bytes)):
        return tuple(integer(name, f"each of {what}", n, least) for n in x)
    try:
        return (integer(name, what, x, least),)
    except ConcretizationError:
        raise
    except TypeError:
        raise TypeError(f"{name}: {what} must be an int or several, got {kind(x)}") from None


def shape(name: str, what: str, x: Any) -> tuple[int, ...]:
    """The sizes of an array: ``integers``, none of them negative.

    Raises:
        TypeError: for arguments that are not integers.
        ValueError: for a negative size.

    Example:
        >>> shape("zeros", "shape", 3)
        (3,)
    """
    found = integers(name, what, x)
    if any(n < 0 for n in found):
        raise ValueError(f"{name}: {what} {found} has a negative size")
    return found


def axis(name: str, x: Any, ndim: int, what: str = "axis") -> int:
    """An axis of an array as a non-negative integer.

    Args:
        name: the name of the function.
        x: the argument; a negative one counts from the end.
        ndim: the number of axes of the array.
        what: the name of the argument.

    Raises:
        TypeError: for an argument that is not an integer.
        AxisError: NumPy's, both a ``ValueError`` and an ``IndexError``, for one that is out of range.

    Example:
        >>> axis("sum", -1, 3)
        2
    """
    found = x if type(x) is int else integer(name, what, x)
    if not -ndim <= found < ndim:
        message = f"{name}: {what} {found} is out of range for an array of {ndim} axes"
        raise explained(np.exceptions.AxisError(message), "operands")
    return found % ndim


def axes(name: str, xs: Any, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """One axis, several or, for None, all, as non-negative integers; see ``axis``.

    Raises:
        TypeError: for arguments that are not integers.
        ValueError: for one that is out of range or repeated.

    Example:
        >>> axes("sum", (0, -1), 3), axes("sum", None, 3)
        ((0, 2), (0, 1, 2))
    """
    if xs is None:
        return tuple(range(ndim))
    found = tuple([axis(name, x, ndim, what) for x in (xs if np.iterable(xs) else (xs,))])
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: {what} {xs} names an axis twice")
    return found


def sequence(name: str, what: str, x: Any) -> tuple[Any, ...]:
    """A list, tuple or other sequence of objects.

    Raises:
        TypeError: for anything else, and for a string.

    Example:
        >>> sequence("fftn", "axes", [0, 1])
        (0, 1)
    """
    if isinstance(x, (str, bytes)) or not hasattr(x, "__iter__"):
        raise TypeError(f"{name}: {what} must be a sequence, got {kind(x)}")
    return tuple(x)


def number(name: str, what: str, x: Any) -> float:
    """A concrete real number.

    Raises:
        TypeError: for anything else; for a tracer, an error that says that its trace would be lost.

    Example:
        >>> number("fftfreq", "d", 2)
        2.0
    """
    found = np.asarray(x)
    if found.ndim or found.dtype.kind not in "biuf":
        raise TypeError(f"{name}: {what} must be a number, got {kind(x)}")
    return float(found)


def one_of(name: str, what: str, x: Any, options: Collection[Any]) -> Any:
    """One of a few values.

    Raises:
        ValueError: for any other value, listing the allowed ones.

    Example:
        >>> one_of("pad", "mode", "wrap", ("constant", "wrap"))
        'wrap'
    """
    # One at a time: the value need not be hashable, and comparing arrays gives no truth value.
    if not any(type(x) is type(option) and x == option for option in options):
        *most, last = [f'"{option}"' if isinstance(option, str) else repr(option) for option in options]
        raise ValueError(f"{name}: {what} must be {', '.join(most)} or {last}, got {x!r}")
    return x


def pair(name: str, what: str, x: Any, parts: str) -> tuple[Any, Any]:
    """Two values in a tuple or a list.

    Args:
        name, what: the names of the function and of its argument.
        x: the argument.
        parts: a description of the two, for the message.

    Raises:
        TypeError: for an argument that is not a tuple or list.
        ValueError: for more or fewer than two.

    Example:
        >>> pair("lu_solve", "lu_and_piv", [1, 2], "the factors and the pivots")
        (1, 2)
    """
    if not isinstance(x, (tuple, list)):
        raise TypeError(f"{name}: {what} must be {parts}, got {kind(x)}")
    if len(x) != 2:
        raise ValueError(f"{name}: {what} must be {parts}, got {len(x)} values")
    return x[0], x[1]


def function(name: str, f: Any, what: str = "") -> Any:
    """Something callable.

    Raises:
        TypeError: for anything else.

    Example:
        >>> function("jit", abs)
        <built-in function abs>
    """
    if not callable(f):
        raise TypeError(f"{name}: {f'{what} must be' if what else 'wants'} a function, got {kind(f)}")
    return f
