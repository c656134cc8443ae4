"""``torch.utils``."""

from typing import Any

from compat._absent import missing
from compat._core.types.errors import no_attribute
from compat.utils import data, dlpack, hooks

__all__ = ["benchmark", "checkpoint", "data", "deterministic", "dlpack", "hooks", "swap_tensors"]


def __getattr__(name: str) -> Any:
    # Imported at the first access, since few programs need them.
    if name == "swap_tensors":
        from compat._operators.tensor.swap import swap_tensors

        return swap_tensors
    if name not in (
        "_contextlib",
        "_foreach_utils",
        "_python_dispatch",
        "_pytree",
        "benchmark",
        "checkpoint",
        "collect_env",
        "deterministic",
        "flop_counter",
        "model_zoo",
        "module_tracker",
        "weak",
    ):
        stands = missing("utils", name)
        if stands is None:
            raise no_attribute(__name__, name)
        return stands
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
