"""``torch.distributed.elastic``: starting and restarting processes."""
