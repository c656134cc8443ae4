"""``functional_datapipe``: registers a class of data pipes as a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["functional_datapipe"]


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Callable[[Any], Any]:
    """Registers a class as a method of its kind of data pipes.

    Args:
        name: the method's name.
        enable_df_api_tracing: ignored.

    Raises:
        TypeError: for a class that is not a data pipe.

    Example:
        >>> from compat.utils.data import IterDataPipe, functional_datapipe
        >>> from compat.utils.data.datapipes.iter import IterableWrapper
        >>> @functional_datapipe("doubled")
        ... class Doubled(IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         return (2 * x for x in self.source)
        >>> list(IterableWrapper([1, 2]).doubled())
        [2, 4]
    """

    def register(kind: Any) -> Any:
        if not isinstance(kind, type) or not issubclass(kind, (IterDataPipe, MapDataPipe)):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        base = IterDataPipe if issubclass(kind, IterDataPipe) else MapDataPipe
        base.register_datapipe_as_function(name, kind)
        return kind

    return register
