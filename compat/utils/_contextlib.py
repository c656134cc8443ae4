"""``torch.utils._contextlib``: context managers that also decorate functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs within a context.

    Args:
        ctx: the context manager, or a factory that is called for each call.
        func: the function.

    Example:
        >>> from compat.utils._contextlib import context_decorator
        >>> context_decorator(torch.no_grad, torch.is_grad_enabled)()
        False
    """
    make = ctx if callable(ctx) and not hasattr(ctx, "__enter__") else lambda: ctx
    if isinstance(ctx, type):
        make = ctx

    @functools.wraps(func)
    def within(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return within


class _DecoratorContextManager:
    """A context manager whose instances decorate functions; each call enters a ``clone``."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A new instance; overridden by classes with arguments."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context manager that also decorates without parentheses."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
