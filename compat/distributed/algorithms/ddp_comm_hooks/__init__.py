"""Communication hooks for ``DistributedDataParallel.register_comm_hook``."""

from compat.distributed.algorithms.ddp_comm_hooks import default_hooks
from compat.nn.parallel._reducer import GradBucket

__all__ = ["GradBucket", "default_hooks"]
