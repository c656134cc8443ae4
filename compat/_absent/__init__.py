"""Stubs of absent features such as accelerators, for scripts that check for them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from compat._absent.table import TABLE
from funcgrad.core.errors import explained


def refusing(
    name: str, error: type[Exception], text: str, why: str = "the accelerator is not there", entry: str | None = None
) -> Callable[..., Any]:
    """A function that raises, as PyTorch's does without the needed feature."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise error(text) if entry is None else explained(error(text), entry)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raises ``{error.__name__}``: {why}."
    return refuse


def answering(name: str, make: Callable[[], Any], meaning: str) -> Callable[..., Any]:
    """A function that always returns the same value."""

    def answer(*args: Any, **kwargs: Any) -> Any:
        return make()

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"Whatever is asked about: {meaning}."
    return answer


# ---------------------------------------------------------------- stubs


@functools.cache
def _absences() -> tuple[dict[str, dict[str, bool]], dict[str, str]]:
    """The absent names of each module, and whether each has a stub; and the reason by address."""
    names: dict[str, dict[str, bool]] = {}
    reasons: dict[str, str] = {}
    for why, text in TABLE.items():
        for line in re.sub(r"\n[ ]+", " ", text).strip().splitlines():
            module, _, rest = line.partition(":")
            stand, _, away = rest.partition("-")
            own = names.setdefault(module, {})
            own |= dict.fromkeys(stand.split(), True) | dict.fromkeys(away.split(), False)
            reasons |= {f"{module}.{name}".removeprefix("."): why for name in own if name in rest.split()}
            while module and module not in reasons:  # its packages are there, too
                reasons[module] = why
                module = module.rpartition(".")[0]
    return names, reasons


def why_absent(address: str) -> str | None:
    """Why a name of PyTorch's, without ``torch.``, is not there; None of one that is not known to be missing."""
    return _absences()[1].get(address)


class _Refusing(type):
    """The metaclass of stub classes."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise explained(NotImplementedError(cls.__doc__), "absent")


def stand_in(module: str, name: str) -> Any:
    """The stub of an absent name: a class without instances, or a function that raises.

    Args:
        module: the module's address without ``torch.``.

    Raises:
        KeyError: for a name without a stub.

    Example:
        >>> stand_in("quantization", "QuantStub")()
        Traceback (most recent call last):
        NotImplementedError: torch.quantization.QuantStub is not there: compat has no quantized tensors
    """
    if not _absences()[0].get(module, {})[name]:
        raise KeyError(name)
    address = f"{module}.{name}".removeprefix(".")
    text = f"torch.{address} is not there: {why_absent(address)}"
    if not name.lstrip("_")[0].isupper():
        return refusing(name, NotImplementedError, text, why_absent(address) or "", "absent")
    return _Refusing(name, (), {"__module__": f"torch.{module}".removesuffix("."), "__doc__": text})


@functools.cache
def stand_in_module(address: str) -> ModuleType | None:
    """The stub of an absent module, with stubs as attributes; None if it has none.

    Args:
        address: without ``torch.``.
    """
    names, reasons = _absences()
    if address not in names and not any(known.startswith(f"{address}.") for known in names):
        return None
    made = ModuleType(f"torch.{address}", f"Not there: {reasons[address]}.")
    made.__path__ = []

    def find(name: str) -> Any:
        found = missing(address, name)
        if found is None:
            raise absent(f"torch.{address}", name)
        setattr(made, name, found)
        return found

    made.__getattr__ = find  # type: ignore[method-assign]
    return made


def missing(module: str, name: str) -> Any:
    """The stub of an absent name or module, or None.

    Args:
        module: the address of the module, without ``torch.``.
    """
    if not name:
        return None
    with suppress(KeyError):
        return stand_in(module, name)
    address = f"{module}.{name}".removeprefix(".")
    return None if name.startswith("__") else stand_in_module(address)


def absent(module: str, name: str) -> AttributeError:
    """The error for a name that is not in a module, with the reason if PyTorch has it.

    Args:
        module: as PyTorch calls it.
    """
    why = why_absent(f"{module}.{name}".partition(".")[2])
    error = AttributeError(f"module {module!r} has no attribute {name!r}" + (f": {why}" if why else ""), name=name)
    return explained(error, "absent") if why else error
