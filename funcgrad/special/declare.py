"""Declares elementwise functions by the row: promotion of operands, and docstrings assembled from parts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from funcgrad.core import dtypes
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives import elementwise as e
from funcgrad.runtime.call_cache import composite


def negative(x: Any) -> Any:
    """Whether elements are below zero."""
    return e.lt(x, e.number(0, x))


_DOCUMENT = """{what}

Args:
    {arguments}: {kinds}; integers and booleans count as float32.

Returns:
    {results}

Raises:
    {errors}

Example:
    >>> print({example})
    {shown}
"""


#: Docstring parts about operands, results and errors: for one operand, and for several.
_ONE = (
    "a real array or number",
    "An array of its shape; of its dtype, if that is floating.",
    "TypeError: for operands that are not arrays, or complex ones.",
)
_SEVERAL = (
    "real arrays or numbers, which broadcast together",
    "An array of the broadcast shape, of the floating dtype that they are promoted to.",
    "TypeError: for operands that are not arrays, or complex ones.\n    ValueError: for shapes that do not broadcast.",
)


def operands(name: str, *xs: Any, real: bool = True) -> list[Any]:
    """Operands as arrays of one floating dtype, or complex dtype if ``real`` is False."""
    found = promoted(*[asoperand(x, name) for x in xs], floating=True)
    if real and dtypes.is_complex(type_of(found[0]).dtype):
        given = " and ".join(str(type_of(asoperand(x, name))) for x in xs)
        raise TypeError(f"{name}: takes real arrays, got {given}")
    return found


def function(
    name: str, arguments: str, body: Callable[..., Any], what: str, example: str, shown: str
) -> Callable[..., Any]:
    """Declares a function of floating arrays with positional arguments, as in SciPy.

    Args:
        arguments: their names.
        body: the function in terms of primitives, on operands of one dtype.
        what, example, shown: for its docstring: the first lines, and a call with its printed result.
    """
    names = arguments.split()

    def found(*xs: Any) -> Any:
        if len(xs) != len(names):
            raise TypeError(f"{name}: takes {len(names)} positional arguments ({', '.join(names)}), got {len(xs)}")
        return body(*operands(name, *xs))

    parts = dict(zip(("kinds", "results", "errors"), _ONE if len(names) == 1 else _SEVERAL, strict=True))
    found.__doc__ = _DOCUMENT.format(what=what, arguments=", ".join(names), example=example, shown=shown, **parts)
    found.__name__ = found.__qualname__ = name
    found.__module__ = sys._getframe(1).f_globals["__name__"]
    parameters = [Parameter(n, Parameter.POSITIONAL_ONLY) for n in names]
    found.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return found if isinstance(body, Primitive) else composite(found)
