"""Hyperparameters as program inputs: learning rates change every step, and must not cause recompilation.

While a step is captured, each number of a parameter group is a ``Given``: a float with its origin. If
it is an operand of the program, a replay looks it up again. If Python computed with it instead, or compared it
with anything but zero, the step depends on its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class Given(float):
    """A hyperparameter of a parameter group, with its origin.

    Attributes:
        value: the number in the group.
        path: the group and the keys of the number.
        used: whether the step depends on more than its sign.
    """

    value: Any
    path: tuple[Any, ...]
    used: bool


def at(path: Sequence[Any]) -> Any:
    """The value at a path of a group and keys."""
    found = path[0]
    for key in path[1:]:
        found = found[key]
    return found


def _sees(name: str) -> Callable[..., Any]:
    plain = getattr(float, name)

    def method(self: Given, *others: Any) -> Any:
        self.used = True
        return plain(float(self), *others)

    return method


def _compares(name: str) -> Callable[..., Any]:
    plain = getattr(float, name)

    def method(self: Given, other: Any) -> Any:
        self.used = self.used or other != 0
        return plain(self, other)

    return method


_SEEING = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg pos abs int round trunc "
    "floor ceil divmod rdivmod repr str format hash"
)
for _name in _SEEING.split():
    if hasattr(float, f"__{_name}__"):
        setattr(Given, f"__{_name}__", _sees(f"__{_name}__"))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Given, f"__{_name}__", _compares(f"__{_name}__"))


def _given(value: Any, path: tuple[Any, ...], made: list[Given]) -> Any:
    if type(value) is tuple:
        return tuple([_given(v, (*path, i), made) for i, v in enumerate(value)])
    if type(value) is not float and type(value) is not int:
        return value
    number = Given(value)
    number.value, number.path, number.used = value, path, False
    made.append(number)
    return number


@contextmanager
def given(optimizers: Sequence[Any]) -> Iterator[list[Given]]:
    """Context in which the groups' numbers are replaced by ``Given``; returns these."""
    made: list[Given] = []
    before = [(group, key, group[key]) for o in optimizers for group in o.param_groups for key in o.defaults]
    after = [_given(value, (group, key), made) for group, key, value in before]
    try:
        for (group, key, _), replacing in zip(before, after):
            group[key] = replacing
        yield made
    finally:
        for (group, key, value), replaced in zip(before, after):
            if group[key] is replaced:
                group[key] = value


def signs(number: Any) -> Any:
    """The type and sign of a number, which are always part of the key."""
    if isinstance(number, float | int) and not isinstance(number, bool):
        return (number > 0) - (number < 0)
    return number
