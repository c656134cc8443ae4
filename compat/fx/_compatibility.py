"""``compatibility``, a decorator for functions with a stable signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["compatibility"]

T = TypeVar("T")

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that adds to the docstring whether backward compatibility of a function or class is guaranteed.

    Example:
        >>> @compatibility(is_backward_compatible=True)
        ... def twice(x):
        ...     return 2 * x
        >>> print(twice.__doc__.strip())
        .. note::
            Backwards-compatibility for this API is guaranteed.
    """
    if is_backward_compatible:
        note = ".. note::\n    Backwards-compatibility for this API is guaranteed.\n"
    else:
        note = ".. warning::\n    This API is experimental and is *NOT* backward-compatible.\n"

    def mark(fn: T) -> T:
        fn.__doc__ = f"{fn.__doc__ or ''}\n\n{note}"
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        return fn

    return mark
