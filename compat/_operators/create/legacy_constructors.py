"""Legacy constructors: ``torch.Tensor(2, 3)``, ``torch.FloatTensor([1.0])`` of each dtype, and ``Tensor.new``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compat._core.memory.storage import UntypedStorage
from compat._core.memory.typed_storage import TypedStorage
from compat._core.tensor.registry import function, publish
from compat._core.tensor.tensor import Tensor, set_constructor
from compat._core.types import dtype as dtypes
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import size_text
from compat._core.types.memory_format import strided
from compat._core.types.size import Size
from compat._operators.create.factories import UNSET, constant
from compat._operators.create.from_buffer import from_numpy
from compat._operators.create.from_data import tensor

_FORMS = (
    "(torch.Storage storage)",
    "(Tensor other)",
    "(tuple of ints size, *, torch.device device = None)",
    "(object data, *, torch.device device = None)",
)
_C_NAMES = {dtypes.uint8: "unsigned char", dtypes.int8: "signed char", dtypes.int16: "short int"}
_C_NAMES |= {dtypes.int64: "long int", dtypes.float16: "c10::Half", dtypes.bfloat16: "c10::BFloat16"}


def construct(dtype: Dtype, args: tuple[Any, ...], named: dict[str, Any], exact: bool) -> Tensor:
    """The constructor of a dtype: an empty tensor from sizes, a copy of data, or a tensor over a storage.

    Args:
        dtype: the dtype of the result.
        args, named: sizes, data, a tensor or a storage, and a device.
        exact: whether a tensor argument must have this dtype.

    Raises:
        TypeError: for other arguments.
        RuntimeError: for another device than the CPU, negative sizes, and a storage of another dtype.
    """
    device = named.pop("device", None)
    if device is not None and Device(device).type != "cpu":
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {Device(device).type} was passed"
        )
    if not args and not named:
        return constant((0,), 0, dtype)
    form, argument = _form(args, named)
    if form == "other" and device is not None:
        raise RuntimeError(
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use "
            "torch.tensor(...) or torch.as_tensor(...) instead."
        )
    return _CONSTRUCTORS[form](argument, dtype, exact)


def _form(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[str, Any]:
    """The form of the call, a key of ``_CONSTRUCTORS``, and the argument that determines it."""
    if len(named) == 1 and not args and next(iter(named)) in _CONSTRUCTORS:
        return next(iter(named.items()))
    if named:
        raise _no_form(args, named, "some of the keywords were incorrect: " + ", ".join(named))
    if len(args) == 1:
        if isinstance(args[0], Tensor):
            return "other", args[0]
        if isinstance(args[0], UntypedStorage | TypedStorage):
            return "storage", args[0]
        return ("size", args) if _is_size(args[0]) else ("size" if isinstance(args[0], Size) else "data", args[0])
    if not _is_size(args[0]):
        kinds = ", ".join(f"!{_type_text(a)}!" for a in args)
        raise _no_form(args, named, f"some of the arguments have invalid types: ({kinds})")
    return "size", args


def _is_size(n: Any) -> bool:
    if isinstance(n, Tensor):
        return n.dim() == 0 and n.dtype.category == dtypes.INTEGER
    return isinstance(n, int | np.integer) and not isinstance(n, bool)


def _type_text(value: Any) -> str:
    if isinstance(value, list | tuple) and value:
        kinds = ", ".join(type(v).__name__ for v in value)
        return f"{type(value).__name__} of {f'[{kinds}]' if isinstance(value, list) else f'({kinds})'}"
    return type(value).__name__


def _no_form(args: Sequence[Any], named: dict[str, Any], reason: str) -> TypeError:
    given = [type(a).__name__ for a in args] + [f"{name}={type(value).__name__}" for name, value in named.items()]
    reason = f"      didn't match because {reason}\n" if len(given) < 4 else ""
    forms = "".join(f" * {form}\n" for form in _FORMS)
    return TypeError(
        f"new() received an invalid combination of arguments - got ({', '.join(given)}), but expected one of:\n"
        f" * (*, torch.device device = None)\n{reason}{forms}"
    )


# ---------------------------------------------------------------- construction


def _of_size(size: Any, dtype: Dtype, exact: bool) -> Tensor:
    for i, n in enumerate(size):
        if not (_is_size(n) or isinstance(n, bool)):
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {i + 1} with error \"type must be tuple of "
                f'ints,but got {type(n).__name__}"'
            )
    sizes = tuple(int(n) for n in size)
    negative = next((n for n in sizes if n < 0), None)
    if negative is not None:
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {size_text(sizes)}")
    return constant(sizes, UNSET, dtype)


def _of_tensor(other: Tensor, dtype: Dtype, exact: bool) -> Tensor:
    if exact and other.dtype is not dtype:
        raise TypeError(f"expected {_options(dtype)} (got {_options(other.dtype)})")
    return other.view_as(other)


def _options(dtype: Dtype) -> str:
    name = _C_NAMES.get(dtype, repr(dtype).removeprefix("torch.").replace("float32", "float").replace("int32", "int"))
    return (
        f"TensorOptions(dtype={name.replace('float64', 'double')}, device=cpu, layout=Strided, requires_grad=false "
        "(default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def _of_storage(storage: Any, dtype: Dtype, exact: bool) -> Tensor:
    if isinstance(storage, TypedStorage):
        if storage.dtype is not dtype:
            raise RuntimeError(
                f"Expected a Storage of type {dtype.scalar_name} or an UntypedStorage, but got type "
                f"{storage.dtype.scalar_name} for argument 1 'storage'"
            )
        storage = storage.untyped()
    set_: Callable[..., Tensor] = constant((0,), 0, dtype).set_
    return set_(storage)


def _of_data(data: Any, dtype: Dtype, exact: bool) -> Tensor:
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if isinstance(data, set | dict | bool | np.generic) or not hasattr(data, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    if isinstance(data, np.ndarray) and data.flags.writeable and dtypes.from_numpy(data.dtype) is dtype:
        return from_numpy(data)
    try:
        return tensor(data, dtype=dtype)
    except ValueError as error:
        if not any(isinstance(v, str) for v in data):
            raise
        raise TypeError("must be real number, not str") from error


_CONSTRUCTORS: dict[str, Callable[[Any, Dtype, bool], Tensor]] = {
    "size": _of_size, "data": _of_data, "other": _of_tensor, "storage": _of_storage,
}  # fmt: skip

set_constructor(lambda args, named: construct(dtypes.get_default_dtype(), args, named, exact=False))


@function("Tensor.new")
def new(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """The legacy constructor of this tensor's dtype: from sizes, data, a tensor, or a storage.

    Raises:
        TypeError: for other arguments, and a tensor of another dtype.

    Example:
        >>> torch.tensor([1, 2]).new([3, 4, 5])
        tensor([3, 4, 5])
    """
    if named.get("device") is not None and any(isinstance(a, Tensor) for a in (*args[:1], named.get("other"))):
        raise RuntimeError(
            "Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use "
            "torch.as_tensor(...) instead."
        )
    return construct(self.dtype, args, named, exact=True)


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
        return construct(cls.dtype, args, named, exact=True)


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
