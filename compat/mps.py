"""``torch.mps``, without an Apple GPU."""

from __future__ import annotations

from compat._absent import answering, refusing

is_available = answering("is_available", lambda: False, "there is no GPU")
device_count = answering("device_count", lambda: 0, "there is no GPU")
manual_seed = answering("manual_seed", lambda: None, "no GPU has random numbers")
seed = answering("seed", lambda: None, "no GPU has random numbers")

for _name, _theirs in (
    ("empty_cache", "emptyCache"),
    ("synchronize", "deviceSynchronize"),
    ("current_allocated_memory", "getCurrentAllocatedMemory"),
):
    globals()[_name] = refusing(_name, RuntimeError, f"Cannot execute {_theirs}() without MPS backend.")
