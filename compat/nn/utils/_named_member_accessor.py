"""Access to a module's tensors and submodules by dotted names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn.modules.module import Module

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_submodule", "swap_tensor"]

_MISSING = object()


def _check_name(name: str) -> None:
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def _tensors(module: Module, name: str) -> dict[str, Any] | None:
    """The registry of a module that has a tensor: its parameters, its buffers, or neither."""
    return next((table for table in (module._parameters, module._buffers) if name in table), None)


def set_tensor(module: Module, name: str, tensor: Any) -> None:
    """Replaces a tensor of a module.

    Raises:
        TypeError: for arguments that are not a module and a tensor.
        KeyError: for an invalid name.
    """
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Replaces a tensor of a module, and returns the old one.

    Args:
        allow_missing: whether the tensor may be missing.

    Raises:
        TypeError: for arguments that are not a module and a tensor.
        AttributeError: if there is no such tensor.
        KeyError: for an invalid name.
    """
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    _check_name(name)
    table: dict[str, Any] | None = _tensors(module, name)
    if table is None:
        table = module.__dict__
        if name not in table and not allow_missing:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    before = table.get(name, _MISSING)
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        table.pop(name, None)
    else:
        table[name] = tensor
    return before


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Replaces a direct submodule of a module, and returns the old one.

    Raises:
        TypeError: for an argument that is not a module.
        KeyError: for an invalid name.
        AttributeError: if there is no such submodule.
    """
    for argument in (module, submodule):
        if not isinstance(argument, Module):
            raise TypeError(f"{argument} is not an instance of torch.nn.Module")
    _check_name(name)
    before = module._modules.get(name)
    if before is None:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """Access to a module's tensors and submodules by dotted names, ``"encoder.weight"``.

    Args:
        module: the module.
    """

    def __init__(self, module: Module):
        self.module = module

    def _owner(self, path: str) -> tuple[Module, str]:
        """The submodule that has the tensor or submodule of a dotted name, and the last part of the name."""
        prefix, _, name = path.rpartition(".")
        return self.get_submodule(prefix), name

    def get_submodule(self, name: str) -> Module:
        """The submodule of a name."""
        return self.module.get_submodule(name)

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Replaces a submodule, and returns the old one."""
        return swap_submodule(*self._owner(path), value)

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of a name.

        Raises:
            AttributeError: if there is none.
            TypeError: if it is not a tensor.
        """
        owner, last = self._owner(name)
        found = getattr(owner, last, _MISSING)
        if found is _MISSING:
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
        if not isinstance(found, Tensor):
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Replaces a tensor."""
        set_tensor(*self._owner(name), value)

    def del_tensor(self, name: str) -> None:
        """Deletes a tensor."""
        swap_tensor(*self._owner(name), _MISSING)

    def swap_tensor(self, name: str, value: Tensor, allow_missing: bool = False) -> Any:
        """Replaces a tensor, and returns the old one."""
        return swap_tensor(*self._owner(name), value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """The tensors of several names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Replaces several tensors."""
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """``set_tensors`` of a dictionary."""
        self.set_tensors(named_tensors, named_tensors.values())

    def del_tensors(self, names: Iterable[str]) -> None:
        """Deletes several tensors."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Tensor], allow_missing: bool = False) -> list[Any]:
        """Replaces several tensors, and returns the old ones."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values, strict=True)]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """``swap_tensors`` of a dictionary; also returns the missing names."""
        before = {name: self.swap_tensor(name, value, True) for name, value in named_tensors.items()}
        missing = [name for name, value in before.items() if value is _MISSING]
        if missing and not allow_missing:
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """The missing and the unexpected names among ``keys``."""
        given, expected = set(keys), {name for name, _ in self.named_tensors()}
        return sorted(expected - given), sorted(given - expected)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The parameters."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The parameters, then the buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """The modules."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
