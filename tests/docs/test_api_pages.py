"""Nothing public is missing from the API reference."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "api"


def listed(text: str) -> set[str]:
    """What a page shows: each ``::: name``, or the members that it lists."""
    names = set()
    for directive in re.split(r"^::: ", text, flags=re.MULTILINE)[1:]:
        name, _, options = directive.partition("\n")
        members = re.findall(r"^ +- (\w+)$", options, re.MULTILINE)
        names |= {f"{name}.{member}" for member in members} if "members:" in options else {name}
    return names


@pytest.mark.parametrize(("package", "pages"), [("funcgrad", "funcgrad/*.md"), ("funcgrad.numpy", "numpy.md")])
def test_every_public_function_is_on_a_page(package: str, pages: str) -> None:
    shown = set().union(*[listed(page.read_text()) for page in PAGES.glob(pages)])
    module = importlib.import_module(package)
    missing = []
    for name, value in vars(module).items():
        if name.startswith("_") or not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        homes = {value.__module__, f"{value.__module__}.{value.__name__}", f"{package}.{name}"}
        if value.__module__.startswith("funcgrad") and not homes & shown:
            missing.append(f"{name} (from {value.__module__})")
    assert missing == []


def test_what_a_page_lists() -> None:
    text = "# A\n\n::: a.b\n    options:\n      members:\n        - c\n        - d\n\n::: e.f\n"
    assert listed(text) == {"a.b.c", "a.b.d", "e.f"}


@pytest.mark.parametrize("page", sorted(PAGES.rglob("*.md")), ids=lambda page: page.stem)
def test_everything_that_a_page_names_is_there(page: Path) -> None:
    missing = []
    for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []
