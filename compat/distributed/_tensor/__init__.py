"""``torch.distributed._tensor``: the deprecated name of ``torch.distributed.tensor``."""

from compat.distributed import tensor
from compat.distributed.tensor import *

__all__ = list(tensor.__all__)
