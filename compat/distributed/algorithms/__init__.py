"""``torch.distributed.algorithms``: what ``DistributedDataParallel`` can do in other ways."""
