"""The number of threads of NumPy's matrix products.

Products that run operation by operation are small. OpenBLAS divides them among all cores nevertheless, and its threads
spin while they wait: if another process, or the background compiler, occupies a core, a training step of a small
transformer takes four times as long with two threads as with one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def _libraries() -> tuple[Any, ...]:
    """The loaded BLAS libraries."""
    from threadpoolctl import ThreadpoolController  # lazy: takes some milliseconds

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class quiet(np.errstate):
    """Context in which NumPy does not warn of overflow and division by zero, and matrix products use one thread.

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
                self._before.append((library, threads))  # first, so that an interrupt leaves nothing changed
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
