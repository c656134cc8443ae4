"""Structure sequences, the named results of operations: ``torch.return_types``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

_types: dict[str, type] = {}


class _Named(tuple):
    """A named tuple, printed one field a line."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *values: Any) -> _Named:
        # Both type(*values), as a named tuple's, and type(sequence), as a structure sequence's.
        return tuple.__new__(cls, values[0] if len(values) == 1 and len(cls._fields) != 1 else values)

    def __repr__(self) -> str:
        pairs = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"torch.return_types.{type(self).__name__}(\n{pairs})"

    def __reduce__(self) -> tuple:
        return _rebuild, (type(self).__name__, self._fields, tuple(self))


def _rebuild(name: str, fields: tuple[str, ...], values: tuple) -> Any:
    return return_type(name, fields)(*values)


def return_type(name: str, fields: tuple[str, ...]) -> type:
    """The class of an operation's results."""
    found = _types.get(name)
    if found is None:
        namespace: dict[str, Any] = {f: property(itemgetter(i)) for i, f in enumerate(fields)}
        doc = f"The results of ``{name.removesuffix('_out')}``: {', '.join(fields)}."
        namespace |= {
            "__slots__": (),
            "_fields": fields,
            "__match_args__": fields,
            "n_fields": len(fields),
            "n_sequence_fields": len(fields),
            "n_unnamed_fields": 0,
            "__doc__": doc,
            "__module__": "torch.return_types",
        }
        found = _types[name] = type(name, (_Named,), namespace)
    return found


def named_result(name: str, fields: Sequence[str], given: Sequence[str] = ()) -> Callable[[Sequence[Any]], Any]:
    """A function from a list of tensors to the named tuple of an operation's results.

    Args:
        given: the fields in the order of the list, if that differs.
    """
    made = return_type(name, tuple(fields))
    if not given or list(given) == list(fields):
        return lambda tensors: made(*tensors)
    order = [given.index(field) for field in fields]
    return lambda tensors: made(*[tensors[i] for i in order])
