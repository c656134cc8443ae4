"""Prefix pytrees: values for the leaves of a pytree given by a tree with the structure of its upper part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from funcgrad.arguments.flatten import kind
from funcgrad.core import trees


def spread(
    what: str, prefix: Any, value: Any, name: str, is_one: Callable[[Any], bool], wanted: str
) -> Iterator[tuple[str, Any, Any]]:
    """The name, the prefix value and the leaf, for each leaf of ``value``.

    Args:
        what: the name of the prefix in messages, such as ``"jit: in_shardings"``.
        name: the name of the value in messages.
        is_one: whether a subtree of the prefix is one value, for all leaves below it.
        wanted: the expected structure, for messages.

    Raises:
        TypeError: if a part of the prefix is not a value.
        ValueError: if the structures differ; both messages name the path.
    """
    if is_one(prefix):
        for path, leaf in trees.flatten_with_path(value)[0]:
            yield name + trees.keystr(path), prefix, leaf
        return
    ours: Any
    theirs: Any
    ours, theirs = (trees.flatten_with_path(x, is_leaf=_is_not(x)) for x in (prefix, value))
    if _is_leaf(ours, prefix):
        raise TypeError(f"{what}: wants {wanted} for {name}, got {kind(prefix)}")
    if _is_leaf(theirs, value) or ours[1] != theirs[1]:
        raise ValueError(f"{what}: {name} is {_described(value, theirs)}, but is given {_described(prefix, ours)}")
    for (path, part), (_, inner) in zip(ours[0], theirs[0], strict=True):
        yield from spread(what, part, inner, name + trees.keystr(path), is_one, wanted)


def _is_not(x: Any) -> Callable[[Any], bool]:
    return lambda y: y is not x


def _is_leaf(level: tuple[Any, Any], x: Any) -> bool:
    return len(level[0]) == 1 and level[0][0][1] is x


def _described(x: Any, level: tuple[Any, Any]) -> str:
    if _is_leaf(level, x):
        return f"of type {type(x).__name__}, which has no parts"
    if isinstance(x, dict):
        return f"a dict of {list(x)}"
    return f"a {type(x).__name__} of {len(level[0])}"
