"""``torch.backends.openmp``: unavailable, as XLA has its own threads."""

from compat._absent import answering

is_available = answering("is_available", lambda: True, "scripts that ask go on as on any CPU")
