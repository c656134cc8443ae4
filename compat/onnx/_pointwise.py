"""How operators that work element by element, and comparisons, are written in ONNX."""

from __future__ import annotations

import math
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.onnx._builder import Builder
from compat.onnx._table import Value, aten, widest

for _name, _kind in {
    "neg": "Neg", "abs": "Abs", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "ceil": "Ceil",
    "floor": "Floor", "round": "Round", "sign": "Sign", "reciprocal": "Reciprocal", "relu": "Relu",
    "logical_not": "Not", "isnan": "IsNaN", "isinf": "IsInf", "softplus": "Softplus", "mish": "Mish",
}.items():  # fmt: skip
    aten(_name)(lambda b, node, x, *rest, _kind=_kind: b.op(_kind, x.name))


def _operands(b: Builder, *values: Any) -> list[str]:
    """Operands in the dtype that they promote to."""
    kind = widest(*values)
    return [v.to(b, kind) if isinstance(v, Value) else b.like(v, kind) for v in values]


def _scaled(b: Builder, other: Any, alpha: Any) -> Any:
    if alpha == 1:
        return other
    if not isinstance(other, Value):
        return other * alpha
    return Value(b.op("Mul", other.name, b.like(alpha, other.tensor)), other.tensor)


def _binary(name: str, kind: str) -> None:
    @aten(name)
    def write(b: Builder, node: Any, x: Any, y: Any, alpha: Any = 1, **rest: Any) -> str:
        found: str = b.op(kind, *_operands(b, x, _scaled(b, y, alpha)))
        return found


for _name, _kind in {"add": "Add", "sub": "Sub", "mul": "Mul", "maximum": "Max", "minimum": "Min"}.items():
    _binary(_name, _kind)


@aten("rsub")
def _rsub(b: Builder, node: Any, x: Value, y: Any, alpha: Any = 1) -> str:
    return b.op("Sub", *_operands(b, y, _scaled(b, x, alpha)))


@aten("div")
def _div(b: Builder, node: Any, x: Value, y: Any, rounding_mode: str | None = None) -> str:
    result: Tensor = node.meta["val"]
    operands = [v.to(b, result) if isinstance(v, Value) else b.like(v, result) for v in (x, y)]
    found: str = b.op("Div", *operands)
    return found if rounding_mode is None else b.op("Floor" if rounding_mode == "floor" else "Trunc", found)


@aten("floor_divide")
def _floor_divide(b: Builder, node: Any, x: Value, y: Any) -> str:
    found = b.op("Div", *_operands(b, x, y))
    return found if not node.meta["val"].is_floating_point() else b.op("Floor", found)


@aten("pow")
def _pow(b: Builder, node: Any, x: Any, y: Any) -> str:
    return b.op("Pow", *_operands(b, x, y))


@aten("remainder")
def _remainder(b: Builder, node: Any, x: Any, y: Any) -> str:
    first, second = _operands(b, x, y)
    if not node.meta["val"].is_floating_point():
        return b.op("Mod", first, second)
    whole = b.op("Floor", b.op("Div", first, second))
    return b.op("Sub", first, b.op("Mul", whole, second))


def _compared(name: str, kinds: tuple[str, ...]) -> None:
    @aten(name)
    def write(b: Builder, node: Any, x: Any, y: Any) -> str:
        found = b.op(kinds[0], *_operands(b, x, y))
        for kind in kinds[1:]:
            found = b.op(kind, found)
        return str(found)


for _name, _kinds in {
    "eq": ("Equal",), "ne": ("Equal", "Not"), "lt": ("Less",), "le": ("LessOrEqual",), "gt": ("Greater",),
    "ge": ("GreaterOrEqual",),
}.items():  # fmt: skip
    _compared(_name, _kinds)


def _logical(name: str, kind: str) -> None:
    @aten(name)
    def write(b: Builder, node: Any, x: Value, y: Any) -> str:
        truths = [v.cast(b, "bool") if isinstance(v, Value) else b.constant(bool(v)) for v in (x, y)]
        found: str = b.op(kind, *truths)
        return found


for _name, _kind in {
    "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "bitwise_and": "And", "bitwise_or": "Or",
}.items():  # fmt: skip
    _logical(_name, _kind)


@aten("bitwise_not")
def _bitwise_not(b: Builder, node: Any, x: Value) -> str:
    return b.op("Not", x.name)


# ---------------------------------------------------------------- activations and compositions


@aten("rsqrt")
def _rsqrt(b: Builder, node: Any, x: Value) -> str:
    return b.op("Reciprocal", b.op("Sqrt", x.name))


@aten("expm1")
def _expm1(b: Builder, node: Any, x: Value) -> str:
    return b.op("Sub", b.op("Exp", x.name), b.like(1, x.tensor))


@aten("log1p")
def _log1p(b: Builder, node: Any, x: Value) -> str:
    return b.op("Log", b.op("Add", x.name, b.like(1, x.tensor)))


@aten("gelu")
def _gelu(b: Builder, node: Any, x: Value, approximate: str = "none") -> str:
    half = b.op("Mul", x.name, b.like(0.5, x.tensor))
    if approximate == "none":
        inner = b.op("Erf", b.op("Mul", x.name, b.like(1 / math.sqrt(2), x.tensor)))
    else:
        cube = b.op("Mul", b.op("Mul", b.op("Mul", x.name, x.name), x.name), b.like(0.044715, x.tensor))
        inner = b.op("Tanh", b.op("Mul", b.op("Add", x.name, cube), b.like(math.sqrt(2 / math.pi), x.tensor)))
    return b.op("Mul", half, b.op("Add", inner, b.like(1, x.tensor)))


@aten("silu")
def _silu(b: Builder, node: Any, x: Value) -> str:
    return b.op("Mul", x.name, b.op("Sigmoid", x.name))


@aten("hardtanh")
def _hardtanh(b: Builder, node: Any, x: Value, low: float = -1, high: float = 1) -> str:
    return b.op("Clip", x.name, b.like(low, x.tensor), b.like(high, x.tensor))


@aten("relu6")
def _relu6(b: Builder, node: Any, x: Value) -> str:
    return _hardtanh(b, node, x, 0, 6)


@aten("hardsigmoid")
def _hardsigmoid(b: Builder, node: Any, x: Value) -> str:
    return b.op("HardSigmoid", x.name, alpha=1 / 6, beta=0.5)


@aten("hardswish")
def _hardswish(b: Builder, node: Any, x: Value) -> str:
    return b.op("Mul", x.name, b.op("HardSigmoid", x.name, alpha=1 / 6, beta=0.5))


@aten("leaky_relu")
def _leaky_relu(b: Builder, node: Any, x: Value, slope: float = 0.01) -> str:
    return b.op("LeakyRelu", x.name, alpha=float(slope))


@aten("elu")
def _elu(b: Builder, node: Any, x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> str:
    if (scale, input_scale) == (1, 1):
        return b.op("Elu", x.name, alpha=float(alpha))
    return b.op("Selu", x.name, alpha=float(alpha), gamma=float(scale))


@aten("clamp")
def _clamp(b: Builder, node: Any, x: Value, min: Any = None, max: Any = None) -> str:
    bounds = [
        "" if v is None else v.to(b, x.tensor) if isinstance(v, Value) else b.like(v, x.tensor) for v in (min, max)
    ]
    return b.op("Clip", x.name, *bounds)


@aten("clamp_min")
def _clamp_min(b: Builder, node: Any, x: Value, min: Any) -> str:
    return _clamp(b, node, x, min)


@aten("where")
def _where(b: Builder, node: Any, condition: Value, x: Any, y: Any) -> str:
    return b.op("Where", condition.name, *_operands(b, x, y))


@aten("masked_fill")
def _masked_fill(b: Builder, node: Any, x: Value, mask: Value, value: Any) -> str:
    filled = value.to(b, x.tensor) if isinstance(value, Value) else b.like(value, x.tensor)
    return b.op("Where", mask.name, filled, x.name)


@aten("_to_copy")
def _to_copy(b: Builder, node: Any, x: Value, *args: Any, **kwargs: Any) -> str:
    return x.to(b, node.meta["val"])


@aten("clone", "detach", "alias", "contiguous", "lift_fresh_copy", "lift_fresh")
def _same(b: Builder, node: Any, x: Value, *args: Any, **kwargs: Any) -> str:
    return x.name


@aten("dropout", "native_dropout")
def _dropout(b: Builder, node: Any, x: Value, p: float, train: Any = True) -> str:
    if train and p > 0:
        raise NotImplementedError("dropout in training draws random numbers: export the model after model.eval()")
    return x.name
