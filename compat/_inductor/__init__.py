"""``torch._inductor``: the settings of PyTorch's own compiler. XLA compiles here, so its other names are stubs."""

from typing import Any

from compat._absent import absent, missing
from compat._inductor import config

__all__ = ["config"]


def __getattr__(name: str) -> Any:
    stands = missing("_inductor", name)
    if stands is None:
        raise absent("torch._inductor", name)
    return stands
