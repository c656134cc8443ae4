"""``torch.distributed.nn``: differentiable collectives."""

from compat.distributed.nn import functional
from compat.distributed.nn.functional import *

__all__ = list(functional.__all__)
