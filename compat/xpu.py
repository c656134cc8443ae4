"""``torch.xpu``, without an Intel GPU."""

from __future__ import annotations

from compat._absent import answering, refusing

is_available = answering("is_available", lambda: False, "there is no GPU")
is_initialized = answering("is_initialized", lambda: False, "no GPU is in use")
is_bf16_supported = answering("is_bf16_supported", lambda: False, "no GPU computes in bfloat16")
device_count = answering("device_count", lambda: 0, "there is no GPU")
empty_cache = answering("empty_cache", lambda: None, "there is nothing to free")
manual_seed = answering("manual_seed", lambda: None, "no GPU has random numbers")
manual_seed_all = answering("manual_seed_all", lambda: None, "no GPU has random numbers")

for _name in ("synchronize", "current_device", "current_stream", "get_device_name", "get_device_properties", "init"):
    globals()[_name] = refusing(_name, AssertionError, "Torch not compiled with XPU enabled")
