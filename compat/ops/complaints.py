"""Methods of tensors whose complaints are of methods: the way of calls that are right does not lead here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any

from compat.ops.signature import ALIASES, MISSING, Param
from compat.registry import publish


def of_tensors(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Of the names under which something is public, those of methods, and all others; operators are none."""
    own = [n for n in names if n.startswith("Tensor.") and not n.endswith("__")]
    return own, [n for n in names if n not in own]


def publish_methods(function: Callable[..., Any], names: Iterable[str], checked: bool = False) -> None:
    """Makes a function of any arguments public as methods, which complain of theirs as methods do.

    Args:
        names: where they appear, as ``"Tensor.outer"``.
        checked: whether the arguments are looked at before it is called, since it would take any.
    """
    for name in names:
        publish((_checking if checked else _complaining)(function, name.removeprefix("Tensor.")), name)


def _complaining(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            problem = complaint(name, args[1:], kwargs)
            if problem is None:
                raise
        raise problem

    return method


def _checking(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        problem = complaint(name, args[1:], kwargs)
        if problem is not None:
            raise problem
        return function(*args, **kwargs)

    return method


def complaint(method: str, args: Sequence[Any], named: Mapping[str, Any]) -> TypeError | None:
    """What PyTorch says of a method's arguments; None if they are right, whatever else is wrong.

    Args:
        method: its name.
        args: what was given by position, without the tensor.
        named: what was given by name.
    """
    from compat.ops.method_calls import misfit  # few programs need it

    return misfit(method, args, named)


class Complaints:
    """What a method does when its call found no plan.

    Args:
        name: the method's.
        params: the operation's parameters, the tensor first.
        run: what is done then.
    """

    __slots__ = ("name", "params", "run")

    def __init__(self, name: str, params: tuple[Param, ...], run: Callable[..., Any]):
        self.name = name
        self.params = params
        self.run = run

    def miss(self, args: list[Any], out: Any = None, named: Any = None) -> Any:
        """Runs the call; where it fails for its arguments, that is said in the method's words."""
        try:
            return self.run(list(args), out, named)
        except Exception:
            problem = self._problem(args, (), named or {})
            if problem is None:
                raise
        raise problem

    def refuse(self, args: list[Any], more: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Complains of arguments that there are no parameters for; a parameter may have other names.

        Raises:
            TypeError: naming them.
        """
        own = {p.name for p in self.params[1:]}
        if not more and all(ALIASES.get(name) in own or name in own for name in named):
            return
        problem = self._problem(args, more, named)
        if problem is None and more:
            count, given = len(self.params) - 1, len(args) + len(more) - 1
            problem = TypeError(f"{self.name}() takes {count} positional arguments but {given} were given")
        raise problem or TypeError(f"{self.name}() got an unexpected keyword argument '{next(iter(named))}'")

    def _problem(self, args: Sequence[Any], more: Sequence[Any], named: Mapping[str, Any]) -> TypeError | None:
        return complaint(self.name, *self._given(args, more, named))

    def _given(
        self, args: Sequence[Any], more: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """What the caller gave, by position and by name, as far as can be told from the parameters."""
        placed: list[Any] = []
        by_name: dict[str, Any] = {}
        skipped = 0  # what was left out: what comes after it was named
        for p, value in zip(self.params[1:], args[1:]):
            if p.starred:
                placed += () if value is MISSING else value
            elif value is MISSING or (value is p.default and not more):
                skipped += 1
            elif p.keyword or skipped:
                if value is not p.default:
                    by_name[p.name] = value
            else:
                placed.append(value)
        return [*placed, *more], by_name | dict(named)
