"""Compiled functions that take a list of arguments, which they may empty."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["call", "make_boxed_compiler", "make_boxed_func"]


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """A function of a list of arguments, as compilers return it.

    Example:
        >>> from compat.func._functorch.compile import make_boxed_func
        >>> make_boxed_func(torch.add)([torch.ones(2), torch.ones(2)])
        tensor([2., 2.])
    """

    def boxed(args: list[Any]) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def make_boxed_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler whose results take a list of arguments."""

    @functools.wraps(compiler)
    def boxed(module: Any, inputs: Any) -> Any:
        return make_boxed_func(compiler(module, inputs))

    return boxed


def compiled(compiler: Callable[..., Any], module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
    """What a compiler makes of a graph.

    Raises:
        TypeError: if it is no function.
    """
    found = compiler(module, list(inputs))
    if not callable(found):
        raise TypeError(f"a compiler must return a function, not {found!r}")
    if not getattr(found, "_boxed_call", False):
        warnings.warn(
            "Your compiler for AOTAutograd is returning a function that doesn't take boxed arguments. Please wrap it "
            "with functorch.compile.make_boxed_func or handle the boxed arguments yourself.",
            stacklevel=2,
        )
        return make_boxed_func(found)
    made: Callable[..., Any] = found
    return made


def call(function: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The results of a compiled graph."""
    found = function(list(args))
    return list(found) if isinstance(found, tuple | list) else [found]
