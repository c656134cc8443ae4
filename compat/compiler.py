"""``torch.compiler``: functions about ``torch.compile``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._compile import compile
from funcgrad import runtime

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
    "reset",
]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Leaves a function as it is.

    What is called within a compiled function is captured with it, whatever this says: it is replayed only where it
    does the same each time.

    Args:
        fn: the function or module; left out, this is a decorator.
        recursive, reason: accepted.

    Example:
        >>> @torch.compiler.disable
        ... def double(x):
        ...     return x * 2
        >>> double(torch.tensor(2)).item()
        4
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Leaves a function as it is."""
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Leaves a function as it is."""
    return fn


def _mark(t: Any, *args: Any, **kwargs: Any) -> None:
    """Marks sizes of a tensor as dynamic or static; ignored, as each size is compiled separately."""


def is_compiling() -> bool:
    """Whether a call of a compiled function is being captured."""
    return bool(runtime.capturing())


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether a model is being exported: there is no such thing here."""
    return False


def reset() -> None:
    """Does nothing: compiled functions check by themselves what has changed."""


def cudagraph_mark_step_begin() -> None:
    """Marks the beginning of a step; ignored."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that ``compile`` takes for ``backend``; all mean XLA."""
    return ["cudagraphs", "inductor", "openxla", "tvm"]
