"""How many threads NumPy's matrix products use.

Products that run operation by operation are small. OpenBLAS divides them among all cores all the same, and its threads
spin while they wait for each other: where another process, or the compiler behind the program, has one of the cores, a
training step of a small transformer takes four times as long with two threads as with one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def _libraries() -> tuple[Any, ...]:
    """The libraries of matrix products that are loaded."""
    from threadpoolctl import ThreadpoolController  # takes some milliseconds, and not every program gets here

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class quiet(np.errstate):
    """Within it, NumPy says nothing of overflows and divisions by zero, and its matrix products use one thread.

    Example:
        >>> with quiet():
        ...     float(np.float32(1) / np.float32(0))
        inf
    """

    def __init__(self) -> None:
        super().__init__(all="ignore")
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        super().__enter__()
        _entered.append(self)
        self.limit()

    def limit(self) -> None:
        """Has each library that is loaded use one thread."""
        for library in _libraries():
            threads = library.get_num_threads()
            if threads is not None and threads > 1:
                self._before.append((library, threads))  # first, so that an interrupt leaves nothing set
                library.set_num_threads(1)

    def __exit__(self, *exc: Any) -> None:
        _entered[:] = [other for other in _entered if other is not self]
        for library, threads in self._before:
            library.set_num_threads(threads)
        super().__exit__(*exc)


#: Those that are entered.
_entered: list[quiet] = []


def loaded() -> None:
    """Takes account of a library that has been loaded meanwhile: SciPy has one of its own."""
    _libraries.cache_clear()
    for context in _entered[-1:]:
        context.limit()
