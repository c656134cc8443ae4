"""``torch.autograd.grad_mode``: the guards under their PyTorch address."""

from compat.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
