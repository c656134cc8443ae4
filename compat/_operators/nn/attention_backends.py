"""The enabled attention implementations, as set by ``torch.nn.attention.sdpa_kernel``."""

from __future__ import annotations

#: Whether each implementation is enabled; the CPU has ``flash``, one operator, and ``math``, a composition.
allowed = dict.fromkeys(("cudnn", "flash", "mem_efficient", "math", "overrideable"), True)


def select_backend(fused: bool) -> str:
    """The name of the implementation to use: ``"flash"`` or ``"math"``.

    Args:
        fused: whether ``flash`` supports the operands.

    Raises:
        RuntimeError: if no applicable implementation is enabled.
    """
    if fused and allowed["flash"]:
        return "flash"
    if allowed["math"]:
        return "math"
    raise RuntimeError(
        "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math "
        "kernel and the fused kernels."
    )
