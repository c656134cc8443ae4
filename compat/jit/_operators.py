"""The operators that TorchScript's code calls, as compat's functions: ``torch.linear``, ``ops.prim.NumToTensor``.

Most are those of ``torch.ops.aten``. This module defines those whose arguments differ from the public functions';
``_values`` defines those on numbers, strings, lists and dictionaries.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from compat import ops
from compat._core.dispatch.overloads import Namespace
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import is_grad_enabled, set_grad_enabled
from compat._core.types import dtype as dtypes
from compat._core.types.device import device
from compat._core.types.memory_format import channels_last, channels_last_3d, contiguous_format, preserve_format
from compat._core.types.type_promotion import promote_types
from compat._operators.indexing.indices import index_key
from compat.autograd import grad
from compat.futures import Future
from compat.jit._classes import Error
from compat.jit._layers import LAYERS
from compat.jit._values import VALUES
from compat.nn import functional as F

_torch = names_of("torch")
#: The dtypes in the order of TorchScript's numbers for them.
DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
    8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2",
    24: "float8_e4m3fn", 25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz", 27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip
_MEMORY_FORMATS: tuple[Any, ...] = (contiguous_format, preserve_format, channels_last, channels_last_3d)
_NUMBERS = {name: number for number, name in DTYPES.items()}


def _dtype(number: Any) -> Any:
    return dtypes.NAMES[DTYPES[number]] if isinstance(number, int) else number


def _placed(
    x: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """``to``: a dtype, a device or a tensor, two booleans, a memory format."""
    switches = [i for i, a in enumerate(args) if isinstance(a, bool)]
    before, after = (args[: switches[0]], args[switches[-1] + 1 :]) if switches else (args, ())
    for given in before:
        if isinstance(given, Tensor):
            dtype = given.dtype
        elif isinstance(given, int):
            dtype = _dtype(given)
    copy = args[switches[1]] if len(switches) > 1 else copy
    memory_format = _NAMED["memory_format"](after[0]) if after and after[0] is not None else memory_format
    more = {} if memory_format is None else {"memory_format": memory_format}
    return x.to(x.dtype if dtype is None else dtype, copy=copy, **more)


def _sliced(x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    place = [slice(None)] * (dim % x.dim()) + [slice(start, end, step)]
    return x[tuple(place)]


def _index_put(x: Tensor, indices: Sequence[Any], value: Tensor, accumulate: bool = False) -> Tensor:
    if accumulate:
        return x.index_put_(tuple(indices), value, accumulate=True)
    x[index_key(indices)] = value
    return x


def _raise(message: str, kind: Any = None) -> None:
    """Raises the error of scripted functions, whose message contains the exception that the code raises."""
    text = f"{kind or 'RuntimeError'}: {message}"
    raise Error(f"The following operation failed in the TorchScript interpreter.\n{text}")


def _grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Any = None, create_graph: bool = False,
    allow_unused: Any = None,
) -> list[Any]:  # fmt: skip
    return list(grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused=bool(allow_unused)))


def _number_of(kind: Any) -> int:
    """TorchScript's number for a dtype."""
    return _NUMBERS[str(kind).removeprefix("torch.")]


def fork(function: Callable[[], Any]) -> Future[Any]:
    """The future of a call, which runs at once."""
    made: Future[Any] = Future()
    try:
        made.set_result(function())
    except Exception as error:
        made.set_exception(error)
    return made


#: Operators on tensors with other arguments than the public function of that name.
TABLE: dict[str, Callable[..., Any]] = {
    **LAYERS,
    "to": _placed, "slice": _sliced, "size": lambda x, dim=None: list(x.shape) if dim is None else x.shape[dim],
    "expand": lambda x, size, *, implicit=False: x.expand(size), "alias": lambda x: x, "len": len,
    "softmax": lambda x, dim, dtype=None: F.softmax(x, dim, dtype=_dtype(dtype)),
    "log_softmax": lambda x, dim, dtype=None: F.log_softmax(x, dim, dtype=_dtype(dtype)),
    "chain_matmul": lambda matrices: _torch["chain_matmul"](*matrices),
    "tensordot": lambda a, b, of_a, of_b: _torch["tensordot"](a, b, (of_a, of_b)),
    "is_contiguous": lambda x, memory_format=0: x.is_contiguous(memory_format=_MEMORY_FORMATS[memory_format]),
    "is_autocast_enabled": lambda *args: False, "is_autocast_cpu_enabled": lambda *args: False,
    "index": lambda x, indices: x[index_key(indices)], "index_put_": _index_put,
    "index_put": lambda x, indices, value, accumulate=False: _index_put(x.clone(), indices, value, accumulate),
    "item": lambda x: x.item(), "stride": lambda x, dim=None: list(x.stride()) if dim is None else x.stride(dim),
    "Int": int, "Float": float, "Bool": bool, "Complex": complex, "IntImplicit": int, "FloatImplicit": float,
    "__getitem__": operator.getitem, "__is__": operator.is_, "__isnot__": operator.is_not, "__not__": operator.not_,
    "floordiv": lambda a, b: a // b, "grad": _grad, "append": VALUES["append"], "device": device, "str": VALUES["str"],
    "has_torch_function": lambda *args: False, "format": VALUES["format"], "numpy_T": lambda x: x.T,
    "matrix_H": lambda x: x.mH, "mT": lambda x: x.mT, "mH": lambda x: x.mH, "percentFormat": VALUES["percentFormat"],
    "set_grad_enabled": set_grad_enabled, "is_grad_enabled": is_grad_enabled,
    "promote_types": lambda a, b: _number_of(promote_types(_dtype(a), _dtype(b))),
}  # fmt: skip
#: The operators of ``ops.prim``.
PRIM: dict[str, Callable[..., Any]] = {
    "NumToTensor": lambda x: x, "RaiseException": _raise, "min": min, "max": max, "abs": abs,
    "dtype": lambda x: _number_of(x.dtype), "layout": lambda x: 0, "device": lambda x: x.device,
    "is_cuda": lambda x: False, "type": lambda d: d.type, "index": lambda d: d.index, "id": id,
    "shape": lambda x: list(x.shape), "rangelist": lambda n: list(range(n)), "unchecked_unwrap_optional": lambda x: x,
    "EnumName": lambda member: member.name, "EnumValue": lambda member: member.value, "unchecked_cast": lambda x: x,
    "grad": lambda x: x.grad, "is_grad_enabled": is_grad_enabled, "TupleIndex": operator.getitem,
    "tolist": lambda x, *kind: x.tolist(), "StringIndex": operator.getitem, "AutogradZero": lambda: None,
    **{name: (lambda x, name=name: getattr(x, name)) for name in (
        "data", "requires_grad", "is_sparse", "is_mkldnn", "is_quantized", "is_meta", "is_nested", "itemsize", "nbytes",
        "name", "T", "H", "mT", "mH", "ndim", "real", "imag", "is_leaf", "is_xpu", "is_mps", "is_vulkan", "is_ipu",
        "is_xla", "is_mtia", "is_ort", "is_maia", "is_sparse_csr")},
}  # fmt: skip
#: Operators whose schemas return ``Tensor[]``, a list.
_LISTS = frozenset(
    ["split", "split_with_sizes", "chunk", "unbind", "tensor_split", "meshgrid", "broadcast_tensors", "hsplit",
     "vsplit", "dsplit", "where", "atleast_1d", "atleast_2d", "atleast_3d", "align_tensors", "unsafe_split",
     "unsafe_chunk", "nonzero_numpy", "unflatten_dense_tensors", "gradient"]
)  # fmt: skip
#: Conversions of arguments by name, where TorchScript passes a number or None.
_NAMED: dict[str, Callable[[Any], Any]] = {
    "dtype": _dtype, "memory_format": lambda n: _MEMORY_FORMATS[n] if isinstance(n, int) else n,
    "layout": lambda n: None if n == 0 else n, "device": lambda d: d, "pin_memory": lambda p: p or None,
    "generator": lambda g: g, "names": lambda n: n, "requires_grad": lambda r: r or None,
}  # fmt: skip


def _public(name: str) -> Any:
    """The public function with an operator's name and arguments."""
    family, _, own = name.partition("_")
    for place, within in (("torch", name), ("_C._nn", name), (family, own)):
        if place not in ("torch", "_C._nn", "linalg", "fft", "special"):
            continue
        found = names_of(place).get(within)
        if found is not None:
            return found
    found = getattr(Tensor, name, None) or names_of("F").get(name)
    return (lambda x: getattr(x, name)) if isinstance(found, property) else found


def _of_tensors(name: str) -> Callable[..., Any] | None:
    """An operator on tensors that accepts arguments as TorchScript passes them."""
    function = TABLE.get(name) or _public(name)
    if function is None:
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            named = {k: _NAMED[k](v) if k in _NAMED else v for k, v in kwargs.items()}
            kwargs = {k: v for k, v in named.items() if v is not None or k not in _NAMED}
        found = function(*args, **kwargs)
        if isinstance(found, tuple):
            return list(found) if name in _LISTS else tuple(found)
        return found

    return call


def _of_either(name: str, of_values: Callable[..., Any], of_tensors: Callable[..., Any]) -> Callable[..., Any]:
    """An operator on values or tensors."""

    def call(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else None
        numbers = isinstance(first, (int, float, complex)) and any(isinstance(a, Tensor) for a in args)
        return of_tensors(*args, **kwargs) if numbers or isinstance(first, Tensor) else of_values(*args, **kwargs)

    return call


def find(library: str, name: str) -> Callable[..., Any] | None:
    """The function of an operator; None if there is none."""
    if library == "prim":
        return PRIM.get(name) or find("aten", name)
    if library != "aten":
        space = getattr(ops, library) if library.isidentifier() and not library.startswith("_") else None
        return space._packets.get(name) if isinstance(space, Namespace) else None
    of_values, of_tensors = VALUES.get(name), _of_tensors(name)
    if of_values is not None and of_tensors is not None:
        return _of_either(name, of_values, of_tensors)
    return of_values or of_tensors
