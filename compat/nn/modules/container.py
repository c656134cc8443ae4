"""Modules that hold modules: ``Sequential``, ``ModuleList``, ``ModuleDict``."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from compat.nn.modules.module import Module

S = TypeVar("S", bound="_Numbered")


class _Numbered(Module):
    """Modules under the names ``"0"``, ``"1"``, …, in that order."""

    def _index_(self, index: Any) -> int:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"index {number} is out of range")
        return number % len(self)

    def _name_at_(self, index: Any) -> str:
        """The name of the module at an index; overridden by sequences with other names."""
        return next(itertools.islice(self._modules, self._index_(index), None))

    def __setitem__(self, idx: Any, module: Any) -> None:
        setattr(self, self._name_at_(idx), module)

    def __delitem__(self, idx: Any) -> None:
        names = list(self._modules)[idx] if isinstance(idx, slice) else [self._name_at_(idx)]
        for name in names:
            delattr(self, name)
        self._renumber_(list(self._modules.values()))

    def _renumber_(self, modules: list) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self: S, module: Module) -> S:
        """Adds a module at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def _insert_(self, index: int, module: Any) -> None:
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber_(modules)

    def pop(self, index: Any) -> Any:
        """Removes the module at ``index`` and returns it.

        Raises:
            IndexError: if there is none.
        """
        module = self[index]  # type: ignore[index]
        del self[index]
        return module


class Sequential(_Numbered):
    """Modules that run one after the other: each gets the output of the previous one.

    Args:
        *args: the modules, or one ``OrderedDict`` of names and modules.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
        >>> net(torch.ones(3, 4)).shape
        torch.Size([3, 2])
        >>> net[1]
        ReLU()
    """

    def __init__(self, *args: Any):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at_(index)]

    def insert(self, index: int, module: Module) -> Sequential:
        """Inserts a module before ``index``; returns the container.

        Raises:
            AssertionError: if it is not a module.
            IndexError: for an index out of range.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._insert_(index, module)
        return self

    def extend(self, sequential: Iterable[Any]) -> Sequential:
        """Adds modules at the end; returns the container."""
        for module in sequential:
            self.append(module)
        return self

    def _check_sequential_(self, other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")

    def __add__(self, other: Any) -> Sequential:
        self._check_sequential_(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        self._check_sequential_(other)
        return self.extend(other)

    def _check_factor_(self, factor: Any) -> None:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")

    def __mul__(self, other: int) -> Sequential:
        self._check_factor_(other)
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        self._check_factor_(other)
        return self.extend(list(self) * (other - 1))


class ModuleList(_Numbered):
    """A list of submodules.

    Args:
        modules: the initial modules.

    Example:
        >>> torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3))
        ModuleList(
          (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
        )
    """

    def __init__(self, modules: Iterable[Any] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[str(self._index_(index))]

    def insert(self, index: int, module: Module) -> None:
        """Inserts a module before ``index``, with the semantics of ``list.insert``."""
        self._insert_(index, module)

    def extend(self, modules: Iterable[Any]) -> ModuleList:
        """Adds modules at the end; returns the list.

        Raises:
            TypeError: if ``modules`` is not iterable.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, modules: Iterable[Any]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Equal consecutive modules are shown once, with their count."""
        if not len(self):
            return self._get_name() + "()"
        lines, start = [], 0
        for text, same in itertools.groupby(map(repr, self)):
            count = sum(1 for _ in same)
            which, times = (f"({start})", "") if count == 1 else (f"({start}-{start + count - 1})", f"{count} x ")
            lines.append(f"\n  {which}: {times}" + text.replace("\n", "\n  "))
            start += count
        return f"{self._get_name()}({''.join(lines)}\n)"


class ModuleDict(Module):
    """A dictionary of submodules.

    Args:
        modules: the initial modules: a mapping, or pairs.

    Example:
        >>> choices = torch.nn.ModuleDict({"relu": torch.nn.ReLU(), "tanh": torch.nn.Tanh()})
        >>> choices["tanh"]
        Tanh()
    """

    def __init__(self, modules: Any = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Removes the module under ``key`` and returns it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of key and module."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds or replaces modules: those of a mapping, or of pairs.

        Raises:
            TypeError, ValueError: if it is neither.
        """
        for key, module in pairs_of(modules, "ModuleDict", "ModuleDict"):
            self[key] = module


def pairs_of(given: Any, call: str, name: str) -> list[tuple[Any, Any]]:
    """The items of a mapping, or of an iterable of pairs.

    Raises:
        TypeError, ValueError: if it is neither, in the name of ``call.update`` or of ``name``.
    """
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{call}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, Mapping) or (hasattr(given, "items") and not isinstance(given, list)):
        return list(given.items())
    pairs = []
    for place, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{place} should be Iterable; is{type(pair).__name__}")
        entries = tuple(pair)
        if len(entries) != 2:
            raise ValueError(f"{name} update sequence element #{place} has length {len(entries)}; 2 is required")
        pairs.append(entries)
    return pairs
