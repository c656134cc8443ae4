"""The parameters of an operator, from its schemas.

The type of an argument determines its kind:

``Tensor``
    an array; also a number, if another overload has a ``Scalar`` in its place. ``Tensor[]``: a sequence of arrays.
``Scalar``
    a number that is an input of the compiled program, so that another value does not recompile.
``int dim``, ``int[] dim``
    dimensions of the first tensor, if the name begins or ends with ``dim``: the body gets them counted from the left.
``int[]``
    integers; if they are the only argument beside the tensor, methods accept them as separate arguments, too.
any other type
    a static argument, for whose value the program is compiled.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compat._core.schema.parser import Argument, FunctionSchema

_DIMENSION = re.compile(r"dim(s|ension|\d)?|(start|end)_dim")
_INTEGERS = ("int", "SymInt")
_CHECKED = {"bool": "bool", "int": "int", "SymInt": "int", "float": "float", "str": "str", "Scalar": "Number"}
#: Integer lists of fixed length, which accept a single integer: ``int[2] stride=1``.
_FIXED = re.compile(r"(?:Sym)?[Ii]nt\[(\d+)\]")
REQUIRED: Any = inspect.Parameter.empty
#: Marks an omitted argument.
MISSING = object()


@dataclass(frozen=True)
class Param:
    """One parameter.

    Attributes:
        kind: ``array``, ``arrays``, ``scalar``, ``dim``, ``dims``, ``ints`` or ``static``.
        optional: whether it may be None.
        keyword: whether it is keyword-only.
        starred: whether it takes the remaining positional arguments.
        edge: whether nodes have an edge for it.
        plain: the checked type of a static argument: ``"bool"``, ``"int"``, ``"Number"``; "" for no check.
        number: whether an array may be a number.
    """

    name: str
    kind: str
    optional: bool
    default: Any
    keyword: bool
    starred: bool
    edge: bool = True
    plain: str = ""
    number: bool = False

    @cached_property
    def required(self) -> bool:
        return self.default is REQUIRED and not self.starred

    @cached_property
    def dynamic(self) -> bool:
        """Whether its value is an input of the compiled program."""
        return self.kind in ("array", "arrays", "scalar")


def python_name(argument: Argument) -> str:
    """The Python name of an argument: ``input`` for the tensor ``self``."""
    return "input" if argument.name == "self" and argument.type.startswith("Tensor") else argument.name


def parameters(
    schemas: Sequence[FunctionSchema],
    static: Collection[str] = (),
    traced: Collection[str] = (),
    without_edge: Collection[str] = (),
) -> tuple[Param, ...]:
    """The parameters of an operator whose overloads one body computes.

    Args:
        schemas: the overloads; one of them has all the arguments.
        static: numbers that are static, and dimensions that the body gets as given.
        traced: floats that are inputs of the compiled program.
        without_edge: tensors without a gradient.

    Raises:
        ValueError: if no schema has all the arguments, or for an unknown name.

    Example:
        >>> both = [FunctionSchema("aten", "mul(Tensor self, Tensor other) -> Tensor")]
        >>> [(p.name, p.kind) for p in parameters(both)]
        [('input', 'array'), ('other', 'array')]
    """
    widest = max(schemas, key=lambda s: len(s.arguments))
    found = [_parameter(a, widest, schemas, static, traced, without_edge) for a in widest.arguments]
    names = {p.name for p in found}
    own = {a.name for a in widest.arguments}
    others = {a.name for s in schemas for a in s.arguments if a.name not in own}
    for missing in others | {*static, *traced, *without_edge} - names:
        raise ValueError(f"{widest.name}: {missing!r} is not an argument of {widest}")
    return tuple(found)


def _parameter(
    argument: Argument,
    widest: FunctionSchema,
    schemas: Sequence[FunctionSchema],
    static: Collection[str],
    traced: Collection[str],
    without_edge: Collection[str],
) -> Param:
    name = python_name(argument)
    same = [a for s in schemas for a in s.arguments if a.name == argument.name]
    always = len(same) == len(schemas)
    types = {a.type.removesuffix("?") for a in same}
    kind = "scalar" if name in traced else _kind(name, types, name in static)
    default = argument.default_value if argument.has_default_value() else REQUIRED if always else None
    base = argument.type.removesuffix("?")
    if isinstance(default, list):
        default = tuple(default)
    elif (fixed := _FIXED.fullmatch(base)) and isinstance(default, int):
        default = (default,) * int(fixed[1])
    others = [a for a in widest.arguments if a.name != "self" and not a.kwarg_only]
    starred = base in ("int[]", "SymInt[]") and kind == "ints" and others == [argument] and default is REQUIRED
    return Param(
        name,
        kind,
        argument.type.endswith("?") or default is None,
        default,
        argument.kwarg_only,
        starred,
        name not in without_edge and base != "Tensor?[]",
        _CHECKED.get(base, "") if kind == "static" else "",
        kind == "array" and "Scalar" in types,
    )


def _kind(name: str, types: set[str], static: bool) -> str:
    if "Tensor" in types:
        return "array"
    if types & {"Tensor[]", "Tensor?[]"}:
        return "arrays"
    if "Scalar" in types and not static:
        return "scalar"
    lists = any(t.partition("[")[0] in _INTEGERS and t.endswith("]") for t in types)
    if not static and _DIMENSION.fullmatch(name) and (lists or types & set(_INTEGERS)):
        return "dims" if lists else "dim"
    return "ints" if lists else "static"
