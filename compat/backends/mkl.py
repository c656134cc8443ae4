"""``torch.backends.mkl``: unavailable, as XLA has its own libraries."""

from compat._absent import answering

is_available = answering("is_available", lambda: True, "scripts that ask go on as on any CPU")
