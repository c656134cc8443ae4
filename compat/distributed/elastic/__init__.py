"""``torch.distributed.elastic``: what starts processes; here a program runs in one."""
