"""The parser of PyTorch's schemas, such as ``mul(Tensor x, Scalar k=2) -> Tensor``."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.types.device import device
from compat._core.types.dtype import dtype
from compat._core.types.memory_format import layout, memory_format

_MISSING = object()
_NUMBERS = (int, float, complex)
#: The classes of values by the name of a type. None is an undefined tensor.
_CLASSES: dict[str, tuple[Any, ...]] = {
    "Tensor": (Tensor, type(None)), "int": (int,), "SymInt": (int,), "float": (int, float), "bool": (bool,),
    "str": (str,), "Scalar": _NUMBERS, "ScalarType": (dtype,), "Device": (device, str), "Layout": (layout,),
    "MemoryFormat": (memory_format,), "DeviceIndex": (int,), "complex": _NUMBERS,
    "NoneType": (type(None),),
}  # fmt: skip
#: Types whose values are not checked.
_OTHERS = frozenset(["Any", "Dimname", "Dict", "Generator", "QScheme", "Storage", "Stream", "SymBool", "t"])
_UNKNOWN = (
    "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full "
    "list, please see https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func :\n{}\n{}{} "
    "<--- HERE\n"
)
#: Named defaults: the reduction of losses, and memory formats.
_WORDS = {"Mean": 1, "contiguous_format": 0}
#: Aliases of types.
_ALIASES = {"None": "NoneType"}
_SHOWN = {"SymInt": "int", "Scalar": "number"}
_ARGUMENT = re.compile(
    r"(?P<base>\w+)(?:\s*\((?P<alias>[\w|*]+)(?P<write>!)?(?P<into>\s*->\s*[\w|*]+)?\))?"
    r"(?P<marks>(?:\?|\[\d*\])*)(?:\s+(?P<name>\w+))?(?:\s*=\s*(?P<default>.+))?"
)


@dataclass(frozen=True)
class Argument:
    """One argument, or one result.

    Attributes:
        name: empty for a result without one.
        type: ``Tensor``, ``int[]``, ``Tensor?``.
        kwarg_only: whether it is keyword-only.
        default_value: its default, if there is one.
        is_write: whether it is written in place.
        text: its source text.
        default_text: the source text of the default.
    """

    name: str
    type: str
    kwarg_only: bool
    default_value: Any
    is_write: bool
    text: str
    default_text: str = ""

    def has_default_value(self) -> bool:
        return self.default_value is not _MISSING

    def accepts(self, value: Any) -> bool:
        """Whether a value has its type."""
        return _fits(self.type, value)

    @property
    def shown_type(self) -> str:
        """The type in messages."""
        base, optional = self.type.removesuffix("?"), self.type.endswith("?")
        element, several = re.sub(r"\[\d*\]$", "", base), base.endswith("]")
        inner = _SHOWN.get(element.removesuffix("?"), element.removesuffix("?"))
        inner = f"Optional[{inner}]" if several and element.endswith("?") else inner
        inner = f"List[{inner}]" if several else inner
        return f"Optional[{inner}]" if optional else inner


def _fits(kind: str, value: Any) -> bool:
    if kind.endswith("?"):
        return value is None or _fits(kind[:-1], value)
    if kind.endswith("]"):
        element, _, size = kind[:-1].rpartition("[")
        if isinstance(value, (list, tuple)):
            return all(_fits(element, v) for v in value)
        return bool(size) and _fits(element, value)
    classes = _CLASSES.get(kind)
    if classes is None or (kind in ("int", "SymInt", "float", "Scalar") and isinstance(value, Tensor)):
        return classes is None or value.dim() == 0
    return isinstance(value, classes) and not (kind in ("int", "SymInt") and isinstance(value, bool))


class FunctionSchema:
    """The schema of an operation: its name, arguments and results.

    Args:
        namespace: the library.
        text: the schema, without the library's name.

    Attributes:
        name: the qualified name, ``my::op``.
        overload_name: the name of the overload; empty for the default one.
        arguments, returns: the arguments and results, in their order.

    Raises:
        RuntimeError: for a syntax error.
    """

    def __init__(self, namespace: str, text: str):
        head, arrow, tail = text.partition("->")
        while arrow and head.count("(") != head.count(")"):  # the arrow of an alias annotation
            more, arrow, tail = tail.partition("->")
            head = f"{head}->{more}"
        found = re.fullmatch(r"\s*([\w.]+)\s*\((.*)\)\s*", head, re.DOTALL)
        if not arrow or found is None:
            raise RuntimeError(f"'{text}' is no schema: wanted name(arguments) -> results")
        own, _, overload = found[1].partition(".")
        self.overload_name: str = overload
        self.name = f"{namespace}::{own}"
        self.arguments = _arguments(found[2], text)
        results = tail.strip()
        inner = results[1:-1] if results.startswith("(") and results.endswith(")") else results
        self.returns = _arguments(inner, text)
        self._several = results.startswith("(")

    @property
    def is_mutable(self) -> bool:
        """Whether it writes into an argument."""
        return any(a.is_write for a in self.arguments)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments of a call, with defaults.

        Raises:
            RuntimeError: for arguments that do not match, with PyTorch's message.
        """
        own = [a for a in self.arguments if not a.kwarg_only]
        if len(args) > len(own):
            what = f"{len(args)} argument(s)"
            raise RuntimeError(
                f"{self.name}() expected at most {len(own)} argument(s) but received {what}. Declaration: {self}"
            )
        given = dict(zip([a.name for a in own], args))
        for name, value in kwargs.items():
            if name in given or all(a.name != name for a in self.arguments):
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}")
            given[name] = value
        for i, a in enumerate(self.arguments):
            if a.name not in given:
                if not a.has_default_value():
                    raise RuntimeError(f"{self.name}() is missing value for argument '{a.name}'. Declaration: {self}")
                given[a.name] = a.default_value
            elif not a.accepts(given[a.name]):
                raise self._mismatch(i, a, given[a.name])
        return tuple(given[a.name] for a in own), {a.name: given[a.name] for a in self.arguments if a.kwarg_only}

    def _mismatch(self, i: int, a: Argument, value: Any) -> RuntimeError:
        return RuntimeError(
            f"{self.name}() Expected a value of type '{a.shown_type}' for argument '{a.name}' but instead found type "
            f"'{type(value).__name__}'.\nPosition: {i}\nValue: {value!r}\nDeclaration: {self}\nCast error details: "
            f"Unable to cast {value} to {a.shown_type}"
        )

    def __str__(self) -> str:
        overload = f".{self.overload_name}" if self.overload_name else ""
        own = [a.text for a in self.arguments if not a.kwarg_only]
        named = [a.text for a in self.arguments if a.kwarg_only]
        results = ", ".join(r.text for r in self.returns)
        taken = ", ".join(own + (["*", *named] if named else []))
        return f"{self.name}{overload}({taken}) -> {f'({results})' if self._several else results}"

    __repr__ = __str__


def _arguments(text: str, schema: str) -> list[Argument]:
    found: list[Argument] = []
    named = False
    for part in _split(text):
        if part == "*":
            named = True
        else:
            found.append(_argument(part, named, schema))
    return found


def _split(text: str) -> list[str]:
    """The parts between commas outside brackets and strings."""
    parts, depth, quoted, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "\"'":
            quoted = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in [*parts, text[start:].strip()] if p]


def _argument(text: str, named: bool, schema: str) -> Argument:
    found = _ARGUMENT.fullmatch(text)
    if found is None:
        raise RuntimeError(f"'{schema}' is no schema: {text!r} is no argument")
    base = _ALIASES.get(found["base"], found["base"])
    if base not in _CLASSES and base not in _OTHERS:
        raise RuntimeError(_UNKNOWN.format(schema, " " * schema.find(text), "~" * len(base)))
    default = _MISSING if found["default"] is None else _value(found["default"].strip())
    if base == "Device" and isinstance(default, str):
        default = device(default)
    alias = f"({found['alias']}{found['write'] or ''}{found['into'] or ''})" if found["alias"] else ""
    name = f" {found['name']}" if found["name"] else ""
    shown = "" if default is _MISSING else f"={_text(default, base + found['marks'])}"
    return Argument(
        found["name"] or "",
        base + found["marks"],
        named,
        default,
        bool(found["write"]),
        f"{base}{alias}{found['marks']}{name}{shown}",
        found["default"] or "",
    )


def _value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return _DTYPES.get(text, text)


def _text(value: Any, kind: str) -> str:
    """A default as PyTorch prints it: floats with 17 digits, and a list for a number that stands for several."""
    if isinstance(value, float) or (kind == "float" and isinstance(value, int)):
        return f"{int(value)}." if float(value).is_integer() and abs(value) < 1e16 else f"{value:.17g}"
    if (several := re.fullmatch(r"int\[(1)\]|SymInt\[(\d+)\]", kind)) and isinstance(value, int):
        return repr([value] * int(several[1] or several[2]))
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, device):
        return str(value)
    return repr(value).removeprefix("torch.")


def _dtypes() -> dict[str, dtype]:
    from compat._core.types import dtype as dtypes

    return {repr(d).removeprefix("torch."): d for d in dtypes.ALL}


_DTYPES = _dtypes()
