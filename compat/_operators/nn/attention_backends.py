"""The enabled attention implementations, as set by ``torch.nn.attention.sdpa_kernel``."""

from __future__ import annotations

from typing import Any

#: Whether each is enabled; the CPU has ``flash``, a single operation, and ``math``, a composition.
allowed = dict.fromkeys(("cudnn", "flash", "mem_efficient", "math", "overrideable"), True)


def chosen(at_once: bool) -> Any:
    """``"flash"`` or ``"math"``.

    Args:
        at_once: whether the operands are supported by the single operation.

    Raises:
        RuntimeError: if no applicable implementation is enabled.
    """
    if at_once and allowed["flash"]:
        return "flash"
    if allowed["math"]:
        return "math"
    raise RuntimeError(
        "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math "
        "kernel and the fused kernels."
    )
