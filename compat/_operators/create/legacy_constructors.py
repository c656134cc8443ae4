"""Legacy constructors: ``torch.Tensor(2, 3)``, ``torch.FloatTensor([1.0])`` of each dtype, and ``Tensor.new``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from compat._core.dispatch.layout_tensor import LayoutTensor
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.typed_storage import TypedStorage
from compat._core.tensor.registry import function, names_of, publish
from compat._core.tensor.tensor import Tensor, later
from compat._core.types import dtype as dtypes
from compat._core.types.device import CPU
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import size_text
from compat._core.types.memory_format import strided
from compat._core.types.size import Size

_FORMS = (
    "(torch.Storage storage)",
    "(Tensor other)",
    "(tuple of ints size, *, torch.device device = None)",
    "(object data, *, torch.device device = None)",
)
_C_NAMES = {dtypes.uint8: "unsigned char", dtypes.int8: "signed char", dtypes.int16: "short int"}
_C_NAMES |= {dtypes.int64: "long int", dtypes.float16: "c10::Half", dtypes.bfloat16: "c10::BFloat16"}


class _Wanted(NamedTuple):
    """The dtype and the device of the result, and whether a tensor argument must have this dtype."""

    dtype: Dtype
    exact: bool = True
    device: Device = CPU


def construct(wanted: _Wanted, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
    """The constructor of a dtype: an empty tensor from sizes, a copy of data, or a tensor over a storage.

    It calls public functions, which dispatch modes intercept.

    Args:
        wanted: the result's dtype and device.
        args, named: sizes, data, a tensor or a storage, and a device.

    Raises:
        TypeError: for other arguments.
        RuntimeError: for another device than the CPU, negative sizes, and a storage of another dtype.
    """
    device = take_device(named, wanted.device)
    if not args and not named:
        return _empty((0,), wanted)
    form, argument = _form(args, named)
    if form == "other" and device is not None:
        raise RuntimeError(
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use "
            "torch.tensor(...) or torch.as_tensor(...) instead."
        )
    return _CONSTRUCTORS[form](argument, wanted)


def take_device(named: dict[str, Any], wanted: Device = CPU) -> Any:
    """Removes and returns the argument ``device``.

    Raises:
        RuntimeError: for a device of another type than the wanted one.
    """
    device = named.pop("device", None)
    if device is not None and Device(device).type != wanted.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {wanted.type} but device type: {Device(device).type} was passed"
        )
    return device


def _empty(size: tuple[int, ...], wanted: _Wanted) -> Tensor:
    made: Tensor = names_of("torch")["empty"](size, dtype=wanted.dtype, device=wanted.device)
    return made


def _form(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[str, Any]:
    """The form of the call, a key of ``_CONSTRUCTORS``, and the argument that determines it."""
    if len(named) == 1 and not args and next(iter(named)) in _CONSTRUCTORS:
        return next(iter(named.items()))
    if named:
        raise no_form(args, named, "some of the keywords were incorrect: " + ", ".join(named))
    if len(args) == 1:
        if isinstance(args[0], Tensor):
            return "other", args[0]
        if isinstance(args[0], (UntypedStorage, TypedStorage)):
            return "storage", args[0]
        return ("size", args) if is_size(args[0]) else ("size" if isinstance(args[0], Size) else "data", args[0])
    if not is_size(args[0]):
        kinds = ", ".join(f"!{_type_text(a)}!" for a in args)
        raise no_form(args, named, f"some of the arguments have invalid types: ({kinds})")
    return "size", args


def is_size(n: Any) -> bool:
    """Whether an argument is an integer, not a bool."""
    if isinstance(n, Tensor):
        return n.dim() == 0 and n.dtype.category == dtypes.INTEGER
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool)


def _type_text(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value:
        kinds = ", ".join(type(v).__name__ for v in value)
        return f"{type(value).__name__} of {f'[{kinds}]' if isinstance(value, list) else f'({kinds})'}"
    return type(value).__name__


def no_form(args: Sequence[Any], named: dict[str, Any], reason: str = "", forms: Sequence[str] = _FORMS) -> TypeError:
    """The error of arguments that no form of a constructor has."""
    given = [type(a).__name__ for a in args] + [f"{name}={type(value).__name__}" for name, value in named.items()]
    reason = f"      didn't match because {reason}\n" if reason and len(given) < 4 else ""
    listed = "".join(f" * {form}\n" for form in forms)
    return TypeError(
        f"new() received an invalid combination of arguments - got ({', '.join(given)}), but expected one of:\n"
        f" * (*, torch.device device = None)\n{reason}{listed}"
    )


# ---------------------------------------------------------------- construction


def _of_size(size: Any, wanted: _Wanted) -> Tensor:
    for i, n in enumerate(size):
        if not (is_size(n) or isinstance(n, bool)):
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {i + 1} with error \"type must be tuple of "
                f'ints,but got {type(n).__name__}"'
            )
    sizes = tuple(int(n) for n in size)
    negative = next((n for n in sizes if n < 0), None)
    if negative is not None:
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {size_text(sizes)}")
    return _empty(sizes, wanted)


def _of_tensor(other: Tensor, wanted: _Wanted) -> Tensor:
    if wanted.exact and (other.dtype is not wanted.dtype or other.layout is not strided):
        raise TypeError(f"expected {_options(wanted.dtype)} (got {_options(other.dtype, _layout_name(other))})")
    return other.view_as(other)


def _layout_name(t: Tensor) -> str:
    return {"sparse_coo": "Sparse"}.get(name := str(t.layout).removeprefix("torch."), name.title().replace("_", ""))


def _options(dtype: Dtype, layout: str = "Strided") -> str:
    name = _C_NAMES.get(dtype, repr(dtype).removeprefix("torch.").replace("float32", "float").replace("int32", "int"))
    return (
        f"TensorOptions(dtype={name.replace('float64', 'double')}, device=cpu, layout={layout}, requires_grad="
        "false (default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def _of_storage(storage: Any, wanted: _Wanted) -> Tensor:
    if isinstance(storage, TypedStorage):
        if storage.dtype is not wanted.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {wanted.dtype.scalar_name} or an UntypedStorage, but got type "
                f"{storage.dtype.scalar_name} for argument 1 'storage'"
            )
        storage = storage.untyped()
    set_: Callable[..., Tensor] = _empty((0,), wanted).set_
    return set_(storage)


def _of_data(data: Any, wanted: _Wanted) -> Tensor:
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if isinstance(data, (set, dict, bool, np.generic)) or not hasattr(data, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    torch = names_of("torch")
    made: Tensor
    if isinstance(data, np.ndarray) and data.flags.writeable and dtypes.from_numpy(data.dtype) is wanted.dtype:
        made = torch["from_numpy"](data)
        return made
    try:
        made = torch["tensor"](data, dtype=wanted.dtype, device=wanted.device)
        return made
    except ValueError as error:
        if isinstance(data[0], str) or not any(isinstance(v, str) for v in data):
            raise
        raise TypeError("must be real number, not str") from error


_CONSTRUCTORS: dict[str, Callable[[Any, _Wanted], Tensor]] = {
    "size": _of_size, "data": _of_data, "other": _of_tensor, "storage": _of_storage,
}  # fmt: skip

later.construct = lambda args, named: construct(_Wanted(dtypes.get_default_dtype(), exact=False), args, named)


@function("Tensor.new")
def new(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """The legacy constructor of this tensor's dtype: from sizes, data, a tensor, or a storage.

    Raises:
        TypeError: for other arguments, and a tensor of another dtype.

    Example:
        >>> torch.tensor([1, 2]).new([3, 4, 5])
        tensor([3, 4, 5])
    """
    if isinstance(self, LayoutTensor):
        return self.construct(self.dtype, args, named)
    if named.get("device") is not None and any(isinstance(a, Tensor) for a in (*args[:1], named.get("other"))):
        raise RuntimeError(
            "Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use "
            "torch.as_tensor(...) instead."
        )
    return construct(_Wanted(self.dtype, device=self.device), args, named)


# ---------------------------------------------------------------- FloatTensor and the other dtypes


class LegacyTensorType(type):
    """The metaclass of ``FloatTensor`` and the other legacy types, whose instances are the tensors of one dtype."""

    dtype: Dtype
    is_cuda: bool

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> Any:
        if bases:
            raise TypeError(f"type '{bases[0].__module__}.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(cls, name, bases, members)

    def __instancecheck__(cls, instance: object) -> bool:
        return not cls.is_cuda and isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, **named: Any) -> Tensor:
        if cls.is_cuda:
            raise TypeError(f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled.")
        return construct(_Wanted(cls.dtype), args, named)


def _declare(dtype: Dtype, module: str) -> Any:
    name = f"{dtype.scalar_name}Tensor"
    members = {
        "__module__": module,
        "dtype": dtype,
        "layout": strided,
        "is_cuda": module != "torch",
        "is_sparse": False,
        "is_xpu": False,
        "__doc__": f"The legacy type of tensors of ``{dtype}``: a constructor, and a type to test with ``isinstance``.",
    }
    return LegacyTensorType(name, (), members)


_DTYPES = (
    dtypes.float64, dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.int64, dtypes.int32, dtypes.int16,
    dtypes.int8, dtypes.uint8, dtypes.bool_,
)  # fmt: skip
_classes = {module: [_declare(dtype, module) for dtype in _DTYPES] for module in ("torch", "torch.cuda")}
for _class in _classes["torch"]:
    publish(_class, f"torch.{_class.__name__}")
#: The legacy types of ``torch.cuda``, by name.
CUDA_TYPES = {legacy.__name__: legacy for legacy in _classes["torch.cuda"]}
publish({legacy for types in _classes.values() for legacy in types}, "torch._tensor_classes")
