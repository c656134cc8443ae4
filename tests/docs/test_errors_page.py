"""Every error that leads to the page of errors leads to an entry that is there, and every entry is led to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import compat as torch
import funcgrad as fg
from compat._core.types import errors as of_compat
from funcgrad.core import errors

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "help" / "errors.md").read_text()
ENTRIES = set(re.findall(r"^### .*\{#([\w-]+)\}$", PAGE, re.MULTILINE))


def named() -> Iterator[str]:
    """The entries that the code names: to ``explained``, to an error's ``entry=``, as a class's ``entry``."""
    yield from of_compat.ENTRIES.values()
    for path in [p for package in ("funcgrad", "compat") for p in (ROOT / package).rglob("*.py")]:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if re.search(r"\bexplained\(|\bentry\b", text) else ():
            match node:
                case ast.Call(func=ast.Name(id="explained"), args=[_, ast.Constant(value=str(entry)), *_]):
                    yield entry
                case ast.keyword(arg="entry", value=ast.Constant(value=str(entry))):
                    yield entry
                case ast.Assign(targets=[ast.Name(id="entry")], value=ast.Constant(value=str(entry))):
                    yield entry


def test_entries_are_those_that_errors_name() -> None:
    assert set(named()) == ENTRIES


def raised(f: object) -> BaseException:
    with pytest.raises(Exception) as caught:
        f()  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize(
    ("f", "entry"),
    [
        (lambda: torch.ones(2, device="cuda"), "cuda"),
        (lambda: fg.grad(lambda x: x, 3.0), "transform-call"),
        (lambda: fg.jacrev(lambda x: x, fg.numpy.ones(2))(1.0), "transform-call"),
        (lambda: torch.func.grad(lambda x: x, torch.ones(1))(torch.ones(1)), "transform-call"),
        (lambda: fg.vmap(lambda x: x if x > 0 else -x)(fg.numpy.ones(2)), "branch-in-vmap"),
        (lambda: torch.func.vmap(lambda x: x if x > 0 else -x)(torch.ones(2)), "branch-in-vmap"),
        (lambda: fg.jit(lambda x: x if x > 0 else -x)(1.0), "concretization"),
        (lambda: torch.ones(2).sum().backward(), "no-graph"),
        (lambda: torch.ones(2, requires_grad=True).backward(), "scalar-output"),
        (lambda: torch.ones(2, requires_grad=True).numpy(), "numpy-of-graph"),
        (lambda: fg.grad(lambda x: x)(3), "integer-argument"),
    ],
)
def test_errors_lead_to_their_entries(f: object, entry: str) -> None:
    notes = getattr(raised(f), "__notes__", [])
    assert len(notes) == 1 and notes[0].endswith(f"/help/errors.html#{entry}")
    assert entry in ENTRIES


def test_messages_stay_as_they_are() -> None:
    assert str(raised(lambda: torch.ones(2, device="cuda"))) == "Torch not compiled with CUDA enabled"
    assert str(errors.ConcretizationError("why")) == "why"
