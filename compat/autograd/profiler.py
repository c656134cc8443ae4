"""``torch.autograd.profiler``: the older address of ``torch.profiler``."""

from compat.profiler import profile, record_function

__all__ = ["profile", "record_function"]
