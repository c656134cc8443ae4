"""``torch.utils.hooks``."""

from compat.hooks import HookDict, RemovableHandle

__all__ = ["HookDict", "RemovableHandle"]
