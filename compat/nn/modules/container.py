"""Containers of modules, ``Sequential``, ``ModuleList`` and ``ModuleDict``, and of parameters."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from compat._core.tensor.tensor import Tensor
from compat.nn.modules.module import Module
from compat.nn.modules.utils import tensor_type
from compat.nn.parameter import Parameter

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
            indices, times = (f"({start})", "") if count == 1 else (f"({start}-{start + count - 1})", f"{count} x ")
            lines.append(f"\n  {indices}: {times}" + text.replace("\n", "\n  "))
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
        for key, module in _pairs_of(modules, "ModuleDict", "ModuleDict"):
            self[key] = module


def _pairs_of(given: Any, call: str, name: str) -> list[tuple[Any, Any]]:
    """The items of a mapping, or of an iterable of pairs.

    Args:
        given: the argument of ``update``.
        call, name: the names of the class in errors about the argument and about its elements.

    Raises:
        TypeError, ValueError: if it is neither.
    """
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{call}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, Mapping) or (hasattr(given, "items") and not isinstance(given, list)):
        return list(given.items())
    pairs = []
    for i, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{i} should be Iterable; is{type(pair).__name__}")
        entries = tuple(pair)
        if len(entries) != 2:
            raise ValueError(f"{name} update sequence element #{i} has length {len(entries)}; 2 is required")
        pairs.append(entries)
    return pairs


# ---------------------------------------------------------------- parameters


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _repr_line(key: Any, value: Any, dtype: Any) -> str:
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.shape)
    return f"  ({key}): {kind} containing: [{dtype} of size {size}]"


class ParameterList(Module):
    """A list of parameters and other objects; tensors become parameters.

    Args:
        values: the initial parameters.

    Example:
        >>> weights = torch.nn.ParameterList([torch.ones(2), torch.ones(3, 1)])
        >>> [tuple(p.shape) for p in weights.parameters()]
        [(2,), (3, 1)]
    """

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
        return "\n".join(_repr_line(i, value, getattr(value, "dtype", None)) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters and other objects; tensors become parameters.

    Keys are strings, in the order of insertion; those of a mapping are sorted, unless it is an ``OrderedDict``.

    Args:
        parameters: the initial parameters: a mapping, or pairs.
    """

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
        pairs = _pairs_of(parameters, "ParametersDict", "ParameterDict")
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs.sort(key=operator.itemgetter(0))
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_repr_line(k, v, tensor_type(v) if isinstance(v, Tensor) else None) for k, v in self.items())

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
