"""The ``inspect.Signature`` of an operator, derived from its schemas, for ``inspect.signature`` and ``help``."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, Signature
from keyword import iskeyword
from typing import Any

from compat._core.schema.parameter import Param, parameters, python_name
from compat._core.schema.parser import FunctionSchema


class SchemaSignature(Signature):
    """The signature of a function with schemas, computed at the first use.

    Args:
        schemas: its overloads. If no Python signature covers all of them, it is that of the longest one.
        out: whether the function has a parameter ``out``.
        params: the parameters of a declared operator, which may differ from those of the schemas.

    Example:
        >>> print(SchemaSignature(["cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"]))
        (input: 'Tensor', dim: 'int', *, dtype: 'dtype | None' = None) -> 'Tensor'
    """

    __slots__ = ("_out", "_params", "_plain", "_schemas")
    _plain: Signature

    def __init__(self, schemas: Sequence[str], out: bool = False, params: Sequence[Param] | None = None):
        self._schemas, self._out, self._params = schemas, out, params

    def _made(self) -> Signature:
        try:
            made = self._plain
        except AttributeError:
            parsed = [FunctionSchema("aten", text) for text in self._schemas]
            try:
                made = _signature(parameters(parsed) if self._params is None else self._params, parsed, self._out)
            except ValueError:
                longest = max(parsed, key=lambda s: len(s.arguments))
                made = _signature(parameters([longest]), [longest], self._out)
            self._plain = made
        return made

    # ``Signature`` has these in slots, and all its methods use them.
    _parameters: Any = property(lambda self: self._made().parameters)
    _return_annotation: Any = property(lambda self: self._made().return_annotation)

    def replace(self, **changes: Any) -> Any:
        """A plain ``Signature`` with some fields replaced."""
        return self._made().replace(**changes)

    __replace__ = replace

    def __reduce__(self) -> Any:
        return self._made().__reduce__()


def _signature(params: Sequence[Param], schemas: Sequence[FunctionSchema], out: bool) -> Signature:
    types: dict[str, list[str]] = {}
    tensor_self = any(python_name(a) == "input" for schema in schemas for a in schema.arguments)
    for argument in (a for schema in schemas for a in schema.arguments):
        name = "input" if argument.name == "self" and tensor_self else argument.name
        seen = types.setdefault(name, [])
        seen += [part for part in _shown(argument.type).split(" | ") if part not in seen]
    found = []
    after = False  # parameters after a starred one are keyword-only
    for p in params:
        annotation = "int" if p.starred else " | ".join(sorted(types[p.name], key="None".__eq__))
        kind = Parameter.KEYWORD_ONLY if p.keyword or after else Parameter.POSITIONAL_OR_KEYWORD
        after = after or p.starred
        default = Parameter.empty if p.starred else p.default
        name = f"{p.name}_" if iskeyword(p.name) else p.name
        found.append(
            Parameter(name, Parameter.VAR_POSITIONAL if p.starred else kind, default=default, annotation=annotation)
        )
    widest = max(schemas, key=lambda s: len(s.arguments))
    results = [f"{_shown(r.type)} {r.name}".strip() for r in widest.returns]
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    if out:
        found.append(Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=f"{returned} | None"))
    if {"dtype", "layout", "device", "pin_memory"} <= {p.name for p in params}:
        found.append(Parameter("requires_grad", Parameter.KEYWORD_ONLY, default=False, annotation="bool"))
    return Signature(found, return_annotation=returned)


#: The types of schemas by their names in Python; ``SymInt`` differs from ``int`` for tracing only.
_NAMES = {
    "SymInt": "int", "Scalar": "Number", "ScalarType": "dtype", "MemoryFormat": "memory_format", "Device": "device",
    "Layout": "layout",
}  # fmt: skip


def _shown(kind: str) -> str:
    """A schema's type as an annotation: ``int | Sequence[int] | None`` for ``int[1]?``."""
    if kind.endswith("?"):
        return f"{_shown(kind[:-1])} | None"
    if not kind.endswith("]"):
        return _NAMES.get(kind, kind)
    element, _, size = kind[:-1].rpartition("[")
    several = f"Sequence[{_shown(element)}]"
    return f"{_shown(element)} | {several}" if size else several
