"""``torch.distributed.rpc.functions``: functions with an asynchronous result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_MARK = "_wrapped_async_rpc_function"


def async_execution(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Declares that a function returns a ``Future``, whose value is the result of a remote call of it.

    The thread that runs the call does not wait for the value. In a class, this decorator comes below ``@staticmethod``
    and ``@classmethod``.

    Args:
        fn: a function that returns a ``torch.futures.Future``.

    Example:
        >>> @async_execution
        ... def later(x):
        ...     future = torch.futures.Future()
        ...     future.set_result(x + 1)
        ...     return future
        >>> later(1).wait()
        2
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    setattr(wrapper, _MARK, fn)
    return wrapper


def is_async(fn: Any) -> bool:
    """Whether a function was declared by ``async_execution``."""
    return hasattr(fn, _MARK)


__all__ = ["async_execution"]
