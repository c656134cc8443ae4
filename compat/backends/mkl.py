"""``torch.backends.mkl``: XLA computes with libraries of its own."""

from compat._absent import answering

is_available = answering("is_available", lambda: True, "scripts that ask go on as on any CPU")
