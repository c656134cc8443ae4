"""Two workers that ``spawn`` starts; one of them raises, and the other one says why it cannot go on."""

import sys
import time

import pytest

import compat.distributed.rpc as rpc
from compat import multiprocessing as mp


def run(rank: int, address: str) -> None:
    options = rpc.TensorPipeRpcBackendOptions(init_method=address)
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 1:
        time.sleep(0.5)  # by now the other worker's call runs in another thread
        raise KeyError("oops")
    try:
        rpc.rpc_sync("w1", time.sleep, args=(50,))
    except RuntimeError as error:
        print(error, flush=True)


if __name__ == "__main__":
    with pytest.raises(mp.ProcessRaisedException, match=r"oops|has ended"):
        mp.spawn(run, args=(f"tcp://127.0.0.1:{sys.argv[1]}",), nprocs=2)
