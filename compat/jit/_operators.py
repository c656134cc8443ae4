"""The operators that TorchScript's code calls, as compat's functions: ``torch.linear``, ``ops.prim.NumToTensor``.

Most are ``torch.ops.aten``'s, with the arguments that these take. Here stand those whose arguments differ from the
public functions', and those on numbers and lists.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from compat import ops
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.device import device
from compat.nn import functional as F

_torch = names_of("torch")
#: TorchScript's numbers of dtypes.
DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
    8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16",
}  # fmt: skip


def _dtype(number: Any) -> Any:
    return dtypes.NAMES[DTYPES[number]] if isinstance(number, int) else number


def _convolution(
    x: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *rest: Any,
) -> Any:  # fmt: skip
    place = (x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    return ops.aten.convolution.default(*place)


def _made(name: str) -> Callable[..., Any]:
    def make(
        *args: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, **more: Any
    ) -> Any:
        return _torch[name](*args, **({} if dtype is None else {"dtype": _dtype(dtype)}), **more)

    return make


def _placed(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    kinds = [a for a in args if isinstance(a, int) and not isinstance(a, bool)]
    others = [a for a in args if isinstance(a, Tensor)]
    kind = others[0].dtype if others else kinds[0] if kinds else kwargs.get("dtype")
    return x if kind is None else x.to(_dtype(kind))


def _sliced(x: Any, dim: Any = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    if not isinstance(x, Tensor):  # a list: its arguments have no dimension
        return x[slice(dim, start, 1 if end is None else end)]
    place = [slice(None)] * (dim % x.dim()) + [slice(start, end, step)]
    return x[tuple(place)]


def _append(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


def _raise(message: str, kind: Any = None) -> None:
    raise RuntimeError(message)


#: Those with arguments of their own.
TABLE: dict[str, Callable[..., Any]] = {
    "_convolution": _convolution,
    "conv2d": F.conv2d, "conv1d": F.conv1d, "linear": F.linear,
    "batch_norm": lambda x, w, b, m, v, train, momentum, eps, cudnn: F.batch_norm(x, m, v, w, b, train, momentum, eps),
    "layer_norm": lambda x, shape, w, b, eps=1e-5, cudnn=True: F.layer_norm(x, shape, w, b, eps),
    "group_norm": lambda x, groups, w, b, eps=1e-5, cudnn=True: F.group_norm(x, groups, w, b, eps),
    "max_pool2d": lambda x, k, s=(), p=0, d=1, ceil=False: F.max_pool2d(x, k, s or None, p, d, ceil),
    "max_pool1d": lambda x, k, s=(), p=0, d=1, ceil=False: F.max_pool1d(x, k, s or None, p, d, ceil),
    "avg_pool2d": lambda x, k, s=(), p=0, ceil=False, pad=True, by=None:
        F.avg_pool2d(x, k, s or None, p, ceil, pad, by),
    "adaptive_avg_pool2d": F.adaptive_avg_pool2d, "adaptive_avg_pool1d": F.adaptive_avg_pool1d,
    "adaptive_max_pool2d": lambda x, size: F.adaptive_max_pool2d(x, size, return_indices=True),
    "dropout": F.dropout, "dropout_": lambda x, p, train: F.dropout(x, p, train, inplace=True),
    "feature_dropout": F.dropout2d,
    "embedding": lambda weight, index, padding=-1, scale=False, sparse=False: F.embedding(index, weight),
    "softmax": lambda x, dim, dtype=None: F.softmax(x, dim, dtype=_dtype(dtype)),
    "log_softmax": lambda x, dim, dtype=None: F.log_softmax(x, dim, dtype=_dtype(dtype)),
    "gelu": F.gelu, "silu": F.silu, "silu_": lambda x: F.silu(x, inplace=True), "elu": F.elu,
    "hardtanh": F.hardtanh, "hardtanh_": F.hardtanh_, "relu6": F.relu6, "leaky_relu": F.leaky_relu,
    "leaky_relu_": F.leaky_relu_, "hardswish": F.hardswish, "hardswish_": lambda x: F.hardswish(x, inplace=True),
    "hardsigmoid": F.hardsigmoid, "hardsigmoid_": lambda x: F.hardsigmoid(x, inplace=True), "softplus": F.softplus,
    "mish": F.mish, "log_sigmoid": F.logsigmoid,
    "upsample_nearest2d": lambda x, size, *scale: F.interpolate(x, size or None, scale[0] if size is None else None),
    "pad": F.pad, "constant_pad_nd": lambda x, pad, value=0: F.pad(x, pad, value=value),
    "scaled_dot_product_attention": lambda q, k, v, mask=None, p=0.0, causal=False, *, scale=None, enable_gqa=False:
        F.scaled_dot_product_attention(q, k, v, mask, p, causal, scale=scale, enable_gqa=enable_gqa),
    "sum": lambda x, dim=None, keepdim=False, *, dtype=None: x.sum(dim, keepdim) if dim is not None else x.sum(),
    "mean": lambda x, dim=None, keepdim=False, *, dtype=None: x.mean(dim, keepdim) if dim is not None else x.mean(),
    "to": _placed, "type_as": lambda x, other: x.to(other.dtype), "contiguous": lambda x, *rest, **kw: x.contiguous(),
    "slice": _sliced, "size": lambda x, dim=None: list(x.shape) if dim is None else x.shape[dim],
    "dim": Tensor.dim, "len": len, "numel": Tensor.numel, "device": device,
    "expand": lambda x, size, *, implicit=False: x.expand(size), "view": lambda x, size: x.view(size),
    "reshape": lambda x, size: x.reshape(size), "permute": lambda x, dims: x.permute(dims), "alias": lambda x: x,
    "repeat": lambda x, repeats: x.repeat(repeats), "detach": lambda x: x.detach(),
    "copy_": lambda x, y, blocking=False: x.copy_(y),
    "index": lambda x, indices: x[tuple(slice(None) if i is None else i for i in indices)],
    "select": lambda x, dim, index: x.select(dim, index), "tensor": _made("tensor"),
    "warn": lambda *args, **kwargs: None, "append": _append, "list": list, "Int": int, "Float": float, "Bool": bool,
    "IntImplicit": int, "FloatImplicit": float, "item": lambda x: x.item(), "format": str.format,
    "__getitem__": operator.getitem, "__contains__": operator.contains, "__is__": operator.is_,
    "__isnot__": operator.is_not, "__not__": operator.not_, "__and__": operator.and_, "__or__": operator.or_,
    "__derive_index": lambda index, start, step: start + index * step,
    "is_floating_point": lambda x: x.is_floating_point(),
    "ceil": lambda x: math.ceil(x) if not isinstance(x, Tensor) else x.ceil(),
    "floor": lambda x: math.floor(x) if not isinstance(x, Tensor) else x.floor(),
    "sqrt": lambda x: math.sqrt(x) if not isinstance(x, Tensor) else x.sqrt(),
}  # fmt: skip
TABLE |= {
    name: _made(name) for name in ("zeros", "ones", "full", "empty", "arange", "rand", "randn", "linspace", "eye")
}
TABLE |= {name: _made(name) for name in ("zeros_like", "ones_like", "full_like", "empty_like")}
#: Those that are also of numbers, lists and texts.
PLAIN: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "remainder": operator.mod, "pow": operator.pow, "neg": operator.neg,
    "eq": operator.eq, "ne": operator.ne,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "max": max, "min": min, "abs": abs,
}  # fmt: skip
#: ``ops.prim``'s.
PRIM: dict[str, Callable[..., Any]] = {
    "NumToTensor": lambda x: x, "RaiseException": _raise, "min": min, "max": max, "dtype": lambda x: x.dtype,
    "device": lambda x: x.device, "is_cuda": lambda x: False, "unchecked_cast": lambda x: x, "abs": abs,
    "data": lambda x: x.data, "requires_grad": lambda x: x.requires_grad, "layout": lambda x: x.layout,
}  # fmt: skip


class Unsupported(NotImplementedError):
    """Something in a file that is not there."""


def _of_numbers_or_tensors(name: str, public: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(a, Tensor) for a in args):
            return PLAIN[name](*args)
        return public(*args, **kwargs)

    return call


def find(library: str, name: str) -> Callable[..., Any]:
    """The function of an operator.

    Raises:
        Unsupported: for one that is not there.
    """
    if library == "prim":
        if name not in PRIM:
            raise Unsupported(f"torch.jit.load: the file calls prim::{name}, which is not supported")
        return PRIM[name]
    if library != "aten":
        return getattr(getattr(ops, library), name)
    if name in TABLE:
        return TABLE[name]
    public = _torch.get(name) or getattr(Tensor, name, None) or names_of("F").get(name)
    if name in PLAIN:
        return _of_numbers_or_tensors(name, public)
    if public is None:
        raise Unsupported(f"torch.jit.load: the file calls aten::{name}, which is not supported")
    return public
