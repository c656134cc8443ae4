"""``torch.distributed.algorithms``: alternatives for ``DistributedDataParallel``."""
