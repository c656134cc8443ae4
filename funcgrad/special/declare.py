"""Declaring elementwise functions by the row: operands promoted, docstrings made of the parts that differ."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from funcgrad.numpy.promotion import asoperand, promoted

_DOCUMENT = """{what}

Args:
    {arguments}: {kinds}.

Returns:
    A floating array of the broadcast shape and the promoted dtype.

Raises:
    TypeError: for operands that are not arrays, or are complex.
    ValueError: for shapes that do not broadcast.

Example:
    >>> print({example})
    {shown}
"""


def operands(name: str, *xs: Any) -> list[Any]:
    """What users gave, as arrays of one floating dtype."""
    return promoted(*[asoperand(x, name) for x in xs], floating=True)


def function(
    name: str, arguments: str, body: Callable[..., Any], what: str, example: str, shown: str
) -> Callable[..., Any]:
    """A function of floating arrays, which it takes by position as SciPy's do.

    Args:
        arguments: what it calls them.
        body: in terms of primitives, on operands of one dtype.
        what, example, shown: for its docstring: the first lines, and a call with what it prints.
    """
    names = arguments.split()

    def found(*xs: Any) -> Any:
        if len(xs) != len(names):
            raise TypeError(f"{name}: takes {len(names)} positional arguments ({', '.join(names)}), got {len(xs)}")
        return body(*operands(name, *xs))

    kinds = "an array or number" if len(names) == 1 else "arrays or numbers that broadcast together"
    found.__doc__ = _DOCUMENT.format(what=what, arguments=", ".join(names), kinds=kinds, example=example, shown=shown)
    found.__name__ = found.__qualname__ = name
    found.__module__ = sys._getframe(1).f_globals["__name__"]
    parameters = [Parameter(n, Parameter.POSITIONAL_ONLY) for n in names]
    found.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return found
