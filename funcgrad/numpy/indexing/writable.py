"""Writable copies, which libraries written for the array API standard request before they write to an array.

Arrays are immutable. An explicit copy, ``asarray(x, copy=True)``, is a mutable reference to one, and ``copy[index] =
y`` rebinds it to an updated array. Operations read the array that it refers to at that time. So a function that writes
to its copies works alike inside and outside transforms.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core import trees
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import Interpreter, Tracer, bind, differentiated_by, type_of
from funcgrad.numpy.indexing.getitem import At
from funcgrad.numpy.promotion import asoperand


class Writable(Tracer):
    """A reference to an array, traced or not, that may be rebound to another one of its type.

    Attributes:
        held: the array.
    """

    __slots__ = ("held",)
    held: Any

    def __init__(self, held: Any):
        self.interpreter = _holding
        self.type = type_of(held)
        self.held = held

    def underlying(self) -> Any:
        return self.held

    def differentiated_by(self) -> list[Interpreter]:
        return differentiated_by(self.held)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.held = At(self.held)[index].set(value)

    def __copy__(self) -> Writable:
        return Writable(self.held)

    def __deepcopy__(self, memo: Any) -> Writable:
        return Writable(self.held)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Writable, (self.held,)

    def __repr__(self) -> str:
        return repr(self.held)

    def __str__(self) -> str:
        return str(self.held)

    # Conversions that would lose the trace of a traced array are allowed for others.

    def __getattr__(self, name: str) -> Any:
        return getattr(self.held, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return super().__array__() if isinstance(self.held, Tracer) else self.held.__array__(dtype, copy=copy)

    @property
    def __jax_array__(self) -> Callable[[], Any]:
        if isinstance(self.held, Tracer):
            raise AttributeError("__jax_array__")
        return lambda: self.held


class _Holding(Interpreter):
    """Applies each operation on a writable copy to the array that it refers to."""

    __slots__ = ()
    description = "a copy that may be written to"

    def __init__(self) -> None:
        super().__init__()
        self.level = sys.maxsize

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return bind(primitive, [x.held if isinstance(x, Writable) else x for x in operands], params)


_holding = _Holding()
# Arguments and results are replaced by the array that they refer to.
trees.register_array_type(Writable, lambda copy: copy.held, lambda held: held)


def changed(name: str, x: Any, inplace: bool, change: Callable[[Any], Any]) -> Any:
    """The result of a function that updates its argument in NumPy: a new array, or None if ``x`` is writable.

    Raises:
        TypeError: if ``x`` would have to be updated and is immutable: a caller that ignores the result would lose the
            update.
    """
    if not inplace:
        return change(asoperand(x, name))
    if not isinstance(x, Writable):
        raise TypeError(
            f"{name}: arrays never change. Say inplace=False, and use the result, or change asarray(x, copy=True)"
        )
    x.held = change(x.held)
    return None
