"""``torch.utils._config_module``: modules of settings, where an unknown name raises."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["ConfigModule"]

_FILE = Path(__file__).parents[1] / "_configs.txt"


@functools.cache
def _defaults() -> dict[str, dict[str, str]]:
    """By the address of each module, its settings and their defaults as text; ``-> name`` for another name of one."""
    found: dict[str, dict[str, str]] = {}
    own: dict[str, str] = {}
    for line in _FILE.read_text().splitlines():
        if line.startswith("["):
            own = found[line[1:-1]] = {}
        elif line:
            name, _, value = line.partition(" ")
            own[name] = value
    return found


class ConfigModule(ModuleType):
    """A module of settings: PyTorch's names and defaults, of which none changes what compat does.

    Attributes:
        _config: the settings' values; the names of nested ones have dots.
        _aliases: other names of settings.

    Raises:
        AttributeError: for a setting that there is not, when it is read or assigned.

    Example:
        >>> torch._dynamo.config.cache_size_limit = 32
        >>> torch._dynamo.config.recompile_limit
        32
        >>> torch._dynamo.config.cache_size = 32
        Traceback (most recent call last):
        AttributeError: torch._dynamo.config.cache_size does not exist
        >>> with torch._dynamo.config.patch(verbose=True):
        ...     torch._dynamo.config.verbose
        True
    """

    _config: dict[str, Any]
    _aliases: dict[str, str]

    def __setattr__(self, name: str, value: Any) -> None:
        known = self._aliases.get(name, name)
        if known in self._config:
            self._config[known] = value
        elif _is_of_module(name, value) or name in self.__dict__:
            super().__setattr__(name, value)
        else:
            raise AttributeError(f"{_shown(self.__name__)}.{name} does not exist")

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__["_aliases"].get(name, name)
        if known in self.__dict__["_config"]:
            return self._config[known]
        if any(setting.startswith(f"{name}.") for setting in self._config):
            return _Group(self, name)
        raise AttributeError(f"{_shown(self.__name__)}.{name} does not exist")

    def __delattr__(self, name: str) -> None:
        del self._config[self._aliases.get(name, name)]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name.partition(".")[0] for name in self._config)})

    @contextmanager
    def patch(self, arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
        """Sets settings for the time of a ``with`` block, or of a decorated function.

        Args:
            arg1, arg2: a name and its value, or a dictionary of them.
            kwargs: or values by name.

        Raises:
            AttributeError: for a setting that there is not.
        """
        changes = kwargs if arg1 is None else {arg1: arg2} if isinstance(arg1, str) else arg1
        before = {name: self._read(name) for name in changes}
        try:
            for name, value in changes.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def _read(self, name: str) -> Any:
        known = self._aliases.get(name, name)
        if known not in self._config:
            raise AttributeError(f"{_shown(self.__name__)}.{name} does not exist")
        return self._config[known]

    def get_config_copy(self) -> dict[str, Any]:
        """The settings' values by name."""
        return deepcopy(self._config)

    shallow_copy_dict = to_dict = get_config_copy

    def load_config(self, maybe_pickled_config: dict[str, Any]) -> None:
        """Sets settings from a dictionary.

        Args:
            maybe_pickled_config: as ``get_config_copy`` returns it.
        """
        self._config.update(maybe_pickled_config)


class _Group:
    """Settings with a common prefix, such as those of ``config.triton``."""

    def __init__(self, module: ConfigModule, name: str):
        self.__dict__.update(_module=module, _name=name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_module"], f"{self.__dict__['_name']}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_module"], f"{self.__dict__['_name']}.{name}", value)


def _is_of_module(name: str, value: Any) -> bool:
    """Whether it is what the import system sets: a submodule, or ``__spec__`` and others."""
    return isinstance(value, ModuleType) or (name.startswith("__") and name.endswith("__"))


def _shown(module: str) -> str:
    return "torch." + module.partition(".")[2]


def _value(text: str) -> Any:
    return set() if text == "set()" else ast.literal_eval(text)


def configure(module: str) -> None:
    """Makes a module one of settings.

    Args:
        module: its name, among those of ``sys.modules``.
    """
    found: Any = sys.modules[module]
    table = _defaults()[module.partition(".")[2]]
    values = {name: _value(text[2:]) for name, text in table.items() if text.startswith("=")}
    aliases = {name: text.rpartition(".")[2] for name, text in table.items() if text.startswith("->")}
    found.__dict__.update(_config=values, _aliases=aliases)
    found.__class__ = ConfigModule
