"""The size of a ragged dimension: a symbol, which equals only itself."""

from __future__ import annotations

import itertools
from typing import Any
from weakref import ref

from compat._core.types.size import SymbolicSize
from compat._symint import SymInt

_numbers = itertools.count(1)


class RaggedSize(SymInt, SymbolicSize):
    """The size of a ragged dimension, shared by tensors with the same offsets.

    Example:
        >>> j = RaggedSize()
        >>> j == j, j == RaggedSize(), j == 3, j > 1
        (True, False, False, True)
    """

    def __init__(self, number: int | None = None, factor: int = 1):
        super().__init__(None)
        self._number = next(_numbers) if number is None else number
        self._factor = factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedSize) and (other._number, other._factor) == (self._number, self._factor)

    def __hash__(self) -> int:
        return hash((self._number, self._factor))

    def __mul__(self, factor: Any) -> RaggedSize:
        if not isinstance(factor, int):
            return NotImplemented
        return RaggedSize(self._number, self._factor * factor)

    __rmul__ = __mul__

    def __ge__(self, other: Any) -> bool:
        return self._at_least(other, 2)

    def __gt__(self, other: Any) -> bool:
        return self._at_least(other, 1)

    def __le__(self, other: Any) -> bool:
        return not self._at_least(other, 1)

    def __lt__(self, other: Any) -> bool:
        return not self._at_least(other, 2)

    def _at_least(self, other: Any, least: int) -> bool:
        if self == other:
            return least == 2
        if isinstance(other, int) and other <= least:
            return True
        raise ValueError("nested int ordering is undefined for numbers that the size of a ragged dimension may have")

    def __int__(self) -> int:
        raise TypeError(f"the size {self} of a ragged dimension is not a number; see Tensor.offsets()")

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> Any:
        raise TypeError("the size of a ragged dimension cannot be pickled; pickle the nested tensor")

    def __repr__(self) -> str:
        return f"j{self._number}" if self._factor == 1 else f"{self._factor}*j{self._number}"

    __str__ = __repr__


class SizesByTensor:
    """The size of the ragged dimension for each tensor of offsets or lengths, by identity, while the tensor lives."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[ref[Any], RaggedSize]] = {}

    def get(self, tensor: Any) -> RaggedSize | None:
        """The size; None if there is none."""
        found = self._found.get(id(tensor))
        return None if found is None else found[1]

    def __getitem__(self, tensor: Any) -> RaggedSize:
        return self._found[id(tensor)][1]

    def __setitem__(self, tensor: Any, size: RaggedSize) -> None:
        key, sizes = id(tensor), self._found
        sizes[key] = ref(tensor, lambda _: sizes.pop(key, None)), size

    def __contains__(self, tensor: Any) -> bool:
        return id(tensor) in self._found

    def __len__(self) -> int:
        return len(self._found)


RaggedSize.__name__ = RaggedSize.__qualname__ = "SymInt"
RaggedSize.__module__ = "torch"
