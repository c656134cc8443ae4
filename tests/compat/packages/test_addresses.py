"""``torch.`` has PyTorch's names and no others; classes name PyTorch's modules.

The names are PyTorch 2.13's; ``golden/make_names.py`` recorded them.
"""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import compat
from compat._addresses import OURS, PRIVATE, is_shown

GOLDEN = Path(__file__).parents[1] / "golden"
PACKAGE = Path(compat.__file__).parent
#: compat's own names: how it takes PyTorch's place, and its reports on deferred execution; and a module that PyTorch
#: makes without a file.
ADDED = {"install", "runtime", "distributed._tensor.device_mesh"}
#: Modules in which a class belongs to another module than in PyTorch, since a package of files there is one file here.
ONE_FILE = (
    "cpu.amp", "cuda", "cuda.amp", "distributed", "jit", "library._custom_op", "multiprocessing", "profiler",
    "profiler._events",
)  # fmt: skip


def recorded(name: str) -> dict[str, list[str]]:
    lines = (GOLDEN / f"{name}.txt").read_text().splitlines()
    return {key: names.split() for key, _, names in (line.partition(":") for line in lines)}


def modules() -> Iterator[str]:
    """Every module of compat, without ``compat.``."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_module_under_torch_is_one_of_pytorchs() -> None:
    theirs = {f"{folder}.{name}".removeprefix(".") for folder, names in recorded("modules").items() for name in names}
    shown = {name for name in modules() if is_shown(name)}
    assert len(shown) > 200
    assert shown - theirs == ADDED
    assert set(modules()) >= PRIVATE | OURS


def test_private_modules_are_not_attributes_of_torch() -> None:
    compat.install()
    try:
        import torch

        hidden = [name for name in modules() if not is_shown(name)]
        assert len(hidden) > 200
        for name in hidden:
            if name.rpartition(".")[0] and not is_shown(name.rpartition(".")[0]):
                continue  # its package is not installed
            with pytest.raises(ModuleNotFoundError):
                importlib.import_module(f"torch.{name}")
        reachable = {name.removeprefix("torch.") for name in sys.modules if name.startswith("torch.")}
        assert {name for name in reachable if not is_shown(name)} == set()
        assert not [
            name for name in dir(torch) if name in ("_core", "_operators", "lens", "hosted", "levels", "naming")
        ]
    finally:
        compat.uninstall()


def test_libraries_may_have_any_name() -> None:
    for name in ("attention", "sorting", "argument_errors", "namespace", "annotations", "Any"):
        assert repr(getattr(compat.ops, name)) == f"<module 'torch.ops.{name}' from 'torch.ops'>"
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("compat.ops.argument_errors")


def public_classes() -> Iterator[tuple[str, type, str]]:
    """Public classes that PyTorch has, too: the name, the class, PyTorch's module."""
    for module, names in recorded("classes").items():
        for name in names:
            place, _, last = name.rpartition(".")
            try:
                found = getattr(importlib.import_module(f"compat.{place}".removesuffix(".")), last, None)
            except ImportError:
                continue
            if isinstance(found, type):
                yield name, found, module


def test_classes_have_pytorchs_module_names() -> None:
    wrong, count = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, kind, module in public_classes():
            own = kind.__module__.removeprefix("compat").removeprefix("torch").removeprefix(".")
            if own.startswith(("_distributed.", "distributed.", "nn.parallel._")):  # PyTorch has them in C++
                continue
            if own in ONE_FILE or kind.__module__.partition(".")[0] not in ("compat", "torch"):
                continue
            count += 1
            if own != module:
                wrong.append((name, kind.__module__, kind.__qualname__, module))
            elif own.startswith("_C."):  # which are not Python modules
                continue
            elif (
                getattr(importlib.import_module(f"compat.{own}".removesuffix(".")), kind.__qualname__, None) is not kind
            ):
                wrong.append((name, kind.__module__, kind.__qualname__, module))
    assert count > 600
    assert wrong == []


@pytest.mark.parametrize(
    "made",
    [
        compat.nn.CTCLoss, lambda: compat.nn.MultiheadAttention(4, 2), lambda: compat.nn.PixelShuffle(2),
        lambda: compat.nn.Bilinear(2, 2, 1), lambda: compat.nn.LazyConv2d(3, 1), compat.nn.RReLU,
    ],
)  # fmt: skip
def test_pickles_have_pytorchs_module_names(made: Callable[[], Any]) -> None:
    module = made()
    assert type(pickle.loads(pickle.dumps(module))) is type(module)
