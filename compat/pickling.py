"""How objects are pickled so that PyTorch can read them, and read from what PyTorch pickled.

In a file everything has PyTorch's names: a tensor is a call of ``torch._utils._rebuild_tensor_v2`` with a storage, and
storages are persistent objects whose contents lie elsewhere. ``compat.serialization`` is about where.
"""

from __future__ import annotations

import _compat_pickle
import importlib
import pickle
import pickletools
from collections import Counter, OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from compat import dtypes, formats
from compat.device import META
from compat.device import device as Device
from compat.dtypes import dtype as Dtype
from compat.hosted import storage_over
from compat.layout import Base, contiguous_strides, layout_of
from compat.nn.parameter import Parameter
from compat.ops.creation import empty_strided
from compat.ops.dispatched_duals import is_wrapper
from compat.ops.wrappers import place_of, rebuild
from compat.registry import address_of, names_of
from compat.size import Size
from compat.slots import state_of
from compat.storage import UntypedStorage, new_storage
from compat.tensor import SHARED, Tensor, Version, sync, wrap
from compat.typed_storage import TypedStorage
from funcgrad import runtime

# ---------------------------------------------------------------- names


class Global(NamedTuple):
    """Something by its name in PyTorch."""

    module: str
    name: str

    def __call__(self, *args: Any) -> Any:
        """Only what can be called may stand where a pickle calls something; this is written, never called."""
        raise TypeError(f"{self.module}.{self.name} stands for a name in a file")


def _global(text: str) -> Global:
    module, _, name = text.rpartition(".")
    return Global(module, name)


_TENSOR, _TENSOR_OF = _global("torch._utils._rebuild_tensor_v2"), _global("torch._utils._rebuild_tensor_v3")
_TENSOR_ON_META = _global("torch._utils._rebuild_meta_tensor_no_storage")
_SUBCLASS = _global("torch._tensor._rebuild_from_type_v2")
_WRAPPER = _global("torch._utils._rebuild_wrapper_subclass")
_PARAMETER = _global("torch._utils._rebuild_parameter")
_PARAMETER_WITH = _global("torch._utils._rebuild_parameter_with_state")
_SPARSE = _global("torch._utils._rebuild_sparse_tensor")
_LAYOUT = _global("torch.serialization._get_layout")
_UNTYPED = _global("torch.storage.UntypedStorage")

#: Dtypes with a storage class of their own; tensors of others say their dtype beside an untyped storage.
_TYPED = {
    d: Global("torch", f"{d.scalar_name}Storage")
    for d in dtypes.ALL
    if d.scalar_name in ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double")
    or d in (dtypes.complex64, dtypes.complex128)
}
_DTYPES = {d: Global("torch", repr(d).removeprefix("torch.")) for d in (*dtypes.ALL, *dtypes.BARE)}
_CLASSES: dict[Any, Global] = {
    Device: Global("torch", "device"),
    Size: Global("torch", "Size"),
    Tensor: Global("torch", "Tensor"),
    Parameter: _global("torch.nn.parameter.Parameter"),
    UntypedStorage: _UNTYPED,
}


def _ours(name: str) -> str | None:
    """A module of PyTorch's by its name here; None for another package's."""
    head, dot, rest = name.partition(".")
    return "compat" + dot + rest if head == "torch" else None


# ---------------------------------------------------------------- writing


# Python's own pickler: the one in C writes names only of what can be imported by them.
_Pickler: Any = vars(pickle)["_Pickler"]


def _save_type(writer: Any, obj: Any) -> None:
    if obj in (type(None), type(NotImplemented), type(...)):
        _Pickler.save_type(writer, obj)
    else:
        writer.save_global(obj)


class Writer(_Pickler):
    """A pickler that gives everything PyTorch's name, and puts storages aside.

    Attributes:
        storages: what was put aside, by key.
    """

    dispatch: ClassVar[dict[type, Any]] = dict(_Pickler.dispatch)

    def __init__(self, file: Any, protocol: int):
        super().__init__(file, protocol)
        self.storages: dict[str, UntypedStorage] = {}
        self._keys: dict[int, str] = {}
        self._kinds: dict[int, Dtype] = {}

    def persistent_id(self, obj: Any) -> Any:
        """How a storage is referred to; None for anything else."""
        if isinstance(obj, TypedStorage):
            return self._reference(obj.untyped(), obj.dtype, _TYPED.get(obj.dtype, _UNTYPED))
        return self._reference(obj, dtypes.uint8, _UNTYPED) if isinstance(obj, UntypedStorage) else None

    def _reference(self, storage: UntypedStorage, dtype: Dtype, kind: Global) -> tuple:
        if storage.data_ptr() and self._kinds.setdefault(storage.data_ptr(), dtype) is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self._keys.setdefault(id(storage), str(len(self._keys)))
        self.storages[key] = storage
        itemsize = 1 if kind is _UNTYPED else dtype.itemsize
        return "storage", kind, key, "cpu", storage.nbytes() // itemsize

    def reducer_override(self, obj: Any) -> Any:
        """How objects of ours are written."""
        if isinstance(obj, Tensor):
            return _reduced(obj)
        if isinstance(obj, Size):
            return Global("torch", "Size"), (tuple(obj),)
        if isinstance(obj, Device):
            return Global("torch", "device"), (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, formats.layout):
            return _LAYOUT, (repr(obj),)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Writes a class or function by its name."""
        found = _DTYPES.get(obj) if isinstance(obj, Dtype) else _CLASSES.get(obj) if isinstance(obj, type) else None
        module = getattr(obj, "__module__", None) or ""
        address = address_of(obj) if isinstance(obj, FunctionType) else None
        if address is not None:
            found = Global(f"torch.{address[0]}".removesuffix(".torch"), address[1])
        if found is None and module.partition(".")[0] in ("compat", "torch"):
            found = Global("torch" + module[module.find(".") :] if "." in module else "torch", name or obj.__qualname__)
        if found is None:
            super().save_global(obj, name)
        else:
            self._name(found)
            self.memoize(obj)

    def _name(self, found: Global) -> None:
        self.write(pickle.GLOBAL + f"{found.module}\n{found.name}\n".encode())

    def _save_name(self, obj: Global) -> None:
        # Two equal names need not be one object: what is remembered is the name.
        known = _interned.setdefault(obj, obj)
        if id(known) in self.memo:
            self.write(self.get(self.memo[id(known)][0]))
        else:
            self._name(known)
            self.memoize(known)

    dispatch[Global] = _save_name
    dispatch[Dtype] = save_global
    dispatch[type] = _save_type
    dispatch[FunctionType] = save_global


_interned: dict[Global, Global] = {}


def _reduced(t: Tensor) -> tuple:
    """A tensor as the call that makes it again."""
    if t._view is not None:
        sync(t)
    state = state_of(t)
    if t.is_sparse:
        made = _plain(t)
        return made.function, made.args
    if is_wrapper(t):
        return _SUBCLASS, (_WRAPPER, type(t), (type(t), *place_of(t)), state)
    if type(t) is Parameter:
        given: tuple[Any, ...] = (_plain(t.data), t.requires_grad, OrderedDict())
        return (_PARAMETER_WITH, (*given, state)) if state else (_PARAMETER, given)
    made = _plain(t)
    if type(t) is Tensor and not state:
        return made.function, made.args
    return _SUBCLASS, (made.function, type(t), made.args, state)


class _Made(NamedTuple):
    """A plain tensor as the call that makes it."""

    function: Global
    args: tuple

    def __reduce__(self) -> Any:
        return self.function, self.args


def _plain(t: Tensor) -> _Made:
    if t.is_sparse:
        return _Made(_SPARSE, (t.layout, (t._indices(), t._values(), t.shape, t.is_coalesced())))
    marks = {name: True for name, on in (("conj", t.is_conj()), ("neg", t.is_neg())) if on}
    place: tuple[Any, ...] = (t.storage_offset(), tuple(t.shape), t.stride(), t.requires_grad, OrderedDict())
    if t.is_meta:
        return _Made(_TENSOR_ON_META, (t.dtype, tuple(t.shape), t.stride(), t.requires_grad))
    storage: Any = t.untyped_storage()
    if t.dtype in _TYPED:
        return _Made(_TENSOR, (TypedStorage(wrap_storage=storage, dtype=t.dtype), *place, *([marks] if marks else [])))
    return _Made(_TENSOR_OF, (storage, *place, t.dtype, *([marks] if marks else [])))


def _save_made(writer: Writer, obj: _Made) -> None:
    writer.save_reduce(obj.function, obj.args, obj=obj)


Writer.dispatch[_Made] = _save_made

# ---------------------------------------------------------------- reading


def text_of(given: Any) -> Any:
    """What Python 2 wrote may be bytes, if that was asked for."""
    return given.decode("ascii") if isinstance(given, bytes) else given


class Loaded:
    """The storages of a file, each made once.

    Args:
        contents: the bytes of a key, of which there are so many.
        place: what makes a storage be where it is to be, given the storage and its device.
        swapped: whether the bytes of an element come the other way round.
    """

    def __init__(
        self, contents: Callable[[str, int], Any], place: Callable[[UntypedStorage, str], Any], swapped: bool = False
    ):
        self.contents = contents
        self.place = place
        self.swapped = swapped
        self.made: dict[str, TypedStorage | UntypedStorage] = {}

    def storage(self, reference: Any) -> TypedStorage | UntypedStorage:
        """The storage that a persistent reference names.

        Raises:
            RuntimeError: if it is no storage.
        """
        if not isinstance(reference, tuple) or text_of(reference[0]) != "storage":
            raise RuntimeError(f"Unknown typename for persistent_load, expected 'storage' but got '{reference[0]}'")
        _, kind, key, location, count = reference
        key, location = text_of(key), text_of(location)
        found = self.made.get(key)
        if found is None:
            dtype = kind.dtype if isinstance(kind, StorageKind) else dtypes.uint8
            array = self.contents(key, count * dtype.itemsize).view(dtype.numpy)
            if self.swapped:
                array = array.byteswap()
            own = isinstance(array, np.memmap)
            made = self.place(storage_over(array, dtype)[0] if own else new_storage(array, dtype), location)
            found = self.made[key] = (
                TypedStorage(wrap_storage=made, dtype=dtype) if isinstance(kind, StorageKind) else made
            )
        return found


class StorageKind(NamedTuple):
    """What ``torch.FloatStorage`` and its kin stand for in a file."""

    dtype: Dtype


def _rebuild(
    storage: Any, offset: int, size: Any, stride: Any, grad: bool, hooks: Any, marks: Any = None, dtype: Any = None
) -> Tensor:
    owner: UntypedStorage = storage.untyped() if isinstance(storage, TypedStorage) else storage
    dtype = dtype or storage.dtype
    size, stride = tuple(size), tuple(stride)
    marks = marks or {}
    fresh = len(owner.base.shape) == 1 and owner.version == 0 and type(owner) is UntypedStorage
    if fresh and stride == contiguous_strides(size) and _fills(owner, size, dtype):
        # The buffer takes the tensor's own shape, which reads fastest.
        if owner.device is not META:
            owner.buffer = runtime.from_numpy(owner.numpy().view(dtype.numpy).reshape(size))
            owner.base = Base(size, dtype)
    layout = layout_of(owner.base, size, stride, offset, dtype, bool(marks.get("conj")), bool(marks.get("neg")))
    made = wrap(owner, layout, offset)
    made._view = SHARED
    if made._counter is not None:
        made._counter = Version(1)  # its memory is given to it after it is made
    return made.requires_grad_(True) if grad else made


def _fills(storage: UntypedStorage, size: tuple[int, ...], dtype: Dtype) -> bool:
    """Whether a contiguous tensor fills a storage."""
    count = 1
    for n in size:
        count *= n
    return count * dtype.itemsize == storage.nbytes()


def _rebuild_v3(
    storage: Any, offset: int, size: Any, stride: Any, grad: bool, hooks: Any, dtype: Dtype, marks: Any = None
) -> Tensor:
    return _rebuild(storage, offset, size, stride, grad, hooks, marks, dtype)


def _rebuild_v1(storage: Any, offset: int, size: Any, stride: Any) -> Tensor:
    return _rebuild(storage, offset, size, stride, False, None)


def _rebuild_on_meta(dtype: Dtype, size: Any, stride: Any, grad: bool) -> Tensor:
    return empty_strided(size, stride, dtype=dtype, device=META, requires_grad=grad)


def _rebuild_sparse(layout: Any, parts: tuple) -> Tensor:
    indices, values, size, *coalesced = parts
    made: Tensor = names_of("torch")["sparse_coo_tensor"](indices, values, tuple(size), is_coalesced=any(coalesced))
    return made


def _parameter(data: Tensor, requires_grad: bool, hooks: Any, state: Any = None) -> Parameter:
    made = Parameter(data, requires_grad)
    made.__dict__.update(state or {})
    return made


def _subclass(function: Any, kind: Any, args: tuple, state: Any) -> Any:
    made = function(*args)
    made = made if type(made) is kind else made._of_class(kind)
    plain, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in [*(plain or {}).items(), *(slots or {}).items()]:
        setattr(made, name, value)
    return made


def _layout(text: str) -> Any:
    return formats.LAYOUTS[text.removeprefix("torch.")]


def _encode(text: str, encoding: str = "utf-8") -> bytes:
    return text.encode(encoding)


def _known() -> dict[Global, Any]:
    """What may stand in any file."""
    table: dict[Global, Any] = {
        _TENSOR: _rebuild,
        _TENSOR_OF: _rebuild_v3,
        _global("torch._utils._rebuild_tensor"): _rebuild_v1,
        _TENSOR_ON_META: _rebuild_on_meta,
        _SUBCLASS: _subclass,
        _WRAPPER: rebuild,
        _SPARSE: _rebuild_sparse,
        _PARAMETER: _parameter,
        _PARAMETER_WITH: _parameter,
        _LAYOUT: _layout,
        _global("torch.storage.TypedStorage"): TypedStorage,
        _global("torch.Tensor"): Tensor,
        _global("collections.OrderedDict"): OrderedDict,
        _global("collections.Counter"): Counter,
        _global("_codecs.encode"): _encode,
    }
    table.update({name: cls for cls, name in _CLASSES.items()})
    table.update({name: d for d, name in _DTYPES.items()})
    table.update({name: StorageKind(d) for d, name in _TYPED.items()})
    for builtin in (bytearray, complex, set):
        table[Global("builtins", builtin.__name__)] = table[Global("__builtin__", builtin.__name__)] = builtin
    return table


KNOWN = _known()


#: Modules of which nothing may stand in a file that is only to hold weights.
_BLOCKED = frozenset(("sys", "os", "posix", "nt"))


def _today(wanted: Global) -> Global:
    """What pickles that Python 2 can read call otherwise: ``__builtin__.print`` is ``builtins.print``."""
    module, name = _compat_pickle.NAME_MAPPING.get(wanted, wanted)
    return Global(_compat_pickle.IMPORT_MAPPING.get(module, module), name)


class Forbidden(pickle.UnpicklingError):
    """A name in a file that may not be used."""


class _Reading:
    """What makes an unpickler find PyTorch's names here.

    Args:
        loaded: the storages.
        allowed: what else may be used, by name; None for anything.
    """

    def __init__(self, file: Any, loaded: Loaded, allowed: dict[Global, Any] | None, **options: Any):
        super().__init__(file, **options)  # type: ignore[call-arg]
        self._loaded = loaded
        self._allowed = allowed

    def persistent_load(self, reference: Any) -> Any:
        """The storage that is referred to."""
        return self._loaded.storage(reference)

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for.

        Raises:
            Forbidden: if it may not be used.
        """
        wanted = Global(module, name)
        if wanted in KNOWN:
            return KNOWN[wanted]
        if self._allowed is not None:
            if module.partition(".")[0] in _BLOCKED:
                raise pickle.UnpicklingError(
                    f"Trying to load unsupported GLOBAL {module}.{name} whose module {module} is blocked."
                )
            wanted = _today(wanted)
            if wanted not in self._allowed:
                raise Forbidden(wanted.name if wanted.module == "builtins" else f"{wanted.module}.{wanted.name}")
            return self._allowed[wanted]
        ours = _ours(module)
        if ours is None:
            return super().find_class(module, name)  # type: ignore[misc]
        found: Any = importlib.import_module(ours)
        for part in name.split("."):
            found = getattr(found, part)
        return found


class Reader(_Reading, pickle.Unpickler):
    """An unpickler that finds PyTorch's names here."""


def reader_on(module: Any) -> type[Reader]:
    """``Reader``, on the unpickler of another module than the standard library's."""
    return Reader if module in (None, pickle) else type("Reader", (_Reading, module.Unpickler), {})


def names_in(pickled: bytes) -> list[Global]:
    """The classes and functions that a pickle names and that may not stand in any file, in the alphabet's order."""
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
