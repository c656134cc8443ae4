"""``torch.distributed.constants``."""

from compat._distributed.groups import default_pg_timeout

default_pg_nccl_timeout = None

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
