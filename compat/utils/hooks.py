"""``torch.utils.hooks``."""

from compat._core.types.hooks import HookDict, RemovableHandle

__all__ = ["HookDict", "RemovableHandle"]
