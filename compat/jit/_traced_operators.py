"""The operators of functions of ``torch``, with their arguments in order, as a trace of TorchScript names them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.dispatch.overloads import aten
from compat._core.tensor.tensor import Tensor

__all__ = ["fitted", "name_of", "operator_of"]

_OPERATORS = {
    "truediv": "div", "itruediv": "div_", "floordiv": "floor_divide", "mod": "remainder", "invert": "bitwise_not",
    "getitem": "", "setitem": "",
}  # fmt: skip


def name_of(func: Any, args: Any) -> str:
    """The operator's name of a function: ``add`` for ``Tensor.__iadd__``, with the suffix of in-place ones."""
    name = getattr(func, "__name__", "")
    if name == "__get__":
        shown = next((n for n, v in vars(Tensor).items() if v is func.__self__), "")
        return {"T": "numpy_T", "data": "detach", "mT": "mT", "H": "matrix_H"}.get(shown, shown)
    if name == "__getitem__":
        return _indexing(args[1])
    if name == "__setitem__":
        return "index_put_" if _indexing(args[1]) == "index" else "copy_"
    plain = name.strip("_")
    if not (name.startswith("__") and name.endswith("__")) or plain in ("and", "or", "xor"):
        return name
    if plain in _OPERATORS:
        return _OPERATORS[plain]
    inplace = plain[0] == "i" and hasattr(Tensor, plain[1:]) and not hasattr(Tensor, plain)
    return f"{plain[1:]}_" if inplace else plain[1:] if plain[0] == "r" and hasattr(Tensor, plain[1:]) else plain


def _index_operands(kind: str, t: Tensor, index: Any) -> list[Any]:
    """The arguments of the operator of the last step of ``t[index]``."""
    parts = index if isinstance(index, tuple) else (index,)
    if kind == "index":
        return [t, [p for p in parts if isinstance(p, Tensor)]]
    at = next(n for n in reversed(range(len(parts))) if parts[n] is not Ellipsis) if parts else 0
    last = parts[at] if parts else slice(None)
    after = len([p for p in parts[at:] if p is not None])
    dim = t.dim() - after if any(p is Ellipsis for p in parts[:at]) else at
    if kind == "select":
        return [t, dim, last]
    return [t, dim] if kind == "unsqueeze" else [t, dim, last.start, last.stop, last.step or 1]


def _indexing(index: Any) -> str:
    """The operator of the last step of ``x[index]``."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(p, Tensor | list) or type(p).__name__ == "ndarray" for p in parts):
        return "index"
    last = next((p for p in reversed(parts) if p is not Ellipsis), slice(None))
    return "unsqueeze" if last is None else "slice" if isinstance(last, slice) else "select"


# ---------------------------------------------------------------- operators and their arguments


def operator_of(func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[str, list[Any]] | None:
    """The operator of a call and its arguments, in the operator's order; None if it is a function of others."""
    if getattr(func, "__name__", "") == "__getitem__":
        return name, _index_operands(name, args[0], args[1])
    own = _SPECIAL.get(name)
    if own is not None:
        found = own(name, _bound(func, args, kwargs))
        if found is not None:
            return found
    packet = aten.packet(name)
    for overload in packet.overloads():
        schema = getattr(packet.overload(overload), "_schema", None)
        operands = None if schema is None else fitted(schema.arguments, args, dict(kwargs))
        if operands is not None:
            return name, operands
    return (name, [*args, *kwargs.values()]) if _is_operator(name) and not kwargs else None


def _is_operator(name: str) -> bool:
    return name in ("index", "select", "slice", "unsqueeze", "copy_", "index_put_", "numpy_T", "detach")


def fitted(arguments: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any] | None:
    """The arguments of an overload, with its defaults; None if the call is not of it."""
    positional = [a for a in arguments if not a.kwarg_only]
    if len(args) > len(positional):
        several = positional and positional[-1].type.startswith(("int[", "SymInt["))
        if not several or not all(isinstance(x, int) for x in args[len(positional) - 1 :]):
            return None
        args = [*args[: len(positional) - 1], list(args[len(positional) - 1 :])]  # x.view(2, 3)
    found = []
    for n, argument in enumerate(arguments):
        names = [argument.name] + (["input"] if argument.name == "self" else [])
        given = next((k for k in names if k in kwargs), None)
        if n < len(args) and not argument.kwarg_only:
            value = args[n]
        elif given is not None:
            value = kwargs.pop(given)
        elif argument.has_default_value():
            found.append(_sized(argument, argument.default_value))
            continue
        else:
            return None
        value = _sized(argument, value)
        if not argument.accepts(value) and not (
            argument.type.startswith("Tensor") and isinstance(value, bool | int | float)
        ):
            return None
        found.append(value)
    return found if all(v is None or v is False for v in kwargs.values()) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def _sized(argument: Any, value: Any) -> Any:
    """An argument, repeated for a parameter that takes one number for several."""
    size = re.search(r"\[(\d+)\]\??$", argument.type)
    return [value] * int(size[1]) if size and isinstance(value, int) else value


def _bound(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by the function's parameters."""
    try:
        bound = inspect.signature(getattr(func, "_function", func)).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return dict(kwargs) | {str(n): a for n, a in enumerate(args)}
    bound.apply_defaults()
    return dict(bound.arguments)


def _several(x: Any, n: int) -> list[int]:
    return [x] * n if isinstance(x, int) else list(x)


def _convolution(name: str, given: dict[str, Any]) -> tuple[str, list[Any]] | None:
    if isinstance(given.get("padding"), str) or "weight" not in given:
        return None
    n = int(name[-2])
    sizes = {key: _several(given.get(key, 0), n) for key in ("stride", "padding", "dilation", "output_padding")}
    transposed = "transpose" in name
    operands = [
        given["input"],
        given["weight"],
        given.get("bias"),
        sizes["stride"],
        sizes["padding"],
        sizes["dilation"],
    ]
    operands += [transposed, sizes["output_padding"], given["groups"], False, False, True, True]
    return "_convolution", operands


def _reordered(kind: str, order: str, *more: Any) -> Callable[[str, dict[str, Any]], tuple[str, list[Any]] | None]:
    """An operator whose arguments are a function's in another order."""

    def find(name: str, given: dict[str, Any]) -> tuple[str, list[Any]] | None:
        names = order.split()
        return (kind, [given[n] for n in names] + list(more)) if all(n in given for n in names) else None

    return find


def _maybe_inplace(name: str, given: dict[str, Any]) -> tuple[str, list[Any]] | None:
    inplace = given.pop("inplace", False)
    given.pop("_stacklevel", None)
    return name + "_" * bool(inplace), list(given.values())


def _einsum(name: str, given: dict[str, Any]) -> tuple[str, list[Any]] | None:
    equation, *operands = [
        x for value in given.values() for x in (value if isinstance(value, tuple | list) else [value])
    ]
    return (name, [equation, operands, None]) if isinstance(equation, str) else None


def _cross_entropy(name: str, given: dict[str, Any]) -> tuple[str, list[Any]] | None:
    reduction = ("none", "mean", "sum").index(given["reduction"])
    order = given["input"], given["target"], given["weight"], reduction, given["ignore_index"], given["label_smoothing"]
    return "cross_entropy_loss", list(order)


def _embedding(name: str, given: dict[str, Any]) -> tuple[str, list[Any]] | None:
    if "weight" not in given or given.get("max_norm") is not None:
        return None
    padding = -1 if given["padding_idx"] is None else given["padding_idx"]
    return name, [given["weight"], given["input"], padding, given["scale_grad_by_freq"], given["sparse"]]


def _interpolate(name: str, given: dict[str, Any]) -> tuple[str, list[Any]] | None:
    n = given["input"].dim() - 2
    mode = {"linear": "linear1d", "bilinear": "bilinear2d", "bicubic": "bicubic2d", "trilinear": "trilinear3d"}
    kind = mode.get(given["mode"], f"{given['mode'].replace('-', '_')}{n}d").replace("area", "adaptive_avg_pool")
    scale = given["scale_factor"]
    scale = None if scale is None else [float(s) for s in (scale if isinstance(scale, tuple | list) else [scale] * n)]
    size = given["size"]
    align = [] if given["mode"].startswith("nearest") else [bool(given["align_corners"])]
    prefix = "" if kind.startswith("adaptive") else "_" if kind.startswith("nearest_exact") else ""
    kind = kind if kind.startswith("adaptive") else f"{prefix}upsample_{kind}"
    return kind, [given["input"], None if size is None else _several(size, n), *align, scale]


_SPECIAL: dict[str, Callable[[str, dict[str, Any]], tuple[str, list[Any]] | None]] = {
    **{f"conv{t}{n}d": _convolution for t in ("", "_transpose") for n in (1, 2, 3)},
    **dict.fromkeys(("relu", "relu6", "elu", "selu", "celu", "leaky_relu", "hardtanh", "silu", "mish", "hardswish",
                     "hardsigmoid", "threshold"), _maybe_inplace),
    "batch_norm": _reordered(
        "batch_norm", "input weight bias running_mean running_var training momentum eps", True),
    "instance_norm": _reordered(
        "instance_norm", "input weight bias running_mean running_var use_input_stats momentum eps", True),
    "dropout": _reordered("dropout", "input p training"),
    "cross_entropy": _cross_entropy,
    "einsum": _einsum, "embedding": _embedding, "interpolate": _interpolate,
}  # fmt: skip
