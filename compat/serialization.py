"""``torch.save`` and ``torch.load``: reads and writes PyTorch's files.

A file is a zip archive: ``data.pkl`` is the pickled object (``compat._serialization.pickler``); ``data/0``, ``data/1``,
… are the storages it refers to, so tensors that share memory share it again when loaded.
"""

from __future__ import annotations

import enum
import io
import mmap as mapping
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from compat._core.memory.storage import unknown_storage
from compat._core.memory.strides import Base
from compat._core.tensor.registry import function
from compat._core.types.device import META, accelerators, available
from compat._core.types.device import device as Device
from compat._core.types.errors import warn
from compat._serialization import legacy_format
from compat._serialization.errors import CorruptFileError, CorruptPickleError
from compat._serialization.pickle_machine import Forbidden, OutsideError
from compat._serialization.pickler import Global, Writer
from compat._serialization.skipping import fake_mode, skip_data, skips_data
from compat._serialization.unpickler import Loaded, machine_on, names_in, reader_on
from compat._serialization.zip_reader import PyTorchFileReader, name_of
from compat._serialization.zip_writer import ALIGNMENT, PyTorchFileWriter
from compat.storage import UntypedStorage

__all__ = [
    "MAP_LOCATION", "LoadEndianness", "add_safe_globals", "clear_safe_globals", "default_restore_location",
    "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "location_tag",
    "normalize_storage_type", "safe_globals", "save", "set_crc32_options",
    "set_default_load_endianness", "set_default_mmap_options", "skip_data",
]  # fmt: skip

#: The types of ``map_location``.
MAP_LOCATION: TypeAlias = Callable[[UntypedStorage, str], UntypedStorage] | Device | str | dict[str, str] | None

#: The pickle protocol of written files.
DEFAULT_PROTOCOL = 2

# ---------------------------------------------------------------- options


class LoadEndianness(enum.Enum):
    """The byte order of elements."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options:
    endianness: LoadEndianness | None = None
    flags: int = mapping.MAP_PRIVATE
    checksums: bool = True


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files that do not record it; None for little-endian."""
    return _Options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of files that do not record it, such as those from before version 2.1.

    Raises:
        TypeError: for an argument that is not a byte order.

    Example:
        >>> set_default_load_endianness(LoadEndianness.LITTLE)
        >>> get_default_load_endianness()
        <LoadEndianness.LITTLE: 2>
        >>> set_default_load_endianness(None)
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _Options.endianness = endianness


def get_crc32_options() -> bool:
    """Whether checksums are verified, as set by ``set_crc32_options``."""
    return _Options.checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether ``load`` verifies checksums. ``save`` always writes them, by the standard library.

    A file whose tensors were modified through a shared mapping has outdated ones.

    Example:
        >>> set_crc32_options(False)
        >>> get_crc32_options()
        False
        >>> set_crc32_options(True)
    """
    _Options.checksums = compute_crc32


def get_default_mmap_options() -> int:
    """How ``load`` maps files: ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``."""
    return _Options.flags


class set_default_mmap_options:
    """Sets how ``load`` with ``mmap=True`` maps files; also a context manager.

    Args:
        flags: ``mmap.MAP_PRIVATE``, or ``mmap.MAP_SHARED``, with which changes of tensors are written to the file.

    Raises:
        ValueError: for other flags.

    Example:
        >>> import mmap
        >>> with set_default_mmap_options(mmap.MAP_SHARED):
        ...     get_default_mmap_options() == mmap.MAP_SHARED
        True
    """

    def __init__(self, flags: int) -> None:
        if flags not in (mapping.MAP_PRIVATE, mapping.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.before = _Options.flags
        _Options.flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        _Options.flags = self.before


# ---------------------------------------------------------------- saving


@function("torch.save")
def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object to a file, in PyTorch's format.

    Args:
        obj: tensors, containers of them, a ``state_dict``, or anything that can be pickled.
        f: a path, or a file open for writing bytes.
        pickle_module: ignored; the standard library's is used.
        pickle_protocol: the pickle protocol.
        _use_new_zipfile_serialization: False for the format before version 1.6.

    Raises:
        AttributeError: if ``f`` is neither.
        RuntimeError: if the directory does not exist, or tensors of different dtypes share memory.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.ones(2)}, file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'weight': tensor([1., 1.])}
    """
    named = isinstance(f, (str, os.PathLike))
    if not named and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    # The file is complete even for a reader that opens it before it is closed.
    flush = (lambda: None) if named else f.flush
    # Pickling errors are raised before anything is written.
    pickled = io.BytesIO()
    if not _use_new_zipfile_serialization:
        legacy_format.write(pickled, obj, pickle_protocol)
        _put(f, named, pickled.getvalue())
        flush()
        return
    writer = Writer(pickled, pickle_protocol)
    writer.dump(obj)
    parent = os.path.dirname(os.fspath(f)) if named else ""
    if parent and not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    entries = [("data.pkl", pickled.getvalue()), (".format_version", b"1")]
    entries.append((".storage_alignment", str(ALIGNMENT).encode()))
    if not _disable_byteorder_record:
        entries.append(("byteorder", b"little"))
    _write(f, entries, writer.storages)
    flush()


def _put(f: Any, named: bool, contents: bytes) -> None:
    if not named:
        f.write(contents)
        return
    with open(f, "wb") as file:
        file.write(contents)


def _write(f: Any, entries: list[tuple[str, bytes]], storages: dict[str, UntypedStorage]) -> None:
    records = PyTorchFileWriter(f)
    for name, contents in entries:
        records.write_record(name, contents, len(contents))
    for key, storage in storages.items():
        size = storage.nbytes()
        records.write_record(f"data/{key}", bytes(size) if skips_data() else storage, size)
    records.write_end_of_file()


# ---------------------------------------------------------------- allowed globals

_safe: dict[Global, Any] = {}


def _named(item: Any) -> tuple[Global, Any]:
    value, name = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
    module, _, last = name.rpartition(".")
    if module.partition(".")[0] == "compat":
        module = "torch" + module[len("compat") :]
    return Global(module, last), value


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Allows ``load`` with ``weights_only`` to use these classes and functions.

    Args:
        safe_globals: the objects, or pairs of an object and its name in the file.
    """
    _safe.update(map(_named, safe_globals))


def get_safe_globals() -> list[Any]:
    """The added globals."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Removes all added globals."""
    _safe.clear()


@contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """``add_safe_globals`` for the duration of a ``with`` block.

    Example:
        >>> import io, fractions
        >>> file = io.BytesIO()
        >>> torch.save(fractions.Fraction(1, 2), file)
        >>> _ = file.seek(0)
        >>> with torch.serialization.safe_globals([fractions.Fraction]):
        ...     torch.load(file)
        Fraction(1, 2)
    """
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe.clear()
        _safe.update(before)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The globals in a file that ``load`` with ``weights_only`` would reject.

    Args:
        f: a path, or a seekable file open for reading bytes.

    Raises:
        ValueError: if it is not a file of ``save``, or has the format before version 1.6.

    Example:
        >>> import io, fractions
        >>> file = io.BytesIO()
        >>> torch.save({"half": fractions.Fraction(1, 2), "weight": torch.ones(2)}, file)
        >>> get_unsafe_globals_in_checkpoint(file)
        ['fractions.Fraction']
    """
    import zipfile

    if not zipfile.is_zipfile(f):
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    records = PyTorchFileReader(f)
    if not records.has_record("data.pkl"):
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    return [f"{name.module}.{name.name}" for name in names_in(records.get_record("data.pkl")) if name not in _safe]


# ---------------------------------------------------------------- loading


@function("torch.load")
def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads an object from a file of ``save``, of compat or PyTorch.

    Args:
        f: a path, or a seekable file open for reading bytes.
        map_location: the device of the storages: a device, a dictionary from devices in the file to others, or a
            function of a storage and its device that returns a storage or None.
        pickle_module: the module whose ``Unpickler`` is used without ``weights_only``.
        weights_only: whether to allow only tensors, containers and plain values; True by default. Other files can run
            arbitrary code when loaded.
        mmap: whether to map the file, given by its path: with ``set_default_mmap_options(mmap.MAP_SHARED)`` changes of
            the tensors are written to it. Otherwise it is read, with the same result, but without verifying checksums
            of storages.
        pickle_load_args: arguments of ``pickle.Unpickler``.

    Raises:
        UnpicklingError: for contents that are not allowed.
        CorruptFileError: for an invalid or corrupt file; this is both an ``UnpicklingError`` and a ``RuntimeError``.
            Checksums are verified unless ``set_crc32_options(False)`` was called.
        EOFError: if it is empty.
        RuntimeError: for a missing device, and for TorchScript.
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    weights_only = _weights_only(weights_only, pickle_module)
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    options = _load_options(weights_only, pickle_load_args)
    source = partial(_Source, place=_placing(map_location), weights_only=weights_only, options=options)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load(source(file, mapped=bool(mmap), pickle_module=pickle_module))
    _check_seekable(f)
    # The standard library's zipfile requires more than reading and seeking.
    readable = f if hasattr(f, "seekable") else io.BytesIO(f.read())
    return _load(source(readable, mapped=False, pickle_module=pickle_module))


def _check_seekable(f: Any) -> None:
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer "
            "like io.BytesIO and try to load from it instead."
        ) from None


def _load_options(weights_only: bool, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the unpickler. Python 2 strings are decoded as UTF-8 unless ``encoding`` is given.

    Raises:
        TypeError: with ``weights_only``, for anything but ``encoding``.
    """
    if weights_only and given:
        warn("pickle_load_args only works if `weights_only=False`.")
        unknown = next((name for name in given if name != "encoding"), None)
        if unknown is not None:
            raise TypeError(f"Unpickler.__init__() got an unexpected keyword argument '{unknown}'")
    return {"encoding": "utf-8", **given}


def _weights_only(asked: bool | None, pickle_module: Any) -> bool:
    """The requested value or the default; an environment variable may override both."""
    force, refuse = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    forced, refused = (os.environ.get(name, "0").lower() in ("1", "y", "yes", "true") for name in (force, refuse))
    if forced and refused:
        raise RuntimeError(f"Only one of `{force}` or `{refuse}` should be set, but both were set.")
    if forced:
        return True
    if asked is None and refused:
        warn(
            f"Environment variable {refuse} detected, since the`weights_only` argument was not explicitly passed to "
            "`torch.load`, forcing weights_only=False."
        )
        return False
    return pickle_module is None if asked is None else asked


class _Source(NamedTuple):
    """A file being read, with options.

    Attributes:
        place: a function that moves a storage to its device.
        mapped: whether to map the file into memory.
    """

    file: Any
    place: Callable[[UntypedStorage, str], Any]
    weights_only: bool
    options: dict[str, Any]
    mapped: bool
    pickle_module: Any


def _load(source: _Source) -> Any:
    """Reads a file of any of PyTorch's formats.

    Raises:
        EOFError: for an empty file.
    """
    file = source.file
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError("" if source.weights_only else "Ran out of input")
    if head == b"PK\x03\x04":
        return _guarded(source, partial(_load_zip, source))
    if source.mapped:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please "
            "torch.save your checkpoint with this option in order to use mmap."
        )
    unpicklers = _weights_only_unpicklers if source.weights_only else _general_unpicklers
    return _guarded(source, lambda: legacy_format.read(file, source.place, unpicklers(source), source.weights_only))


def _load_zip(source: _Source) -> Any:
    records = PyTorchFileReader(source.file)
    records.check_version()
    if records.has_record("constants.pkl"):
        raise RuntimeError(_refusal_of_torchscript(source))
    # A mapped file is not read, so its checksum is unknown.
    checks = _Options.checksums and not source.mapped
    shared = source.mapped and _Options.flags == mapping.MAP_SHARED

    def contents(key: str, size: int) -> Any:
        name = f"data/{key}"
        if skips_data():
            return np.zeros(records.get_record_size(name), np.uint8)
        if shared and size and size == records.get_record_size(name):
            records.forget_checksum(name)
            return np.memmap(source.file.name, np.uint8, "r+", records.get_record_offset(name), (size,))
        return np.frombuffer(records.get_record(name, checks), np.uint8)

    loaded = Loaded(contents, source.place, _is_swapped(records))
    pickled = records.get_record("data.pkl", _Options.checksums)
    if source.weights_only:
        machine = _weights_only_unpicklers(source)(pickled, 0, loaded)
        machine.record = "data.pkl"
        return machine.load()
    return _general_unpicklers(source)(io.BytesIO(pickled), loaded).load()


def _weights_only_unpicklers(source: _Source) -> Callable[..., Any]:
    """A factory of unpicklers that accept only listed globals."""
    return partial(machine_on, allowed=_safe, encoding=source.options["encoding"])


def _general_unpicklers(source: _Source) -> Callable[..., Any]:
    """A factory of unpicklers that accept all globals."""
    return partial(reader_on(source.pickle_module), **source.options)


def _is_swapped(records: PyTorchFileReader) -> bool:
    """Whether the bytes of an element are swapped (other endianness)."""
    if not records.has_record("byteorder"):
        return _Options.endianness is LoadEndianness.BIG
    order = records.get_record("byteorder")
    if order not in (b"little", b"big"):
        raise CorruptFileError(f"Unknown endianness type: {order[:20]!r} (record byteorder)")
    return order == b"big"


def _refusal_of_torchscript(source: _Source) -> str:
    if source.weights_only:
        return f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. {_CHANGED}"
    return (
        f"{name_of(source.file)} is a TorchScript archive, as torch.jit.save writes it: torch.load does not read "
        "those, and there is no torch.jit.load here. Save the module's state_dict with torch.save."
    )


_DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)
_CHANGED = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source."
)


def _guarded(source: _Source, read: Callable[[], Any]) -> Any:
    """Reads a file, converting all errors of an invalid file to one type, with the file's name.

    Raises:
        UnpicklingError: with ``weights_only``, for contents that are not allowed.
        CorruptFileError: for a corrupt file; this is both a ``RuntimeError`` and an ``UnpicklingError``.
    """
    try:
        return read()
    except OutsideError as raised:
        error = raised.error
    except Forbidden as forbidden:
        raise pickle.UnpicklingError(_not_allowed(str(forbidden))) from None
    except (pickle.UnpicklingError, EOFError) as damage:
        said = str(damage) or "the file ends too early"
        if source.weights_only and not isinstance(damage, CorruptFileError):
            raise pickle.UnpicklingError(f"Weights only load failed. {_CHANGED}\n\n{said}{_DOCS}") from None
        begin = "Weights only load failed. WeightsUnpickler error: " if isinstance(damage, CorruptPickleError) else ""
        name = name_of(source.file)
        raise CorruptFileError(f"{begin}{said}{'' if name in said else f' (file: {name})'}") from damage.__cause__
    raise error


def _not_allowed(name: str) -> str:
    return (
        "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those "
        f"steps only if you trust the source of the checkpoint\033[0m. \n\t(1) {_CHANGED}\n\t(2) Alternatively, to "
        "load with `weights_only=True` please check the recommended steps in the following error message.\n\t"
        f"WeightsUnpickler error: Unsupported global: GLOBAL {name} was not an allowed global by default. Please "
        f"use `torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` "
        f"context manager to allowlist this global if you trust this class/function.{_DOCS}"
    )


def _placing(map_location: Any) -> Callable[[UntypedStorage, str], Any]:
    """A function that moves a storage according to ``map_location``."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        text = map_location if isinstance(map_location, str) else map_location.decode()
        return lambda storage, location: default_restore_location(storage, text)
    if isinstance(map_location, Device):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def called(storage: UntypedStorage, location: str) -> Any:
        found = map_location(storage, location)
        return default_restore_location(storage, location) if found is None else found

    return called


def normalize_storage_type(storage_type: type) -> Any:
    """The storage class under its name in ``torch``, as files refer to it."""
    return getattr(import_module("compat"), storage_type.__name__)


def location_tag(storage: Any) -> str:
    """The location tag of a storage in files."""
    return str(storage.device)


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """Moves a loaded storage to ``location``: the default behaviour of a ``map_location`` function.

    Raises:
        RuntimeError: for a missing device.

    Example:
        >>> storage = torch.ones(2).untyped_storage()
        >>> default_restore_location(storage, "cpu") is storage
        True
    """
    if storage.device is META and fake_mode() is not None:
        storage.fake_device = available(location)  # what fake tensors over it claim
        return storage
    if location == "cpu":
        return storage
    if accelerators(location.partition(":")[0]):
        return storage.to(device=location)
    if location == "meta":
        return unknown_storage(Base(storage.base.shape, storage.base.dtype, device=META))
    if location.startswith("cuda"):
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    raise RuntimeError(
        f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})"
    )
