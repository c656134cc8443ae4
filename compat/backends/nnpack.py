"""``torch.backends.nnpack``: unavailable, as XLA has its own kernels; its setting is stored."""

from __future__ import annotations

from compat._absent import answering
from compat.backends._settings import flags_of

enabled = True

is_available = answering("is_available", lambda: False, "XLA has its own kernels")
flags = flags_of(__name__, {"enabled": False})


def set_flags(_enabled: bool) -> tuple[bool]:
    """Stores the setting; returns the one before."""
    global enabled
    before, enabled = enabled, _enabled
    return (before,)
