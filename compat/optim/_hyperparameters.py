"""Hyperparameters as inputs of programs: a learning rate that changes every step must not cause recompilation.

While a step is captured, each number of a parameter group is a ``Hyperparameter``: a float with its origin. If it is
an operand of the program, a replay looks it up. If Python computes with it, or compares it with anything but zero, the
step depends on its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class Hyperparameter(float):
    """A hyperparameter of a parameter group, with its origin.

    Attributes:
        value: the number in the group.
        path: the group and the keys of the number.
        used: whether the step depends on its value, not only on its sign.
    """

    value: Any
    path: tuple[Any, ...]
    used: bool


def value_at(path: Sequence[Any]) -> Any:
    """The value at a path of a group and keys."""
    value = path[0]
    for key in path[1:]:
        value = value[key]
    return value


def _uses_value(name: str) -> Callable[..., Any]:
    plain = getattr(float, name)

    def method(self: Hyperparameter, *others: Any) -> Any:
        self.used = True
        return plain(float(self), *others)

    return method


def _compares_value(name: str) -> Callable[..., Any]:
    plain = getattr(float, name)

    def method(self: Hyperparameter, other: Any) -> Any:
        self.used = self.used or other != 0
        return plain(self, other)

    return method


_VALUE_METHODS = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg pos abs int round trunc "
    "floor ceil divmod rdivmod repr str format hash"
)
for _name in _VALUE_METHODS.split():
    if hasattr(float, f"__{_name}__"):
        setattr(Hyperparameter, f"__{_name}__", _uses_value(f"__{_name}__"))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Hyperparameter, f"__{_name}__", _compares_value(f"__{_name}__"))


def _tracked(value: Any, path: tuple[Any, ...], made: list[Hyperparameter]) -> Any:
    if type(value) is tuple:
        return tuple([_tracked(v, (*path, i), made) for i, v in enumerate(value)])
    if type(value) is not float and type(value) is not int:
        return value
    number = Hyperparameter(value)
    number.value, number.path, number.used = value, path, False
    made.append(number)
    return number


@contextmanager
def tracked_hyperparameters(optimizers: Sequence[Any]) -> Iterator[list[Hyperparameter]]:
    """Context in which the numbers of the optimizers' groups are ``Hyperparameter`` objects, which it yields."""
    made: list[Hyperparameter] = []
    before = [(group, key, group[key]) for o in optimizers for group in o.param_groups for key in o.defaults]
    after = [_tracked(value, (group, key), made) for group, key, value in before]
    try:
        for (group, key, _), replacing in zip(before, after):
            group[key] = replacing
        yield made
    finally:
        for (group, key, value), replaced in zip(before, after):
            if group[key] is replaced:
                group[key] = value


def sign_of(number: Any) -> Any:
    """The sign of a number, which every captured step depends on; other values unchanged."""
    if isinstance(number, (float, int)) and not isinstance(number, bool):
        return (number > 0) - (number < 0)
    return number
