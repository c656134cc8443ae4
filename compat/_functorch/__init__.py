"""``torch._functorch``: those of its names that packages use."""

from typing import Any

from compat._absent import absent, missing
from compat._functorch import config

__all__ = ["config"]


def __getattr__(name: str) -> Any:
    stands = missing("_functorch", name)
    if stands is None:
        raise absent("torch._functorch", name)
    return stands
