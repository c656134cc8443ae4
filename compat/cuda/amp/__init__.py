"""``torch.cuda.amp``: deprecated names of ``torch.amp`` for GPUs; disabled, as there is none."""

from compat.cuda.amp import autocast_mode, grad_scaler
from compat.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from compat.cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "autocast_mode", "custom_bwd", "custom_fwd", "grad_scaler"]
