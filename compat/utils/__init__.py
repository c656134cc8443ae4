"""``torch.utils``."""

from typing import Any

from compat._core.types.errors import no_attribute
from compat.utils import data, dlpack, hooks

__all__ = ["benchmark", "checkpoint", "data", "deterministic", "dlpack", "hooks"]


def __getattr__(name: str) -> Any:
    # Imported when they are asked for: few programs need them.
    if name == "swap_tensors":
        from compat._core.tensor.swap import swap_tensors

        return swap_tensors
    if name not in (
        "_python_dispatch",
        "_pytree",
        "benchmark",
        "checkpoint",
        "deterministic",
        "flop_counter",
        "module_tracker",
        "weak",
    ):
        raise no_attribute(__name__, name)
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
