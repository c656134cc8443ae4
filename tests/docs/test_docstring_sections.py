"""Docstrings of public functions of funcgrad: an example, what is raised, and every parameter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy.linalg
import funcgrad.scipy.stats as stats
import funcgrad.test_util

DISTRIBUTIONS = [m for m in vars(stats).values() if inspect.ismodule(m) and not m.__name__.endswith(".parts")]
#: Each with what else says what parameters mean: a package's docstring, and NumPy's function of the same name.
PACKAGES: dict[ModuleType, tuple[ModuleType | None, Any]] = {
    fg: (None, None),
    fg.numpy: (fg.numpy, np),
    fg.linalg: (funcgrad.numpy.linalg, np.linalg),
    fg.fft: (fg.fft, np.fft),
    fg.special: (fg.special, None),
    fg.random: (fg.random, None),
    fg.nn: (fg.nn, None),
    fg.extend: (None, None),
    fg.lax: (fg.lax, None),
    fg.lax.linalg: (fg.lax, None),
    fg.flatten_util: (None, None),
    funcgrad.test_util: (None, None),
    fg.scipy.linalg: (fg.scipy.linalg, None),
    fg.scipy.signal: (None, None),
    fg.scipy.integrate: (None, None),
    **dict.fromkeys(DISTRIBUTIONS, (stats, None)),
}


def public(package: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in vars(package).items():
        of_house = (getattr(value, "__module__", None) or "").startswith("funcgrad")
        shown = not name.startswith("_") and name in getattr(package, "__all__", [name])
        if shown and of_house and callable(value) and not inspect.isclass(value):
            is_own = package not in DISTRIBUTIONS or value.__module__ == package.__name__
            if is_own and hasattr(value, "__name__"):
                yield name, value


FUNCTIONS = [(package, name, f) for package in PACKAGES for name, f in public(package)]
NAMES = [f"{package.__name__}.{name}" for package, name, _ in FUNCTIONS]


def explained(package: ModuleType, name: str, f: Callable[..., Any]) -> set[str]:
    """The parameters that need no word in the function's own docstring."""
    convention, library = PACKAGES[package]
    homes = [m for m in (fg.numpy, funcgrad.numpy.linalg) if f.__module__.startswith(m.__name__)]
    texts = [m.__doc__ or "" for m in (convention, package, *homes) if m is not None]
    found = {
        word for text in texts for quoted in re.findall("``([^`]+)``", text) for word in re.findall(r"\w+", quoted)
    }
    try:
        return found | set(inspect.signature(getattr(library, name)).parameters)
    except (AttributeError, TypeError, ValueError):
        return found


def test_every_function_has_an_example() -> None:
    assert [n for n, (_, _, f) in zip(NAMES, FUNCTIONS, strict=True) if ">>>" not in (inspect.getdoc(f) or "")] == []


def test_what_a_function_raises_is_said() -> None:
    missing = []
    for name, (_, _, f) in zip(NAMES, FUNCTIONS, strict=True):
        raises = inspect.isfunction(f) and re.search(r"^\s+raise ", inspect.getsource(inspect.unwrap(f)), re.MULTILINE)
        if raises and "Raises:" not in (inspect.getdoc(f) or ""):
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_parameter_is_explained(package: ModuleType) -> None:
    missing = {}
    for name, f in public(package):
        text = (inspect.getdoc(f) or "").partition("Example:")[0]
        try:
            parameters = set(inspect.signature(f).parameters)
        except (TypeError, ValueError):  # a primitive's operands are the domain's
            continue
        unsaid = {p for p in parameters - explained(package, name, f) if not re.search(rf"\b{p}\b", text)}
        if unsaid:
            missing[name] = sorted(unsaid)
    assert missing == {}
