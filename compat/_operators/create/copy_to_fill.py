"""Copies: ``clone``, ``contiguous``, ``to``, ``copy_``, ``fill_``, ``zero_``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from compat._core.memory.meta import NO_DATA
from compat._core.memory.strides import broadcast_size, channels_last_strides, contiguous_strides, preserved_strides
from compat._core.operators.call_errors import call_error, wrong_call
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes, Overlap
from compat._core.operators.op import aten
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.device import CPU, available
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import OVERLAPS_ITSELF, wrong_combination
from compat._core.types.memory_format import channels_last, channels_last_3d, contiguous_format, preserve_format
from compat._core.types.memory_format import memory_format as MemoryFormat
from compat._core.types.scalar_conversion import filling
from compat._operators.arguments import keywords_only, tensor_argument
from compat._operators.spatial import suggests_channels_last
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import cast, number
from funcgrad.primitives.elementwise import real as real_part


def format_strides(
    size: tuple[int, ...], stride: tuple[int, ...], memory_format: MemoryFormat | None
) -> tuple[int, ...]:
    """The strides of a new tensor with a memory format; ``preserve_format`` preserves ``stride``.

    Raises:
        RuntimeError: if the format is invalid for the number of dimensions.
    """
    if memory_format is None or memory_format is preserve_format:
        return preserved_strides(size, stride)
    if memory_format is contiguous_format:
        return contiguous_strides(size)
    rank, name = (4, "channels_last") if memory_format is channels_last else (5, "channels_last_3d")
    if len(size) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {name} format")
    return channels_last_strides(size)


def _copy_strides(operands: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    layout = operands["input"]
    return [format_strides(tuple(layout.size), layout.stride, operands["memory_format"])]


@aten(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    node="CloneBackward0", layout=_copy_strides, out=False,
)  # fmt: skip
def clone(input, *, memory_format):
    """A copy with its own memory.

    Example:
        >>> x = torch.ones(2)
        >>> y = x.clone()
        >>> y[0] = 5
        >>> x
        tensor([1., 1.])
    """
    return input


@composite(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    names="Tensor.contiguous", errors="own",
)  # fmt: skip
def contiguous(self: Tensor, *args: Any, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """The tensor itself if it is contiguous in ``memory_format``, else a contiguous copy.

    Raises:
        RuntimeError: for ``preserve_format``.

    Example:
        >>> torch.ones(2, 3).t().contiguous().stride()
        (2, 1)
    """
    keywords_only("contiguous", args)
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return self if self.is_contiguous(memory_format=memory_format) else clone(self, memory_format=memory_format)


def converted(x: Any, dtype: Dtype) -> Any:
    """An array cast to another dtype; complex to real keeps the real parts, and a nonzero number is true."""
    old, new = type_of(x).dtype, dtypes.array_dtype(dtype)
    if old == new and not type_of(x).weak:
        return x
    if dtype is dtypes.bool_:
        return np.not_equal(x, number(0, x)) if old != new else x
    if old.kind == "c" and not dtype.is_complex:
        x = real_part(x)
    if dtype.category == dtypes.INTEGER and type_of(x).dtype.kind != "c" and fdtypes.is_inexact(type_of(x).dtype):
        return _truncated(x, dtype)
    return cast(x, dtype=new)


def _truncated(x: Any, dtype: Dtype) -> Any:
    """Casts floats to integers as an x86 CPU does, in a register of 32 or 64 bits.

    Out-of-range values become the smallest integer of the register; narrower dtypes take its low bits.
    """
    wide = fdtypes.int64 if dtype in (dtypes.int64, dtypes.uint32, dtypes.uint64) else fdtypes.int32
    x = cast(x, dtype=fdtypes.float32) if type_of(x).dtype.itemsize <= 2 else x
    limit = number(2.0 ** (8 * wide.itemsize - 1), x)
    in_range = np.logical_and(np.greater(x, np.negative(limit)), np.less(x, limit))
    register = np.where(in_range, cast(x, dtype=wide), wide.type(-(2 ** (8 * wide.itemsize - 1))))
    return register if wide == dtype.numpy else cast(register, dtype=dtype.numpy)


@aten(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Device? device=None, MemoryFormat? memory_format=None) -> Tensor",
    node="ToCopyBackward0", names="torch._to_copy", layout=_copy_strides,
)  # fmt: skip
def _to_copy(input, *, dtype, device, memory_format):
    return input if dtype is None else converted(input, dtype)


@aten(
    "_to_copy(Tensor self, *, ScalarType dtype, Device? device=None, MemoryFormat? memory_format=None) -> Tensor",
    names="", layout=_copy_strides,
)  # fmt: skip
def _to_integers(input, *, dtype, device, memory_format):
    return converted(input, dtype)


@composite(
    "to.device(Tensor(a) self, Device? device=None, ScalarType? dtype=None, bool non_blocking=False, "
    "bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor(a)",
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, *, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    "to.other(Tensor(a) self, Tensor tensor, bool non_blocking=False, bool copy=False, *, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    names="Tensor.to", errors="own",
)  # fmt: skip
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype or on another device; itself if it has them.

    Args:
        args: a dtype, a device or an accelerator's index, or a tensor whose dtype and device are used; then
            ``non_blocking`` and ``copy``.
        kwargs: ``dtype``, ``device``, ``other``, ``non_blocking``, ``copy``, ``memory_format``.

    Raises:
        RuntimeError: for a missing device.

    Example:
        >>> torch.tensor([1.7]).to(torch.int64)
        tensor([1])
    """
    try:
        where, dtype, copy, memory_format = _parse_to(args, kwargs.copy())
    except (TypeError, RuntimeError):
        error = call_error("Tensor.to", args, kwargs)
        if error is None:
            raise
        raise error from None
    dtype = None if dtype is self.dtype else dtype
    where = None if where is self.device else where
    if dtype is None and where is None and not copy and memory_format in (preserve_format, suggested_format(self)):
        return self
    if where is not None and self.is_meta:
        raise NotImplementedError(NO_DATA)
    copied = _to_copy if dtype is None or dtype.category >= dtypes.FLOATING else _to_integers
    return copied(self, dtype=dtype, device=where, memory_format=memory_format)


def suggested_format(t: Tensor) -> MemoryFormat:
    """The memory format that a tensor's strides suggest; the tensor need not be dense."""
    if t.dim() in (4, 5) and suggests_channels_last(tuple(t.shape), t.stride()):
        return channels_last if t.dim() == 4 else channels_last_3d
    return contiguous_format


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Device | None, Dtype | None, bool, MemoryFormat]:
    dtype, rest = kwargs.pop("dtype", None), []
    other = kwargs.pop("tensor", None) if "tensor" in kwargs else kwargs.pop("other", None)
    where = kwargs.pop("device", None)
    for i, a in enumerate(args):
        if isinstance(a, (Dtype, type)):
            dtype = a
        elif isinstance(a, Tensor):
            other = a
        elif isinstance(a, (str, Device)) or (i == 0 and a.__class__ is int):
            where = a
        elif a is not None:
            rest.append(a)
    if rest and (len(args) > 4 or len(rest) > 2 or not all(isinstance(a, bool) for a in rest)):
        raise wrong_combination("to", args, kwargs)
    where = None if where is None else available(where)
    if other is not None:
        where, dtype = other.device, other.dtype
    dtype = dtypes.wanted("to", dtype)
    copy = bool(kwargs.pop("copy", rest[1] if len(rest) > 1 else False))
    kwargs.pop("non_blocking", None)
    memory_format = kwargs.pop("memory_format", preserve_format) or preserve_format
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    return where, dtype, copy, memory_format


@composite(
    "type(Tensor self, Any dtype=None, bool non_blocking=False, *, MemoryFormat? memory_format=None) -> Tensor",
    names="Tensor.type",
)
def type_(self, dtype=None, non_blocking=False, *, memory_format=None):
    """The name of the tensor's type; with a dtype or such a name, the tensor converted to it.

    Example:
        >>> torch.ones(2).type(), torch.ones(2).type(torch.float64).dtype
        ('torch.FloatTensor', torch.float64)
    """
    if dtype is None:
        place = "" if self.device is CPU else f"{self.device.type}."
        return f"torch.{place}{self.dtype.scalar_name}Tensor"
    if isinstance(dtype, str):
        name = dtype.removeprefix("torch.").removesuffix("Tensor")
        dtype = next((d for d in dtypes.ALL if d.scalar_name == name), None)
        if dtype is None:
            raise ValueError(f"invalid type: '{name}'")
    elif dtype is Tensor:
        dtype = dtypes.get_default_dtype()
    elif not isinstance(dtype, (Dtype, type)):
        raise TypeError("dtype must be a type, str, or dtype object")
    elif not isinstance(dtype, Dtype):
        name = dtype.__name__
        dtype = getattr(dtype, "dtype", None)
        if dtype is None:
            raise ValueError(f"invalid type: '{name}'")
    return to(self, dtype, memory_format=memory_format or preserve_format)


@composite("type_as(Tensor self, Tensor other) -> Tensor", names="Tensor.type_as", errors="own")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype and device of ``other``.

    Example:
        >>> torch.ones(2).type_as(torch.tensor([1j])).dtype
        torch.complex64
    """
    return to(self, tensor_argument("type_as", "other", 1, other))


def _declare_conversion(name: str, dtype: Dtype) -> None:
    def convert(self: Tensor, *args: Any, memory_format: MemoryFormat = preserve_format) -> Tensor:
        keywords_only(name, args)
        return to(self, dtype, memory_format=memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The tensor in ``{dtype}``."
    schema = f"{name}(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"
    composite(schema, names=f"Tensor.{name}", errors="own")(convert)


for _name, _dtype in dict(
    float=dtypes.float32, double=dtypes.float64, half=dtypes.float16, bfloat16=dtypes.bfloat16, long=dtypes.int64,
    int=dtypes.int32,
    short=dtypes.int16, char=dtypes.int8, byte=dtypes.uint8, bool=dtypes.bool_, cfloat=dtypes.complex64,
    cdouble=dtypes.complex128,
).items():  # fmt: skip
    _declare_conversion(_name, _dtype)


@composite("cpu(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", names="Tensor.cpu")
def cpu(self: Tensor, *, memory_format: MemoryFormat = preserve_format) -> Tensor:
    """The tensor on the CPU; itself if it is there.

    Raises:
        NotImplementedError: for a meta tensor, which has no values.

    Example:
        >>> torch.ones(2).cpu().device
        device(type='cpu')
    """
    return to(self, CPU, memory_format=memory_format)


@function("Tensor.cuda")
def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: MemoryFormat = preserve_format
) -> Tensor:
    """The tensor on a GPU; itself if it is there.

    Args:
        device: the GPU; by default the current one.
        non_blocking: ignored: transfers are asynchronous anyway.
        memory_format: the memory format of the result.

    Raises:
        AssertionError: if there is no GPU; the message says what to install.
    """
    found = available(Device("cuda", device) if device is None or isinstance(device, int) else device)
    return to(self, found, memory_format=memory_format)


@composite("resolve_conj(Tensor(a) self) -> Tensor(a)", errors="own")
def resolve_conj(input: Tensor) -> Tensor:
    """A copy with a lazy conjugation applied; the tensor itself if there is none.

    Example:
        >>> torch.tensor([1 + 2j]).conj().resolve_conj().is_conj()
        False
    """
    return clone(input) if input.is_conj() else input


@composite("resolve_neg(Tensor(a) self) -> Tensor(a)", errors="own")
def resolve_neg(input: Tensor) -> Tensor:
    """A copy with a lazy negation applied; the tensor itself if there is none."""
    return clone(input) if input.is_neg() else input


# ---------------------------------------------------------------- in place


def _filled(input: Any, value: Any) -> Any:
    return np.broadcast_to(converted(value, dtypes.from_numpy(type_of(input).dtype)), type_of(input).shape)


def _check_copy(self: Tensor, other: Tensor, non_blocking: bool = False) -> None:
    if other.is_meta and not self.is_meta:
        raise NotImplementedError(NO_DATA)
    shape = tuple(self.shape)
    broadcast = broadcast_size(shape, tuple(other.shape))
    if broadcast != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(broadcast)}")


def _copy_shared(self: Tensor, other: Tensor, non_blocking: bool = False) -> Tensor:
    """Copies a tensor with overlapping elements into itself; any other source is an error."""
    if self._storage_ is not other._storage_ or self._offset_ != other._offset_ or self._layout_ != other._layout_:
        raise RuntimeError(OVERLAPS_ITSELF)
    _check_copy(self, other, non_blocking)
    return _copy_same.inplace(self, other, non_blocking)


_COPY = "copy(Tensor self, Tensor other, bool non_blocking=False) -> Tensor"


@aten(
    _COPY,
    node="CopyBackwards", names="Tensor.copy_", dtypes=Dtypes(converts=True), check=_check_copy,
    overlap=Overlap(itself=_copy_shared),
)  # fmt: skip
def copy(input, other, non_blocking):
    """Writes the elements of ``other``, broadcast and cast, into the tensor; returns it.

    Example:
        >>> torch.zeros(2, dtype=torch.int64).copy_(torch.tensor(3.7))
        tensor([3, 3])
    """
    return _filled(input, other)


#: The same for a target with overlapping elements that is its own source.
_copy_same = aten(_COPY, node="CopyBackwards", names="", dtypes=Dtypes(converts=True), overlap=Overlap(itself=True))(
    copy.body
)


for _declared in (copy, _copy_same):
    assert _declared.node is not None
    _declared.node.name = lambda self: "torch::autograd::CopyBackwards"  # type: ignore[method-assign]  # as in C++


def _check_fill(self: Tensor, value: Tensor) -> None:
    if value.dim():
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions."
        )


fill_number = aten(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor", node="FillBackward2", names="", overlap=Overlap(itself=True)
)(_filled)
_fill_tensor = aten(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    node="FillBackward3", names="", dtypes=Dtypes(converts=True), check=_check_fill,
)(_filled)  # fmt: skip


@composite(
    "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    names="Tensor.fill_ torch.fill_", errors="own",
)  # fmt: skip
def fill_(self: Tensor, value: Any) -> Tensor:
    """Writes one value to all elements; returns the tensor.

    Args:
        value: a number, or a 0-d tensor.

    Example:
        >>> torch.zeros(2).fill_(5.0)
        tensor([5., 5.])
    """
    if not isinstance(value, (Tensor, bool, int, float, complex, numpy.number)):
        raise wrong_call("Tensor.fill_", value)
    if not isinstance(value, Tensor):
        return fill_number.inplace(self, filling(self.dtype, self.numel(), value))
    if value._storage_ is self._storage_ and (value._node_ is not None or not (value._rg_ and mode.grad)):
        value = _copy_with_node(value)
    return _fill_tensor.inplace(self, value)


def _copy_with_node(value: Tensor) -> Tensor:
    """A copy of a tensor with the same node: the tensor's memory is about to be written."""
    copied = value.detach().clone()
    copied._rg_, copied._node_, copied._nr_ = value._rg_, value._node_, value._nr_
    return copied


@aten(
    "zero(Tensor self) -> Tensor",
    node="ZeroBackward0", names="Tensor.zero_ torch.zero_", overlap=Overlap(itself=True),
)  # fmt: skip
def zero(input):
    """Writes zero to all elements; returns the tensor.

    Example:
        >>> torch.ones(2).zero_()
        tensor([0., 0.])
    """
    return np.zeros_like(input)


_filled_number = aten("fill.Scalar(Tensor self, Scalar value) -> Tensor", node="FillBackward0", names="")(_filled)
_filled_tensor = aten(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    node="FillBackward1", names="", dtypes=Dtypes(converts=True), check=_check_fill,
)(_filled)  # fmt: skip


@composite(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    names="torch.fill",
)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like ``input``, filled with a value."""
    if isinstance(value, Tensor):
        return _filled_tensor(input, value)
    return _filled_number(input, filling(input.dtype, input.numel(), value))
