"""Convolutions and transposed convolutions, in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compat._core.memory.strides import Layout, channels_last_strides
from compat._core.operators.composite import composite
from compat._core.operators.op import aten
from compat._core.operators.opmath import in_single
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import bfloat16, bool_, dtype, float32, int64
from compat._core.types.errors import Once, cpp_name, lacks, size_text, type_text
from compat._operators.spatial import each, suggests_channels_last
from compat._operators.view.shape import squeeze, unsqueeze
from funcgrad.core.tracing import type_of
from funcgrad.primitives.convolution import convolve
from funcgrad.primitives.elementwise import add
from funcgrad.primitives.shape import broadcast, reshape, reverse, transpose

Dims = tuple[int, ...]

# ---------------------------------------------------------------- the operator


def _result_strides(given: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """Channels-last if the input or the weight is; in three dimensions only if PyTorch uses its fast kernel."""
    size = types[0].shape
    x, w = given["input"], given["weight"]
    channels_last = any(suggests_channels_last(v.size, v.stride) for v in (x, w))
    if not channels_last or (len(size) == 5 and not _has_fast_kernel(x, w, given["groups"])):
        return [None]
    return [channels_last_strides(size)]


def _has_fast_kernel(x: Layout, w: Layout, groups: int) -> bool:
    n, c, d, h = x.size[:4]
    return x.dtype is float32 and (groups > 1 or min(w.size[-2:]) > 3 or n > 1 or n * c * d * h > 20480)


def _check_signs(stride: Dims, padding: Dims, dilation: Dims, output_padding: Dims, groups: int) -> None:
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(p < 0 for p in output_padding):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d < 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _check_weight(size: Dims, weight: Dims, groups: int) -> None:
    if len(size) != len(weight):
        raise RuntimeError(
            f"Expected {len(weight)}-dimensional input for {len(weight)}-dimensional weight {size_text(weight)}, "
            f"but got {len(size)}-dimensional input of size {size_text(size)} instead"
        )
    begin = f"Given groups={groups}, expected weight to be"
    if weight[0] < groups:
        raise RuntimeError(
            f"{begin} at least {groups} at dimension 0, but got weight of size {size_text(weight)} instead"
        )
    if weight[0] % groups:
        raise RuntimeError(
            f"{begin} divisible by {groups} at dimension 0, but got weight of size [{size_text(weight)}] instead"
        )


def _check_channels(size: Dims, weight: Dims, bias: Tensor | None, transposed: bool, groups: int) -> None:
    channels = weight[0] if transposed else weight[1] * groups
    given = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
    if size[1] != channels:
        raise RuntimeError(
            f"Given {given}, weight of size {size_text(weight)}, expected input{size_text(size)} to have {channels} "
            f"channels, but got {size[1]} channels instead"
        )
    outputs = weight[1] * groups if transposed else weight[0]
    if bias is not None and tuple(bias.shape) != (outputs,):
        given = "transposed=1, weight" if transposed else "weight"
        raise RuntimeError(
            f"Given {given} of size {size_text(weight)}, expected bias to be 1-dimensional with {outputs} elements, "
            f"but got bias of size {size_text(bias.shape)} instead"
        )


def _check_kernel(size: Dims, weight: Dims, padding: Dims, dilation: Dims) -> None:
    padded = [n + 2 * p for n, p in zip(size[2:], padding)]
    kernel = [d * (k - 1) + 1 for k, d in zip(weight[2:], dilation)]
    if any(n < k for n, k in zip(padded, kernel)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(padded)}). Kernel size: ({_by(kernel)}). Kernel size "
            "can't be greater than actual input size"
        )


def _by(sizes: Iterable[int]) -> str:
    return " x ".join(map(str, sizes))


def _check_result(
    size: Dims, kernel: Dims, stride: Dims, padding: Dims, dilation: Dims, output_padding: Dims, fused: bool
) -> None:
    """Checks that a transposed convolution has a nonempty result."""
    rows = zip(size, kernel, stride, padding, dilation, output_padding)
    output = [(n - 1) * s - 2 * p + d * (k - 1) + extra + 1 for n, k, s, p, d, extra in rows]
    if min(output) >= (0 if fused else 1):
        return
    if fused:
        raise RuntimeError("could not construct a memory descriptor using a format tag")
    first = (1,) * (len(size) == 1)  # PyTorch treats one dimension as two, the first of size 1
    raise RuntimeError(
        f"Given input size per channel: ({_by((*first, *size))}). Calculated output size per channel: "
        f"({_by((*first, *output))}). Output size is too small"
    )


def _check_elements(size: Dims, weight: Dims, transposed: bool, fused: bool) -> None:
    """Checks that input and weight are nonempty."""
    if 0 in size[2:] and 0 not in size[:2]:
        size = (*size[:2], 1, *size[2:]) if len(size) == 3 else size
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {size_text(size)}"
        )
    kernel = weight[2:]
    if all(kernel):
        return
    if fused:
        raise RuntimeError(
            f"could not create a primitive descriptor for the {'de' * transposed}convolution forward propagation "
            "primitive. Run workload with environment variable ONEDNN_VERBOSE=all to get additional diagnostic "
            "information."
        )
    if len(kernel) < 3:
        height, width = (1, *kernel)[-2:]
        sizes = f" kernel_height: {height} kernel_width: {width}"
    elif transposed:
        raise RuntimeError(
            "non-empty 5D (n_output_plane x n_input_plane x kernel_depth x kernel_height x kernel_width) tensor "
            f"expected for weight, but got: {size_text(weight)}"
        )
    else:
        sizes = f": {_by(kernel)} (TxHxW)"
    raise RuntimeError(f"kernel size should be greater than zero, but got{sizes}")


def _check_dtypes(own: dtype, weight: Tensor, bias: Tensor | None, transposed: bool, fused: bool) -> None:
    """Checks that weight and bias have the dtype of the input, and that convolutions support it."""
    if bias is not None and bias.dtype is not own and not transposed:
        raise RuntimeError(f"Input type ({cpp_name(own)}) and bias type ({cpp_name(bias.dtype)}) should be the same")
    transposable = own.is_floating_point or own.is_complex or own is int64
    n = weight.dim() - 2
    for name, t in (("weight", weight), ("bias", bias)):
        if t is None or t.dtype is own or (transposed and not transposable):
            continue
        types = f"Input type ({type_text(own)}) and {name} type ({type_text(t.dtype)}) should be the same"
        if fused:
            raise RuntimeError(f"{types} or input should be a MKLDNN tensor and {name} is a dense tensor")
        if own.is_complex:
            raise RuntimeError(types)
        raise RuntimeError(f"expected scalar type {own.scalar_name} but found {t.dtype.scalar_name}")
    if transposed and not transposable:
        kernel = f"slow_conv_transpose{max(n, 2)}d_out_cpu"
    elif own is bool_:
        kernel = "slow_conv2d_cpu" if n < 3 else "compute_columns3d"
    else:
        return
    raise lacks(kernel, own)


def _check_output_padding(output_padding: Dims, stride: Dims, dilation: Dims) -> None:
    if any(p >= s and p >= d for p, s, d in zip(output_padding, stride, dilation)):
        names = ("depth", "height", "width")[-len(stride) :]
        values = " ".join(
            f"{what}_{n}: {v}"
            for what, row in (("output_padding", output_padding), ("stride", stride), ("dilation", dilation))
            for n, v in zip(names, row)
        )
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {values}")


def _check(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    size, kernel = tuple(input.shape), tuple(weight.shape)
    if bias is not None and bias.dtype is not input.dtype and not transposed:
        _check_dtypes(input.dtype, weight, bias, transposed, False)
    if len(kernel) < 3:
        raise RuntimeError("weight should have at least three dimensions")
    n = len(kernel) - 2
    stride, padding, dilation, output_padding = (each(v, n) for v in (stride, padding, dilation, output_padding))
    for name, row in (
        ("stride", stride),
        ("padding", padding),
        ("dilation", dilation),
        ("output_padding", output_padding),
    ):
        if len(row) != n:
            raise RuntimeError(
                f"expected {name} to be a single integer value or a list of {n} values to match the convolution "
                f"dimensions, but got {name}={size_text(row)}"
            )
    _check_signs(stride, padding, dilation, output_padding, groups)
    _check_weight(size, kernel, groups)
    _check_channels(size, kernel, bias, transposed, groups)
    if 0 in dilation:
        raise RuntimeError(f"dilation should be greater than zero, but got {size_text(dilation)}")
    if not transposed:
        _check_kernel(size, kernel, padding, dilation)
    else:
        _check_output_padding(output_padding, stride, dilation)
    large = transposed and any(p >= s for p, s in zip(output_padding, stride))
    fused = input.dtype in (float32, bfloat16) and not large  # PyTorch then calls oneDNN
    _check_dtypes(input.dtype, weight, bias, transposed, fused)
    _check_elements(size, kernel, transposed, fused)
    if transposed:
        _check_result(size[2:], kernel[2:], stride, padding, dilation, output_padding, fused)


@aten(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
    "dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    node="ConvolutionBackward0",
    saves="bias.sym_sizes_opt dilation groups input! output_padding padding stride transposed weight!",
    names="torch.convolution", layout=_result_strides, check=_check, out=False,
)  # fmt: skip
@in_single
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """The general convolution; a parameter has one number per dimension, or one for all.

    Example:
        >>> torch.convolution(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, (1,), (0,), (1,), False, (0,), 1)
        tensor([[[2., 2.]]])
    """
    n = type_of(weight).ndim - 2
    stride, padding, dilation, output_padding = (each(v, n) for v in (stride, padding, dilation, output_padding))
    if transposed:
        out = _transposed(input, weight, stride, padding, dilation, output_padding, groups)
    else:
        out = convolve(
            input, weight, strides=stride, padding=tuple((p, p) for p in padding), rhs_dilation=dilation, groups=groups
        )
    if bias is None:
        return out
    return add(out, broadcast(bias, shape=type_of(out).shape, dims=(1,)))


@composite(
    "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, "
    "bool allow_tf32) -> Tensor",
    names="torch._convolution",
)
def convolution_with_settings(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Dims, padding: Dims, dilation: Dims, transposed: bool,
    output_padding: Dims, groups: int, benchmark: bool, deterministic: bool, cudnn_enabled: bool, allow_tf32: bool,
) -> Tensor:  # fmt: skip
    """``torch.convolution`` with settings for GPUs, which are ignored."""
    return convolution.function(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _transposed(x: Any, w: Any, stride: Dims, padding: Dims, dilation: Dims, output_padding: Dims, groups: int) -> Any:
    """The transposed convolution: the input, dilated by ``stride``, convolved with the reversed, transposed kernel."""
    inputs, outputs, *kernel = type_of(w).shape
    w = reverse(w, axes=tuple(range(2, len(kernel) + 2)))
    if groups > 1:
        spatial = tuple(range(3, len(kernel) + 3))
        w = transpose(reshape(w, shape=(groups, inputs // groups, outputs, *kernel)), permutation=(0, 2, 1, *spatial))
        w = reshape(w, shape=(groups * outputs, inputs // groups, *kernel))
    else:
        w = transpose(w, permutation=(1, 0, *range(2, len(kernel) + 2)))
    margins = [d * (k - 1) - p for k, d, p in zip(kernel, dilation, padding)]
    pads = tuple((m, m + extra) for m, extra in zip(margins, output_padding))
    return convolve(x, w, padding=pads, lhs_dilation=stride, rhs_dilation=dilation, groups=groups)


# ---------------------------------------------------------------- public functions


def _batched(name: str, input: Any, n: int) -> tuple[Tensor, bool]:
    """The input with a batch dimension, and whether it had one."""
    if input.dim() == n + 2:
        return input, True
    if input.dim() == n + 1:
        return unsqueeze(input, 0), False
    raise RuntimeError(
        f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
        f"{size_text(input.shape)}"
    )


def _same_padding(input: Tensor, weight: Tensor, stride: Dims, dilation: Dims, groups: int) -> tuple[Tensor, Dims]:
    """The input and the padding that preserves its size; if this is asymmetric, the input is padded on one side."""
    from compat._operators.shape.padding import constant_pad_nd

    if weight.dim() < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    _check_weight(tuple(input.shape), tuple(weight.shape), max(groups, 1))
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    uneven = [t % 2 for t in total]
    if any(uneven):
        Once.warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the "
            "input be created"
        )
        input = constant_pad_nd(input, tuple(v for odd in reversed(uneven) for v in (0, odd)))
    return input, tuple(t // 2 for t in total)


def _conv(
    name: str, n: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    if isinstance(bias, Tensor) and isinstance(input, Tensor) and bias.dtype is not input.dtype:
        _check_dtypes(input.dtype, weight, bias, False, False)
    x, batched = _batched(name, input, n)
    stride, dilation = each(stride, n), each(dilation, n)
    if not isinstance(padding, str):
        pads = each(padding, n)
    elif padding == "valid":
        pads = (0,)
    elif padding == "same":
        x, pads = _same_padding(x, weight, stride, dilation, groups)
    else:
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    out = convolution(x, weight, bias, stride, pads, dilation, False, (0,) * len(pads), groups)
    return out if batched else squeeze(out, 0)


_SIZES = {1: "L", 2: "H, W", 3: "D, H, W"}
_WORDS = {1: "one dimension", 2: "two dimensions", 3: "three dimensions"}


def _publish(function: Any, name: str, *parameters: str) -> None:
    function.__name__ = function.__qualname__ = name
    schemas = [
        f"{name}{overload}(Tensor input, Tensor weight, Tensor? bias=None, {others}) -> Tensor"
        for overload, others in zip(("", ".padding"), parameters)
    ]
    composite(*schemas, names=f"torch.{name} F.{name}")(function)


def _declare_conv(n: int) -> None:
    """``convNd``."""
    size, ones, kernel = _SIZES[n], ", ".join("4" * n), ", ".join("3" * n)

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        return _conv(f"conv{n}d", n, input, weight, bias, stride, padding, dilation, groups)

    conv.__doc__ = f"""The convolution (cross-correlation) in {_WORDS[n]}.

    Args:
        input: ``(N, C, {size})``, or without ``N``.
        weight: ``(O, C / groups, {size})``.
        bias: ``(O,)``.
        stride, padding, dilation: a number for all dimensions, or one each; ``padding`` may be ``"valid"`` (none) or
            ``"same"`` (preserves the size).
        groups: the number of groups of channels that are convolved separately.

    Returns:
        ``(N, O, {size})``, or without ``N``.

    Raises:
        RuntimeError: for mismatched sizes or dtypes.

    Example:
        >>> torch.nn.functional.conv{n}d(torch.ones(1, 2, {ones}), torch.ones(5, 2, {kernel}), padding=1).shape
        torch.Size([1, 5, {ones}])
    """
    _publish(
        conv,
        f"conv{n}d",
        f"SymInt[{n}] stride=1, SymInt[{n}] padding=0, SymInt[{n}] dilation=1, SymInt groups=1",
        f"SymInt[{n}] stride=1, str padding='valid', SymInt[{n}] dilation=1, SymInt groups=1",
    )


def _declare_conv_transpose(n: int) -> None:
    """``conv_transposeNd``."""
    size, ones, kernel = _SIZES[n], ", ".join("4" * n), ", ".join("3" * n)

    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        x, batched = _batched(f"conv_transpose{n}d", input, n)
        stride, padding, output_padding, dilation = (each(v, n) for v in (stride, padding, output_padding, dilation))
        out = convolution(x, weight, bias, stride, padding, dilation, True, output_padding, groups)
        return out if batched else squeeze(out, 0)

    conv_transpose.__doc__ = f"""The transposed convolution in {_WORDS[n]}: the transpose of a convolution.

    Args:
        input: ``(N, C, {size})``, or without ``N``.
        weight: ``(C, O / groups, {size})``.
        bias: ``(O,)``.
        stride, padding, dilation: those of the convolution; a number for all dimensions, or one each.
        output_padding: the number of elements added to the result at the end of each dimension.
        groups: the number of groups of channels.

    Returns:
        ``(N, O, {size})``, or without ``N``.

    Raises:
        RuntimeError: for mismatched sizes or dtypes.

    Example:
        >>> torch.nn.functional.conv_transpose{n}d(torch.ones(1, 2, {ones}), torch.ones(2, 5, {kernel}), stride=2).shape
        torch.Size([1, 5, {", ".join("9" * n)}])
    """
    _publish(
        conv_transpose,
        f"conv_transpose{n}d",
        f"SymInt[{n}] stride=1, SymInt[{n}] padding=0, SymInt[{n}] output_padding=0, SymInt groups=1, "
        f"SymInt[{n}] dilation=1",
    )


for _n in (1, 2, 3):
    _declare_conv(_n)
    _declare_conv_transpose(_n)
