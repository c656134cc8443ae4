"""``torch.utils.deterministic``: the contents of uninitialized memory in deterministic mode.

Attributes:
    fill_uninitialized_memory: whether ``torch.empty`` and similar factories then return NaN, or an integer's largest
        value, instead of zeros, so that reading them has visible effects; True by default.

Example:
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.empty(2)
    tensor([nan, nan])
    >>> torch.utils.deterministic.fill_uninitialized_memory = False
    >>> torch.empty(2)
    tensor([0., 0.])
    >>> torch.utils.deterministic.fill_uninitialized_memory = True
    >>> torch.use_deterministic_algorithms(False)
"""

import sys
from types import ModuleType

from compat._core.config.flags import fills_memory


class _Module(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return fills_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fill: bool) -> None:
        fills_memory(fill)


sys.modules[__name__].__class__ = _Module
