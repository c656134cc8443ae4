"""The facts about an operator in the reference: the only module that knows how operators of ``compat`` are declared.

Other modules call ``describe``, so that they do not depend on the form of declarations.
"""

from __future__ import annotations

import dis
import functools
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from compat._core.dispatch import dispatcher
from compat._core.operators.operator_base import OperatorBase
from compat._core.tensor import registry

#: The types shown for annotations of declarations.
ANNOTATIONS = {
    "Array": "Tensor", "Arrays": "Sequence[Tensor]", "Scalar": "Number", "Dim": "int", "Dims": "int | Sequence[int]",
    "Ints": "int | Sequence[int]", "Index": "int", "Sizes": "Sequence[int]", "Dtype": "dtype", "Any": "",
    "MemoryFormat": "memory_format", "dtypes.dtype": "dtype",
}  # fmt: skip


@dataclass(frozen=True)
class Operator:
    """A declared operator.

    Attributes:
        key: equal for all functions that were made from one declaration.
        node: the class of its backward node, or "" if it has none.
        saves: the names of the node's saved values, as in its ``_saved_…`` attributes.
        out: whether this function takes ``out=``.
        uses: for a composite function, the operators with a node that it uses, by their nodes' names.
    """

    key: int
    node: str = ""
    saves: tuple[str, ...] = ()
    out: bool = False
    uses: tuple[str, ...] = ()


def function_of(value: Any) -> Any:
    """The plain function behind a public name, which may check the types of its arguments first."""
    return value if isinstance(value, type) else getattr(value, "_function", value)


def published(module: str) -> frozenset[str]:
    """The names of the operators and functions that are public in a module of compat, ``compat.nn.functional``."""
    return frozenset(registry.names_of(module.removeprefix("compat").removeprefix(".") or "torch"))


@functools.cache
def _declared() -> dict[Any, Any]:
    found = {}
    for op in dispatcher.every():
        found[op.function] = op
        for entry in op.entries:
            found[entry.function] = op
    return found


def describe(value: Any) -> Operator | None:
    """The description of a public function as an operator; None if it is not one."""
    function = function_of(_getter(value))
    op = _lookup(function)
    if op is None:
        uses = tuple(dict.fromkeys(_nodes(function, 3)))
        return Operator(id(function), uses=uses) if uses else None
    out = any(entry.out for entry in op.entries if entry.function is function)
    return Operator(id(op), *_node(op), out=out)


def _node(op: Any) -> tuple[str, tuple[str, ...]]:
    node = getattr(op, "node", None)
    saved = op.saved.split() if isinstance(getattr(op, "saved", ()), str) else getattr(op, "saved", ())
    if node is None or node.__name__ == "Underivable":
        return "", ()
    return node.__name__, tuple(item.replace(".", "_") for item in saved)


def _nodes(function: Any, depth: int) -> Iterator[str]:
    """The nodes of the operators that a function's code names, and those of the compat functions that it calls."""
    if not isinstance(function, FunctionType) or depth == 0:
        return
    for name in _names(inspect.unwrap(function).__code__):
        value = inspect.unwrap(function).__globals__.get(name)
        op = value if isinstance(value, OperatorBase) else _lookup(value)
        if op is not None:
            yield from [node] if (node := _node(op)[0]) else []
        elif isinstance(value, FunctionType) and (value.__module__ or "").startswith("compat._operators"):
            yield from _nodes(value, depth - 1)


def _lookup(value: Any) -> Any:
    known = isinstance(value, FunctionType | OperatorBase)
    return _declared().get(value) if known else None


def _names(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def signature(value: Any) -> inspect.Signature | None:
    """The signature of a callable for the reference; None if Python has none."""
    function = function_of(value)
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    op = describe(value)
    parameters = list(found.parameters.values())
    if op is not None and op.out and "out" not in found.parameters:
        kind = inspect.Parameter.KEYWORD_ONLY
        place = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_KEYWORD), len(parameters))
        parameters.insert(place, inspect.Parameter("out", kind, default=None, annotation="Tensor | None"))
    returns = found.return_annotation
    if op is not None and returns in ("Any", found.empty):
        returns = "Tensor"
    hidden = [p for p in parameters if not (p.kind is p.VAR_KEYWORD and p.name in ("named", "more"))]
    return found.replace(parameters=hidden, return_annotation=returns)


def home(value: Any) -> str:
    """The module that defines a public function or class."""
    value = _getter(value)
    named = str(getattr(value, "__module__", "") or "")
    if named.startswith("funcgrad."):
        return named  # functions created by a function of another module have its name
    op = _lookup(function_of(value))
    found = _module_of(op.body if op is not None else function_of(value))
    if op is not None and op.__module__.startswith("compat._operators"):
        return op.__module__
    if found.startswith("compat._core.operators"):
        return _owner(op if op is not None else function_of(value), found)
    return found


def _getter(value: Any) -> Any:
    """The function behind a property."""
    return (getattr(value, "read", None) or value.fget) if isinstance(value, property) else value


def _module_of(value: Any) -> str:
    code = getattr(inspect.unwrap(value), "__code__", None) if callable(value) else None
    file = code.co_filename if code is not None else ""
    for package in ("compat", "funcgrad"):
        _, found, path = file.rpartition(f"/{package}/")
        if found:
            return f"{package}." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return str(getattr(value, "__module__", "") or "")


def _owner(value: Any, default: str) -> str:
    """The family's module that publishes an object of the core, or what it wraps."""
    if (found := _owners().get(id(value))) is not None:
        return found
    for cell in getattr(value, "__closure__", None) or ():
        for held in _flat(cell.cell_contents):
            module = _owners().get(id(_lookup(held)), _module_of(held)) if isinstance(held, FunctionType) else ""
            if module.startswith("compat._operators"):
                return module
    return default


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield value


@functools.cache
def _owners() -> dict[int, str]:
    found: dict[int, str] = {}
    for module in [m for name, m in sorted(sys.modules.items()) if name.startswith("compat._operators.")]:
        assigned = set(re.findall(r"^(\w+)(?:: Any)? = ", inspect.getsource(module), re.MULTILINE))
        for name, value in vars(module).items():
            if name in assigned and isinstance(value, FunctionType | OperatorBase):
                found.setdefault(id(value), module.__name__)
                if isinstance(value, FunctionType) and (op := _lookup(value)) is not None:
                    found.setdefault(id(op), module.__name__)
    return found
