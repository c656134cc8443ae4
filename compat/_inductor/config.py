"""``torch._inductor.config``: PyTorch's settings, which are kept and change nothing here: XLA compiles."""

from compat.utils._config_module import configure

configure(__name__)
