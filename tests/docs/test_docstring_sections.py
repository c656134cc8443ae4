"""Docstrings of public functions of funcgrad: every argument explained, result, errors, an example."""

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
import funcgrad.tools.test_util
from funcgrad.numpy.creation.scalars import ScalarType

DISTRIBUTIONS = [m for m in vars(stats).values() if inspect.ismodule(m)]
#: Modules of which only their own definitions are public.
ALONE = [*DISTRIBUTIONS, fg.interop, fg.drawing]
#: Each with the other texts that explain its parameters: a package's docstring, and NumPy's function of the same name.
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
    funcgrad.tools.test_util: (None, None),
    fg.scipy.linalg: (fg.scipy.linalg, None),
    fg.scipy.signal: (None, None),
    fg.scipy.integrate: (None, None),
    fg.lax: (fg.lax, None),
    fg.initializers: (fg.initializers, None),
    fg.checkpoint_policies: (fg.checkpoint_policies, None),
    fg.debug: (None, None),
    fg.trees: (None, None),
    fg.interop: (None, None),
    fg.drawing: (None, None),
    **dict.fromkeys(DISTRIBUTIONS, (stats, None)),
}


def public(package: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in vars(package).items():
        of_house = (getattr(value, "__module__", None) or "").startswith("funcgrad")
        shown = not name.startswith("_") and name in getattr(package, "__all__", [name])
        if shown and of_house and callable(value) and not inspect.isclass(value):
            is_own = package not in ALONE or value.__module__ == package.__name__
            if is_own and hasattr(value, "__name__"):
                yield name, value


FUNCTIONS = [(package, name, f) for package in PACKAGES for name, f in public(package)]
NAMES = [f"{package.__name__}.{name}" for package, name, _ in FUNCTIONS]


def explained(package: ModuleType, name: str, f: Callable[..., Any]) -> set[str]:
    """The parameters that the function's own docstring need not explain."""
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


#: Functions that raise no error for any argument.
RAISES_NOTHING = {"disable_jit", "everything_saveable", "isscalar", "iterable", "nothing_saveable"}


def lacking(f: Callable[..., Any], name: str) -> list[str]:
    """The missing sections of a docstring; a callable object's ``__call__`` may have them."""
    texts = [f.__doc__ or "" for f in (f, type(f).__call__) if f is not None and f.__doc__ != ScalarType.__doc__]
    text = inspect.cleandoc(texts[0]) if texts else ""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        signature = inspect.Signature([inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)])
    wanted = ["Args"] * bool(signature.parameters) + ["Returns"] * (signature.return_annotation not in (None, "None"))
    wanted += ["Raises"] * (name not in RAISES_NOTHING)
    missing = [part for part in wanted if not re.search(rf"^{part}:\n    \S", text, re.MULTILINE)]
    return missing + ["an example"] * (not re.search(r"^Examples?:\n(.*\n)*?    >>> ", text, re.MULTILINE))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_docstrings_have_all_sections(package: ModuleType) -> None:
    found = {name: lacking(f, name) for name, f in public(package)}
    assert {name: parts for name, parts in found.items() if parts} == {}


@pytest.mark.parametrize("part", ["Args", "Returns", "Raises", "Example"])
def test_a_part_that_is_taken_out_is_missed(part: str) -> None:
    def sample(x: Any) -> Any:
        """Adds.

        Args:
            x: a number.

        Returns:
            A number.

        Raises:
            TypeError: for what is none.

        Example:
            >>> 1 + 1
            2
        """

    assert lacking(sample, "sample") == []
    blocks = inspect.cleandoc(sample.__doc__ or "").split("\n\n")
    sample.__doc__ = "\n\n".join(block for block in blocks if not block.startswith(part))
    assert lacking(sample, "sample") == ["an example" if part == "Example" else part]


def test_results_with_names_have_an_example() -> None:
    named = [getattr(package, name) for package in PACKAGES for name in getattr(package, "__all__", ())]
    ours = {t for t in named if inspect.isclass(t) and issubclass(t, tuple) and t.__module__.startswith("funcgrad")}
    assert ours and [t.__name__ for t in ours if ">>>" not in (t.__doc__ or "")] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_parameter_is_explained(package: ModuleType) -> None:
    missing = {}
    for name, f in public(package):
        text = (inspect.getdoc(f) or "").partition("Example:")[0]
        try:
            parameters = set(inspect.signature(f).parameters)
        except (TypeError, ValueError):  # a primitive's operands are those of its domain
            continue
        unsaid = {p for p in parameters - explained(package, name, f) if not re.search(rf"\b{p}\b", text)}
        if unsaid:
            missing[name] = sorted(unsaid)
    assert missing == {}
