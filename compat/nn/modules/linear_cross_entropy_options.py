"""How a linear map and its cross entropy are to be computed together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

__all__ = ["LinearCrossEntropyOptions"]

_Policy = Literal["accurate", "balanced", "compact", "auto"]


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Options to compute the scores of all classes in chunks; ignored, since XLA plans the whole program.

    Args:
        allow_retain_graph: whether it may be gone back through twice.
        batch_chunk_size: how large a piece is.
        chunking_method: how that is chosen.
        acc_policy, acc_dtype: how precisely sums of pieces are added up.

    Raises:
        ValueError: for settings that there are not.
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
