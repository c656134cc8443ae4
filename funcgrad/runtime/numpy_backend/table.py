"""The table of rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]

#: By the primitive's name: a function of arrays and parameters that gives an array, or a list of them.
RULES: dict[str, Rule] = {}


class NotHere(Exception):
    """NumPy's result would differ from XLA's."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enters the function for primitives of these names; a decorator."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter
