"""``torch.utils.hooks``."""

from __future__ import annotations

from typing import Any

from compat._core.types.errors import warn
from compat._core.types.removable_handle import HookDict, RemovableHandle

__all__ = ["HookDict", "RemovableHandle", "warn_if_has_hooks"]


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns of a tensor's hooks that are not saved with it, except those marked by ``unserializable_hook``."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                UserWarning,
            )


def unserializable_hook(f: Any) -> Any:
    """Marks a hook that is not saved with its tensor, so that saving does not warn of it."""
    f.__torch_unserializable__ = True
    return f
