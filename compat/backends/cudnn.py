"""``torch.backends.cudnn``: the precision of convolutions has an effect on GPUs, other settings are stored."""

from __future__ import annotations

from compat._absent import answering
from compat._core.config.precision import allow_convolutions_tf32, convolutions_allow_tf32
from compat.backends._settings import effective, flags_of, precision, set_properties, settings

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
conv = settings({"fp32_precision": precision("cuda", "conv")})
rnn = settings({"fp32_precision": precision("cuda", "rnn")})

is_available = answering("is_available", lambda: False, "there is no GPU")
is_acceptable = answering("is_acceptable", lambda: False, "no tensor is on a GPU")
version = answering("version", lambda: None, "there is none")
flags = flags_of(
    __name__,
    {
        "enabled": False, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "allow_tf32": True,
        "fp32_precision": "none",
    },
)  # fmt: skip
set_properties(
    __name__,
    allow_tf32=effective(convolutions_allow_tf32, allow_convolutions_tf32),
    fp32_precision=precision("cuda"),
)
