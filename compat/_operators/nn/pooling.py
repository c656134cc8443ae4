"""Pooling: the maximum or the average of windows that slide over the last dimensions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.op import Op, aten
from compat._core.operators.opmath import in_single
from compat._core.tensor.registry import document, function
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types.dtype import bfloat16, bool_, float16, float32, float64, int64
from compat._core.types.errors import lacks, size_text
from compat._operators.arguments import tensor_argument
from compat._operators.spatial import by, each, in_format_of_input
from compat._operators.view.shape import squeeze, unsqueeze
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import add, cast, div, mul
from funcgrad.primitives.indexing import IndexDims, scatter_add
from funcgrad.primitives.shape import broadcast, full, iota, reshape
from funcgrad.primitives.windows import Window, window_argmax, window_index, window_over, window_sum

Dims = tuple[int, ...]

_COUNTS = {1: "one int", 2: "two ints", 3: "three ints"}

# ---------------------------------------------------------------- windows


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """The number of windows; with ``ceil_mode`` the last one may extend past the end, but not start in the padding."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    if ceil_mode:
        found = -(-span // stride) + 1
        return found - 1 if (found - 1) * stride >= size + padding else found
    return span // stride + 1


def _pooled(spatial: Dims, kernel: Dims, stride: Dims, padding: Dims, dilation: Dims, ceil_mode: bool) -> Dims:
    rows = zip(spatial, kernel, stride, padding, dilation)
    return tuple(pooled_size(n, k, s, p, d, ceil_mode) for n, k, s, p, d in rows)


def _window(shape: Dims, kernel: Dims, stride: Dims, padding: Dims, dilation: Dims, ceil_mode: bool) -> Window:
    """The sliding window over the last dimensions of an array."""
    n = len(kernel)
    axes = tuple(range(len(shape) - n, len(shape)))
    pads = []
    for size, k, s, p, d in zip(shape[-n:], kernel, stride, padding, dilation):
        out = pooled_size(size, k, s, p, d, ceil_mode)
        pads.append((p, max(p, (out - 1) * s + d * (k - 1) + 1 - size - p)))
    return window_over(len(shape), axes, kernel, stride, pads, dilation)


def _check_lengths(name: str, n: int, **parameters: Any) -> None:
    for what, value in parameters.items():
        if len(value) not in (1, n) and not (what == "stride" and not value):
            must = "must be either" if what == "dilation" else "must either be"
            if what == "stride":
                raise RuntimeError(f"{name}: stride must either be omitted, a single int, or a tuple of {_COUNTS[n]}")
            raise RuntimeError(f"{name}: {what} {must} a single int, or a tuple of {_COUNTS[n]}")


def _check_numbers(kernel: Dims, stride: Dims, padding: Dims, dilation: Dims) -> None:
    n = len(kernel)
    letters = "THW"[-n:] if n == 3 else "HW"[-n:]

    def text(what: str, values: Dims) -> str:
        return " ".join(f"{what}{letter}: {v}" for letter, v in zip(letters, values))

    if any(s == 0 for s in stride):
        raise RuntimeError("stride should not be zero")
    for k, p, d in zip(kernel, padding, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > int(((k - 1) * d + 1) / 2):
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
    if any(k <= 0 for k in kernel):
        raise RuntimeError(f"kernel size should be greater than zero, but got {text('k', kernel)}")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"stride should be greater than zero, but got {text('d', stride)}")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got {text('dilation', dilation)}")


def _check_sizes(size: Dims, out: Dims) -> None:
    if any(v < 1 for v in out):
        channels = size[-len(out) - 1]
        raise RuntimeError(
            f"Given input size: ({by((channels, *size[-len(out) :]))}). Calculated output size: "
            f"({by((channels, *out))}). Output size is too small"
        )


#: The dtypes of 2-d and 3-d averages.
_AVERAGED = {2: (float32, float64, float16, bfloat16, int64), 3: (float32, float64, int64)}
_AVERAGE_KERNELS = {2: "avg_pool2d", 3: "avg_pool3d_out_frame"}


# ---------------------------------------------------------------- maxima


def _check_max(n: int) -> Any:
    name = f"max_pool{n}d"

    def check(input, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
        _check_lengths(name, n, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        size = tuple(input.shape)
        if n == 3 and len(size) not in (4, 5):
            raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
        if n == 2 and len(size) not in (3, 4):
            raise RuntimeError("non-empty 3D or 4D (batch mode) tensor expected for input")
        windows = _parameters(n, kernel_size, stride, padding, dilation)
        _check_numbers(*windows)
        _check_positive(n, size, "max_pool3d_with_indices_out_cpu_template")
        _check_sizes(size, _pooled(size[-n:], *windows, ceil_mode))
        if input.dtype is bool_ or input.dtype.is_complex:
            raise lacks(name, input.dtype)

    return check


def _check_positive(n: int, size: Dims, where: str) -> None:
    counted = range(len(size) - n - 1, len(size))
    empty = next((d for d in counted if size[d] == 0), None)
    if empty is None:
        return
    if n == 2:
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{size_text(size)}"
        )
    raise RuntimeError(
        f"{where}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
        f"{size_text(size)} and non-batch dimension {empty - counted.start} has length zero!"
    )


def _parameters(n: int, kernel: Dims, stride: Dims, padding: Dims, dilation: Dims) -> tuple[Dims, Dims, Dims, Dims]:
    kernel = each(kernel, n)
    return kernel, each(stride, n) if stride else kernel, each(padding, n), each(dilation, n)


def _max_pool(n: int) -> Op:
    def body(input, kernel_size, stride, padding, dilation, ceil_mode):
        shape = type_of(input).shape
        window = _window(shape, *_parameters(n, kernel_size, stride, padding, dilation), ceil_mode)
        values, offset = window_argmax(input, window=window)
        return values, window_index(offset, shape, tuple(range(len(shape) - n, len(shape))), window=window)

    body.__doc__ = f"The maxima of windows over the last {n} dimensions, and their flat indices in these dimensions."
    declared = aten(
        f"max_pool{n}d_with_indices(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, "
        f"int[{n}] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
        node=f"MaxPool{n}DWithIndicesBackward0",
        saves="ceil_mode dilation kernel_size padding result1! self! stride",
        names=f"_C._nn.max_pool{n}d_with_indices", layout=in_format_of_input, check=_check_max(n), out=False,
    )(body)  # fmt: skip

    declared.backward(max_pool_backward(n))
    return declared


def max_pool_backward(n: int) -> Any:
    """The backward formula of a pooling over ``n`` dimensions that returns the maxima and their indices."""
    return lambda ct0, input, result1: max_pool_gradient(ct0, result1, type_of(input).shape, n)


def max_pool_gradient(ct: Any, index: Any, shape: Dims, n: int) -> Any:
    """The gradient of max pooling: each element of ``ct`` is added at the index of its window's maximum.

    It is a scatter over one axis, since XLA fuses other formulations with the search for the maxima, which it then
    repeats for each element of the input (measured).
    """
    if prod(shape) == 0:
        return full(type_of(ct).dtype.type(0), shape)
    spatial, size = prod(shape[-n:]), prod(type_of(ct).shape)
    rows = (prod(shape[:-n]), size // prod(shape[:-n]))
    number = numpy.dtype(numpy.int32 if prod(shape) < 2**31 else numpy.int64)
    start = mul(iota(shape=rows, axis=0, dtype=number), number.type(spatial))
    flat_index = add(cast(reshape(index, shape=rows), dtype=number), start)
    dims = IndexDims(window=(), collapsed=(0,), operand_batch=(), indices_batch=(), index_map=(0,))
    zero = full(type_of(ct).dtype.type(0), (prod(shape),))
    flat = reshape(ct, shape=(size,))
    found = scatter_add(zero, reshape(flat_index, shape=(size, 1)), flat, dims=dims, mode="promise", unique=False)
    return reshape(found, shape=shape)


_MAX = {n: _max_pool(n) for n in (2, 3)}


def _max_pool_function(n: int) -> Any:
    function = _MAX[n].function

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        found = function(
            input, _ints(kernel_size, n), _ints(stride, n), _ints(padding, n), _ints(dilation, n), ceil_mode
        )
        return found if return_indices else found[0]

    return pool


def _ints(value: Any, n: int = 1) -> Dims:
    """A parameter as a tuple, () for None; a number applies to all dimensions."""
    if hasattr(value, "__index__"):
        return (value.__index__(),) * n
    return () if value is None else tuple(v.__index__() for v in value)


_POOL_DOC = """The {what} of windows over the last {n} dimensions.

    Args:
        input: the pooled dimensions, preceded by channels and optionally a batch.
        kernel_size: the window size, a number or one per dimension.
        stride: the step between windows; by default the window size.
        padding: the padding at both ends, at most half the window size.
        {more}

    Raises:
        RuntimeError: if the parameters are invalid or do not match the input.

    Example:
        >>> torch.nn.functional.{name}({example}, 2)
        {result}
    """


_DILATION = "dilation: the distance between neighbouring elements of a window.\n        "
_CEIL_MODE = "ceil_mode: whether the last window may extend past the end.\n        "
_RETURN_INDICES = "return_indices: whether to return also the flat indices of the maxima in the pooled dimensions."


def _example(n: int) -> tuple[str, str]:
    size = ", ".join(["1", "1", *["2"] * n])
    return f"torch.ones({size})", "tensor([[" + "[" * n + "1." + "]" * n + "]])"


def _publish_max(n: int) -> None:
    pool = _max_pool_function(n)
    name = f"max_pool{n}d"
    example, result = _example(n)
    more = f"{_DILATION}{_CEIL_MODE}{_RETURN_INDICES}"
    pool.__doc__ = _POOL_DOC.format(what="maxima", n=n, more=more, name=name, example=example, result=result)
    pool.__name__ = pool.__qualname__ = name
    composite(
        f"{name}(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, int[{n}] dilation=1, "
        "bool ceil_mode=False) -> Tensor",
        names=f"torch.{name}",
    )(pool)
    function(f"F.{name}")(pool)


for _n in (2, 3):
    _publish_max(_n)


def _check_max1d(input: Tensor, kernel: Dims, stride: Dims, padding: Dims, dilation: Dims, ceil_mode: bool) -> None:
    size = tuple(input.shape)
    if len(size) not in (2, 3) or any(v == 0 for v in size[1:]) or (len(size) == 2 and size[0] == 0):
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{size_text(size)}"
        )
    for what, value in (("kernel_size", kernel), ("stride", stride), ("padding", padding), ("dilation", dilation)):
        if len(value) != 1:
            raise RuntimeError(
                f"max_pool1d() {what} must be an int, list of ints or tuple of ints of size 1 but got size {len(value)}"
            )
    (k,), (s,), (p,), (d,) = kernel, stride, padding, dilation
    for what, v in (("kernel_size", k), ("stride", s)):
        if v <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {v}")
    if p < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
    if d <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {d}")
    if p > ((k - 1) * d + 1) // 2:
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
        )
    out = pooled_size(size[-1], k, s, p, d, ceil_mode)
    if out <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")


def _wrong_dimensions(name: str, input: Tensor) -> RuntimeError:
    return RuntimeError(
        f"Expected 2 to 3 dimensions, but got {input.dim()}-dimensional tensor for argument #1 'self' (while checking "
        f"arguments for {name})"
    )


@composite(
    "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, "
    "bool ceil_mode=False) -> Tensor",
    names="torch.max_pool1d",
)
@function("F.max_pool1d")
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    tensor_argument("max_pool1d", "input", 1, input)
    kernel, pads, dilations = _ints(kernel_size), _ints(padding), _ints(dilation)
    step = _ints(stride) or kernel
    without_indices = not (return_indices or (input.requires_grad and mode.grad))  # PyTorch has a kernel for this case
    if return_indices and input.dim() not in (2, 3):
        raise _wrong_dimensions("max_pool1d", input)
    _check_max1d(input, kernel, step, pads, dilations, ceil_mode)
    if without_indices and not input.dtype.is_floating_point:
        raise lacks("max_pool1d_impl", input.dtype)
    values, indices = _MAX[2].function(
        unsqueeze(input, -2), (1, *kernel), (1, *step), (0, *pads), (1, *dilations), ceil_mode
    )
    values = squeeze(values, -2)
    return (values, squeeze(indices, -2)) if return_indices else values


# ---------------------------------------------------------------- averages


def _check_average(n: int) -> Any:
    name = f"avg_pool{n}d"

    def check(
        input: Tensor,
        kernel_size: Dims,
        stride: Dims = (),
        padding: Dims = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        _check_lengths(name, n, kernel_size=kernel_size, stride=stride, padding=padding)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        size = tuple(input.shape)
        if n == 3 and len(size) not in (4, 5):
            raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
        windows = _parameters(n, kernel_size, stride, padding, (1,))
        _check_numbers(*windows)
        if len(size) < n + 1:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-len(size)}, {len(size) - 1}], but got {-n - 1})"
            )
        _check_positive(n, size, name)
        _check_sizes(size, _pooled(size[-n:], *windows, ceil_mode))
        if len(size) not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
                f"got:{size_text(size)}"
            )
        if input.dtype not in _AVERAGED[n]:
            raise lacks(_AVERAGE_KERNELS[n], input.dtype)

    return check


def _divisors(spatial: Dims, kernel: Dims, stride: Dims, padding: Dims, counts: Dims, include: bool) -> numpy.ndarray:
    """The number of elements in each window; with ``include``, padding counts."""
    found = numpy.ones((1,) * len(spatial), numpy.int64)
    for i, (size, k, s, p, c) in enumerate(zip(spatial, kernel, stride, padding, counts)):
        start = numpy.arange(c) * s - p
        end = numpy.minimum(start + k, size + p)
        row = end - start if include else numpy.minimum(end, size) - numpy.maximum(start, 0)
        found = found * row.reshape([-1 if j == i else 1 for j in range(len(spatial))])
    return found


def _average_pool(n: int) -> Op:
    @in_single
    def body(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        type = type_of(input)
        kernel, step, pads, dilation = _parameters(n, kernel_size, stride, padding, (1,))
        window = _window(type.shape, kernel, step, pads, dilation, ceil_mode)
        total = window_sum(input, window=window)
        if divisor_override is not None:
            return div(total, type.dtype.type(divisor_override))
        counts = type_of(total).shape
        divisors = _divisors(type.shape[-n:], kernel, step, pads, counts[-n:], count_include_pad)
        if divisors.size == 0 or (divisors == divisors.flat[0]).all():
            return div(total, type.dtype.type(divisors.flat[0] if divisors.size else 1))
        return div(
            total, broadcast(divisors.astype(type.dtype), shape=counts, dims=tuple(range(len(counts) - n, len(counts))))
        )

    return aten(
        f"avg_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        node=f"AvgPool{n}DBackward0",
        saves="ceil_mode count_include_pad divisor_override kernel_size padding self! stride", names="",
        layout=in_format_of_input if n == 2 else "contiguous", check=_check_average(n), out=True,
    )(body)  # fmt: skip


_AVERAGE = {n: _average_pool(n) for n in (2, 3)}


def _publish_average(n: int) -> None:
    average, name = _AVERAGE[n].function, f"avg_pool{n}d"

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        sizes = (_ints(kernel_size, n), _ints(stride, n), _ints(padding, n))
        return average(input, *sizes, ceil_mode, count_include_pad, divisor_override, out=out)

    example, result = _example(n)
    more = (
        f"{_CEIL_MODE}count_include_pad: whether padding counts in the divisor.\n        "
        "divisor_override: the divisor, instead of the number of elements."
    )
    pool.__doc__ = _POOL_DOC.format(what="averages", n=n, more=more, name=name, example=example, result=result)
    pool.__name__ = pool.__qualname__ = name
    composite(
        f"{name}(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, bool ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        names=f"F.{name} _C._nn.{name}",
    )(pool)


for _n in (2, 3):
    _publish_average(_n)


@composite(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    names="torch.avg_pool1d F.avg_pool1d",
)
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    tensor_argument("avg_pool1d", "input", 1, input)
    if input.dim() not in (2, 3):
        raise _wrong_dimensions("avg_pool1d", input)
    kernel, step, pads = _ints(kernel_size), _ints(stride), _ints(padding)
    for what, value in (("kernel_size", kernel), ("stride", step), ("padding", pads)):
        if len(value) != 1 and not (what == "stride" and not value):
            raise RuntimeError(f"avg_pool1d() argument '{what}' should contain one int (got {len(value)})")
    step = step or kernel
    found = _AVERAGE[2].function(
        unsqueeze(input, -2), (1, *kernel), (1, *step), (0, *pads), ceil_mode, count_include_pad
    )
    return squeeze(found, -2)


document(max_pool1d, _POOL_DOC.format(
    what="maxima", n=1, name="max_pool1d", example="torch.ones(1, 1, 2)", result="tensor([[[1.]]])",
    more=f"{_DILATION}{_CEIL_MODE}{_RETURN_INDICES}",
))  # fmt: skip
document(avg_pool1d, _POOL_DOC.format(
    what="averages", n=1, name="avg_pool1d", example="torch.ones(1, 1, 2)", result="tensor([[[1.]]])",
    more=f"{_CEIL_MODE}count_include_pad: whether padding counts in the divisor.",
))  # fmt: skip
