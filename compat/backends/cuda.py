"""``torch.backends.cuda``: unavailable; its settings are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._absent import answering
from compat._operators.nn.attention_backends import allowed
from compat.backends._settings import Settings

is_built = answering("is_built", lambda: False, "there is no code for GPUs")
matmul = Settings(
    allow_tf32=True,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
    fp32_precision="none",
)


def _switch(kind: str) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    def enable(enabled: bool) -> None:
        allowed[kind] = bool(enabled)

    def is_enabled() -> bool:
        return allowed[kind]

    enable.__name__, is_enabled.__name__ = f"enable_{kind}_sdp", f"{kind}_sdp_enabled"
    enable.__doc__ = f"Says whether attention may be computed the {kind} way; on a CPU there are flash and math."
    is_enabled.__doc__ = f"What ``enable_{kind}_sdp`` was told."
    return enable, is_enabled


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")


def can_use_flash_attention(params: Any = None, debug: bool = False) -> bool:
    """Whether a GPU's flash attention is available: False."""
    return False
