"""Scripted, traced and frozen modules and functions, their files, and TorchScript's settings."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest

import compat as torch
from compat import nn


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + (self.shift if x.sum() > 0 else -self.shift)

    @torch.jit.export
    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward(x) * 2


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.sum() > 0 else x


def test_scripted_modules_and_functions_are_saved(tmp_path: Path) -> None:
    """The saving of a scripted model as in PyTorch's tutorials, with control flow kept."""
    net = torch.jit.script(Gate())
    net.save(tmp_path / "net.pt", _extra_files={"note.json": '{"a": 1}'})
    extra: dict[str, Any] = {"note.json": ""}
    loaded = torch.jit.load(tmp_path / "net.pt", map_location="cpu", _extra_files=extra)
    assert extra == {"note.json": b'{"a": 1}'}
    for x in (torch.ones(1, 3), -torch.ones(1, 3)):
        assert torch.equal(loaded(x), net(x)) and torch.equal(loaded.twice(x), net.twice(x))
    with pytest.raises(RuntimeError, match="no extra file 'other'"):
        torch.jit.load(tmp_path / "net.pt", _extra_files={"other": ""})
    function = torch.jit.script(doubled)
    function.save(tmp_path / "function.pt")
    assert torch.jit.load(tmp_path / "function.pt")(torch.ones(1)).item() == 2
    loaded = torch.jit.load(io.BytesIO(net.save_to_buffer()))
    assert torch.equal(loaded(torch.ones(1, 3)), net(torch.ones(1, 3)))


def test_traced_functions_and_extra_files_of_traces() -> None:
    traced, file = torch.jit.trace(lambda x, y: {"sum": x + y}, (torch.ones(2), torch.ones(2))), io.BytesIO()
    torch.jit.save(traced, file, _extra_files={"a": b"b"})
    extra: dict[str, Any] = {"a": None}
    file.seek(0)
    loaded = torch.jit.load(file, _extra_files=extra)
    assert extra == {"a": b"b"} and loaded(torch.ones(3), torch.ones(3))["sum"].tolist() == [2.0, 2.0, 2.0]
    again = io.BytesIO()
    loaded.save(again)
    again.seek(0)
    assert torch.jit.load(again)(torch.ones(3), torch.ones(3))["sum"].tolist() == [2.0, 2.0, 2.0]


def test_a_loaded_trace_is_evaluated_trained_and_saved_again() -> None:
    traced, x = torch.jit.trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), torch.ones(1, 3)), torch.ones(2, 3)
    loaded = torch.jit.load(io.BytesIO(traced.save_to_buffer()))
    assert not loaded.eval().training and loaded.train().training
    with torch.no_grad():
        next(loaded.parameters()).add_(10)
    again = torch.jit.load(io.BytesIO(loaded.save_to_buffer()))
    assert torch.equal(again(x), loaded(x)) and not torch.equal(again(x), traced(x))


def test_marked_objects_are_instances_of_the_script_classes() -> None:
    net, plain = torch.jit.script(Gate()), Gate()
    assert isinstance(net, torch.jit.ScriptModule) and isinstance(net, torch.jit.RecursiveScriptModule)
    assert isinstance(net, Gate) and not isinstance(net, torch.jit.ScriptFunction)
    assert not isinstance(plain, torch.jit.ScriptModule)
    function = torch.jit.script(copy.copy(doubled))
    assert isinstance(function, torch.jit.ScriptFunction) and not isinstance(function, torch.jit.ScriptModule)
    assert isinstance(copy.deepcopy(net), torch.jit.ScriptModule)


@pytest.mark.parametrize("kind", [nn.GRU, nn.TransformerEncoderLayer])
def test_a_frozen_module_has_constants(kind: Any) -> None:
    net = torch.jit.script((kind(4, 4) if kind is nn.GRU else kind(4, 2, 8)).eval())
    x = torch.randn(3, 1, 4)
    expected = net(x)[0] if kind is nn.GRU else net(x)
    for made in (torch.jit.freeze(net), torch.jit.optimize_for_inference(net)):
        found = made(x)[0] if kind is nn.GRU else made(x)
        assert not list(made.parameters()) and not made.state_dict() and not found.requires_grad
        torch.testing.assert_close(found, expected.detach())
    assert list(net.parameters()) and all(p.requires_grad for p in net.parameters())


def test_what_cannot_be_frozen() -> None:
    with pytest.raises(RuntimeError, match="Freezing expects a ScriptModule as input"):
        torch.jit.freeze(Gate().eval())
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        torch.jit.freeze(torch.jit.script(Gate().train()))


def test_settings_of_optimizations() -> None:
    before = torch.jit.set_fusion_strategy([("STATIC", 3)])
    assert torch.jit.set_fusion_strategy(before) == [("STATIC", 3)]
    with torch.jit.fuser("fuser1"), torch.jit.optimized_execution(False):
        assert doubled(torch.ones(1)).item() == 2
    with pytest.raises(Exception, match="unrecognized fuser option"), torch.jit.fuser("fuser"):
        pass
