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


def test_a_scripted_module_is_a_copy_whose_submodules_are_scripted() -> None:
    net = nn.Sequential(Gate(), nn.ReLU())
    made = torch.jit.script(net)
    assert repr(made).splitlines() == [
        "RecursiveScriptModule(",
        "  original_name=Sequential",
        "  (0): RecursiveScriptModule(",
        "    original_name=Gate",
        "    (linear): RecursiveScriptModule(original_name=Linear)",
        "  )",
        "  (1): RecursiveScriptModule(original_name=ReLU)",
        ")",
    ]
    assert all(isinstance(m, torch.jit.RecursiveScriptModule) for m in made.modules())
    assert made.original_name == "Sequential" and made[0].linear.original_name == "Linear"
    assert type(made).__name__ == "RecursiveScriptModule" and type(made).__module__ == "torch.jit._script"
    # The original is as it was; its parameters are the copy's.
    assert made is not net and not any(isinstance(m, torch.jit.ScriptModule) for m in net.modules())
    assert [id(p) for p in made.parameters()] == [id(p) for p in net.parameters()]
    made.eval()
    made.register_forward_hook(lambda module, args, result: result * 0)
    assert net.training and not made[0].training and net(torch.ones(3)).any() and not made(torch.ones(3)).any()
    assert torch.jit.script(made) is made


def test_a_traced_module_is_a_copy_with_the_names_of_its_classes() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    made = torch.jit.trace(net, torch.ones(1, 3))
    assert repr(made).splitlines() == [
        "Sequential(",
        "  original_name=Sequential",
        "  (0): Linear(original_name=Linear)",
        "  (1): ReLU(original_name=ReLU)",
        ")",
    ]
    assert isinstance(made, torch.jit.TopLevelTracedModule) and type(made[0]).__name__ == "TracedModule"
    assert isinstance(made, torch.jit.ScriptModule) and not isinstance(made, torch.jit.RecursiveScriptModule)
    assert not isinstance(net, torch.jit.ScriptModule) and "Linear" in str(made.graph)


def test_copies_of_scripted_modules_call_their_own_methods() -> None:
    net = Gate()
    net.call = net.twice  # type: ignore[assignment]
    made = torch.jit.script(net)
    made.linear = nn.Linear(3, 2)
    x = torch.ones(3)
    assert torch.equal(made.call(x), made(x) * 2) and not torch.equal(made.call(x), net.call(x))
    again = copy.deepcopy(made)
    torch.testing.assert_close(again(x), made(x))
    assert repr(again) == repr(made) and again.linear is not made.linear


def test_scripting_and_tracing_are_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match=r"^`torch.jit.script` is deprecated. Please switch to") as found:
        torch.jit.script(Gate())
    assert len(found) == 1 and "jit" in found[0].filename
    with pytest.warns(DeprecationWarning, match=r"^`torch.jit.trace` is deprecated. Please switch to `torch.compile`"):
        torch.jit.trace(doubled, torch.ones(2))


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
