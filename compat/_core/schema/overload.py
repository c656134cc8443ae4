"""The overloads of a public function, as an attribute of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from compat._core.schema.parameter import Param
from compat._core.schema.python_signature import SchemaSignature

#: Functions whose operands may all be numbers.
OF_NUMBERS = frozenset(["add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"])


class Overload(NamedTuple):
    """One overload of a function.

    Attributes:
        schema: in PyTorch's grammar.
        out: whether there is a variant that writes into ``out``.
        deprecated: whether it has a deprecated form with numbers among the tensors, which messages do not list.
    """

    schema: str
    out: bool = False
    deprecated: bool = False


def overloads(schemas: Iterable[str], out: bool, without_out: str = "", deprecated: bool = False) -> Iterator[Overload]:
    """The overloads of schemas.

    Args:
        out: whether they have an ``out`` variant.
        without_out: the names of overloads without one, ``default`` for the unnamed one.
    """
    for schema in schemas:
        name = schema.partition("(")[0].partition(".")[2] or "default"
        yield Overload(schema, out and name not in without_out.split(), deprecated)


def carry(function: Callable[..., Any], overloads: Iterable[Overload], params: Sequence[Param] | None = None) -> None:
    """Sets a function's overloads, which errors, ``torch.ops`` and ``inspect.signature`` use.

    Args:
        params: the parameters of a declared operator.
    """
    found = tuple(overloads)
    if found:
        out = any(overload.out for overload in found)
        shown = SchemaSignature([overload.schema for overload in found], out, params)
        function.__dict__.update(_overloads=found, __signature__=shown)


def overloads_of(function: Any) -> tuple[Overload, ...]:
    """The overloads of a function, or of the one that an overridable function calls; none if it has no schema."""
    found: tuple[Overload, ...] = getattr(getattr(function, "_function", function), "_overloads", ())
    return found


def together(functions: Iterable[Callable[..., Any]], method: bool = False) -> tuple[Overload, ...]:
    """The overloads of a function that calls one of several, or of a method, which has no ``out``."""
    found: dict[str, Overload] = {}
    for overload in (o for function in functions for o in overloads_of(function)):
        same = found.get(overload.schema)
        found[overload.schema] = overload if same is None or overload.out else same
    return tuple(overload._replace(out=overload.out and not method) for overload in found.values())
