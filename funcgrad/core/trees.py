"""Pytrees are JAX's, so dataclasses, modules and optimizer states registered there work here too."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import jax
from jax.tree_util import (
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
)
from jax.tree_util import tree_transpose as transpose
from jax.tree_util import tree_unflatten as unflatten

from funcgrad.core.errors import TreeDepthError
from funcgrad.core.tracing import Tracer, array_classes

#: The maximum nesting depth of lists, tuples and dicts.
MOST_DEEP = 200
_CONTAINERS = frozenset((list, tuple, dict, OrderedDict, defaultdict))
_MANY = 64


def check_depth(tree: Any) -> None:
    """Checks that a pytree is not nested too deep for JAX.

    JAX's own recursion error corrupts Python's recursion counter, so every flattening is checked here first.

    Args:
        tree: a structure of lists, tuples, dicts and leaves.

    Raises:
        TreeDepthError: if lists, tuples and dicts are nested too deep, or one contains itself.

    Example:
        >>> check_depth({"weights": [1.0, (2.0, 3.0)]})
        >>> loop = []
        >>> loop.append(loop)
        >>> check_depth(loop)
        Traceback (most recent call last):
            ...
        funcgrad.core.errors.TreeDepthError: a structure of lists, tuples and dicts is nested more than 200 deep, ...
    """
    level = [tree]
    for _ in range(MOST_DEEP):
        level = [c for x in level for c in (x.values() if isinstance(x, dict) else x) if c.__class__ in _CONTAINERS]
        if not level:
            return
        if len(level) > _MANY:
            level = list({id(c): c for c in level}.values())  # else it may double at each level
    raise TreeDepthError(
        f"a structure of lists, tuples and dicts is nested more than {MOST_DEEP} deep, or contains itself: "
        f"{_place(tree)}. Flatten it, or stack what is alike into one array"
    )


def _place(tree: Any) -> str:
    """The path of the deepest part, by its first keys."""
    begin: dict[int, tuple[Any, ...]] = {id(tree): ()}
    level = [tree]
    for _ in range(MOST_DEEP):
        below: dict[int, Any] = {}
        for x in level:
            path = begin[id(x)]
            for key, c in x.items() if isinstance(x, dict) else enumerate(x):
                if c.__class__ in _CONTAINERS and id(c) not in below:
                    below[id(c)] = c
                    begin.setdefault(id(c), path if len(path) >= 4 else (*path, key))
        level = list(below.values())
    path = begin[id(level[0])]
    return "it begins at " + "".join(f"[{key!r}]" for key in path) + "..."


def _shallow(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps one of JAX's pytree functions with ``check_depth``."""

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for tree in args:
            if tree.__class__ in _CONTAINERS:
                check_depth(tree)
        return function(*args, **kwargs)

    return checked


all = _shallow(jax.tree_util.tree_all)
flatten = _shallow(jax.tree_util.tree_flatten)
flatten_with_path = tree_flatten_with_path = _shallow(jax.tree_util.tree_flatten_with_path)
leaves = _shallow(jax.tree_util.tree_leaves)
leaves_with_path = _shallow(jax.tree_util.tree_leaves_with_path)
map = _shallow(jax.tree_util.tree_map)
map_with_path = _shallow(jax.tree_util.tree_map_with_path)
reduce = _shallow(jax.tree_util.tree_reduce)
structure = _shallow(jax.tree_util.tree_structure)

__all__ = [
    "check_depth",
    "all", "flatten", "flatten_with_path", "keystr", "leaves", "leaves_with_path", "map", "map_with_path",
    "reduce", "register_array_type", "register_dataclass", "register_pytree_node", "register_pytree_node_class",
    "structure", "transpose", "tree_flatten_with_path", "unflatten",
]  # fmt: skip


class _Elements:
    """The path entry from another library's array to its elements, omitted in messages."""

    def __str__(self) -> str:
        return ""


def register_array_type(
    cls: type,
    to_array: Callable[[Any], Any],
    from_array: Callable[[Any], Any],
    to_operand: Callable[[Any], Any] | None = None,
) -> None:
    """Registers another library's array class for arguments and results of transforms and operands of functions.

    An argument of that class is a pytree of one leaf, its elements; functions receive and return instances of it.

    Args:
        cls: the class; subclasses are not registered with it.
        to_array: from an instance to a funcgrad array or tracer.
        from_array: the inverse of ``to_array``. Other objects in place of elements (shapes, for instance) pass through.
        to_operand: as ``to_array``, for operands of functions, if that differs.

    Raises:
        TypeError: if ``cls`` is not a class, or a converter is not a function.
        ValueError: if the class is already registered.

    Example:
        >>> import funcgrad as fg
        >>> class Celsius:
        ...     def __init__(self, degrees):
        ...         self.degrees = degrees
        ...     def __repr__(self):
        ...         return f"{float(self.degrees)} °C"
        >>> register_array_type(Celsius, lambda c: c.degrees, Celsius)
        >>> fg.grad(lambda c: c.degrees**2)(Celsius(3.0))
        6.0 °C
    """
    if not isinstance(cls, type):
        raise TypeError(f"register_array_type: cls must be a class, got {cls!r} of type {type(cls).__name__}")
    for what, f in (("to_array", to_array), ("from_array", from_array)):
        if not callable(f):
            raise TypeError(f"register_array_type: {what} must be a function, got {f!r} of type {type(f).__name__}")

    def restored(_: None, parts: Any) -> Any:
        (x,) = parts
        return from_array(x) if isinstance(x, (jax.Array, Tracer)) else x

    def parts(x: Any) -> tuple[tuple[Any], None]:
        return (to_array(x),), None

    def named_parts(x: Any) -> tuple[tuple[Any], None]:
        return ((_Elements(), to_array(x)),), None

    register_pytree_with_keys(cls, named_parts, restored, parts)
    _operands[cls] = to_operand or to_array


#: Registered array classes of other libraries, and their ``to_operand``.
_operands: dict[type, Callable[[Any], Any]] = {}


def is_other_array(cls: type) -> bool:
    """Whether a class is another library's registered array class, or a subclass of one."""
    return cls in _operands or (cls not in array_classes and any(kind in _operands for kind in cls.__mro__))


def array_of(x: Any) -> Any:
    """The elements of another library's array, as an operand; anything else unchanged."""
    cls = x.__class__
    if cls in array_classes and cls not in _operands:
        return x
    for kind in cls.__mro__:
        if kind in _operands:
            return _operands[kind](x)
    return x


def bare(tree: Any) -> Any:
    """The pytree with other libraries' arrays as leaves."""
    return structure(unflatten(tree, [0] * tree.num_leaves))
