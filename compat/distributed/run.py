"""``python -m compat.distributed.run``: starts a program in several processes, as ``torchrun`` does.

    python -m compat.distributed.run --nproc-per-node 2 train.py --epochs 3

In each process ``import torch`` imports compat, and the environment has ``RANK``, ``LOCAL_RANK``, ``WORLD_SIZE``,
``MASTER_ADDR`` and other variables for ``init_process_group``. If a process fails, the others are terminated, and with
``--max-restarts`` all are restarted. With several hosts, run the command on each with the same ``--rdzv-endpoint`` or
``--master-addr``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from compat.distributed.elastic.agent import Agent, SignalReceived
from compat.distributed.elastic.multiprocessing.errors import ChildFailedError
from compat.distributed.elastic.options import parser

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Runs the command line, and exits with its status.

    Args:
        args: the command line; by default this program's.

    Raises:
        SystemExit: with 1 if a process failed, and 128 plus a signal's number after that signal.
    """
    options = parser().parse_args(args)
    try:
        Agent(options).run()
    except ChildFailedError as error:
        sys.stderr.write(f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: {error}\n")
        raise SystemExit(1) from None
    except SignalReceived as ended:
        raise SystemExit(128 + ended.number) from None


if __name__ == "__main__":
    main()
