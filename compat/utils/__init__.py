"""``torch.utils``."""

from typing import Any

from compat.utils import data, dlpack, hooks

__all__ = ["benchmark", "checkpoint", "data", "deterministic", "dlpack", "hooks"]


def __getattr__(name: str) -> Any:
    # Imported when they are asked for: few programs need them.
    if name == "swap_tensors":
        from compat.swapping import swap_tensors

        return swap_tensors
    if name not in ("benchmark", "checkpoint", "deterministic"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
