"""The overloads that a public function carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from compat._core.schema.parameter import Param
from compat._core.schema.shown_signature import SchemaSignature

#: Functions whose tensors may be numbers.
OF_NUMBERS = frozenset(["add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"])


class Overload(NamedTuple):
    """One way to call a function.

    Attributes:
        schema: in PyTorch's grammar.
        out: whether there is a variant that writes into ``out``.
        deprecated: whether numbers may also come among its tensors, which messages do not show.
    """

    schema: str
    out: bool = False
    deprecated: bool = False


def overloads(schemas: Iterable[str], out: bool, without_out: str = "", deprecated: bool = False) -> Iterator[Overload]:
    """The overloads of these schemas.

    Args:
        out: whether they have variants that write into ``out``.
        without_out: the names of those that have none all the same, ``default`` for the one without a name.
    """
    for schema in schemas:
        name = schema.partition("(")[0].partition(".")[2] or "default"
        yield Overload(schema, out and name not in without_out.split(), deprecated)


def carry(function: Callable[..., Any], overloads: Iterable[Overload], params: Sequence[Param] | None = None) -> None:
    """Gives a function the overloads that errors, ``torch.ops`` and ``inspect.signature`` show of it.

    Args:
        params: the parameters of a declared operator.
    """
    found = tuple(overloads)
    if found:
        out = any(overload.out for overload in found)
        shown = SchemaSignature([overload.schema for overload in found], out, params)
        function.__dict__.update(_overloads=found, __signature__=shown)


def overloads_of(function: Any) -> tuple[Overload, ...]:
    """The overloads of a function; none of what has no schema."""
    found: tuple[Overload, ...] = getattr(function, "_overloads", ())
    return found


def together(functions: Iterable[Callable[..., Any]], method: bool = False) -> tuple[Overload, ...]:
    """The overloads of one function that stands for several, or of a method, which has no ``out``."""
    found: dict[str, Overload] = {}
    for overload in (o for function in functions for o in overloads_of(function)):
        same = found.get(overload.schema)
        found[overload.schema] = overload if same is None or overload.out else same
    return tuple(overload._replace(out=overload.out and not method) for overload in found.values())
