"""``torch.fx.experimental._config``: PyTorch's settings, which are kept and change nothing here."""

from compat.utils._config_module import configure

configure(__name__)
