"""The complaint about arguments that fit none of an operation's signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from compat.errors import type_name, wrong_combination
from compat.tensor import Tensor


class Parameter(NamedTuple):
    """A parameter as a signature shows it."""

    kind: str
    name: str
    optional: bool

    def fits(self, value: Any) -> bool:
        """Whether an argument is of its kind."""
        if value is None:
            return self.optional
        if self.kind == "Tensor":
            return isinstance(value, Tensor)
        if self.kind == "Number":
            return isinstance(value, bool | int | float | complex | numpy.number)
        return isinstance(value, str) if self.kind == "str" else hasattr(value, "__index__")


def parameters_of(signature: str) -> list[Parameter]:
    """The parameters of ``"Tensor input, Number other, *, Tensor out = None"``."""
    found = []
    for part in signature.split(", "):
        if part != "*":
            declared, _, default = part.partition(" = ")
            kind, name = declared.split()
            found.append(Parameter(kind, name, default == "None"))
    return found


def of_methods(signatures: Sequence[str]) -> list[str]:
    """The signatures of a method: without the tensor it belongs to, and without ``out``."""
    own = [s.split(", ") for s in signatures if s.startswith("Tensor input")]
    parts = [[p for p in s[1:] if not p.startswith("Tensor out")] for s in own]
    return [", ".join(p[:-1] if p and p[-1] == "*" else p) for p in parts]


def fits_none(name: str, args: Sequence[Any], named: Mapping[str, Any], signatures: Sequence[str]) -> TypeError:
    """What is wrong with a call: what came, what could have, and, where the count was right, which kinds were wrong."""
    lines = []
    for signature in signatures:
        lines.append(f" * ({signature})\n")
        parameters = parameters_of(signature)
        if len(parameters) == len(args) + len(named):
            lines.append(f"      didn't match because some of the {_mismatch(parameters, args, named)}\n")
    return TypeError(f"{wrong_combination(name, args, dict(named))}, but expected one of:\n{''.join(lines)}")


def _mismatch(parameters: Sequence[Parameter], args: Sequence[Any], named: Mapping[str, Any]) -> str:
    known = {p.name: p for p in parameters}
    unknown = [n for n in named if n not in known]
    if unknown:
        return f"keywords were incorrect: {', '.join(unknown)}"
    pairs = [("", p, a) for p, a in zip(parameters, args)] + [(f"{n}=", known[n], a) for n, a in named.items()]
    kinds = [f"{label}{type_name(a) if p.fits(a) else f'!{type_name(a)}!'}" for label, p, a in pairs]
    return f"arguments have invalid types: ({', '.join(kinds)})"
