"""Decorators that mark functions for TorchScript."""

from __future__ import annotations

from typing import Any

__all__ = ["FunctionModifiers", "mark"]


class FunctionModifiers:
    """The marks, as texts."""

    __module__ = "compat._jit_internal"

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from an exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def mark(fn: Any, modifier: str) -> Any:
    """Marks a function, and returns it."""
    fn._torchscript_modifier = modifier
    return fn
