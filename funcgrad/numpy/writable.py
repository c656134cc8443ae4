"""Copies that may be written to: what libraries written to the array API standard ask for in order to change an array.

Traced arrays never change. A copy that was asked for by name, ``asarray(x, copy=True)``, is a holder of one, and
``copy[index] = y`` has it hold another. Whatever is made of it is made of what it holds then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import trees
from funcgrad.numpy.indexing import At
from funcgrad.numpy.promotion import asoperand
from funcgrad.primitive import Primitive
from funcgrad.tracing import Interpreter, Tracer, bind, type_of


class Writable(Tracer):
    """A traced array that may be exchanged for another one of its type.

    Attributes:
        held: the array.
    """

    __slots__ = ("held",)

    def __init__(self, held: Any):
        self.interpreter = _holding
        self.type = type_of(held)
        self.held = held

    def underlying(self) -> Any:
        return self.held

    def __setitem__(self, index: Any, value: Any) -> None:
        self.held = At(self.held)[index].set(value)


class _Holding(Interpreter):
    """Takes every operation on a holder, and has it done on what is held."""

    __slots__ = ()
    description = "a copy that may be written to"

    def __init__(self) -> None:
        super().__init__()
        self.level = sys.maxsize

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return bind(primitive, [x.held if isinstance(x, Writable) else x for x in operands], params)


_holding = _Holding()
# As an argument or a result it is what it holds.
trees.register_array_type(Writable, lambda copy: copy.held, lambda held: held)


def changed(name: str, x: Any, inplace: bool, change: Callable[[Any], Any]) -> Any:
    """What a function gives that has NumPy's array changed: a new array, or, where ``x`` may be written to, None.

    Raises:
        TypeError: where ``x`` is to be changed and never does: who ignored the new array would lose it.
    """
    if not inplace:
        return change(asoperand(x, name))
    if not isinstance(x, Writable):
        raise TypeError(
            f"{name}: arrays never change. Say inplace=False, and use the result, or change asarray(x, copy=True)"
        )
    x.held = change(x.held)
    return None
