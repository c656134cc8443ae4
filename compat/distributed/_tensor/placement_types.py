"""The deprecated name of ``torch.distributed.tensor.placement_types``."""

from compat.distributed.tensor import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
