"""Modules that hold parameters: ``ParameterList`` and ``ParameterDict``."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn.modules.container import pairs_of
from compat.nn.modules.module import Module
from compat.nn.modules.utils import tensor_type
from compat.nn.parameter import Parameter


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _line(key: Any, value: Any, dtype: Any) -> str:
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.shape)
    return f"  ({key}): {kind} containing: [{dtype} of size {size}]"


class ParameterList(Module):
    """A list of parameters, and of anything else; tensors become parameters.

    Args:
        values: the initial parameters.

    Example:
        >>> weights = torch.nn.ParameterList([torch.ones(2), torch.ones(3, 1)])
        >>> [tuple(p.shape) for p in weights.parameters()]
        [(2,), (3, 1)]
    """

    __module__ = "compat.nn.modules.container"

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name_at_(self, index: Any) -> str:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"index {number} is out of range")
        return str(number % len(self))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name_at_(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, self._name_at_(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(i)) for i in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end; returns the list."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end; returns the list.

        Raises:
            TypeError: if ``values`` is not iterable, or is one tensor.
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_line(i, value, getattr(value, "dtype", None)) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters, and of anything else; tensors become parameters.

    Keys are strings. It keeps them in the order in which they came; those of a mapping are sorted, unless it is an
    ``OrderedDict``.

    Args:
        parameters: the initial parameters: a mapping, or pairs.
    """

    __module__ = "compat.nn.modules.container"

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _checked_(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._checked_(key))

    def __setitem__(self, key: str, value: Any) -> None:
        value = _as_parameter(value)
        name = self._checked_(key)
        setattr(self, name, value)
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._checked_(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same values."""
        return ParameterDict(list(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value under ``key``, which is set to ``default`` if missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes all entries."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes the value under ``key`` and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes the last entry, and returns its key and value."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value under ``key``, or ``default``."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary with ``default`` under each of ``keys``."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of key and value."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds or replaces values: those of a mapping, or of pairs.

        Raises:
            TypeError, ValueError: if it is neither.
        """
        pairs = pairs_of(parameters, "ParametersDict", "ParameterDict")
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs.sort(key=operator.itemgetter(0))
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_line(k, v, tensor_type(v) if isinstance(v, Tensor) else None) for k, v in self.items())

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Mapping[str, Any]) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: Mapping[str, Any]) -> ParameterDict:
        merged = ParameterDict(other)
        merged.update(self)
        return merged

    def __ior__(self, other: Mapping[str, Any]) -> ParameterDict:
        self.update(other)
        return self
