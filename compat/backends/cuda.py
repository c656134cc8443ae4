"""``torch.backends.cuda``: the precision of products has an effect on GPUs, other settings are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from compat._absent import answering
from compat._core.config.precision import allow_products_tf32, products_allow_tf32
from compat._core.types.errors import warn
from compat._operators.nn.attention_backends import allowed
from compat.backends._settings import effective, precision, settings

is_built = answering("is_built", lambda: False, "there is no code for GPUs")
matmul = settings(
    {
        "allow_tf32": effective(products_allow_tf32, allow_products_tf32),
        "fp32_precision": precision("cuda", "matmul"),
    },
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
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


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict[str, bool]]:
    """Says which ways attention may be computed for the time of a ``with`` block; ``torch.nn.attention.sdpa_kernel``
    is to be used instead.

    Example:
        >>> import warnings
        >>> import compat as torch
        >>> with warnings.catch_warnings(action="ignore"), torch.backends.cuda.sdp_kernel(enable_flash=False):
        ...     torch.backends.cuda.flash_sdp_enabled()
        False
    """
    warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please "
        "see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
    )
    chosen = {
        "flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient, "cudnn": enable_cudnn,
    }  # fmt: skip
    before = dict(allowed)
    allowed.update({kind: bool(enabled) for kind, enabled in chosen.items()})
    try:
        yield {}
    finally:
        allowed.update(before)


def can_use_flash_attention(params: Any = None, debug: bool = False) -> bool:
    """Whether a GPU's flash attention is available: False."""
    return False
