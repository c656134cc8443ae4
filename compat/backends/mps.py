"""``torch.backends.mps``: unavailable."""

from compat._absent import answering

is_available = answering("is_available", lambda: False, "there is no Apple GPU")
is_built = answering("is_built", lambda: False, "there is no code for Apple's GPUs")
