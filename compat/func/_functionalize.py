"""``functionalize``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.transforms import level_stack


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """``func`` without mutation, for tracing.

    Buffers are immutable here, and in-place writes create new ones, so traces of ``func`` contain no mutation.

    Args:
        remove: "mutations", or "mutations_and_views".

    Raises:
        RuntimeError: for an invalid ``remove``.

    Example:
        >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.zeros(2))
        tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced "
            "with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be "
            "replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with level_stack.level("functionalize"):
            return func(*args, **kwargs)

    return wrapped
