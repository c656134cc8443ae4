"""``torch.multiprocessing``: Python's ``multiprocessing``, over which tensors share their memory, and ``spawn``.

A tensor that is sent to another process, as an argument or through a queue or pipe, is moved into shared memory:
writes are visible to both. ``share_memory_`` moves it there beforehand, so that
forked children share it as well.

Example:
    >>> from compat import multiprocessing as mp
    >>> x = torch.zeros(2).share_memory_()
    >>> child = mp.get_context("fork").Process(target=x.fill_, args=(3,))
    >>> child.start()
    >>> child.join()
    >>> x
    tensor([3., 3.])
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *

from compat._core.memory.shared_storage import STRATEGIES, choice
from compat.multiprocessing import reductions
from compat.multiprocessing.spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "ENV_VAR_PARALLEL_START", "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "get_all_sharing_strategies", "get_sharing_strategy", "reductions", "set_sharing_strategy", "spawn",
    "start_processes",
]  # fmt: skip
__all__ += multiprocessing.__all__


def get_all_sharing_strategies() -> set[str]:
    """The sharing strategies: ``"file_descriptor"``, ``"file_system"``."""
    return set(STRATEGIES)


def get_sharing_strategy() -> str:
    """The current sharing strategy."""
    return choice.strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Sets the sharing strategy.

    Args:
        new_strategy: with ``"file_descriptor"`` the last process that has the memory frees it, and each storage
            takes one of the descriptors that a process may have open; by ``"file_system"`` it has a name, and is
            removed by the process that releases it last.

    Raises:
        AssertionError: for an unknown strategy.
    """
    if new_strategy not in STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {get_all_sharing_strategies()}"
        )
    choice.strategy = new_strategy
