"""The deprecated classes of ``torch.amp`` for one device type: ``torch.cuda.amp``, ``torch.cpu.amp``."""

from __future__ import annotations

from typing import ClassVar

from compat._core.types.errors import warn
from compat.amp.grad_scaler import GradScaler


def warn_of_new_name(kind: str, name: str) -> None:
    """Gives the deprecation warning that names the replacement in ``torch.amp``.

    Args:
        kind: the device type.
        name: the name in ``torch.amp``, and in ``torch.cuda.amp``.
    """
    warn(
        f"`torch.{kind}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('{kind}', args...)` instead.",
        FutureWarning,
    )


class ScalerOf(GradScaler):
    """``torch.amp.GradScaler`` of the device type ``_kind_``."""

    _kind_: ClassVar[str]

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        warn_of_new_name(self._kind_, "GradScaler")
        super().__init__(self._kind_, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
