"""Pickling of objects in PyTorch's format.

In a file everything has PyTorch's names: a tensor is a call of ``torch._utils._rebuild_tensor_v2`` with a storage, and
storages are persistent objects whose contents are stored separately by ``compat.serialization``.
"""

from __future__ import annotations

import functools
import pickle
import sys
from collections import OrderedDict
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

from compat._core.dispatch.dispatched_duals import is_wrapper
from compat._core.dispatch.layout_tensor import LayoutTensor
from compat._core.dispatch.wrapper_subclass import place_of
from compat._core.memory.typed_storage import TypedStorage
from compat._core.tensor.registry import address_of
from compat._core.tensor.subclass_state import state_of
from compat._core.tensor.tensor import Tensor, sync
from compat._core.tensor.torch_function import DisableTorchFunction
from compat._core.types import dtype as dtypes
from compat._core.types import memory_format
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.size import Size
from compat._operators.sparse.compressed import CompressedTensor
from compat._operators.sparse.tensor import SparseTensor
from compat.nn.parameter import Parameter
from compat.storage import UntypedStorage

# ---------------------------------------------------------------- names


class Global(NamedTuple):
    """An object referenced by its name in PyTorch."""

    module: str
    name: str

    def __call__(self, *args: Any) -> Any:
        """Makes it callable, which pickle requires of the functions in a pickle; it is written, never called."""
        raise TypeError(f"{self.module}.{self.name} stands for a name in a file")


def address(text: str) -> Global:
    """An object referenced by a dotted name."""
    module, _, name = text.rpartition(".")
    return Global(module, name)


TENSOR, TENSOR_OF = address("torch._utils._rebuild_tensor_v2"), address("torch._utils._rebuild_tensor_v3")
TENSOR_ON_META = address("torch._utils._rebuild_meta_tensor_no_storage")
SUBCLASS = address("torch._tensor._rebuild_from_type_v2")
WRAPPER = address("torch._utils._rebuild_wrapper_subclass")
PARAMETER = address("torch._utils._rebuild_parameter")
PARAMETER_WITH = address("torch._utils._rebuild_parameter_with_state")
REBUILD_NESTED = address("torch.nested._internal.nested_tensor._rebuild_njt")
NESTED_TENSOR = address("torch.nested._internal.nested_tensor.NestedTensor")
SPARSE = address("torch._utils._rebuild_sparse_tensor")
LAYOUT = address("torch.serialization._get_layout")
_UNTYPED = address("torch.storage.UntypedStorage")

#: Dtypes with their own storage class; tensors of others store their dtype besides an untyped storage.
TYPED = {
    d: Global("torch", f"{d.scalar_name}Storage")
    for d in dtypes.ALL
    if d.scalar_name in ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double")
    or d in (dtypes.complex64, dtypes.complex128)
}
DTYPES = {d: Global("torch", repr(d).removeprefix("torch.")) for d in (*dtypes.ALL, *dtypes.FLOAT8, *dtypes.BARE)}
CLASSES: dict[Any, Global] = {
    Device: Global("torch", "device"),
    Size: Global("torch", "Size"),
    Tensor: Global("torch", "Tensor"),
    Parameter: address("torch.nn.parameter.Parameter"),
    UntypedStorage: _UNTYPED,
}


def ours(name: str) -> str | None:
    """A module of PyTorch's under its name in compat; None for another package's."""
    head, dot, rest = name.partition(".")
    return "compat" + dot + rest if head == "torch" else None


# ---------------------------------------------------------------- writing


# Python's pure-Python pickler: the C one writes only importable names.
_Pickler: Any = vars(pickle)["_Pickler"]


def _save_type(writer: Any, obj: Any) -> None:
    if obj in (type(None), type(NotImplemented), type(...)):
        _Pickler.save_type(writer, obj)
    else:
        writer.save_global(obj)


class Writer(_Pickler):
    """A pickler that writes PyTorch's module names, and collects storages.

    Attributes:
        storages: the collected storages, by key.
    """

    dispatch: ClassVar[dict[type, Any]] = dict(_Pickler.dispatch)

    def __init__(self, file: Any, protocol: int):
        super().__init__(file, protocol)
        self.storages: dict[str, UntypedStorage] = {}
        self._keys: dict[int, str] = {}
        self._kinds: dict[int, Dtype] = {}

    def persistent_id(self, obj: Any) -> Any:
        """The persistent reference of a storage; None for anything else."""
        if isinstance(obj, TypedStorage):
            return self._reference(obj.untyped(), obj.dtype, TYPED.get(obj.dtype, _UNTYPED))
        return self._reference(obj, dtypes.uint8, _UNTYPED) if isinstance(obj, UntypedStorage) else None

    def _reference(self, storage: UntypedStorage, dtype: Dtype, kind: Global) -> tuple:
        if storage.data_ptr() and self._kinds.setdefault(storage.data_ptr(), dtype) is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self._keys.setdefault(id(storage), str(len(self._keys)))
        self.storages[key] = storage
        itemsize = 1 if kind is _UNTYPED else dtype.itemsize
        return "storage", kind, key, str(storage.device), storage.nbytes() // itemsize

    def reducer_override(self, obj: Any) -> Any:
        """The reduction of compat's objects."""
        if isinstance(obj, Tensor):
            kind: Any = type(obj)
            if _reduces_itself(kind):
                return NotImplemented
            with DisableTorchFunction():
                return _reduced(obj)
        if isinstance(obj, Size):
            return Global("torch", "Size"), (tuple(obj),)
        if isinstance(obj, Device):
            return Global("torch", "device"), (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, memory_format.layout):
            return LAYOUT, (repr(obj),)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Writes a class or function by name."""
        found = DTYPES.get(obj) if isinstance(obj, Dtype) else CLASSES.get(obj) if isinstance(obj, type) else None
        module = getattr(obj, "__module__", None) or ""
        place = address_of(obj) if isinstance(obj, FunctionType) else None
        if place is not None:
            found = Global(f"torch.{place[0]}".removesuffix(".torch"), place[1])
        if found is None and module.partition(".")[0] in ("compat", "torch"):
            found = Global("torch" + module[module.find(".") :] if "." in module else "torch", name or obj.__qualname__)
        if found is None:
            try:
                super().save_global(obj, name)
            except pickle.PicklingError:
                try:
                    pickle.dumps(obj)
                except (pickle.PicklingError, AttributeError) as error:  # the C pickler's, which PyTorch uses
                    raise error from None
                raise
        elif isinstance(obj, FunctionType) and "." in found.name:  # nested in a class, which old protocols cannot name
            owner = functools.reduce(getattr, found.name.split(".")[:-1], sys.modules[module])
            self.save_reduce(getattr, (owner, obj.__name__), obj=obj)
        else:
            self._name(found)
            self.memoize(obj)

    def _name(self, found: Global) -> None:
        self.write(pickle.GLOBAL + f"{found.module}\n{found.name}\n".encode())

    def _save_name(self, obj: Global) -> None:
        # Equal names need not be one object: the memo is by name.
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


@functools.cache
def _reduces_itself(kind: type) -> bool:
    """Whether a program's class of tensors defines its own ``__reduce_ex__``."""
    owner = next(k for k in kind.__mro__ if "__reduce_ex__" in vars(k))
    return owner.__module__.partition(".")[0] not in ("compat", "torch")


def _reduced(t: Tensor) -> tuple:
    """A tensor as the call that rebuilds it."""
    if t._view_ is not None:
        sync(t)
    state = state_of(t)
    if isinstance(t, LayoutTensor) and t.is_nested:
        return SUBCLASS, (REBUILD_NESTED, NESTED_TENSOR, (_nested(t),), {})
    if isinstance(t, LayoutTensor):
        made = _plain(t)
        return made.function, made.args
    if is_wrapper(t):
        return SUBCLASS, (WRAPPER, type(t), (type(t), *place_of(t)), state)
    if type(t) is Parameter:
        given: tuple[Any, ...] = (_plain(t.data), t.requires_grad, OrderedDict())
        return (PARAMETER_WITH, (*given, state)) if state else (PARAMETER, given)
    made = _plain(t)
    if type(t) is Tensor and not state:
        return made.function, made.args
    return SUBCLASS, (made.function, type(t), made.args, state)


def _nested(t: Any) -> dict[str, Any]:
    """The parts of a nested tensor.

    Raises:
        NotImplementedError: for the layout ``torch.strided``, which PyTorch does not save either.
    """
    if t.layout is not memory_format.jagged:
        raise NotImplementedError("nested tensors of layout torch.strided cannot be saved: save their components")
    return {
        "values": t.elements.detach(), "offsets": t.offsets(), "lengths": t.lengths(), "_ragged_idx": t.ragged,
        "_metadata_cache": {}, "requires_grad": t.requires_grad,
    }  # fmt: skip


class _Made(NamedTuple):
    """A plain tensor as the call that rebuilds it."""

    function: Global
    args: tuple

    def __reduce__(self) -> Any:
        return self.function, self.args


def _plain(t: Tensor) -> _Made:
    if isinstance(t, SparseTensor):
        return _Made(SPARSE, (t.layout, (t._indices(), t._values(), t.shape, t.is_coalesced())))
    if isinstance(t, CompressedTensor):
        parts = t.compressed.detach(), t.plain.detach(), t._values(), t.shape
        return _Made(SPARSE, (t.layout, parts))
    marks = {name: True for name, on in (("conj", t.is_conj()), ("neg", t.is_neg())) if on}
    place: tuple[Any, ...] = (t.storage_offset(), tuple(t.shape), t.stride(), t.requires_grad, OrderedDict())
    if t.is_meta:
        return _Made(TENSOR_ON_META, (t.dtype, tuple(t.shape), t.stride(), t.requires_grad))
    storage: Any = t.untyped_storage()
    if t.dtype in TYPED:
        return _Made(TENSOR, (TypedStorage(wrap_storage=storage, dtype=t.dtype), *place, *([marks] if marks else [])))
    return _Made(TENSOR_OF, (storage, *place, t.dtype, *([marks] if marks else [])))


def _save_made(writer: Writer, obj: _Made) -> None:
    writer.save_reduce(obj.function, obj.args, obj=obj)


Writer.dispatch[_Made] = _save_made
