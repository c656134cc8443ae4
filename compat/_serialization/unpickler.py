"""Rebuilds objects from PyTorch's pickles: the functions that they name, the storages that they refer to.

There are two unpicklers: ``machine_on``'s, for weights from untrusted sources, and ``Reader``, which runs arbitrary
pickles. Both rebuild tensors by the same functions, which check that a tensor is within its storage, and that a storage
has the size of its contents.
"""

from __future__ import annotations

import _compat_pickle
import codecs
import importlib
import pickle
import pickletools
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from compat._core.dispatch.wrapper_subclass import rebuild
from compat._core.memory.numpy_storage import storage_over
from compat._core.memory.storage import new_storage, unknown_storage
from compat._core.memory.strides import Base, contiguous_strides, layout_of
from compat._core.memory.typed_storage import TypedStorage
from compat._core.tensor.autograd_state import SHARED
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, wrap
from compat._core.tensor.version_counter import VersionCounter
from compat._core.types import dtype as dtypes
from compat._core.types import memory_format
from compat._core.types.device import META, on
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.size import Size
from compat._operators.create.factories import empty_strided
from compat._operators.sparse.compressed import COMPRESSED, compressed_of
from compat._operators.sparse.compressed_factories import check_parts
from compat._serialization.errors import CorruptFileError, CorruptPickleError
from compat._serialization.pickle_machine import CALLS, Blocked, Forbidden, Machine, outside
from compat._serialization.pickler import (
    CLASSES,
    DTYPES,
    LAYOUT,
    NESTED_TENSOR,
    PARAMETER,
    PARAMETER_WITH,
    REBUILD_NESTED,
    SPARSE,
    SUBCLASS,
    TENSOR,
    TENSOR_OF,
    TENSOR_ON_META,
    TYPED,
    WRAPPER,
    Global,
    address,
    ours,
)  # fmt: skip
from compat._serialization.places import checked_place
from compat._serialization.skipping import fake_mode
from compat.nn.parameter import Parameter
from compat.storage import UntypedStorage
from funcgrad import runtime


def text_of(given: Any) -> Any:
    """A Python 2 string, which may have been read as bytes."""
    return given.decode("ascii") if isinstance(given, bytes) else given


class Loaded:
    """The storages of a file, each created once.

    Args:
        contents: returns the bytes of a key, given their number.
        place: a function of a storage and its device that moves the storage.
        swapped: whether the bytes of an element are swapped (other endianness).
    """

    def __init__(
        self, contents: Callable[[str, int], Any], place: Callable[[UntypedStorage, str], Any], swapped: bool = False
    ):
        self.contents = contents
        self.place = place
        self.swapped = swapped
        self.made: dict[str, TypedStorage | UntypedStorage] = {}

    def storage(self, reference: Any) -> TypedStorage | UntypedStorage:
        """The storage of a persistent reference.

        Raises:
            RuntimeError: if it is not a storage, or its size differs from that of its contents.
            OutsideError: with an exception of ``place``.
        """
        kind, key, location, count = _checked(reference)
        found = self.made.get(key)
        if found is None:
            dtype = kind.dtype if isinstance(kind, StorageKind) else dtypes.uint8
            want = count * dtype.itemsize
            if fake_mode() is not None:  # nothing is read
                made = outside(self.place, unknown_storage(Base((count,), dtype, device=META)), location)
                found = self.made[key] = self._typed(kind, made)
                return found
            array = self.contents(key, want)
            if array.nbytes != want:
                raise CorruptFileError(
                    f"storage {key!r}: record size ({array.nbytes} bytes) does not match expected size ({want} bytes = "
                    f"{count} elements * {dtype.itemsize} bytes/element)"
                )
            array = array.view(dtype.numpy)
            if self.swapped:
                array = array.byteswap()
            own = isinstance(array, np.memmap)
            made = outside(self.place, storage_over(array, dtype)[0] if own else new_storage(array, dtype), location)
            found = self.made[key] = self._typed(kind, made)
        return found

    def _typed(self, kind: Any, made: UntypedStorage) -> TypedStorage | UntypedStorage:
        return TypedStorage(wrap_storage=made, dtype=kind.dtype) if isinstance(kind, StorageKind) else made


class StorageKind(NamedTuple):
    """The placeholder for ``torch.FloatStorage`` and other typed storages in a file."""

    dtype: Dtype


def _checked(reference: Any) -> tuple[Any, str, str, int]:
    """The parts of a storage reference: the kind, key, device and number of elements."""
    if not isinstance(reference, tuple):
        raise CorruptPickleError(f"persistent_load id must be tuple or int, but got {type(reference)}")
    if not reference or text_of(reference[0]) != "storage":
        raise CorruptPickleError(
            "Only persistent_load of storage is allowed: Unknown typename for persistent_load, expected 'storage' but "
            f"got {reference[:1]!s:.60}"
        )
    if len(reference) != 5:
        raise CorruptPickleError(f"a reference to a storage has 5 parts, got {len(reference)}")
    _, kind, key, location, count = reference
    key = str(key) if type(key) is int else text_of(key)
    location = text_of(location)
    if not isinstance(key, str) or not isinstance(location, str):
        raise CorruptPickleError(f"a storage's key and device are text, got {type(key)} and {type(location)}")
    if not isinstance(kind, StorageKind) and kind not in (UntypedStorage, TypedStorage):
        raise CorruptPickleError(f"storage {key!r} is of no kind of storage, got {type(kind)}")
    if type(count) is not int or count < 0:
        raise CorruptPickleError(f"storage {key!r} claims a number of elements of {count!s:.40}")
    return kind, key, location, count


def _rebuild(
    storage: Any, offset: int, size: Any, stride: Any, grad: bool, hooks: Any, marks: Any = None, dtype: Any = None
) -> Tensor:
    if not isinstance(storage, (TypedStorage, UntypedStorage)):
        raise TypeError(f"a tensor is made of a storage, not of {type(storage).__name__}")
    owner = storage.untyped()
    dtype = dtype or getattr(storage, "dtype", dtypes.uint8)
    marks = {} if marks is None else marks
    if not isinstance(dtype, Dtype) or not isinstance(grad, bool) or not isinstance(marks, dict):
        kinds = (type(given).__name__ for given in (dtype, grad, marks))
        raise TypeError(f"a tensor has a dtype, a bool for requires_grad and a dict, not {', '.join(kinds)}")
    size, stride, offset = checked_place(size, stride, offset, dtype.itemsize, owner.nbytes())
    fresh = len(owner.base.shape) == 1 and owner.version == 0 and type(owner) is UntypedStorage
    if fresh and stride == contiguous_strides(size) and _fills(owner, size, dtype) and _suits(owner.base, size, dtype):
        # The buffer takes the tensor's shape, for fast reads.
        if owner.device is not META:
            owner.buffer = on(owner.device, runtime.from_numpy(owner.numpy().view(dtype.numpy).reshape(size)))
            owner.base = Base(size, dtype, device=owner.device)
    layout = layout_of(owner.base, size, stride, offset, dtype, bool(marks.get("conj")), bool(marks.get("neg")))
    made = wrap(owner, layout, offset)
    made._view_ = SHARED
    if made._counter_ is not None:
        made._counter_ = VersionCounter(1)  # its memory is set after its creation
    mode = fake_mode()
    if mode is not None:
        made = mode.made(made, owner.fake_device) if owner.device is META else mode.from_tensor(made)
    return made.requires_grad_(True) if grad else made


def _fills(storage: UntypedStorage, size: tuple[int, ...], dtype: Dtype) -> bool:
    """Whether a contiguous tensor fills a storage."""
    count = 1
    for n in size:
        count *= n
    return count * dtype.itemsize == storage.nbytes()


def _suits(base: Base, size: tuple[int, ...], dtype: Dtype) -> bool:
    """Whether a buffer may be reshaped or cast: once each, or a file could cause unlimited copies."""
    return base.dtype in (dtype, dtypes.uint8) and (base.shape, base.dtype) != (size, dtype)


def _rebuild_v3(
    storage: Any, offset: int, size: Any, stride: Any, grad: bool, hooks: Any, dtype: Dtype, marks: Any = None
) -> Tensor:
    return _rebuild(storage, offset, size, stride, grad, hooks, marks, dtype)


def _rebuild_v1(storage: Any, offset: int, size: Any, stride: Any) -> Tensor:
    return _rebuild(storage, offset, size, stride, False, None)


def _rebuild_on_meta(dtype: Dtype, size: Any, stride: Any, grad: bool) -> Tensor:
    size, stride, _ = checked_place(size, stride, 0, dtype.itemsize, None)
    return empty_strided(size, stride, dtype=dtype, device=META, requires_grad=grad)


def _rebuild_wrapper(
    cls: type, dtype: Dtype, size: Any, stride: Any, offset: Any, layout: Any, device: Any, grad: bool
) -> Any:
    size, stride, offset = checked_place(size, stride, offset, dtype.itemsize, None)
    return rebuild(cls, dtype, size, stride, offset, layout, device, grad)


def _rebuild_sparse(layout: Any, parts: tuple) -> Tensor:
    compressed = layout in COMPRESSED
    if not compressed and layout is not memory_format.LAYOUTS["sparse_coo"]:
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    *given, size = parts[: 3 + compressed]
    if not all(isinstance(t, Tensor) for t in given):
        kinds = ", ".join(type(t).__name__ for t in given)
        raise TypeError(f"a sparse tensor is made of tensors, not {kinds}")
    size, _, _ = checked_place(size, (0,) * len(size), 0, 1, None)
    if compressed:
        first, second, elements = given
        check_parts(layout, first, second, elements, size)  # a file may contain anything
        return compressed_of(layout, first, second, elements, size)
    made: Tensor = names_of("torch")["sparse_coo_tensor"](*given, size, is_coalesced=any(parts[3:]))
    return made


def _rebuild_nested(parts: Any) -> Tensor:
    values, starts, counts = (parts[name] for name in ("values", "offsets", "lengths"))
    if not all(isinstance(t, Tensor) for t in (values, starts)) or not (counts is None or isinstance(counts, Tensor)):
        raise TypeError("a nested tensor is made of tensors")
    from compat.nested._internal.nested_tensor import from_file

    made: Tensor = from_file(values, starts, counts, parts["_ragged_idx"])
    return made.requires_grad_(bool(parts["requires_grad"]))


class NestedKind:
    """A placeholder for the class of nested tensors, which is imported lazily."""


class DimRange:
    """A placeholder for annotations of PyTorch's compiler, which are ignored."""

    def __setstate__(self, state: Any) -> None:
        pass


def _parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Parameter:
    if not isinstance(data, Tensor) or not isinstance(requires_grad, bool):
        kinds = f"{type(data).__name__} and {type(requires_grad).__name__}"
        raise TypeError(f"a parameter is made of a tensor and a bool, not of {kinds}")
    made = Parameter(data, requires_grad)
    _give(made, state)
    return made


def _subclass(function: Any, kind: Any, args: tuple, state: Any) -> Any:
    if function not in _REBUILDING:
        raise TypeError(f"{getattr(function, '__name__', type(function).__name__)} does not rebuild tensors")
    if function is _rebuild_nested and kind is NestedKind:
        return function(*args)
    if not isinstance(kind, type) or not issubclass(kind, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )
    made = function(*args)
    made = made if type(made) is kind else made._of_class_(kind)
    _give(made, state)
    return made


def _give(t: Tensor, state: Any) -> None:
    """Restores a tensor's attributes, except those that its class defines.

    Raises:
        AttributeError: for the name of a method, property or slot of tensors, or a special name.
    """
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            check_attribute(type(t), name)
            setattr(t, name, value)


def check_attribute(cls: type, name: Any) -> None:
    """Checks that an attribute may come from a file: a user attribute, not one that the class relies on.

    Raises:
        AttributeError: otherwise.
    """
    if isinstance(name, str) and not name.startswith("__"):
        definer = next((c for c in cls.__mro__ if name in vars(c)), None)
        if definer is None or not _is_ours(definer):
            return
        found = vars(definer)[name]
        # A class of the program may use the name of a tensor method for an attribute.
        shadows = hasattr(found, "__set__") if not _is_ours(cls) else callable(found) or hasattr(found, "__get__")
        if not shadows:
            return
    raise AttributeError(f"{name!r:.60} is no attribute that a file may give to an object of {cls}")


def _is_ours(cls: type) -> bool:
    """Whether a class is compat's or builtin, whose behaviour no file may change."""
    return cls.__module__.partition(".")[0] in ("torch", "compat", "builtins", "collections")


def _layout(text: str) -> Any:
    return memory_format.LAYOUTS[text.removeprefix("torch.")]


#: Rebuild functions of the base class, whose result ``_subclass`` then converts.
_REBUILDING = (
    _rebuild,
    _rebuild_v3,
    _rebuild_v1,
    _rebuild_on_meta,
    _rebuild_sparse,
    _rebuild_wrapper,
    _rebuild_nested,
    _parameter,
)


def _known() -> dict[Global, Any]:
    """The globals allowed in any file."""
    table: dict[Global, Any] = {
        TENSOR: _rebuild,
        TENSOR_OF: _rebuild_v3,
        address("torch._utils._rebuild_tensor"): _rebuild_v1,
        TENSOR_ON_META: _rebuild_on_meta,
        SUBCLASS: _subclass,
        WRAPPER: _rebuild_wrapper,
        SPARSE: _rebuild_sparse,
        REBUILD_NESTED: _rebuild_nested,
        NESTED_TENSOR: NestedKind,
        address("torch._dynamo.decorators._DimRange"): DimRange,
        PARAMETER: _parameter,
        PARAMETER_WITH: _parameter,
        LAYOUT: _layout,
        address("torch.storage.TypedStorage"): TypedStorage,
        address("torch.Tensor"): Tensor,
        address("collections.OrderedDict"): OrderedDict,
        address("collections.Counter"): Counter,
        address("_codecs.encode"): codecs.encode,
    }
    table.update({name: cls for cls, name in CLASSES.items()})
    table.update({name: d for d, name in DTYPES.items()})
    table.update({name: StorageKind(d) for d, name in TYPED.items()})
    for builtin in (bytearray, complex, set):
        table[Global("builtins", builtin.__name__)] = table[Global("__builtin__", builtin.__name__)] = builtin
    return table


KNOWN = _known()


#: Modules whose globals are never allowed in a file of weights.
_BLOCKED = frozenset(("sys", "os", "posix", "nt"))


def _today(wanted: Global) -> Global:
    """Maps names in Python 2 pickles to today's: ``__builtin__.print`` to ``builtins.print``."""
    module, name = _compat_pickle.NAME_MAPPING.get(wanted, wanted)
    return Global(_compat_pickle.IMPORT_MAPPING.get(module, module), name)


class _Reading:
    """Base of unpicklers that resolve PyTorch's names in compat.

    Args:
        loaded: the storages.
    """

    def __init__(self, file: Any, loaded: Loaded, **options: Any):
        super().__init__(file, **options)  # type: ignore[call-arg]
        self._loaded = loaded

    def persistent_load(self, reference: Any) -> Any:
        """The storage of a persistent reference."""
        return self._loaded.storage(reference)

    def find_class(self, module: str, name: str) -> Any:
        """The object for a name."""
        known = KNOWN.get(Global(module, name))
        if known is not None:
            return known
        place = ours(module)
        if place is None:
            return super().find_class(module, name)  # type: ignore[misc]
        found: Any = importlib.import_module(place)
        for part in name.split("."):
            found = getattr(found, part)
        return found


class Reader(_Reading, pickle.Unpickler):
    """An unpickler that resolves PyTorch's names in compat, and runs arbitrary pickles."""


def reader_on(module: Any) -> type[Reader]:
    """``Reader`` based on another module's unpickler."""
    return Reader if module in (None, pickle) else type("Reader", (_Reading, module.Unpickler), {})


# ---------------------------------------------------------------- reading weights only


def machine_on(data: bytes, start: int, loaded: Loaded, allowed: Mapping[Global, Any], encoding: str) -> Machine:
    """The machine for a pickle that may contain only tensors, containers, plain values, and globals that the program
    allowed.

    Args:
        data: the bytes that contain the pickle.
        start: its offset.
        loaded: the storages.
        allowed: the globals that the program allowed, by name.
        encoding: the encoding of Python 2 strings.
    """
    own = {id(value) for value in allowed.values()} - _CALLABLES.keys()

    def find(module: str, name: str) -> Any:
        wanted = Global(module, name)
        found = KNOWN.get(wanted)
        if found is not None:
            return found
        if module.partition(".")[0] in _BLOCKED:
            raise Blocked(f"Trying to load unsupported GLOBAL {module}.{name} whose module {module} is blocked.")
        wanted = _today(wanted)
        if wanted not in allowed:
            raise Forbidden(wanted.name if wanted.module == "builtins" else f"{wanted.module}.{wanted.name}")
        return allowed[wanted]

    return Machine(
        data,
        start,
        find=find,
        persistent=loaded.storage,
        is_own=lambda value: id(value) in own,
        callables=_CALLABLES,
        build=_build,
        encoding=encoding,
    )


def _build(made: Any, state: Any) -> bool:
    """Sets the state of a builtin or compat object; returns whether it has one."""
    if type(made) in (OrderedDict, Counter):
        for name in state:
            check_attribute(type(made), name)
        made.__dict__.update(state)
        return True
    if type(made) is DimRange:
        return True
    if type(made) in (Tensor, Parameter):  # as in files of the first versions
        storage, offset, size, stride = state
        made.data = _rebuild_v1(storage, offset, size, stride)
        return True
    return False


def _plainly(function: Any) -> Callable[..., Any]:
    return lambda machine, *args: function(*args)


def _new_tensor(machine: Machine) -> Tensor:
    return Tensor()


def _new_parameter(machine: Machine, data: Any = None, requires_grad: bool = True) -> Parameter:
    return Parameter() if data is None else _parameter(data, requires_grad, None)


#: Replacements for calling the entries of ``KNOWN``, by id. Storages come by reference only: calling their classes, or
#: those of tensors with a size, would allocate memory.
_CALLABLES: dict[int, Callable[..., Any]] = {
    **{id(f): _plainly(f) for f in (*_REBUILDING, _subclass, _layout, Size, Device, DimRange)},
    **{id(f): how for f, how in CALLS.items()},
    id(Tensor): _new_tensor,
    id(Parameter): _new_parameter,
}


def names_in(pickled: bytes) -> list[Global]:
    """The classes and functions that a pickle names and that are not allowed in any file, sorted."""
    found: set[Global] = set()
    texts: list[str] = []
    memo: dict[int, str | None] = {}
    text: str | None = None
    value: Any
    for opcode, value, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            found.add(Global(*value.split(" ", 1)))
        elif opcode.name == "STACK_GLOBAL":
            found.add(Global(*texts[-2:]))
        elif opcode.name == "MEMOIZE" or "PUT" in opcode.name:
            memo[len(memo) if value is None else value] = text
        else:
            text = memo.get(value) if "GET" in opcode.name else value if isinstance(value, str) else None
            texts += [text] if text is not None else []
            continue
        text = None
    return sorted(map(_today, found - KNOWN.keys()))
