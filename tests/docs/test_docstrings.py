"""The examples in docstrings run and print what they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.compare import Checker

ROOT = Path(__file__).resolve().parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def module_names() -> list[str]:
    """The modules of both packages, found without importing any: a broken one fails its own test only.

    ``__main__`` modules, and those of ``_alias``, have effects when imported, and have no examples.
    """
    names = []
    for package in ("funcgrad", "compat"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[-1] != "__main__" and "_alias" not in parts:
                names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def examples(module: ModuleType) -> Iterator[doctest.DocTest]:
    """The doctests of a module: of its functions and classes, and of callable objects that carry a docstring.

    doctest itself finds functions and classes only; an op or a primitive made by a decorator is an object.
    """
    finder = doctest.DocTestFinder(exclude_empty=True)
    yield from (test for test in finder.find(module, module.__name__) if written_in(module, test))
    for name, value in list(vars(module).items()):  # running an example may define names in the module
        if inspect.isclass(value) and value.__name__ == name and shown_elsewhere(value, module):
            yield from finder.find(value, f"{module.__name__}.{name}", module)
        if inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value):
            continue
        own = getattr(value, "__module__", None) == module.__name__ and "__doc__" in getattr(value, "__dict__", ())
        if own and isinstance(value.__doc__, str):
            yield from finder.find(value, f"{module.__name__}.{name}", module)


def shown_elsewhere(kind: type, module: ModuleType) -> bool:
    """Whether a class of this module has another module's name, as ``Tensor`` does, which is ``torch.Tensor``."""
    functions = [value for value in vars(kind).values() if inspect.isfunction(value)]
    if not functions or kind.__module__ == module.__name__:
        return False
    return functions[0].__globals__ is vars(module)  # later ones may be set on it by other modules


def written_in(module: ModuleType, test: doctest.DocTest) -> bool:
    """False for a property whose getter is a function of another module: its example uses that module's names."""
    found: object = module
    top = (
        getattr(module, test.name.removeprefix(module.__name__).split(".")[1], None)
        if "." in test.name.removeprefix(module.__name__)
        else None
    )
    if inspect.isclass(top) and any(
        inspect.isfunction(f) and f.__globals__ is not vars(module) for f in list(vars(top).values())[:12]
    ):
        return shown_elsewhere(top, module)  # defined in another module, whose names its example uses
    for part in test.name.removeprefix(module.__name__).split(".")[1:]:
        found = inspect.getattr_static(found, part, None)
    getter = found.fget if isinstance(found, property) else None
    return getter is None or getter.__module__ == module.__name__


#: Modules whose examples show deferral.
DEFERRED = ("compat.runtime", "funcgrad.runtime", "compat._compile")


def _cases() -> list[Any]:
    marked = {name for name in module_names() if name.startswith(DEFERRED)}
    return [pytest.param(n, marks=pytest.mark.deferral) if n in marked else n for n in module_names()]


@pytest.fixture
def no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An example shows an error's message without the notes below it, which link to the documentation."""
    only = traceback.format_exception_only
    monkeypatch.setattr(traceback, "format_exception_only", lambda *args, **options: only(*map(_bare, args), **options))


def _bare(error: Any) -> Any:
    if isinstance(error, BaseException):
        vars(error).pop("__notes__", None)
    return error


@pytest.mark.parametrize("name", _cases())
@pytest.mark.usefixtures("no_notes")
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in ("compat", "funcgrad"):
            raise
        pytest.skip(f"needs the package {missing.name}")
    runner = doctest.DocTestRunner(Checker(), optionflags=FLAGS, verbose=False)
    report: list[str] = []
    for test in examples(module):
        if name.startswith("compat"):
            test.globs["torch"] = importlib.import_module("compat")
        if test.examples:
            runner.run(test, out=report.append)
    assert runner.failures == 0, "\n" + "".join(report)


# ---------------------------------------------------------------- the harness itself


class Callable:
    def __call__(self) -> None: ...


def sample(docstring: str) -> ModuleType:
    module = ModuleType("sample")
    exec("def f(): pass", vars(module))
    module.f.__doc__ = docstring
    module.op = Callable()
    module.op.__doc__ = docstring
    module.op.__module__ = "sample"
    return module


@pytest.mark.parametrize(("shown", "failures"), [("2", 0), ("3", 2)])
def test_functions_and_objects_are_examined(
    shown: str, failures: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = sample(f"Adds.\n\nExamples:\n    >>> 1 + 1\n    {shown}\n")
    monkeypatch.setitem(sys.modules, "sample", module)
    runner = doctest.DocTestRunner(Checker(), optionflags=FLAGS, verbose=False)
    found = list(examples(module))
    assert [test.name for test in found] == ["sample.f", "sample.op"]
    for test in found:
        runner.run(test, out=lambda text: None)
    assert runner.failures == failures
