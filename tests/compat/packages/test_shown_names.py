"""While compat is installed, classes, functions and modules have PyTorch's names of modules."""

from __future__ import annotations

import ast
import inspect
import pickle
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

import compat
from compat._addresses import is_shown

from .test_addresses import ONE_FILE, modules, public_classes
from .test_install import run


@pytest.fixture
def torch() -> Iterator[typing.Any]:
    compat.install()
    import torch

    yield torch
    compat.uninstall()


def test_a_script_sees_pytorchs_names(tmp_path: Path) -> None:
    source = """
import pickle, sys, torch
from torch import nn
print(nn.Linear, type(nn.Sequential()), nn.Parameter, torch.no_grad, torch.finfo)
print(torch.add.__module__, torch.load.__module__, torch.compile.__module__, torch.nn.functional.relu.__module__)
print(nn.Linear.forward.__module__, torch.nn.__name__, torch.typename(nn.ReLU()))
print(pickle.dumps(nn.Linear, 0))
print("compat.distributions" in sys.modules, torch.distributions.Normal, "torch.distributions.normal" in sys.modules)
"""
    done = run(tmp_path, source)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "<class 'torch.nn.modules.linear.Linear'> <class 'torch.nn.modules.container.Sequential'> "
        "<class 'torch.nn.parameter.Parameter'> <class 'torch.autograd.grad_mode.no_grad'> <class 'torch.finfo'>",
        "torch torch.serialization torch torch.nn.functional",
        "torch.nn.modules.linear torch.nn torch.nn.modules.activation.ReLU",
        r"b'ctorch.nn.modules.linear\nLinear\np0\n.'",
        "False <class 'torch.distributions.normal.Normal'> True",
    ]


def test_public_classes_have_pytorchs_modules(torch: typing.Any) -> None:
    wrong, count = [], 0
    for name, kind, module in public_classes():
        own = kind.__module__.removeprefix("compat.")
        if own.startswith("_distributed.") or f"torch.{own}".startswith("torch.nn.parallel._") or own in ONE_FILE:
            continue
        count += 1
        if kind.__module__.partition(".")[0] == "compat" and is_shown(own):
            wrong.append((name, kind.__module__, module))
    assert count > 600
    assert wrong == []


def test_what_has_a_name_is_found_by_it(torch: typing.Any) -> None:
    for kind in (torch.nn.Linear, torch.optim.Adam, torch.nn.Linear.forward, torch.nn.functional.relu, torch.vmap):
        assert inspect.getmodule(kind) is sys.modules[kind.__module__]
        assert pickle.loads(pickle.dumps(kind)) == kind
    assert inspect.getsource(torch.nn.Linear).startswith("class Linear(")
    assert typing.get_type_hints(torch.export.graph_signature.TensorArgument) == {"name": str}


def test_messages_name_pytorchs_modules(torch: typing.Any) -> None:
    with pytest.raises(AttributeError, match=r"^module 'torch\.nn' has no attribute 'Liner'"):
        _ = torch.nn.Liner
    with pytest.raises(AttributeError, match=r"^module 'torch\.functional' has no attribute 'unknown'"):
        _ = torch.functional.unknown


def test_uninstalling_restores_the_names() -> None:
    import compat.nn.modules.linear
    import compat.optim.lr_scheduler

    before = compat.nn.Linear.__module__, compat.add.__module__, compat.optim.lr_scheduler.StepLR.__module__
    assert before == ("compat.nn.modules.linear", "compat", "compat.optim.lr_scheduler")
    compat.install()
    import torch

    assert torch.nn.Linear.__module__ == "torch.nn.modules.linear"
    first = torch.fliplr  # the module of an operator may be imported while compat is installed
    assert first.__module__ == "torch"
    compat.uninstall()
    assert compat.nn.__name__ == "compat.nn" and first.__module__ == "compat"
    assert before == (compat.nn.Linear.__module__, compat.add.__module__, compat.optim.lr_scheduler.StepLR.__module__)
    assert [n for n, m in sys.modules.items() if n.startswith("compat.") and getattr(m, "__name__", n) != n] == []
    kinds = [v for m in list(sys.modules) if m.startswith("compat.") for v in vars(sys.modules[m]).values()]
    named = [v.__module__ for v in kinds if isinstance(v, type | FunctionType) and isinstance(v.__module__, str)]
    assert [m for m in named if m.startswith("torch.nn.modules")] == []


def test_hidden_modules_are_imported_by_their_full_names() -> None:
    """``from package import _module`` looks for ``torch.package._module`` once the package has its name."""
    root, known, wrong = Path(compat.__file__).parent, set(modules()), []
    for path in root.rglob("*.py"):
        if path.name == "__init__.py":  # which runs before the package is renamed
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("compat."):
                place = (node.module or "").removeprefix("compat.")
                names = [f"{place}.{alias.name}" for alias in node.names]
                wrong += [(str(path), n) for n in names if is_shown(place) and n in known and not is_shown(n)]
    assert wrong == []
