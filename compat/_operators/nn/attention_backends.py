"""Which ways of computing attention are allowed: ``torch.nn.attention.sdpa_kernel`` says so for a while."""

from __future__ import annotations

from typing import Any

#: Whether each may be used; on a CPU there are ``flash``, one operation, and ``math``, a composition of several.
allowed = dict.fromkeys(("cudnn", "flash", "mem_efficient", "math", "overrideable"), True)


def chosen(at_once: bool) -> Any:
    """``"flash"`` or ``"math"``.

    Args:
        at_once: whether the operands suit one operation.

    Raises:
        RuntimeError: if what would do is not allowed.
    """
    if at_once and allowed["flash"]:
        return "flash"
    if allowed["math"]:
        return "math"
    raise RuntimeError(
        "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math "
        "kernel and the fused kernels."
    )
