"""Creating filled tensors: zeros, ones, full, and their ``_like`` variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from compat._core.config.flags import unset_value
from compat._core.memory.meta import unknown
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import (
    Base,
    Layout,
    contiguous_layout,
    contiguous_strides,
    dense_layout,
    is_dense,
    layout_of,
)
from compat._core.operators.composite import OPTIONS, composite
from compat._core.operators.recall import recalled
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, from_buffer, wrap
from compat._core.transforms import vmap_checks
from compat._core.types import dtype as dtypes
from compat._core.types.device import CPU, META, available, on, place
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import size_text, wrong_argument
from compat._core.types.memory_format import (
    LAYOUTS,
    check_strided,
    contiguous_format,
    is_strided,
    preserve_format,
    scalar_layout_name,
)
from compat._core.types.scalar_conversion import filling
from compat._operators.arguments import missing, size_argument
from compat._operators.create.copy_to_fill import format_strides
from funcgrad import runtime
from funcgrad.core.dtypes import as_float8
from funcgrad.core.errors import explained
from funcgrad.primitives.shape import broadcast

# ---------------------------------------------------------------- shared parts


def with_grad(t: Tensor, requires_grad: bool) -> Tensor:
    """The new tensor, which now requires grad if ``requires_grad``."""
    if requires_grad:
        if t.dtype.category < dtypes.FLOATING:
            message = "Only Tensors of floating point and complex dtype can require gradients"
            raise explained(RuntimeError(message), "integer-argument")
        t._set_requires_grad_(True)
    return t


def converted_number(value: Any, dtype: Dtype) -> Any:
    """A scalar as a number of a dtype.

    Raises:
        RuntimeError: if it is out of range.
        TypeError: for complex to real.
    """
    if isinstance(value, (Tensor, np.generic, np.ndarray)):
        if value.ndim and getattr(value, "size", 1) != 1 and not isinstance(value, Tensor):
            raise explained(ValueError("only one element tensors can be converted to Python scalars"), "one-value")
        value = value.item()
    if dtype is dtypes.bool_:
        return bool(value)
    if isinstance(value, complex) and not dtype.is_complex:
        integer = dtype.category == dtypes.INTEGER
        raise TypeError(
            "'complex' object cannot be interpreted as an integer" if integer else "must be real number, not complex"
        )
    if dtype.category == dtypes.INTEGER:
        if isinstance(value, float) and not np.isfinite(value):
            raise RuntimeError(f"value cannot be converted to type {_c_name(dtype)} without overflow")
        value = int(value)
        info = np.iinfo(dtype.numpy)
        if dtype is dtypes.uint64:
            dtypes.plain_number(value)
        else:
            dtypes.index_number(value)
        if not info.min <= value <= info.max:
            if dtype is dtypes.uint8 and -info.max <= value < 0:
                return value % 256
            raise RuntimeError(f"value cannot be converted to type {_c_name(dtype)} without overflow")
    return value


def _c_name(dtype: Dtype) -> str:
    return repr(dtype).removeprefix("torch.")


# ---------------------------------------------------------------- filled tensors


def _of_value(layout: Layout, value: Any) -> Tensor:
    return from_buffer(_buffer(layout.base, value), layout)


#: The value of an uninitialized tensor.
UNSET: Any = object()


def _buffer(base: Base, value: Any) -> Any:
    """A buffer filled with a value."""
    if base.device is META:
        return unknown(base)
    if value is UNSET:
        value = unset_value(base.dtype)
    shape, dtype = base.shape, base.dtype
    if dtype in dtypes.FLOAT8:
        value = as_float8(np.asarray(value), dtype.numpy)[()]
    try:
        return on(base.device, runtime.filled(shape, value, dtypes.array_dtype(dtype)))
    except (MemoryError, ValueError) as error:
        raise allocation_error(shape, dtype, error) from None


def allocation_error(shape: Sequence[int], dtype: Dtype, error: Exception) -> Exception:
    """The error for a size that exceeds the available memory or the address space.

    Args:
        error: NumPy's error, returned if the size is not the reason.
    """
    if isinstance(error, MemoryError):
        return RuntimeError(
            f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {prod(shape) * dtype.itemsize} bytes. "
            "Error code 12 (Cannot allocate memory)"
        )
    if prod(n for n in shape if n) * dtype.itemsize < 2**63:
        return error
    if 0 in shape:
        return RuntimeError("Stride calculation overflowed")
    return RuntimeError(f"Storage size calculation overflowed with sizes={size_text(shape)}")


def from_table(
    key: tuple, size: Sequence[int], make: Callable[[], np.ndarray], dtype: Dtype, where: Device = CPU
) -> Tensor:
    """A contiguous tensor with the contents of a cached table, such as a range of numbers.

    Args:
        key: the key of the table in the cache; it determines the contents.
        size: the size of the tensor.
        make: computes the contents, as an array of any dtype.
        dtype: the dtype of the tensor.
        where: its device.

    Raises:
        RuntimeError: for a size that exceeds the memory.
    """
    kind = dtype.numpy
    if prod(size) * dtype.itemsize >= 2**63:  # beyond NumPy's range
        raise allocation_error(size, dtype, ValueError())
    try:
        buffer = runtime.table((*key, kind), lambda: make().astype(kind))
    except (MemoryError, ValueError):  # intermediate arrays may be larger still
        raise allocation_error(size, dtype, MemoryError()) from None
    return placed(from_buffer(buffer, contiguous_layout(buffer.shape, dtype)), where)


def blank(size: Sequence[int], like: Tensor, dtype: Dtype | None = None) -> Tensor:
    """A tensor on another one's device whose values are never read: a placeholder for random numbers on "meta"."""
    return constant(tuple(size), 0, dtype or like.dtype, where=like.device)


def placed(t: Tensor, where: Device) -> Tensor:
    """A new CPU tensor moved to a device."""
    if where is CPU:
        return t
    layout = dense_layout(tuple(t.shape), t.stride(), t.dtype, device=where)
    if where is META:
        return from_buffer(unknown(layout.base), layout)
    return from_buffer(on(where, t.clone()._storage_.buffer), layout)


def _sizes(function: str, size: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    """The size of a new tensor, from positional arguments or ``size=``; no other keyword argument is allowed."""
    named = kwargs.pop("size", None)
    if kwargs:
        raise TypeError(f"{function}() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if named is None and not size:
        raise missing(function, "size")
    result = size_argument(function, "size", 1, size if named is None else (named,))
    if result and min(result) < 0:
        if function == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        negative = next(n for n in result if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {size_text(result)}")
    return result


def constant(
    size: tuple[int, ...], value: Any, dtype: Dtype | None, requires_grad: bool = False, where: Device = CPU
) -> Tensor:
    layout = contiguous_layout(size, dtype or dtypes.get_default_dtype(), device=where)
    return with_grad(_of_value(layout, value), requires_grad)


def without_elements(
    name: str, layout: Any, size: tuple[int, ...], dtype: Dtype | None, device: Any, requires_grad: bool
) -> Tensor:
    """A tensor of a sparse layout without specified elements.

    Args:
        name: the function that was called, which determines the allowed layouts and the error messages.

    Raises:
        RuntimeError: for functions that fill with nonzero values, fewer than two dimensions of a compressed layout, and
            block layouts.
        NotImplementedError: for oneDNN's layout.
    """
    kind = name.removeprefix("new_").removesuffix("_like")
    if layout is LAYOUTS["_mkldnn"]:
        check_strided(layout)
    if kind not in ("zeros", "empty"):
        raise RuntimeError("full(...) is not implemented for sparse layout")
    torch = names_of("torch")
    options = {"dtype": dtype or dtypes.get_default_dtype(), "device": device, "requires_grad": requires_grad}
    if layout is LAYOUTS["sparse_coo"]:
        coo: Tensor = torch["sparse_coo_tensor"](size, **options)
        return coo
    if len(size) < 2:
        raise RuntimeError(
            f"torch.{kind}: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    if layout not in (LAYOUTS["sparse_csr"], LAYOUTS["sparse_csc"]):
        raise RuntimeError(
            f"{kind}_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
            f"{scalar_layout_name(layout)}"
        )
    *batch, rows, columns = size
    compressed = constant((*batch, (rows if layout is LAYOUTS["sparse_csr"] else columns) + 1), 0, dtypes.int64)
    plain, values = (constant((*batch, 0), 0, d) for d in (dtypes.int64, options["dtype"]))
    made: Tensor = torch["sparse_compressed_tensor"](compressed, plain, values, size, layout=layout, **options)
    return made


def into(out: Tensor | None, made: Tensor) -> Tensor:
    """The result ``made``, written into ``out`` if it is given; ``out`` is resized if its size differs."""
    if out is None:
        return made
    from compat._core.operators.out import resize

    if out.shape != made.shape:
        resize(out, tuple(made.shape))
    return out.copy_(made)


def check_options(out: Tensor | None, dtype: Dtype | None, device: Any, layout: Any = None) -> None:
    """Checks that a layout is supported, and that ``out`` agrees with the other arguments.

    Raises:
        NotImplementedError: for the layout.
        RuntimeError: for another dtype or device.
    """
    check_strided(layout)
    if out is None:
        return
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    if device is not None and place(device).type != out.device.type:
        raise RuntimeError(
            f"device type {place(device).type} does not match device type of out parameter ({out.device.type})"
        )


def into_flat(out: Tensor | None, made: Tensor) -> Tensor:
    """``into`` for a 1-d result: an ``out`` of another size with as many elements is not resized."""
    if out is None:
        return made
    if out.numel() != made.numel():
        from compat._core.operators.out import resize

        resize(out, tuple(made.shape))
    return out.copy_(made.view(out.shape))


def _declare_factory(name: str, value: Any, contents: str, options: str = OPTIONS) -> Any:
    def make(
        *size: Any,
        out: Tensor | None = None,
        dtype: Dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        memory_format: Any = contiguous_format,
        names: Any = None,
        **kwargs: Any,
    ) -> Tensor:
        where = place(device)
        sizes = _sizes(name, size, kwargs)
        dtype = dtypes.wanted(name, dtype)
        if not is_strided(layout):
            return without_elements(name, layout, sizes, dtype, device, requires_grad)
        check_options(out, dtype, device, layout)
        if out is not None:
            dtype = out.dtype
        if memory_format is not contiguous_format:
            stride = format_strides(sizes, contiguous_strides(sizes), memory_format)
            return empty_strided(sizes, stride, dtype=dtype, device=where)
        return into(out, constant(sizes, value, dtype, requires_grad, where if out is None else out.device))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""A tensor of {contents}.

    Args:
        size: the size, as separate integers or as a sequence.
        dtype: by default the default floating-point dtype.
        requires_grad: whether gradients are to be computed for it.
    """
    return composite(f"{name}(SymInt[] size, *, {options}) -> Tensor", names=f"torch.{name}")(recalled(make))


_UNINITIALIZED = "uninitialized values, which are zeros in this implementation"

zeros = _declare_factory("zeros", 0, "zeros")
ones = _declare_factory("ones", 1, "ones")
empty = _declare_factory("empty", UNSET, _UNINITIALIZED, f"{OPTIONS}, MemoryFormat? memory_format=None")


@composite(f"full(SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", names="torch.full")
@recalled
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    names: Any = None,
) -> Tensor:
    """A tensor filled with a value; by default of the value's dtype.

    Args:
        size: integers.
        fill_value: a number.
        out: a tensor to write the result into.
        dtype, device, requires_grad: of the result.

    Example:
        >>> torch.full((2, 2), 0.5)
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    where = place(device) if out is None else out.device
    value = _fill_value("full", fill_value)
    dtype = dtypes.wanted("full", dtype)
    if not is_strided(layout):
        return without_elements("full", layout, (), dtype, device, requires_grad)
    check_options(out, dtype, device, layout)
    dtype = dtype or (out.dtype if out is not None else dtypes.of_number(value))
    if not isinstance(size, (tuple, list)):
        raise wrong_argument("full", "size", 1, "tuple of ints", size)
    sizes = _sizes("full", (size,), {})
    return into(
        out, constant(sizes, converted_number(filling(dtype, prod(sizes), value), dtype), dtype, requires_grad, where)
    )


def _fill_value(name: str, given: Any, argument: str = "fill_value", position: int = 2) -> Any:
    """A Python number from a Python or NumPy number, or a 0-d tensor that does not require grad.

    Raises:
        TypeError: for anything else.
    """
    if isinstance(given, Tensor):
        convertible = given.dim() == 0 and not given.requires_grad
    else:
        convertible = isinstance(given, np.generic)
    value = given.item() if convertible else given
    if not isinstance(value, (bool, int, float, complex)):
        raise wrong_argument(name, argument, position, "Number", value)
    return dtypes.plain_number(value)


@composite(f"scalar_tensor(Scalar s, *, {OPTIONS}) -> Tensor", names="torch.scalar_tensor", errors="before")
def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False, **more):
    """A 0-d tensor of one number, by default of the default floating-point dtype.

    Args:
        s: a number.
        dtype, device, requires_grad: of the result.

    Example:
        >>> torch.scalar_tensor(2.5)
        tensor(2.5000)
    """
    s = filling(dtype or dtypes.get_default_dtype(), 1, _fill_value("scalar_tensor", s, "s", 1))
    return constant((), s, dtype, requires_grad, place(device))


@composite(f"empty_strided(SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor", names="torch.empty_strided")
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor of given strides with uninitialized values, which are zeros in this implementation.

    Raises:
        RuntimeError: if the numbers of strides and sizes differ.

    Example:
        >>> torch.empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    size, stride, dtype = tuple(size), tuple(stride), dtype or dtypes.get_default_dtype()
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    check_strided(layout)
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {size_text(size)}")
    where = place(device)
    if is_dense(size, stride):
        return with_grad(_of_value(dense_layout(size, stride, dtype, device=where), UNSET), requires_grad)
    room = 1 + sum((n - 1) * s for n, s in zip(size, stride))
    base = Base((room,), dtype, device=where)
    return with_grad(wrap(UntypedStorage(_buffer(base, UNSET), base), layout_of(base, size, stride, 0)), requires_grad)


# ---------------------------------------------------------------- like another tensor


def _batched_like(made: Tensor, source: Tensor) -> Tensor:
    """A new tensor, batched as ``source`` is, so that batched values can be written into it."""
    if not source._storage_.base.traced or made._storage_.base.traced:
        return made
    over = vmap_checks.maps(source._storage_.buffer)[::-1]
    if not over:
        return made
    x, base = runtime.ready(made._storage_.buffer), made._layout_.base
    sizes = tuple(interpreter.size for interpreter in over)
    dims = tuple(range(len(sizes), len(sizes) + len(base.shape)))
    x = vmap_checks.spread(over, broadcast(x, shape=(*sizes, *base.shape), dims=dims))
    layout = layout_of(Base(base.shape, base.dtype, True), made._layout_.size, made._layout_.stride, 0)
    return from_buffer(x, layout)


def _declare_like(name: str, value: Any, contents: str) -> Any:
    def make(
        input: Tensor,
        *,
        dtype: Dtype | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = preserve_format,
    ) -> Tensor:
        if not is_strided(layout) and value is not UNSET:
            return without_elements(name, layout, tuple(input.shape), dtype or input.dtype, device, requires_grad)
        check_strided(layout)
        dtype = dtypes.wanted(name, dtype) or input.dtype
        return with_grad(_filled_like(input, value, dtype, device, memory_format), requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A tensor of {contents}, of the size, dtype and memory format of ``input``."
    schema = f"{name}(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor"
    return composite(schema, names=f"torch.{name}")(recalled(make, like=True))


@composite(
    f"full_like(Tensor self, Scalar fill_value, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    names="torch.full_like",
)
@partial(recalled, like=True)
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """A tensor filled with a value, with the size, dtype and memory format of ``input``.

    Args:
        input: a tensor.
        fill_value: a number.
        dtype, device, requires_grad, memory_format: override those of the input.

    Example:
        >>> torch.full_like(torch.zeros(2), 7)
        tensor([7., 7.])
    """
    check_strided(layout)
    dtype = dtypes.wanted("full_like", dtype) or input.dtype
    value = converted_number(filling(dtype, input.numel(), _fill_value("full_like", fill_value)), dtype)
    return with_grad(_filled_like(input, value, dtype, device, memory_format), requires_grad)


def _filled_like(input: Tensor, value: Any, dtype: Dtype, device: Any, memory_format: Any) -> Tensor:
    """A tensor of one value, with the size of another one, and its memory order if the format preserves it."""
    where = input.device if device is None else available(device)
    size = tuple(input.shape)
    layout = dense_layout(size, format_strides(size, input.stride(), memory_format), dtype, device=where)
    return _batched_like(_of_value(layout, value), input)


zeros_like = _declare_like("zeros_like", 0, "zeros")
ones_like = _declare_like("ones_like", 1, "ones")
empty_like = _declare_like("empty_like", UNSET, _UNINITIALIZED)


def _declare_new(name: str, value: Any, contents: str) -> None:
    def make(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **kwargs):
        sizes = _sizes(name, size, kwargs)
        if not is_strided(layout):
            return without_elements(name, layout, sizes, dtype or self.dtype, device, requires_grad)
        where = self.device if device is None else available(device)
        made = constant(sizes, value, dtypes.wanted(name, dtype) or self.dtype, False, where)
        return with_grad(_batched_like(made, self), requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A tensor of {contents}, of the dtype of this tensor."
    schema = f"{name}(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor"
    composite(schema, names=f"Tensor.{name}", errors="own")(recalled(make, like=True))


_declare_new("new_zeros", 0, "zeros")
_declare_new("new_ones", 1, "ones")
_declare_new("new_empty", UNSET, _UNINITIALIZED)


@composite(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor",
    names="Tensor.new_full",
)
def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False, **more):
    """A tensor filled with one value, of the dtype of this tensor."""
    made = full(size, fill_value, dtype=dtype or self.dtype, device=self.device if device is None else device)
    return with_grad(_batched_like(made, self), requires_grad)


@composite(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor",
    names="Tensor.new_empty_strided",
)
def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=False, **more):
    """A tensor of given strides, of the dtype of this tensor."""
    made = empty_strided(size, stride, dtype=dtype or self.dtype, device=self.device if device is None else device)
    return with_grad(_batched_like(made, self), requires_grad)
