"""``torch.distributed.nn.api``: modules in other workers."""
