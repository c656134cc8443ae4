"""``torch.jit.load`` of a module that real PyTorch scripted; ``golden/make_scripted.py`` has recorded it."""

import copy
import json
import zipfile
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import compat as torch
from compat.jit._translation import Unsupported

GOLDEN = Path(__file__).parents[1] / "golden"
CALLS = (GOLDEN / "scripted.txt").read_text().splitlines()
RESULTS = json.loads((GOLDEN / "scripted.json").read_text())


def plain(value: Any) -> Any:
    """A value as ``make_scripted.py`` writes it."""
    if isinstance(value, torch.Tensor):
        return {"tensor": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, tuple):
        return {"tuple": [plain(v) for v in value]}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {"dict": [[plain(k), plain(v)] for k, v in value.items()]}
    return {"complex": [value.real, value.imag]} if isinstance(value, complex) else value


def close(found: Any, wanted: Any) -> bool:
    """Whether values are the same, floats up to the rounding of float32."""
    if isinstance(wanted, float):
        return isinstance(found, float) and found == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(close, found, wanted))
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and found.keys() == wanted.keys()
            and all(close(found[k], wanted[k]) for k in wanted)
        )
    return type(found) is type(wanted) and found == wanted


@pytest.fixture(scope="module")
def net() -> Any:
    return torch.jit.load(GOLDEN / "scripted.pt")


@pytest.mark.parametrize("number", range(len(CALLS)), ids=CALLS)
def test_methods_equal_pytorchs(net: Any, number: int) -> None:
    x = torch.arange(6.0).reshape(2, 3) - 2.25
    wanted = RESULTS[number]
    try:
        found = plain(eval(f"net.{CALLS[number]}", {"net": net, "x": x}))
    except Exception as error:
        found = {"error": type(error).__name__, "message": str(error).strip().splitlines()[-1]}
    assert close(found, wanted), (found, wanted)


def test_a_loaded_module_is_a_module(net: Any) -> None:
    assert isinstance(net, torch.jit.ScriptModule) and net.original_name == "Net" and not net.training
    assert [n for n, _ in net.named_buffers()] == ["offset"]
    assert "cell.weight_ih" in net.state_dict() and len(net.layers) == 2 and list(net.heads) == ["a", "b"]
    x = torch.ones(2, 3)
    other = copy.deepcopy(net)
    assert torch.equal(other(x), net(x))
    with torch.no_grad():
        other.offset += 1
    assert not torch.equal(other(x), net(x))
    net(x).sum().backward()
    assert net.cell.weight_ih.grad is not None


def test_a_member_of_the_programs_own_enumeration_equals_the_files(net: Any) -> None:
    Color = Enum("Color", {"RED": 1, "GREEN": 2})
    assert net.color == Color.GREEN and net.color != Color.RED


def changed(path: Path, old: str, new: str) -> Path:
    """A copy of the file with other code."""
    with zipfile.ZipFile(GOLDEN / "scripted.pt") as given, zipfile.ZipFile(path, "w") as made:
        for name in given.namelist():
            content = given.read(name)
            made.writestr(name, content.replace(old.encode(), new.encode()) if name.endswith("py") else content)
    return path


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("torch.no_such(x)", r"aten::no_such, which is not supported \(code/.*\.py, line \d+: .*torch.no_such\(x\)"),
        ("ops.prim.NoSuch(x)", "prim::NoSuch, which is not supported"),
        ('ops._os.system("true")', "_os::system, which no package that was imported declares"),
        ("ops.load_library.mro()", "load_library::mro, which no package"),
        ('getattr(x, "__class__")', "uses __class__"),
        ("x.__class__", "uses __class__"),
        ("(x).__reduce_ex__(2)", "uses __reduce_ex__ of Tensor"),
        ("[v for v in x]", "a ListComp, which is not supported"),
        ("lambda: x", "a Lambda, which is not supported"),
        ("__torch__.no.Such(x)", "no definition of __torch__.no.Such"),
    ],
)
def test_unsupported_code_of_a_file_is_named_with_its_line(tmp_path: Path, new: str, message: str) -> None:
    file = changed(tmp_path / "changed.pt", "torch.mul(x, 2)", new)
    with pytest.raises(Unsupported, match=message):
        torch.jit.load(file).chosen(torch.ones(2), 1)
