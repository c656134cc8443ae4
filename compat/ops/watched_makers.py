"""Functions that make tensors of nothing, shown to those who watch (``compat.ops.watching``).

They are no declared operations. From the first mode on they look whether one is entered.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from compat.ops.asking import Declined, answer_of_mode, state
from compat.ops.dispatching import replace
from compat.ops.overloads import aten
from compat.registry import names_of

#: What takes a size, and which overload it then is.
_SIZED = {"zeros": "default", "ones": "default", "empty": "memory_format", "rand": "default", "randn": "default"}
_OTHERS = {
    "full": "default", "empty_strided": "default", "scalar_tensor": "default", "linspace": "default",
    "logspace": "default", "randperm": "default", "zeros_like": "default", "ones_like": "default",
    "empty_like": "default", "full_like": "default", "rand_like": "default", "randn_like": "default",
}  # fmt: skip
#: Overloads by how many positional arguments there are.
_COUNTED = {
    "arange": ("default", "start", "start_step"), "eye": ("default", "m"), "randint": ("default", "default", "low"),
}  # fmt: skip


def _watched(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function that asks the innermost mode, if there is one."""

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _shown(name, call, plain, args, kwargs) if state.modes else plain(*args, **kwargs)

    return call


def _shown(name: str, again: Callable[..., Any], plain: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """One call: the innermost mode says what it gives.

    Args:
        again: the function, for the modes around it.
        plain: the function, for the types of tensors.
    """
    if name in _SIZED and args:
        args = (list(args if isinstance(args[0], int) else args[0]),)
    counted = _COUNTED.get(name, ())
    overload = (
        counted[min(len(args), len(counted)) - 1] if counted and args else (_SIZED | _OTHERS).get(name, "default")
    )
    shown = aten.packet(name).overload(overload)
    wanted = kwargs.get("requires_grad", False)
    named = {k: v for k, v in kwargs.items() if k != "requires_grad"}
    try:
        made = answer_of_mode(shown, again, args, named)
    except Declined:
        made = plain(*args, **named)
    return made.requires_grad_() if wanted else made


_enabling = threading.Lock()
_enabled = False


def enable() -> None:
    """Has the functions look for modes."""
    global _enabled
    with _enabling:
        if _enabled:
            return
        _enabled = True
        module = sys.modules["compat"]
        for name in (*_SIZED, *_OTHERS, *_COUNTED):
            names_of("torch")[name] = replace(module, name, partial(_watched, name))
