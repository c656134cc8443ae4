"""``torch.backends.cpu``."""

from compat._absent import answering

get_cpu_capability = answering("get_cpu_capability", lambda: "DEFAULT", "XLA finds out by itself what the CPU can do")
