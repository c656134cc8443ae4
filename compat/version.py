"""``torch.version``: the emulated version of PyTorch, and its accelerators (none)."""

from __future__ import annotations

__version__ = "2.13.0"
debug = False
git_version = "unknown"
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
