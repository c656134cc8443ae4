"""Files: reading PyTorch's, round trips, and rejection of unsafe ones."""

from __future__ import annotations

import fractions
import io
import json
import mmap
import operator
import pickle
import re
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import compat as torch
from tests.compat.saved import contents, described

GOLDEN = Path(__file__).parent / "golden"


def saved(obj: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return file


def again(obj: Any, **options: Any) -> Any:
    return torch.load(saved(obj), **options)


def assert_described(found: Any) -> None:
    want = json.loads((GOLDEN / "saved.json").read_text())
    got = json.loads(json.dumps(described(torch, found)))
    assert got[1].keys() == want[1].keys()
    for name, value in want[1].items():
        assert got[1][name] == value, name


def test_load_files_of_pytorch() -> None:
    assert_described(torch.load(GOLDEN / "saved.pt"))


def test_save_load_round_trip() -> None:
    assert_described(again(contents(torch)))


def test_reads_and_writes_files_as_before_1_6(tmp_path: Path) -> None:
    assert_described(torch.load(GOLDEN / "saved_old.pt"))
    assert_described(torch.load(GOLDEN / "saved_old.pt", weights_only=False))
    path, file = tmp_path / "old.pt", io.BytesIO()
    torch.save(contents(torch), path, _use_new_zipfile_serialization=False)
    torch.save(contents(torch), file, _use_new_zipfile_serialization=False)
    assert file.getvalue() == path.read_bytes() and not zipfile.is_zipfile(path)
    assert_described(torch.load(path))
    shared = torch.arange(4.0)
    torch.save((shared, shared[1:]), path, _use_new_zipfile_serialization=False)
    whole, part = torch.load(path)
    whole[1] = 9
    assert part.tolist() == [9, 2, 3]
    with pytest.raises(RuntimeError, match="Invalid magic number"):
        torch.load(io.BytesIO(pickle.dumps(1)))


def test_python_2_strings_are_decoded_by_encoding() -> None:
    file = io.BytesIO()
    torch.save(["\u017c\u00f3\u0142w", torch.zeros(2)], file, _use_new_zipfile_serialization=False)
    # Python 2 pickled its strings with another opcode, followed by the same length and bytes.
    written = re.sub(rb"X(.\0\0\0)", rb"T\1", file.getvalue(), flags=re.DOTALL)
    for options in ({}, {"weights_only": False}):
        assert torch.load(io.BytesIO(written), **options)[0] == "\u017c\u00f3\u0142w"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text, numbers = torch.load(io.BytesIO(written), encoding="bytes", **options)
        assert (text, numbers.tolist()) == ("\u017c\u00f3\u0142w".encode(), [0, 0])
    with pytest.raises(UnicodeDecodeError):
        torch.load(io.BytesIO(written), encoding="ascii", weights_only=False)
    with (
        pytest.warns(UserWarning, match="only works if"),
        pytest.raises(TypeError, match="unexpected keyword argument 'errors'"),
    ):
        torch.load(io.BytesIO(written), errors="ignore")


class Largest:
    """An object whose file names a function of Python."""

    def __reduce__(self) -> Any:
        return max, (1, 2)


def test_unsafe_builtins_have_their_python_3_names() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global: GLOBAL max was not"):
        again(Largest())
    assert torch.serialization.get_unsafe_globals_in_checkpoint(saved(Largest())) == ["builtins.max"]
    with torch.serialization.safe_globals([max]):
        assert again(Largest()) == 2
        assert torch.serialization.get_unsafe_globals_in_checkpoint(saved(Largest())) == []


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_is_flushed(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "open.pt"
    with open(path, "wb") as file:
        torch.save(torch.ones(2), file, _use_new_zipfile_serialization=zipped)
        assert torch.load(path).tolist() == [1, 1]


class OnlyReads:
    """A minimal file-like object."""

    def __init__(self, contents: bytes):
        file = io.BytesIO(contents)
        self.read, self.readline, self.seek, self.tell = file.read, file.readline, file.seek, file.tell


def test_load_from_read_only_streams() -> None:
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    assert torch.load(OnlyReads(file.getvalue())).tolist() == [1, 1]


def test_variables_of_the_environment_overrule_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert again(fractions.Fraction(1, 2), weights_only=False) == fractions.Fraction(1, 2)
    with monkeypatch.context() as patched:
        patched.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
        with pytest.warns(UserWarning, match="forcing weights_only=False"):
            assert again(fractions.Fraction(1, 2)) == fractions.Fraction(1, 2)
        patched.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
        with pytest.raises(RuntimeError, match="Only one of"):
            again(1)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        again(fractions.Fraction(1, 2), weights_only=False)


def test_modules_of_the_system_are_blocked() -> None:
    with pytest.raises(pickle.UnpicklingError, match="whose module posix is blocked"):
        torch.load(io.BytesIO(b"cposix\nsystem\n(X\x01\x00\x00\x00atR."))


def test_writes_the_pickle_that_pytorch_writes() -> None:
    with zipfile.ZipFile(GOLDEN / "saved.pt") as archive:
        want = archive.read("saved/data.pkl")
        names = [name for name in archive.namelist() if "serialization_id" not in name]
    file = io.BytesIO()
    torch.save(contents(torch), file)
    with zipfile.ZipFile(file) as archive:
        assert [name.replace("archive/", "saved/") for name in archive.namelist()] == names
        offsets = [i.header_offset + 30 + len(i.filename) + len(i.extra) for i in archive.infolist()]
        got = archive.read("archive/data.pkl")
    assert all(offset % 64 == 0 for offset in offsets)
    assert described(torch, torch.load(GOLDEN / "saved.pt")) == described(torch, again(contents(torch)))
    assert sorted(set(_names(got))) == sorted(set(_names(want)))


def _names(pickled: bytes) -> list[str]:
    import pickletools

    return [argument for op, argument, _ in pickletools.genops(pickled) if op.name == "GLOBAL"]


@pytest.mark.parametrize("source", ["file", "own"])
def test_tensors_that_shared_memory_share_it_again(source: str) -> None:
    found = torch.load(GOLDEN / "saved.pt") if source == "file" else again(contents(torch))
    found["every second"].fill_(-1.0)
    assert found["base"].tolist() == [0.0, 1.0, -1.0, 3.0, -1.0, 5.0, 6.0, 7.0]
    assert found["transposed"][0, 1].item() == -1.0


def test_a_path_names_the_archive(tmp_path: Path) -> None:
    torch.save([1], tmp_path / "model.best.pt")
    with zipfile.ZipFile(tmp_path / "model.best.pt") as archive:
        assert archive.namelist()[0] == "model.best/data.pkl"
    assert torch.load(str(tmp_path / "model.best.pt"), mmap=True) == [1]


def test_training_continues_after_loading() -> None:
    def made() -> tuple[Any, Any]:
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 1)
        return net, torch.optim.Adam(net.parameters(), lr=0.1)

    def step(net: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        net(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()

    net, optimizer = made()
    for _ in range(2):
        step(net, optimizer)
    file = again({"net": net.state_dict(), "optimizer": optimizer.state_dict()})
    step(net, optimizer)
    other, others = made()
    other.load_state_dict(file["net"])
    others.load_state_dict(file["optimizer"])
    step(other, others)
    # Compiled as a whole and operation by operation, a step rounds differently.
    assert torch.allclose(other.weight, net.weight, rtol=1e-6)


def test_whole_modules_need_weights_only_false() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    with pytest.raises(
        pickle.UnpicklingError, match=r"GLOBAL torch\.nn\.modules\.container\.Sequential was not an allowed"
    ):
        again(net)
    found = again(net, weights_only=False)
    assert torch.equal(found(torch.ones(1, 2)), net(torch.ones(1, 2)))


def test_safe_globals() -> None:
    half = fractions.Fraction(1, 2)
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global: GLOBAL fractions\.Fraction"):
        again(half)
    with torch.serialization.safe_globals([fractions.Fraction]):
        assert again(half) == half
        assert torch.serialization.get_safe_globals() == [fractions.Fraction]
    assert torch.serialization.get_safe_globals() == []


@pytest.mark.parametrize("name", ["relu", "nn.functional.gelu", "permute", "matmul", "pow"])
def test_functions_are_found_by_the_names_that_pytorch_has_them_by(name: str) -> None:
    f = operator.attrgetter(name)(torch)
    assert again(f, weights_only=False) == f and pickle.loads(pickle.dumps(f)) == f
    with zipfile.ZipFile(saved(f)) as written:
        data = written.read("archive/data.pkl")
    assert b"compat" not in data and f.__name__.encode() in data and b"ops" not in data


def test_code_is_not_run() -> None:
    class Harm:
        def __reduce__(self) -> Any:
            return eval, ("1 + 1",)

    with pytest.raises(pickle.UnpicklingError, match="GLOBAL eval was not"):
        again(Harm())
    assert again(Harm(), weights_only=False) == 2


def test_map_location() -> None:
    seen = []
    x = torch.ones(2)
    assert again(x, map_location="cpu").tolist() == again(x, map_location=torch.device("cpu")).tolist() == [1, 1]
    again(x, map_location=lambda storage, location: seen.append((storage.nbytes(), location)))
    assert seen == [(8, "cpu")]
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        again(x, map_location={"cpu": "cuda:0"})
    with pytest.raises(RuntimeError, match=r"don't know how to restore data location .* \(tagged with foo\)"):
        again(x, map_location="foo")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.save(1, 3), AttributeError, "expected 'f' to be string, path, or a file-like object"),
        (lambda: torch.save(1, "no such directory/x.pt"), RuntimeError, "Parent directory no such directory does not"),
        (lambda: torch.load(3), AttributeError, "'int' object has no attribute 'seek'. You can only torch.load from"),
        (lambda: torch.load("no such file.pt"), FileNotFoundError, "No such file"),
        (lambda: torch.load(io.BytesIO()), EOFError, "^$"),
        (lambda: torch.load(io.BytesIO(), weights_only=False), EOFError, "Ran out of input"),
        (lambda: torch.load(io.BytesIO(b"hello world")), pickle.UnpicklingError, "Weights only load failed"),
        (lambda: torch.load(io.BytesIO(), mmap=True), ValueError, "f must be a file path in order to use the mmap"),
        (
            lambda: torch.load("x", weights_only=True, pickle_module=pickle),
            RuntimeError,
            "Can not safely load weights when explicit pickle_module is specified",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_failed_saves_leave_no_file(tmp_path: Path) -> None:
    local = lambda: 1
    with pytest.raises((AttributeError, pickle.PicklingError)) as wanted:
        pickle.dumps(local)
    with pytest.raises(wanted.type, match=re.escape(str(wanted.value))):
        torch.save(local, tmp_path / "x.pt")
    assert not list(tmp_path.iterdir())


def test_memory_seen_as_two_dtypes_cannot_be_saved() -> None:
    x = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        again([x, x.real])


def test_shared_mappings_are_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mapped.pt"
    torch.save({"w": torch.zeros(2, 3), "n": torch.arange(4), "none": torch.zeros(0)}, path)
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        found = torch.load(path, mmap=True)
        found["w"][0, 1] = 5
        found["n"].add_(1)
        assert torch.load(path, mmap=True)["w"].tolist() == found["w"].tolist()
    assert torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    again = torch.load(path, mmap=True)
    assert (again["w"].tolist(), again["n"].tolist()) == ([[0, 5, 0], [0, 0, 0]], [1, 2, 3, 4])
    again["w"].fill_(7)
    assert torch.load(path)["w"][0, 0] == 0
    with pytest.raises(ValueError, match=r"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got 17"):
        torch.serialization.set_default_mmap_options(17)


def test_byte_order_of_files_without_a_record() -> None:
    def load(**options: Any) -> list[int]:
        file = io.BytesIO()
        torch.save(torch.tensor([1, 2], dtype=torch.int16), file, **options)
        file.seek(0)
        return torch.load(file).tolist()

    orders = torch.serialization.LoadEndianness
    torch.serialization.set_default_load_endianness(orders.BIG)
    try:
        assert torch.serialization.get_default_load_endianness() is orders.BIG
        assert load(_disable_byteorder_record=True) == [256, 512]
        assert load() == [1, 2]
    finally:
        torch.serialization.set_default_load_endianness(None)
    assert load(_disable_byteorder_record=True) == [1, 2]
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load_endianness"):
        torch.serialization.set_default_load_endianness("big")


def test_unsafe_globals_of_a_file_are_listed() -> None:
    content = {"half": fractions.Fraction(1, 2), "third": fractions.Fraction(1, 3), "weight": torch.ones(2)}
    for protocol in (2, 4):
        with io.BytesIO() as file:
            torch.save(content, file, pickle_protocol=protocol)
            assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == ["fractions.Fraction"]
            with torch.serialization.safe_globals([fractions.Fraction]):
                assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == []
    with pytest.raises(ValueError, match="Expected input to be a checkpoint returned by"):
        torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"none"))


@pytest.mark.parametrize("zipped", [True, False])
def test_another_module_reads(zipped: bool) -> None:
    class Telling(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            found.append(name)
            return super().find_class(module, name)

    found: list[str] = []
    with io.BytesIO() as file:
        torch.save([fractions.Fraction(1, 2), torch.ones(2)], file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        half, ones = torch.load(file, pickle_module=SimpleNamespace(Unpickler=Telling))
    assert half == fractions.Fraction(1, 2) and ones.tolist() == [1, 1] and found == ["Fraction"]


def test_data_can_be_left_out_and_records_written_one_by_one() -> None:
    file = io.BytesIO()
    with torch.serialization.skip_data():
        torch.save({"w": torch.ones(2), "v": torch.ones(3)[1:]}, file)
    file.seek(0)
    assert [t.tolist() for t in torch.load(file).values()] == [[0, 0], [0, 0]]
    torch.save(torch.ones(2), file := io.BytesIO())
    file.seek(0)
    with torch.serialization.skip_data():
        assert torch.load(file).tolist() == [0, 0]
    file.seek(0)
    assert torch.load(file).tolist() == [1, 1]


def test_records_are_written_from_memory() -> None:
    numbers = torch.arange(4.0)
    writer = torch._C.PyTorchFileWriter(file := io.BytesIO())
    writer.write_record("data/0", numbers.data_ptr(), 16)
    writer.write_record("data/1", numbers.untyped_storage(), 16)
    writer.write_record("note", b"text", 4)
    writer.write_end_of_file()
    reader = torch._C.PyTorchFileReader(file)
    assert reader.get_record("data/0") == reader.get_record("data/1") == numbers.numpy().tobytes()
    assert reader.get_record_offset("data/1") % 64 == 0
    assert writer.get_all_written_records() == {"data/0", "data/1", "note", "version"}
