"""Functions that split batches over GPUs and gather them; they raise errors, as they do in PyTorch without GPUs."""

from __future__ import annotations

from compat._absent import refusing

__all__ = ["gather", "scatter", "scatter_kwargs"]

scatter = refusing("scatter", AttributeError, "module 'torch._C' has no attribute '_scatter'")
scatter_kwargs = refusing("scatter_kwargs", AttributeError, "module 'torch._C' has no attribute '_scatter'")
gather = refusing("gather", AssertionError, "Gather function not implemented for CPU tensors")
