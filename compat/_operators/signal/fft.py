"""Fourier transforms: three operators (of complex numbers, from real, to real), and ``torch.fft`` in terms of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.operators.composite import OPTIONS, composite
from compat._core.operators.declaration import Arguments
from compat._core.operators.op import aten
from compat._core.operators.out import check_dtype
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import wrap_dim, wrong_argument
from compat._operators.create.copy_to_fill import to
from compat._operators.pointwise.complex import conj_physical
from compat._operators.shape.flip_roll import roll
from compat._operators.shape.padding import constant_pad_nd
from compat._operators.view.complex_views import conj
from compat._operators.view.slicing import slice_view
from funcgrad.core.tracing import type_of
from funcgrad.primitives import fft as p
from funcgrad.primitives.elementwise import conj as conjugate
from funcgrad.primitives.elementwise import scale
from funcgrad.primitives.shape import concatenate, reverse, slice_

Sizes = Sequence[int] | None

# ---------------------------------------------------------------- operators

#: Normalizations: division by 1, by the root of the number of elements, by the number of elements.
NONE, BY_ROOT, BY_COUNT = 0, 1, 2


def _factor(normalization: int, n: int) -> float:
    return (1.0, 1 / math.sqrt(n), 1 / n)[normalization]


def _scaled(x: Any, factor: float) -> Any:
    return x if factor == 1 else scale(x, factor)


def _transformed(x: Any, dim: Sequence[int], forward: bool) -> Any:
    """The transform along ``dim``, at most three at once as in XLA; the inverse is divided by the sizes."""
    for i in range(0, len(dim), 3):
        x = p.fft(x, axes=tuple(sorted(dim[i : i + 3])), inverse=not forward)
    return x


def _strides(size: Sequence[int], batch: Sequence[int], signal: Sequence[int]) -> tuple[int, ...]:
    """The strides of row-major memory with the dimensions in the order ``batch``, ``signal``."""
    stride, step = [0] * len(size), 1
    for d in reversed((*batch, *signal)):
        stride[d] = step
        step *= max(size[d], 1)
    return tuple(stride)


def _by_stride(dims: Sequence[int], stride: Sequence[int]) -> list[int]:
    return sorted(dims, key=lambda d: -stride[d])


def _result_strides(size: Sequence[int], stride: Sequence[int], dim: Sequence[int]) -> tuple[int, ...]:
    batch = [d for d in range(len(size)) if d not in dim]
    return _strides(size, _by_stride(batch, stride), dim)


def _complex_strides(given: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    layout, dim = given["input"], given["dim"]
    if not dim:
        return [None]
    return [_result_strides(types[0].shape, layout.stride, _by_stride(dim, layout.stride))]


def _from_real_strides(given: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    layout, dim = given["input"], given["dim"]
    return [_result_strides(types[0].shape, layout.stride, [*_by_stride(dim[:-1], layout.stride), dim[-1]])]


def _to_real_strides(given: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    layout, dim = given["input"], given["dim"]
    stride = layout.stride
    if len(dim) > 1:
        # PyTorch transforms the other dimensions first, with a result whose strides follow the same rule.
        stride = _result_strides(layout.size, stride, _by_stride(dim[:-1], stride))
    return [_result_strides(types[0].shape, stride, dim[-1:])]


@aten(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    node="FftC2CBackward0", saves="dim forward normalization", names="torch._fft_c2c", layout=_complex_strides,
    out=False, arguments=Arguments(static="dim"),
)  # fmt: skip
def _fft_c2c(input, dim, normalization, forward):
    """The Fourier transform of complex numbers along ``dim``, or its inverse."""
    n = math.prod(type_of(input).shape[d] for d in dim)
    return _scaled(_transformed(input, dim, forward), _factor(normalization, n) * (1 if forward else n))


def _full_spectrum(half: Any, n: int, dim: Sequence[int]) -> Any:
    """The spectrum of real numbers; its second half is the reversed conjugate of the first."""
    last, shape = dim[-1], type_of(half).shape
    low, high = [0] * len(shape), list(shape)
    low[last], high[last] = 1, n - shape[last] + 1
    inner = slice_(half, start=tuple(low), limit=tuple(high), strides=(1,) * len(shape))
    return concatenate(half, conjugate(reverse(inner, axes=(last,))), axis=last)


@aten(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    node="FftR2CBackward0", saves="dim normalization onesided self!", names="torch._fft_r2c", layout=_from_real_strides,
    out=False, arguments=Arguments(static="dim"),
)  # fmt: skip
def _fft_r2c(input, dim, normalization, onesided):
    """The Fourier transform of real numbers along ``dim``; with ``onesided`` only its first half."""
    shape = type_of(input).shape
    half = p.rfft(input, axis=dim[-1])
    if not onesided:
        half = _full_spectrum(half, shape[dim[-1]], dim)
    found = _transformed(half, dim[:-1], True)
    return _scaled(found, _factor(normalization, math.prod(shape[d] for d in dim)))


@aten(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    node="FftC2RBackward0", saves="dim normalization", names="torch._fft_c2r", layout=_to_real_strides, out=False,
    arguments=Arguments(static="dim"),
)  # fmt: skip
def _fft_c2r(input, dim, normalization, last_dim_size):
    """The inverse of the Fourier transform of ``last_dim_size`` real numbers."""
    shape = type_of(input).shape
    n = math.prod([shape[d] for d in dim[:-1]]) * last_dim_size
    found = p.irfft(_transformed(input, dim[:-1], False), axis=dim[-1], n=last_dim_size)
    return _scaled(found, _factor(normalization, n) * n)


# ---------------------------------------------------------------- arguments


def _normalization(norm: str | None, forward: bool) -> int:
    modes = {None: NONE, "backward": NONE, "ortho": BY_ROOT, "forward": BY_COUNT}
    if norm not in modes:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    found = modes[norm]
    return found if forward or found == BY_ROOT else BY_COUNT - found


def _promoted(x: Any, to_complex: bool) -> Tensor:
    """The operand, cast to a dtype that the transforms support."""
    dtype = x.dtype if x.dtype.category >= dtypes.FLOATING else dtypes.get_default_dtype()
    if dtype not in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128):
        raise RuntimeError(f"Unsupported dtype {dtype.scalar_name}")
    if to_complex and not dtype.is_complex:
        dtype = dtype.to_complex()
    return x if x.dtype is dtype else to(x, dtype)


def _checked_count(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _size_and_dim(name: str, x: Tensor, n: int | None, dim: int) -> tuple[int | None, int]:
    """The checked size and dimension of a transform along one dimension."""
    if n is not None and (isinstance(n, bool) or not hasattr(n, "__index__")):
        raise wrong_argument(f"fft_{name}", "n", 2, "int", n)
    if not x.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return None if n is None else _checked_count(n.__index__()), wrap_dim(dim, x.dim())


def _as_tuple(value: Any) -> tuple[int, ...] | None:
    return None if value is None else (value,) if isinstance(value, int) else tuple(value)


def _sizes_and_dims(x: Tensor, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """The checked sizes and dimensions of a transform along several dimensions."""
    ndim, s, dim = x.dim(), _as_tuple(s), _as_tuple(dim)
    if dim is not None:
        if dim and not ndim:
            raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
        dims = [wrap_dim(d, ndim) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dim):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    else:
        if s is not None and len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        dims = list(range(0 if s is None else ndim - len(s), ndim))
    sizes = [x.shape[d] for d in dims] if s is None else [x.shape[d] if n == -1 else n for n, d in zip(s, dims)]
    for n in sizes:
        _checked_count(n)
    return sizes, dims


def _resized(x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """``x`` truncated, or padded with zeros at the end."""
    padding = [0] * (2 * x.dim())
    for d, n in zip(dims, sizes):
        if x.shape[d] < n:
            padding[2 * (x.dim() - d) - 1] = n - x.shape[d]
        elif x.shape[d] > n:
            x = slice_view(x, d, 0, n)
    return constant_pad_nd(x, tuple(padding)) if any(padding) else x


# ---------------------------------------------------------------- along one dimension


def _prepared(
    name: str, x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool
) -> tuple[Tensor, int, int]:
    """The operand resized to ``n``, the checked dimension, and the normalization."""
    size, dim = _size_and_dim(name, x, n, dim)
    mode = _normalization(norm, forward)
    x = x if size is None else _resized(x, [dim], [size])
    _checked_count(x.shape[dim])
    return x, dim, mode


def _complex_transform(name: str, x: Any, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    x, dim, mode = _prepared(name, _promoted(x, False), n, dim, norm, forward)
    if x.is_complex():
        return _fft_c2c(x, (dim,), mode, forward)
    found = _fft_r2c(x, (dim,), mode, False)
    return found if forward else conj(found)


def _from_real(name: str, x: Any, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    x = _promoted(x, False)
    if x.is_complex():
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype.scalar_name}")
    x, dim, mode = _prepared(name, x, n, dim, norm, forward)
    found = _fft_r2c(x, (dim,), mode, True)
    return found if forward else conj(found)


def _to_real(name: str, x: Any, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    x = _promoted(x, True)
    size, dim = _size_and_dim(name, x, n, dim)
    mode = _normalization(norm, forward)
    last = _checked_count(2 * (x.shape[dim] - 1)) if size is None else size
    if size is not None:
        x = _resized(x, [dim], [size // 2 + 1])
    return _fft_c2r(conj(x) if forward else x, (dim,), mode, last)


# ---------------------------------------------------------------- along several dimensions


def _complex_transform_n(name: str, x: Any, s: Sizes, dim: Sizes, norm: str | None, forward: bool) -> Tensor:
    x = _promoted(x, True)
    sizes, dims = _sizes_and_dims(x, s, dim)
    mode = _normalization(norm, forward)
    return _fft_c2c(_resized(x, dims, sizes), tuple(dims), mode, forward)


def _check_has_dims(name: str, dims: Sequence[int]) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def _from_real_n(name: str, x: Any, s: Sizes, dim: Sizes, norm: str | None, forward: bool) -> Tensor:
    x = _promoted(x, False)
    if x.is_complex() and forward:
        raise RuntimeError(f"{name} expects a real-valued input tensor, but got {x.dtype.scalar_name}")
    sizes, dims = _sizes_and_dims(x, s, dim)
    _check_has_dims(name, dims)
    mode = _normalization(norm, forward)
    if x.is_complex():
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {x.dtype.scalar_name}")
    x = _resized(x, dims, sizes)
    if forward:
        return _fft_r2c(x, tuple(dims), mode, True)
    found = _fft_r2c(x, tuple(dims[-1:]), mode, True)
    if len(dims) == 1:
        return conj(found)
    return _fft_c2c(conj_physical(found), tuple(dims[:-1]), mode, False)


def _to_real_n(name: str, x: Any, s: Sizes, dim: Sizes, norm: str | None, forward: bool) -> Tensor:
    x = _promoted(x, True)
    sizes, dims = _sizes_and_dims(x, s, dim)
    _check_has_dims(name, dims)
    mode = _normalization(norm, forward)
    s = _as_tuple(s)
    if s is None or s[-1] == -1:
        sizes[-1] = _checked_count(2 * (x.shape[dims[-1]] - 1))
    x = _resized(x, dims, [*sizes[:-1], sizes[-1] // 2 + 1])
    if not forward:
        return _fft_c2r(x, tuple(dims), mode, sizes[-1])
    if len(dims) > 1:
        x = _fft_c2c(x, tuple(dims[:-1]), mode, True)
    return _fft_c2r(conj(x), tuple(dims[-1:]), mode, sizes[-1])


# ---------------------------------------------------------------- public functions

_DOCUMENT = """{what}

Args:
    input: a tensor.
    {sizes}
    norm: the transform that is divided by the number of elements: ``"backward"``, the inverse transform, or
        ``"forward"``; with ``"ortho"`` both are divided by its root.
    out: a tensor to write the result into.

Raises:
    RuntimeError: for unsupported dtypes, sizes or modes.
    IndexError: for dimensions out of range.

Example:
    >>> torch.fft.{name}(torch.ones({ones})).shape
    {size}
"""
_SIZE = "n: the size to which the dimension is truncated or padded with zeros.\n    dim: the dimension."
_SIZES = (
    "s: the sizes to which the dimensions are truncated or padded with zeros; -1 keeps a size.\n"
    "    dim: the dimensions."
)


def _declare(name: str, compute: Callable[..., Tensor], what: str, example_size: str) -> None:
    """Publishes a transform; a name that ends with ``2`` or ``n`` is of one along several dimensions.

    Args:
        compute: the computation, a function of the name, the arguments, and whether the transform is not an inverse.
        what, example_size: the first line of the docstring, and the size of the result of its example.
    """
    forward = not name.startswith("i")
    message_name = "fftn" if compute is _complex_transform_n else name.replace("2", "n")

    def of_one(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        return compute(message_name, input, n, dim, norm, forward)

    def of_two(input: Tensor, s: Sizes = None, dim: Sizes = (-2, -1), norm: str | None = None) -> Tensor:
        return compute(message_name, input, s, dim, norm, forward)

    def of_several(input: Tensor, s: Sizes = None, dim: Sizes = None, norm: str | None = None) -> Tensor:
        return compute(message_name, input, s, dim, norm, forward)

    def check(result: Tensor, out: Tensor, operands: Any) -> None:
        if out.dtype.is_complex != result.dtype.is_complex:
            kind = "complex" if result.dtype.is_complex else "floating point"
            raise RuntimeError(f"{message_name} expects a {kind} output tensor, but got {out.dtype.scalar_name}")
        check_dtype(result, out, exact=True)

    transform, parameters = {
        "2": (of_two, "SymInt[1]? s=None, int[1] dim=[-2,-1]"),
        "n": (of_several, "SymInt[1]? s=None, int[1]? dim=None"),
    }.get(name[-1], (of_one, "SymInt? n=None, int dim=-1"))
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = _DOCUMENT.format(
        what=what,
        name=name,
        sizes=_SIZE if transform is of_one else _SIZES,
        ones="4" if transform is of_one else "2, 4",
        size=f"torch.Size([{example_size}])",
    )
    composite(f"fft_{name}(Tensor self, {parameters}, str? norm=None) -> Tensor", names=f"fft.{name}", out=check)(
        transform
    )


for _row in (
    ("fft", _complex_transform, "The Fourier transform along a dimension.", "4"),
    ("ifft", _complex_transform, "The inverse Fourier transform along a dimension.", "4"),
    ("rfft", _from_real, "The first half of the Fourier transform of real numbers.", "3"),
    ("irfft", _to_real, "The inverse of ``rfft``: ``n`` real numbers, by default ``2 * (m - 1)``.", "6"),
    ("hfft", _to_real, "The Fourier transform of a Hermitian-symmetric signal, given its first half.", "6"),
    ("ihfft", _from_real, "The inverse of ``hfft``: the first half of the inverse transform of real numbers.", "3"),
    ("fftn", _complex_transform_n, "The Fourier transform along several dimensions.", "2, 4"),
    ("ifftn", _complex_transform_n, "The inverse Fourier transform along several dimensions.", "2, 4"),
    ("rfftn", _from_real_n, "``rfft`` along the last dimension, and ``fft`` along the others.", "2, 3"),
    ("irfftn", _to_real_n, "The inverse of ``rfftn``.", "2, 6"),
    ("hfftn", _to_real_n, "``hfft`` along the last dimension, and ``fft`` along the others.", "2, 6"),
    ("ihfftn", _from_real_n, "The inverse of ``hfftn``.", "2, 3"),
    ("fft2", _complex_transform_n, "The Fourier transform along two dimensions.", "2, 4"),
    ("ifft2", _complex_transform_n, "The inverse Fourier transform along two dimensions.", "2, 4"),
    ("rfft2", _from_real_n, "``rfftn`` along two dimensions.", "2, 3"),
    ("irfft2", _to_real_n, "``irfftn`` along two dimensions.", "2, 6"),
    ("hfft2", _to_real_n, "``hfftn`` along two dimensions.", "2, 6"),
    ("ihfft2", _from_real_n, "``ihfftn`` along two dimensions.", "2, 3"),
):
    _declare(*_row)


# ---------------------------------------------------------------- frequencies


def _frequencies(
    name: str, indices: Callable[..., Tensor], n: int, d: float, out: Tensor | None, options: dict[str, Any]
) -> Tensor:
    dtype = options.get("dtype") or (dtypes.get_default_dtype() if out is None else out.dtype)
    if out is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    if dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    unit = math.inf if n * d == 0 else 1.0 / (n * d)
    arange = functools.partial(names_of("torch")["arange"], device=options.get("device"))
    if out is not None:
        arange(n if name == "fftfreq" else n // 2 + 1, out=out)  # resizes ``out``, with the warning of ``arange``
        return out.copy_(indices(arange, dtype) * unit)
    found = indices(arange, dtype) * unit
    return found.requires_grad_() if options.get("requires_grad") else found


@composite(f"fft_fftfreq(int n, float d=1.0, *, {OPTIONS}) -> Tensor", names="fft.fftfreq", errors="before")
def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """The frequencies of the elements of ``fft``.

    Args:
        n: the number of elements.
        d: the distance of samples.
        dtype, requires_grad: those of the result.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for a negative ``n``, and integer dtypes.

    Example:
        >>> torch.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """

    def indices(arange: Any, dtype: Any) -> Tensor:
        return names_of("torch")["cat"]([arange((n + 1) // 2, dtype=dtype), arange(-(n // 2), 0, dtype=dtype)])

    return _frequencies("fftfreq", indices, n, d, out, options)


@composite(f"fft_rfftfreq(int n, float d=1.0, *, {OPTIONS}) -> Tensor", names="fft.rfftfreq", errors="before")
def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """The frequencies of the elements of ``rfft``; arguments as for ``fftfreq``.

    Example:
        >>> torch.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies("rfftfreq", lambda arange, dtype: arange(n // 2 + 1, dtype=dtype), n, d, out, options)


def _shifted(input: Tensor, dim: Any, direction: int) -> Tensor:
    dims = tuple(range(input.dim())) if dim is None else tuple(wrap_dim(d, input.dim()) for d in _as_tuple(dim) or ())
    if not dims:
        return input.clone()
    # Half of the size is rounded down for one direction and up for the other.
    return roll(input, tuple((direction * (input.shape[d] // 2)) % max(input.shape[d], 1) for d in dims), dims)


@composite("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", names="fft.fftshift")
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The elements rolled so that frequency 0 is in the middle.

    Args:
        dim: a dimension, or several; by default all.

    Example:
        >>> torch.fft.fftshift(torch.tensor([0, 1, -2, -1]))
        tensor([-2, -1,  0,  1])
    """
    return _shifted(input, dim, 1)


@composite("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", names="fft.ifftshift")
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of ``fftshift``.

    Args:
        dim: a dimension, or several; by default all.

    Example:
        >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    return _shifted(input, dim, -1)
