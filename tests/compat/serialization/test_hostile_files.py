"""Untrusted files: their metadata is checked, named code is not run, and damage raises one error."""

from __future__ import annotations

import collections
import io
import pickle
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

import compat as torch
from compat._serialization.errors import CorruptFileError

FLOATS = struct.pack("<4f", 0, 1, 2, 3)


# ---------------------------------------------------------------- making files


class Name(NamedTuple):
    """A class or function that a pickle names."""

    text: str


class Reference(NamedTuple):
    """A persistent reference."""

    parts: Any


class Call(NamedTuple):
    """A call that a pickle makes."""

    function: Any
    args: tuple


class Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Pickles names, references and calls."""

    dispatch: ClassVar[dict] = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, Name):
            module, _, name = obj.text.rpartition(".")
            self.write(f"c{module}\n{name}\n".encode())
        elif isinstance(obj, Reference):
            self.save(obj.parts)
            self.write(b"Q")
        elif isinstance(obj, Call):
            self.save(obj.function)
            self.save(obj.args)
            self.write(b"R")
        else:
            super().save(obj, save_persistent_id)


def pickled(obj: Any) -> bytes:
    file = io.BytesIO()
    Pickler(file, 2).dump(obj)
    return file.getvalue()


def archive(records: Mapping[str, bytes], method: int = 0) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for name, contents in records.items():
            made.writestr(f"archive/{name}", contents)
    return file.getvalue()


def file_of(data: bytes, **changed: Any) -> bytes:
    """A file with a pickle, and the other records of ``changed``; None omits a record."""
    records = {"data.pkl": data, "byteorder": b"little", "data/0": FLOATS, "version": b"3\n", **changed}
    return archive({name: contents for name, contents in records.items() if contents is not None})


def storage(count: Any = 4, key: Any = "0", location: Any = "cpu", kind: str = "torch.FloatStorage") -> Reference:
    return Reference(("storage", Name(kind), key, location, count))


UNTYPED = Reference(("storage", Name("torch.storage.UntypedStorage"), "0", "cpu", 16))
PLAIN = (False, collections.OrderedDict())


def tensor(offset: Any = 0, size: Any = (4,), stride: Any = (1,), of: Any = None, rest: tuple = PLAIN) -> Call:
    return Call(Name("torch._utils._rebuild_tensor_v2"), (of or storage(), offset, size, stride, *rest))


def util(name: str, *args: Any) -> Call:
    return Call(Name(f"torch._utils.{name}"), args)


def subclass(function: str, kind: str, args: tuple, state: Any) -> Call:
    return Call(Name("torch._tensor._rebuild_from_type_v2"), (Name(function), Name(kind), args, state))


SPARSE = Call(Name("torch.serialization._get_layout"), ("torch.sparse_coo",))
INDICES = util("_rebuild_tensor_v2", storage(2, "0", "cpu", "torch.LongStorage"), 0, (1, 2), (2, 1), *PLAIN)
DAMAGED = "PytorchStreamReader failed"
META = "_rebuild_meta_tensor_no_storage"
FLOAT = Name("torch.float32")
V2 = "torch._utils._rebuild_tensor_v2"

#: False metadata of an object, and the error.
OBJECTS: dict[str, tuple[Any, str]] = {
    "a size beyond the storage": (tensor(size=(64,)), "requiring a storage size of 256 are out of bounds"),
    "an offset beyond the storage": (tensor(1), "out of bounds for storage of size 16"),
    "a negative offset": (tensor(-1), "invalid storage offset -1"),
    "an offset of 2**63": (tensor(2**63, (1,)), "invalid storage offset"),
    "a negative size": (tensor(size=(-4,)), "negative dimension -4"),
    "a negative stride": (tensor(stride=(-1,)), r"strides=\[-1\]"),
    "a stride of 2**40": (tensor(size=(2,), stride=(2**40,)), "out of bounds"),
    "a stride of 2**62": (tensor(stride=(2**62,)), "Storage size calculation overflowed"),
    "a stride of 2**64": (tensor(stride=(2**64,)), "Storage size calculation overflowed"),
    "sizes whose product overflows": (tensor(size=(2**62, 2**62), stride=(0, 0)), "integer multiplication overflow"),
    "more strides than sizes": (tensor(stride=(1, 1)), "unequal size length"),
    "fewer strides than sizes": (tensor(size=(2, 2)), "unequal size length"),
    "a thousand dimensions": (tensor(size=(1,) * 1000, stride=(1,) * 1000), "at most 64 dimensions"),
    "a float as size": (tensor(size=(4.0,)), "must be tuple of ints, not tuple of float"),
    "a bool as size": (tensor(size=(True,)), "not tuple of bool"),
    "a bool as offset": (tensor(True, (1,)), "must be int, not bool"),
    "a float as stride": (tensor(stride=(1.0,)), "not tuple of float"),
    "text as size": (tensor(size="ab"), "not str"),
    "None as size": (tensor(size=None), "not NoneType"),
    "a number for requires_grad": (tensor(rest=(2, {})), "a bool for requires_grad"),
    "marks that are none": (tensor(rest=(False, {}, 3)), "a dict"),
    "integers with a gradient": (
        util("_rebuild_tensor_v2", INDICES.args[0], 0, (2,), (1,), True, {}),
        "floating point",
    ),
    "more elements than there are": (tensor(of=storage(40)), r"record size \(16 bytes\) does not match expected"),
    "fewer elements than there are": (tensor(size=(2,), of=storage(2)), "does not match expected size"),
    "2**40 elements": (tensor(of=storage(2**40)), "does not match expected size"),
    "a negative number of elements": (tensor(of=storage(-2)), "number of elements of -2"),
    "a float number of elements": (tensor(of=storage(4.0)), "number of elements of 4.0"),
    "a storage that is not there": (tensor(of=storage(4, "7")), "failed locating file data/7"),
    "a storage elsewhere": (tensor(of=storage(4, "../version")), "failed locating file"),
    "a key that is a list": (tensor(of=storage(4, [])), "key and device are text"),
    "a device that is a number": (tensor(of=storage(4, "0", 5)), "key and device are text"),
    "a kind that is no storage": (tensor(of=storage(kind="collections.OrderedDict")), "of no kind of storage"),
    "a reference of no storage": (Reference(("module", Name("torch.Tensor"))), "expected 'storage'"),
    "a reference with too little": (Reference(("storage",)), "has 5 parts"),
    "an empty reference": (Reference(()), "expected 'storage'"),
    "a number as reference": (Reference(5), "must be tuple"),
    "the first version's, too large": (util("_rebuild_tensor", storage(), 0, (64,), (1,)), "out of bounds"),
    "the third version's, too large": (
        util("_rebuild_tensor_v3", UNTYPED, 0, (3,), (1,), *PLAIN, Name("torch.int64")),
        "out of bounds",
    ),
    "a dtype that is none": (util("_rebuild_tensor_v3", UNTYPED, 0, (2,), (1,), *PLAIN, 5), "a tensor has a dtype"),
    "a tensor of no storage": (tensor(of=5), "made of a storage, not of int"),
    "too few arguments": (util("_rebuild_tensor_v2", storage(), 0), "missing"),
    "a meta tensor of negative size": (util(META, FLOAT, (-1,), (1,), False), "negative dimension"),
    "a meta tensor of negative strides": (util(META, FLOAT, (4,), (-1,), False), "overflowed"),
    "a meta tensor that overflows": (util(META, FLOAT, (2**62, 4), (1, 1), False), "overflow"),
    "a layout that is none": (Call(Name("torch.serialization._get_layout"), ("torch.foo",)), "KeyError"),
    "a sparse tensor of negative size": (
        util("_rebuild_sparse_tensor", SPARSE, (INDICES, tensor(size=(2,)), (-4,), True)),
        "negative dimension",
    ),
    "a sparse tensor whose parts differ": (
        util("_rebuild_sparse_tensor", SPARSE, (INDICES, tensor(size=(1,)), (4,), True)),
        "same nnz",
    ),
    "a sparse tensor of numbers": (util("_rebuild_sparse_tensor", SPARSE, (1, 2, (4,), True)), "made of tensors"),
    "a sparse tensor of no layout": (util("_rebuild_sparse_tensor", "x", (INDICES, INDICES, (4,))), "for layout x"),
    "a parameter of a number": (util("_rebuild_parameter", 5, True, {}), "made of a tensor and a bool"),
    "a parameter of another class": (
        util("_rebuild_parameter_with_state", tensor(), True, {}, {"__class__": 5}),
        "no attribute that a file may give",
    ),
    "a parameter with another layout": (
        util("_rebuild_parameter_with_state", tensor(), True, {}, {"_layout_": 5}),
        "'_layout_' is no attribute that a file may give",
    ),
    "a tensor with another backward": (
        subclass(V2, "torch.Tensor", tensor().args, {"backward": Name("collections.OrderedDict")}),
        "'backward' is no attribute that a file may give",
    ),
    "a tensor with other memory": (subclass(V2, "torch.Tensor", tensor().args, ({}, {"data": 1})), "'data' is no"),
    "a tensor made by another class": (subclass("builtins.set", "torch.Tensor", ((),), {}), "does not rebuild"),
    "a tensor of another class": (subclass(V2, "collections.OrderedDict", tensor().args, {}), "does not inherit"),
    "a wrapper that is none": (
        util("_rebuild_wrapper_subclass", Name("torch.Tensor"), FLOAT, (4,), (1,), 0, SPARSE, "cpu", False),
        "must define __torch_dispatch__",
    ),
    "8 GB of bytes": (Call(Name("builtins.bytearray"), (2**33,)), "of int"),
    "a codec": (Call(Name("_codecs.encode"), ("ab", "rot13")), "encode"),
    "a storage of its own": (Call(Name("torch.storage.UntypedStorage"), (2**33,)), "unrecognized function"),
    "a tensor of a size": (Call(Name("torch.Tensor"), (2**33,)), "takes 1 positional argument"),
    "a dtype that is called": (Call(FLOAT, (5,)), "unrecognized function"),
}

COUNTER, STATE = b"ccollections\nCounter\n", b"}X\x0b\x00\x00\x00most_commoncbuiltins\nset\nsb."
#: Invalid uses of pickle opcodes, and the error.
OPCODES: dict[str, tuple[bytes, str]] = {
    "sets an attribute of a class": (COUNTER + STATE, "Can only build"),
    "sets an attribute of a function": (b"ctorch._utils\n_rebuild_tensor_v2\n" + STATE, "Can only build"),
    "sets a method of an object": (COUNTER + b")R" + STATE, "no attribute that a file may give"),
    "sets the class of an object": (COUNTER + b")R}X\x09\x00\x00\x00__class__" + COUNTER + b"sb.", "'__class__' is"),
    "sets the state of a list": (b"]}b.", "Can only build"),
    "calls a number": (b"K\x01)R.", "unrecognized function"),
    "calls with no arguments": (COUNTER + b"NR.", "not tuple"),
    "calls a bound method": (COUNTER + b")R)R.", "unrecognized function"),
    "makes an object of a function": (b"ctorch._utils\n_rebuild_tensor_v2\n)\x81.", "Can only create new object"),
    "asks for what it has not kept": (b"j\xff\xff\xff\x07.", "Memo value not found"),
    "ends without anything": (b".", "IndexError"),
    "does not end": (b"N", "ends before the pickle does"),
    "appends to a tuple": (b")Na.", "Can only append to lists"),
    "sets items of a list": (b"]K\x00Ns.", "Can only SETITEM"),
    "has a key without a value": (b"}(K\x00u.", "a key has no value"),
    "has a list as key": (b"}]Ns.", "unhashable"),
    "has tuples within tuples as key": (b"}N" + b"\x85" * 100000 + b"Ns.", "tuples within tuples"),
    "doubles a tuple as key": (b"}Nq\x00" + b"".join(b"2\x86" for _ in range(40)) + b"Ns.", "copy or hash far more"),
    "copies a text without end": (
        b"X\x00\x00\x01\x00" + b"a" * 65536 + b"q\x000c_codecs\nencode\nq\x010" + b"h\x01h\x00\x85R0" * 1000 + b"N.",
        "copy or hash far more",
    ),
    "has a text of 2 GB": (b"X\xff\xff\xff\x7fab.", "2147483647 bytes were to come"),
    "has bytes of 2**60": (b"\x8e" + (2**60).to_bytes(8, "little") + b"ab.", "bytes were to come"),
    "has a number of 2 GB": (b"\x8b\xff\xff\xff\x7f\x00.", "bytes were to come"),
    "has a frame of 2**60": (b"\x95" + (2**60).to_bytes(8, "little") + b"N.", "longer than the file"),
    "has text that is none": (b"X\x02\x00\x00\x00\xff\xfe.", "can't decode"),
    "has no mark": (b"Nt.", "IndexError"),
    "is of a later protocol": (b"\x80\x09N.", "unsupported pickle protocol: 9"),
    "names an extension": (b"\x82\x01.", "Unsupported operand 130"),
    "has an opcode that is none": (b"\xfe.", "Unsupported operand 254"),
    "refers by a line": (b"P1\n.", "Unsupported operand 80"),
}

#: The error for names that are not listed.
FORBIDDEN = {
    b"cos\nsystem\n": "whose module os is blocked",
    b"cbuiltins\neval\n": "Unsupported global: GLOBAL eval was not",
    b"ctorch\nTensor.backward\n": r"GLOBAL torch\.Tensor\.backward was not",
    b"ctorch._utils\nimportlib\n": r"GLOBAL torch\._utils\.importlib was not",
    b"X\x05\x00\x00\x00posixX\x06\x00\x00\x00system\x93": "whose module posix is blocked",
}

GOOD = file_of(pickled(tensor()))


def flipped(place: int) -> bytes:
    data = bytearray(GOOD)
    data[place] ^= 1
    return bytes(data)


def renamed_size() -> bytes:
    """A file whose directory claims 2 GB for a record."""
    data = bytearray(GOOD)
    at = data.rindex(b"archive/data/0") - 46 + 20
    data[at : at + 8] = struct.pack("<II", 2**31, 2**31)
    return bytes(data)


def overlapping() -> bytes:
    """A file of which 2,000 records are the same megabyte."""
    names = [f"data/{i}" for i in range(1, 2001)]
    data = bytearray(file_of(pickled([tensor(of=storage(2**18, str(i + 1))) for i in range(2000)])))
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as made:
        made.writestr("archive/data/1", bytes(2**20))
        for name in names[1:]:
            info = zipfile.ZipInfo(f"archive/{name}")
            first = made.getinfo("archive/data/1")
            info.header_offset, info.file_size, info.compress_size = first.header_offset, 2**20, 2**20
            info.CRC = first.CRC
            made.filelist.append(info)
    return file.getvalue()


BOMB = {"data.pkl": pickled(tensor(of=storage(2**26), size=(2**26,))), "version": b"3\n", "data/0": bytes(2**28)}
#: Damage to a file as a whole, and the error.
ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "half of it": (lambda: GOOD[: len(GOOD) // 2], DAMAGED),
    "its end is missing": (lambda: GOOD[:-10], DAMAGED),
    "noise": (lambda: b"PK\x03\x04" + b"x" * 100, DAMAGED),
    "a flipped bit in a storage": (lambda: flipped(GOOD.index(FLOATS) + 3), "data/0: CRC-32 check failed"),
    "a flipped bit in the pickle": (lambda: flipped(GOOD.index(b"_rebuild")), "data.pkl: CRC-32 check failed"),
    "no pickle": (lambda: file_of(None), "failed locating file data.pkl"),  # type: ignore[arg-type]
    "no storage": (lambda: file_of(pickled(tensor()), **{"data/0": None}), "failed locating file data/0"),
    "no version": (lambda: file_of(b"N.", version=None), "failed locating file version"),
    "a version that is none": (lambda: file_of(b"N.", version=b"abc"), "Couldn't parse the version"),
    "a later version": (lambda: file_of(b"N.", version=b"99"), "with version 99"),
    "a storage cut short": (lambda: file_of(pickled(tensor()), **{"data/0": FLOATS[:7]}), r"record size \(7 bytes\)"),
    "an order of bytes that is none": (lambda: file_of(b"N.", byteorder=b"middle"), "Unknown endianness type"),
    "another compression": (lambda: archive({"data.pkl": b"N.", "version": b"3\n"}, 14), "unsupported method"),
    "a megabyte that becomes 256": (lambda: archive(BOMB, 8), "claims 268435456 bytes, compressed to"),
    "a record of 2 GB": (renamed_size, "claims 2147483648 bytes"),
    "records in one place": (overlapping, "are those of other records, too"),
    "no folder": (lambda: GOOD.replace(b"archive/", b"archive_"), "not in a subdirectory"),
    "an empty archive": (lambda: archive({}), "Weights only load failed"),
}


def load(data: bytes, **options: Any) -> Any:
    return torch.load(io.BytesIO(data), **options)


@pytest.mark.parametrize("claim", OBJECTS)
def test_claims_of_pickled_objects_are_checked(claim: str) -> None:
    obj, text = OBJECTS[claim]
    with pytest.raises(CorruptFileError, match=text) as raised:
        load(file_of(pickled(obj)))
    assert "<BytesIO>" in str(raised.value)
    assert isinstance(raised.value, RuntimeError) and isinstance(raised.value, pickle.UnpicklingError)


@pytest.mark.parametrize("what", OPCODES)
def test_opcodes_of_pickles_are_checked(what: str) -> None:
    data, text = OPCODES[what]
    before = [dict(vars(c)) for c in (collections.Counter, collections.OrderedDict, torch.Tensor)]
    with pytest.raises(CorruptFileError, match=text):
        load(file_of(b"\x80\x02" + data))
    assert before == [dict(vars(c)) for c in (collections.Counter, collections.OrderedDict, torch.Tensor)]


@pytest.mark.parametrize("data", FORBIDDEN)
def test_globals_that_are_not_allowed_are_not_loaded(data: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match=FORBIDDEN[data]):
        load(file_of(b"\x80\x02" + data + b"."))


@pytest.mark.parametrize("what", ARCHIVES)
def test_damage_raises_one_type_of_error(what: str, tmp_path: Path) -> None:
    make, text = ARCHIVES[what]
    (tmp_path / "net.pt").write_bytes(make())
    for options in ({}, {"weights_only": False}):
        with pytest.raises(CorruptFileError) as raised:
            torch.load(tmp_path / "net.pt", **options)
        said = str(raised.value)
        assert "net.pt" in said and (options or re.search(text, said))


def test_consistent_files_are_read() -> None:
    assert load(GOOD).tolist() == [0, 1, 2, 3]
    empty = load(file_of(pickled(tensor(2**40, (0,)))))
    assert empty.shape == (0,)
    numbers = [*range(300), 70000, -1, 0.5, *range(40), 1.5]
    for protocol in range(6):
        assert load(file_of(pickle.dumps(numbers, protocol))) == numbers
        obj = {"a": [1, "b", 2.5, None, True, 2**70, -(2**70)], ("t", 1): ({}, ()), b"bytes": "\u017c"}
        if protocol > 2:
            assert load(file_of(pickle.dumps(obj, protocol))) == obj
    assert load(file_of(pickle.dumps([{1, 2}, frozenset((3,)), bytearray(b"x")], 5))) == [{1, 2}, {3}, b"x"]
    assert load(archive({"data.pkl": pickled(tensor()), "version": b"3\n", "data/0": FLOATS}, 8)).tolist() == [
        0,
        1,
        2,
        3,
    ]


def test_without_checksums_a_flipped_bit_is_not_seen(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(flipped(GOOD.index(FLOATS) + 3))
    assert torch.load(path, mmap=True).shape == (4,)
    torch.serialization.set_crc32_options(False)
    try:
        assert torch.load(path).shape == (4,)
    finally:
        torch.serialization.set_crc32_options(True)


def test_torchscript_is_refused_by_name() -> None:
    script = file_of(b"N.", **{"constants.pkl": b"\x80\x02)."})
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with TorchScript archives"):
        load(script)
    with pytest.raises(RuntimeError, match="is a TorchScript archive"):
        load(script, weights_only=False)


def test_rebuild_functions_check_their_arguments() -> None:
    rebuild = torch._utils._rebuild_tensor_v2
    with pytest.raises(RuntimeError, match="out of bounds"):
        rebuild(torch.ones(2).untyped_storage(), 0, (64,), (1,), False, {})
    with pytest.raises(TypeError, match="must be tuple of ints"):
        rebuild(torch.ones(2).untyped_storage(), 0, (True,), (1,), False, {})
    with pytest.raises(RuntimeError, match="overflowed"):
        torch.ones(2).set_(torch.ones(2).untyped_storage(), 0, (-4,), (1,))


class Own(dict):
    """A class that a program lists."""

    def __setstate__(self, state: Any) -> None:
        raise KeyError("of the program's own")


def test_errors_of_allowed_classes_are_raised_unchanged() -> None:
    with torch.serialization.safe_globals([Own]), pytest.raises(KeyError, match="of the program's own"):
        load(file_of(pickled(Own()).replace(b"}b.", b"b.").removesuffix(b".") + b"}X\x01\x00\x00\x00aK\x01sb."))

    def place(*_: Any) -> Any:
        raise KeyError("of map_location's")

    with pytest.raises(KeyError, match="of map_location's"):
        load(GOOD, map_location=place)


OLD = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)


def old(count: int, behind: bytes, keys: Any = ("0",), size: Any = (4,)) -> bytes:
    """A file in the format before version 1.6."""
    kept = Reference(("storage", Name("torch.FloatStorage"), "0", "cpu", count, None))
    return OLD + pickled(tensor(size=size, of=kept)) + pickle.dumps(list(keys), 2) + behind


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (old(4, struct.pack("<q", 4) + FLOATS[:7]), "the file ends after 7 of its 16 bytes"),
        (old(4, struct.pack("<q", 2**40) + FLOATS), "its contents are 1099511627776 elements"),
        (old(2**31, struct.pack("<q", 2**31) + FLOATS), "claims 8589934592 bytes, in a file of"),
        (old(4, struct.pack("<q", 4) + FLOATS, size=(64,)), "out of bounds"),
        (old(4, struct.pack("<q", 4) + FLOATS, ["1"]), "nothing refers to it"),
        (old(4, b"", []), "storage '0' has no contents"),
        (OLD[:-1], "the file ends"),
        (pickle.dumps(1), "Invalid magic number"),
        (bytes(257) + b"ustar" + bytes(250), "tar archives"),
    ],
)
def test_legacy_files_are_checked(data: bytes, text: str) -> None:
    assert load(old(4, struct.pack("<q", 4) + FLOATS)).tolist() == [0, 1, 2, 3]
    with pytest.raises(CorruptFileError, match=text):
        load(data)


# ---------------------------------------------------------------- mutations


def mutations(count: int, seed: int = 0) -> None:
    """Damages files at random: each is read, or raises the one error, in little time and memory."""
    import random
    import resource
    import time

    chosen = random.Random(seed)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    state = {"net": net.state_dict(), "kinds": [{1}, b"x", 1j, torch.float64, torch.device("cpu"), (1.5, 2**70)]}
    state["parameter"] = torch.nn.Parameter(torch.ones(2))
    files = []
    for zipped in (True, False):
        made = io.BytesIO()
        torch.save(state, made, _use_new_zipfile_serialization=zipped)
        files.append(made.getvalue())
        load(files[-1])
    with zipfile.ZipFile(io.BytesIO(files[0])) as kept:
        records = {name.partition("/")[2]: kept.read(name) for name in kept.namelist()}
    # A damaged file for which the program itself needs no more memory.
    mutated = lambda data: _mutated(data, chosen)
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    room = pages * resource.getpagesize() + (50 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    classes = (collections.Counter, collections.OrderedDict, torch.Tensor, torch.nn.Parameter)
    before = [dict(vars(c)) for c in classes]
    read, slowest = 0, 0.0
    for i in range(count):
        data = (mutated(files[0]), mutated(files[1]), archive({**records, "data.pkl": mutated(records["data.pkl"])}))[
            i % 3
        ]
        start = time.process_time()
        try:
            load(data)
            read += 1
        except (CorruptFileError, EOFError, pickle.UnpicklingError):
            pass
        except RuntimeError as error:
            if "restore data location" not in str(error):
                raise
        slowest = max(slowest, time.process_time() - start)
    assert before == [dict(vars(c)) for c in classes]
    assert slowest < 0.5 and 0 < read < count
    print("held", read, "of", count, "read; slowest", round(slowest, 3))


def _mutated(data: bytes, chosen: Any) -> bytes:
    changed = bytearray(data)
    for _ in range(chosen.choice((1, 1, 2, 8))):
        at = chosen.randrange(len(changed))
        how = chosen.randrange(5)
        if how == 0:
            changed[at] ^= 1 << chosen.randrange(8)
        elif how == 1:
            changed[at] = chosen.randrange(256)
        elif how == 2:
            del changed[at : at + chosen.choice((1, 4, 30))]
        elif how == 3:
            changed[at:at] = chosen.randbytes(chosen.choice((1, 4, 30)))
        else:
            other = chosen.randrange(len(changed))
            changed[at : at + 8] = changed[other : other + 8]
        if not changed:
            break
    return bytes(changed)


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_damaged_files_are_read_or_refused() -> None:
    code = "from tests.compat.serialization.test_hostile_files import mutations; mutations(400)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0 and "held" in done.stdout, done.stderr[-2000:]
