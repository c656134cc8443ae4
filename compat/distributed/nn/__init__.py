"""``torch.distributed.nn``: differentiable collectives, and modules in other workers."""

from compat.distributed.nn import functional
from compat.distributed.nn.api.remote_module import RemoteModule
from compat.distributed.nn.functional import *

__all__ = list(functional.__all__)
__all__ += ["RemoteModule"]
