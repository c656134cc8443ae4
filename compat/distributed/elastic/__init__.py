"""``torch.distributed.elastic``: what starts processes, and starts them again."""
