"""``torch.distributed.rpc.constants``: defaults."""

from __future__ import annotations

from datetime import timedelta

DEFAULT_RPC_TIMEOUT_SEC = 60.0
DEFAULT_INIT_METHOD = "env://"
#: Zero waits without a limit.
DEFAULT_SHUTDOWN_TIMEOUT = 0.0
DEFAULT_NUM_WORKER_THREADS = 16
DEFAULT_PROCESS_GROUP_TIMEOUT = timedelta(milliseconds=2**31 - 1)
#: Stands for the timeout of the options.
UNSET_RPC_TIMEOUT = -1.0

__all__: list[str] = []
