"""The table of rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from funcgrad.core.ir import ArrayType

Rule = Callable[..., Any]
#: Maps the operands' types and the parameters to an equivalent of the rule that makes fewer calls, with the parameters
#: bound; or to None.
Short = Callable[..., Rule | None]

#: By the primitive's name: a function of arrays and parameters that returns an array, or a list of them.
RULES: dict[str, Rule] = {}
#: By the primitive's name, for frequent ones.
SHORT: dict[str, Short] = {}


class NotEquivalent(Exception):
    """NumPy's result would differ from XLA's."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """A decorator that registers the rule of primitives with these names."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def short(*names: str) -> Callable[[Short], Short]:
    """Enters the function as the one that shortens the rules of these names; a decorator."""

    def enter(function: Short) -> Short:
        SHORT.update(dict.fromkeys(names, function))
        return function

    return enter


def call_of(name: str, types: Sequence[ArrayType], params: dict[str, Any]) -> Rule:
    """The function of arrays that an equation calls.

    Raises:
        NotEquivalent: if there is no rule.
    """
    if name not in RULES:
        raise NotEquivalent(name)
    found = SHORT[name](types, **params) if name in SHORT else None
    return found or (partial(RULES[name], **params) if params else RULES[name])
