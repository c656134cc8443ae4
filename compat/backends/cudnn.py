"""``torch.backends.cudnn``: unavailable; its settings are stored."""

from __future__ import annotations

from compat._absent import answering
from compat.backends._settings import Settings, flags_of

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True
fp32_precision = "none"
conv = Settings(fp32_precision="tf32")
rnn = Settings(fp32_precision="tf32")

is_available = answering("is_available", lambda: False, "there is no GPU")
is_acceptable = answering("is_acceptable", lambda: False, "no tensor is on a GPU")
version = answering("version", lambda: None, "there is none")
flags = flags_of(__name__, {"enabled": False, "benchmark": False, "deterministic": False, "allow_tf32": True})
