"""The environment that the launcher sets for a process; one process is killed the first time."""

import os
import signal
import sys

import torch
import torch.distributed as dist

dist.init_process_group()
x = torch.tensor([dist.get_rank()])
dist.all_reduce(x)
known = [os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")]
# In one write, since the processes share a pipe.
sys.stdout.write(" ".join(["process", *known, str(x.item()), *sys.argv[1:]]) + "\n")
sys.stdout.flush()
if known[3] == "0" and known[0] == "1" and "die" in sys.argv:
    os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
dist.destroy_process_group()
