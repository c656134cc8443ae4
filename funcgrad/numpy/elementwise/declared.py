"""Declares functions of arrays and numbers from primitives, with docstrings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import Tracer, array_classes, bind, type_of
from funcgrad.numpy.promotion import PYTHON_NUMBERS, asoperand, promoted, promoted_pair

#: A dtype of each kind, and its name in docstrings.
_KINDS = {
    dtypes.bool_: "bools",
    dtypes.int32: "integers",
    dtypes.float32: "floats",
    dtypes.complex64: "complex numbers",
}


def _document(primitive: Primitive, what: str, arity: int, example: str, shown: str, floating: bool) -> str:
    """The docstring of a row; the dtypes of operands and results are derived from the primitive."""
    results = {}
    for dtype in _KINDS:
        operand = ArrayType((), dtypes.float32 if floating and not dtypes.is_inexact(dtype) else dtype)
        try:
            results[dtype] = primitive.infer(*(operand,) * arity).dtype
        except TypeError:
            continue
    *others, last = "what is no array", *(name for dtype, name in _KINDS.items() if dtype not in results)
    refused = f"{', '.join(others)} and {last}" if others else last
    if set(results.values()) == {dtypes.bool_}:
        kind = ", of bools"
    else:
        kind = ", of the dtype of ``x``" if arity == 1 else ", of the promoted dtype"
        kind += "; float32 of bools and integers" if floating else ""
    alone = "x: an array or number.", f"An array of the shape of ``x``{kind}.", ""
    paired = (
        "x, y: arrays or numbers that broadcast together.",
        f"An array of the broadcast shape{kind}.",
        "    ValueError: for shapes that do not broadcast.\n",
    )
    arguments, result, unfit = alone if arity == 1 else paired
    return (
        f"{what}\n\nArgs:\n    {arguments}\n\nReturns:\n    {result}\n\n"
        f"Raises:\n    TypeError: for {refused}.\n{unfit}\n"
        f"Example:\n    >>> print({example})\n    {shown}\n"
    )


def named(function: Callable[..., Any], name: str, document: str) -> Callable[..., Any]:
    """``function``, which a table row creates, with a name and a docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = document
    return function


def _in_row(function: Callable[..., Any], name: str, document: str) -> Callable[..., Any]:
    """As ``named``, with the module of the row, for help and the API reference."""
    function.__module__ = sys._getframe(2).f_globals["__name__"]
    return named(function, name, document)


def unary(
    primitive: Primitive, name: str, what: str, example: str, shown: str, *, floating: bool = False
) -> Callable[[Any], Any]:
    def function(x: Any, /) -> Any:
        if x.__class__ not in array_classes:
            x = asoperand(x, name)
        if x.__class__ in PYTHON_NUMBERS or (floating and not type_of(x).inexact):
            (x,) = promoted(x, floating=floating)
        return bind(primitive, (x,), {})

    return _in_row(function, name, _document(primitive, what, 1, example, shown, floating))


def binary(
    primitive: Primitive, name: str, what: str, example: str, shown: str, *, floating: bool = False
) -> Callable[[Any, Any], Any]:
    def function(x: Any, y: Any, /) -> Any:
        if x.__class__ not in array_classes or y.__class__ not in array_classes:
            x, y = asoperand(x, name), asoperand(y, name)
        if not (
            isinstance(x, Tracer) and isinstance(y, Tracer) and x.type is y.type and (not floating or x.type.inexact)
        ):
            x, y = promoted_pair(x, y, floating)
        return bind(primitive, (x, y), {})

    function.primitive = None if floating else primitive  # type: ignore[attr-defined]
    return _in_row(function, name, _document(primitive, what, 2, example, shown, floating))
