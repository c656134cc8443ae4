"""What ``inspect.signature`` and ``help`` show of an operator: its schemas, as a signature of Python's."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, Signature
from typing import Any

from compat._core.schema.parameter import Param, python_name
from compat._core.schema.parser import FunctionSchema


class SchemaSignature(Signature):
    """The signature of a function of an operator, made of its schemas when it is looked at: most never are.

    Args:
        params: the operator's parameters.
        schemas: its overloads.
        out: whether the function has a parameter ``out``.

    Example:
        >>> from compat._core.schema.parameter import parameters
        >>> text = "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"
        >>> print(SchemaSignature(parameters([FunctionSchema("aten", text)]), [text]))
        (input: 'Tensor', dim: 'int', *, dtype: 'dtype | None' = None) -> 'Tensor'
    """

    __slots__ = ("_out", "_params", "_plain", "_schemas")
    _plain: Signature

    def __init__(self, params: Sequence[Param], schemas: Sequence[str], out: bool = False):
        self._params, self._schemas, self._out = params, schemas, out

    def _made(self) -> Signature:
        try:
            made = self._plain
        except AttributeError:
            made = self._plain = _signature(self._params, self._schemas, self._out)
        return made

    # What ``Signature`` keeps in slots, which all that it does goes by.
    _parameters: Any = property(lambda self: self._made().parameters)
    _return_annotation: Any = property(lambda self: self._made().return_annotation)

    def replace(self, **changes: Any) -> Any:
        """A signature of Python's with some of it replaced."""
        return self._made().replace(**changes)

    __replace__ = replace

    def __reduce__(self) -> Any:
        return self._made().__reduce__()


def _signature(params: Sequence[Param], schemas: Sequence[str], out: bool) -> Signature:
    parsed = [FunctionSchema("aten", text) for text in schemas]
    types: dict[str, list[str]] = {}
    for argument in (a for schema in parsed for a in schema.arguments):
        seen = types.setdefault(python_name(argument), [])
        seen += [_shown(argument.type)] if _shown(argument.type) not in seen else []
    found = []
    after = False  # what takes all that is left has been, so what follows is given by name
    for p in params:
        annotation = "int" if p.starred else " | ".join(types[p.name])
        kind = Parameter.KEYWORD_ONLY if p.keyword or after else Parameter.POSITIONAL_OR_KEYWORD
        after = after or p.starred
        default = Parameter.empty if p.starred else p.default
        found.append(
            Parameter(p.name, Parameter.VAR_POSITIONAL if p.starred else kind, default=default, annotation=annotation)
        )
    results = [f"{_shown(r.type)} {r.name}".strip() for r in parsed[0].returns]
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    if out:
        found.append(Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=f"{returned} | None"))
    return Signature(found, return_annotation=returned)


#: What Python calls the types of schemas; ``SymInt`` differs from ``int`` for tracing only.
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
