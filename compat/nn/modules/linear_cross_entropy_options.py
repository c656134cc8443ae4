"""Options of a fused linear map and cross entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

__all__ = ["LinearCrossEntropyOptions"]

_Policy = Literal["accurate", "balanced", "compact", "auto"]


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Options to compute the logits of all classes in chunks; ignored, since XLA schedules the whole program.

    Args:
        allow_retain_graph: whether the graph can be traversed twice.
        batch_chunk_size: the size of a chunk.
        chunking_method: the method that chooses it.
        acc_policy, acc_dtype: the precision of accumulation.

    Raises:
        ValueError: for unknown settings.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: _Policy = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        size, method = self.batch_chunk_size, self.chunking_method
        if self.acc_policy not in get_args(_Policy):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if not (method in (None, "auto") or str(method).startswith("aspect_ratio:")):
            raise ValueError(f"invalid chunking_method: {method!r}")
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
