"""The errors of the other processes when the last one fails."""

import os
import signal
import sys
import time
from datetime import timedelta

import compat as torch
import compat.distributed as dist

r, n, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4]
last = r == n - 1
if how == "absent" and last:
    sys.exit()
patience = timedelta(seconds=8 if how == "absent" else 400)
try:
    dist.init_process_group("gloo", init_method=sys.argv[3], rank=r, world_size=n, timeout=patience)
    x = torch.ones(100_000)
    dist.all_reduce(x)
    group = dist.new_group(timeout=timedelta(seconds=8 if how == "late" else 400))
    dist.all_reduce(x, group=group)
    if how == "killed" and last:
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "late" and last:
        time.sleep(40)
        os._exit(0)
    if how == "raises" and last:
        raise KeyError("oops")
    dist.all_reduce(torch.ones(5) if how == "shape" and last else x, group=group)
except RuntimeError as error:
    print(type(error).__name__, error)
