"""Errors for absent and read-only names of modules, with PyTorch's messages.

Errors of a module have its name in PyTorch, whatever it is imported as; an attribute of tensors that
follows from others raises when it is written.

Example:
    >>> import compat as torch
    >>> torch.nn.Liner
    Traceback (most recent call last):
    AttributeError: module 'torch.nn' has no attribute 'Liner'
    >>> torch.ones(2).shape = (1, 2)
    Traceback (most recent call last):
    AttributeError: attribute 'shape' of 'torch._C.TensorBase' objects is not writable
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from compat._absent import missing
from compat._core.tensor.registry import publishing
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import no_attribute


def _refuse(module: str, name: str) -> Any:
    """The handler of names that a module lacks."""
    found = missing(module.removeprefix("compat."), name)
    if found is None:
        raise no_attribute(module, name)
    setattr(sys.modules[module], name, found)
    return found


def name_modules() -> None:
    """Installs these errors in the loaded modules of compat, except those with their own ``__getattr__``."""
    # In the module's own names, not by a class of modules, of which Python finds attributes more slowly.
    for name, module in sys.modules.copy().items():  # at once: other threads import
        if name.startswith("compat.") and isinstance(module, ModuleType):
            module.__dict__.setdefault("__getattr__", partial(_refuse, name))


def _unwritable(name: str) -> Callable[..., None]:
    def refuse(t: Tensor, *value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    return refuse


def _sealed(value: Any, place: str, name: str) -> Any:
    """A read-only attribute of tensors, with PyTorch's error when it is written."""
    if place != "Tensor" or type(value) is not property or value.fset is not None:
        return value
    refuse = _unwritable(name)
    return property(value.fget, refuse, value.fdel or refuse, value.__doc__)


def seal_attributes() -> None:
    """Gives read-only attributes of tensors PyTorch's error when they are written, those published later,
    too."""
    for name, found in list(vars(Tensor).items()):
        if type(found) is property:
            setattr(Tensor, name, _sealed(found, "Tensor", name))
    publishing.append(_sealed)
