"""``torch.utils``."""

from compat.utils import data, hooks

__all__ = ["data", "hooks"]
