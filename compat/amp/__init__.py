"""``torch.amp``: mixed precision."""

from compat.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from compat.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
