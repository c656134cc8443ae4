"""``torch.backends.mkldnn``: its settings are stored and ignored."""

from __future__ import annotations

from compat._absent import answering
from compat.backends._settings import Settings, flags_of

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
matmul = Settings(fp32_precision="none")
conv = Settings(fp32_precision="none")
rnn = Settings(fp32_precision="none")

is_available = answering("is_available", lambda: True, "scripts that ask go on as on any CPU")
flags = flags_of(__name__, {"enabled": False, "deterministic": False, "allow_tf32": True})
