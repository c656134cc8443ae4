"""``torch._custom_ops``: deprecated in favor of ``torch.library``."""

from compat.library import custom_op, get_ctx, impl, impl_abstract

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract"]
