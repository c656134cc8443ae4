"""``torch._custom_ops``: what there was before ``torch.library`` had it."""

from compat.library import custom_op, get_ctx, impl, impl_abstract

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract"]
