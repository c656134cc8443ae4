"""``torch.nn.parallel``: modules in several processes; several GPUs in one process are not supported."""

from compat.nn.parallel import data_parallel as _module, distributed
from compat.nn.parallel.data_parallel import DataParallel, data_parallel
from compat.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
