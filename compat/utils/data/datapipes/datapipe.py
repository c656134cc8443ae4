"""``IterDataPipe`` and ``MapDataPipe``: composable datasets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from compat.utils.data.dataset import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]


class _Functional:
    """Registered methods, which construct pipes: ``pipe.map(f)`` is ``Mapper(pipe, f)``."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        found = type(self).functions.get(name)
        if found is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.partial(found, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Registers a function as a method."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Registers a class as a method.

        Raises:
            Exception: if the method exists.
        """
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return type(self).__qualname__


class IterDataPipe(_Functional, IterableDataset[Any]):
    """An iterable pipe, composed of other pipes: subclasses define ``__iter__``.

    Example:
        >>> from compat.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(4)).map(lambda x: x * x).batch(3))
        [[0, 1, 4], [9]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def reset(self) -> None:
        """Called when iteration restarts; without effect, as there is no state."""


class DFIterDataPipe(IterDataPipe):
    """The class of pipes of data frames, for ``isinstance`` checks of programs."""


class MapDataPipe(_Functional, Dataset[Any]):
    """A map-style pipe, composed of other pipes: subclasses define ``__getitem__`` and ``__len__``."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return (self[n] for n in range(len(self)))


class DataChunk(list[Any]):
    """A batch of a pipe."""

    def __init__(self, items: Any):
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The samples as text."""
        return indent + "[" + ", ".join(map(str, self)) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """The samples."""
        return iter(list(self))
