"""``torch.cuda.nvtx``: marks in a GPU's timeline, of which there is none."""

from __future__ import annotations

from compat._core.stubs import refusing

__all__ = ["mark", "range_end", "range_pop", "range_push", "range_start"]

_ABSENT = "NVTX functions not installed. Are you sure you have a CUDA build?"

range_push = refusing("range_push", RuntimeError, _ABSENT)
range_pop = refusing("range_pop", RuntimeError, _ABSENT)
range_start = refusing("range_start", RuntimeError, _ABSENT)
range_end = refusing("range_end", RuntimeError, _ABSENT)
mark = refusing("mark", RuntimeError, _ABSENT)
