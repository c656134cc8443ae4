"""``skip_init``: modules with uninitialized parameters."""

from __future__ import annotations

import inspect
from typing import Any

from compat.nn.modules.module import Module
from compat.random import fork_rng

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Creates a module with uninitialized parameters and buffers.

    Args:
        module_cls: the class, which takes a ``device``.
        args, kwargs: arguments of its constructor.

    Raises:
        RuntimeError: for a class that is not a subclass of ``Module``, or does not take a ``device``.

    Example:
        >>> torch.nn.utils.skip_init(torch.nn.Linear, 5, 1)
        Linear(in_features=5, out_features=1, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    with fork_rng(devices=[]):
        made = module_cls(*args, **kwargs)
    return made.to_empty(device=device)
