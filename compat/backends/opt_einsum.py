"""``torch.backends.opt_einsum``: the contraction order of ``einsum``."""

from __future__ import annotations

from compat._absent import answering

enabled = True
strategy = "auto"
is_available = answering("is_available", lambda: True, "an order is chosen")
