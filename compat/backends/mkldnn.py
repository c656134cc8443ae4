"""``torch.backends.mkldnn``: its settings are stored; the CPU computes in float32."""

from __future__ import annotations

from compat._absent import answering
from compat.backends._settings import flags_of, precision, set_properties, settings

enabled = True
deterministic = False
allow_tf32 = True
matmul, conv, rnn = (
    settings({"fp32_precision": precision("mkldnn", operation)}) for operation in ("matmul", "conv", "rnn")
)

is_available = answering("is_available", lambda: True, "scripts that ask go on as on any CPU")
flags = flags_of(__name__, {"enabled": False, "deterministic": False, "allow_tf32": True, "fp32_precision": "none"})
set_properties(__name__, fp32_precision=precision("generic"))  # in PyTorch too, that of all backends
