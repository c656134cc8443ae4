"""Private names that PyTorch's classes lack end in an underscore, so that subclasses may use all others."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

import pytest

import compat
from compat import nn, optim
from compat._core.tensor.tensor import STATE

GOLDEN = Path(__file__).parents[1] / "golden" / "private.txt"
#: Classes of which programs make no subclasses.
SEALED = frozenset(("SavedTensor", "no_grad", "enable_grad", "inference_mode", "set_grad_enabled"))
SEALED |= {"set_multithreading_enabled", "enforce_grad_layout_policy"}
#: PyTorch's names of attributes that instances have there, and classes here.
ATTRIBUTES = frozenset(("_param", "_new", "_mixture_distribution", "_component_distribution"))


def recorded() -> dict[str, set[str]]:
    lines = GOLDEN.read_text().splitlines()
    return {place: set(names.split()) for place, _, names in (line.partition(":") for line in lines)}


def more(kind: type, theirs: set[str]) -> list[str]:
    """The private names of a class that PyTorch lacks, without those that are reserved."""
    names = {n for n in dir(kind) if n.startswith("_") and not n.endswith("_")}
    return sorted(names - theirs - ATTRIBUTES)


@pytest.mark.parametrize("place", sorted(recorded()))
def test_private_names_are_pytorchs_or_end_in_an_underscore(place: str) -> None:
    theirs = recorded()[place] | recorded()[""]
    module = importlib.import_module(f"compat.{place}".removesuffix("."))
    kinds = [compat.Tensor] if not place else [getattr(module, name) for name in dir(module)]
    named = {k.__name__: more(k, theirs) for k in kinds if isinstance(k, type) and k.__name__ not in SEALED}
    assert {name: found for name, found in named.items() if found} == {}


class Named(compat.Tensor):
    pass


class NamedParameter(nn.Parameter):
    pass


def plain(kind: type) -> list[str]:
    """Names that a program may give to attributes: the reserved names of a class without their last underscore."""
    theirs = set().union(*recorded().values())
    return [n[:-1] for n in dir(kind) if n.startswith("_") and n.endswith("_") and n[:2] != "__" and n not in theirs]


def test_a_tensor_with_attributes_of_all_these_names_computes_as_others() -> None:
    assert set(STATE) <= {f"{n}_" for n in plain(compat.Tensor)}
    for kind in (Named, NamedParameter):
        x: Any = kind(compat.tensor([[1.0, -2.0], [3.0, 4.0]]))
        x.requires_grad_()
        for name in plain(compat.Tensor):
            setattr(x, name, name)
        y = (x.t() * x[0]).exp().sum()
        y.backward()
        with compat.no_grad():
            x.mul_(2)
            x[0, 0] = 7
        assert x.tolist() == [[7.0, -4.0], [6.0, 8.0]] and x._version == 2
        assert x.grad.shape == (2, 2) and x.is_leaf and x.untyped_storage().nbytes() == 16
        other = pickle.loads(pickle.dumps(x))
        assert other.tolist() == x.tolist() and other._storage == "_storage"
        assert all(getattr(x, name) == name for name in plain(compat.Tensor))


def test_a_module_with_attributes_of_all_these_names_computes_as_others() -> None:
    x = compat.randn(3, 5, 4)
    for make in (lambda: nn.Linear(4, 4), lambda: nn.LSTM(4, 4), lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU())):
        usual = make()
        named = make()
        named.load_state_dict(usual.state_dict())
        for name in plain(type(named)):
            setattr(named, name, name)
        first = [m(x) if not isinstance(m, nn.LSTM) else m(x)[0] for m in (named, usual)]
        assert compat.equal(*first)
        assert named.half().state_dict().keys() == usual.state_dict().keys()
        assert all(getattr(named, name) == name for name in plain(type(named)))


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad])
def test_an_optimizer_with_attributes_of_all_these_names_steps_as_others(make: Any) -> None:
    named = type("Named", (make,), {})
    results = []
    for kind in (named, make):
        p = nn.Parameter(compat.tensor([1.0, 2.0]))
        o = kind([p], lr=0.1)
        if kind is named:
            for name in plain(kind):
                setattr(o, name, name)
        schedule = optim.lr_scheduler.StepLR(o, 1)
        for _ in range(2):
            o.zero_grad()
            p.pow(2).sum().backward()
            o.step()
            schedule.step()
        results.append(p.detach())
    compat.testing.assert_close(*results)  # a window that repeats is compiled, and rounds differently
