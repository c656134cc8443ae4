"""Every primitive is in the tables of a test."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import funcgrad
from funcgrad.core.primitive import Primitive

FOLDER = Path(__file__).parents[1]


def primitives() -> dict[str, Primitive]:
    """All primitives that funcgrad's modules define, by name, except those of ``funcgrad.native`` and of interpreters.

    These are put into programs that are compiled, after all transforms; ``tests/funcgrad/native`` and
    ``tests/funcgrad/interpreters`` test them.
    """
    found: dict[str, Primitive] = {}
    for info in pkgutil.walk_packages(funcgrad.__path__, "funcgrad."):
        if info.name.startswith(("funcgrad.native", "funcgrad.interpreters")):
            continue
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, Primitive):
                assert found.setdefault(value.name, value) is value, f"two primitives are called {value.name!r}"
    return found


def covered() -> set[str]:
    """The names in the ``CASES`` of the test modules."""
    names: set[str] = set()
    for path in sorted(FOLDER.rglob("test_*.py")):
        if re.search(r"^CASES\b", path.read_text(), re.MULTILINE):
            names |= set(
                importlib.import_module(".".join(path.relative_to(FOLDER.parents[1]).with_suffix("").parts)).CASES
            )
    return names


def test_every_primitive_is_tested() -> None:
    missing = set(primitives()) - covered()
    assert not missing, f"not in the CASES of any test: {', '.join(sorted(missing))}"


def test_every_case_is_of_a_primitive() -> None:
    stale = covered() - set(primitives())
    assert not stale, f"no such primitive: {', '.join(sorted(stale))}"


def test_every_primitive_has_the_rules_it_needs() -> None:
    for name, primitive in primitives().items():
        assert primitive.elementwise or primitive.batch is not None or name in ("iota", "axis_index"), (
            f"{name} cannot be batched"
        )
        derivatives = [primitive.partials, primitive.transpose, primitive.jvp, primitive.vjp]
        assert primitive.differentiable == any(r is not None for r in derivatives), f"{name}: has it a derivative?"
