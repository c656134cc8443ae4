"""``torch.compiler``: helpers for ``torch.compile``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._compile import compile
from compat._compile.backend_names import list_backends
from compat._compile.stance import compiling, set_stance
from compat.nn.modules.module import Module

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_stance",
]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Returns a function in which ``is_compiling()`` is False; a module or class is returned unchanged.

    Operations of a compiled function are captured regardless: a call is replayed only if it does the same each time.

    Args:
        fn: the function or module; without it, a decorator.
        recursive, reason: ignored.

    Example:
        >>> @torch.compiler.disable
        ... def double(x):
        ...     return x * 2
        >>> double(torch.tensor(2)).item()
        4
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, (Module, type)):
        return fn

    @functools.wraps(fn)
    def outside(*args: Any, **kwargs: Any) -> Any:
        return compiling.call(False, fn, *args, **kwargs)

    return outside


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function unchanged."""
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Returns the function unchanged."""
    return fn


def nested_compile_region(fn: Any = None) -> Any:
    """Leaves a function as it is: what is captured of a compiled function is one program, whose parts XLA compiles."""
    return nested_compile_region if fn is None else fn


def is_compiling() -> bool:
    """Whether the Python code of a compiled function is running, for which PyTorch would trace it."""
    return compiling.now


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether a model is being exported: always False."""
    return False


def reset() -> None:
    """Does nothing: compiled functions check their guards themselves."""


def cudagraph_mark_step_begin() -> None:
    """Marks the beginning of a step; ignored."""
