"""ONNX translations of elementwise operators and comparisons."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat.onnx._builder import Builder, as_array, element_type
from compat.onnx._table import Value, aten, widest

for _name, _kind in {
    "neg": "Neg", "abs": "Abs", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "ceil": "Ceil",
    "floor": "Floor", "round": "Round", "sign": "Sign", "reciprocal": "Reciprocal", "relu": "Relu",
    "isnan": "IsNaN", "isinf": "IsInf", "softplus": "Softplus", "mish": "Mish",
}.items():  # fmt: skip
    aten(_name)(lambda b, node, x, *rest, _kind=_kind: b.op(_kind, x.name))


def _operands(b: Builder, *values: Any) -> list[str]:
    """Operands in their promoted dtype."""
    kind = widest(*values)
    return [v.to(b, kind) if isinstance(v, Value) else b.like(v, kind) for v in values]


def _scaled(b: Builder, other: Any, alpha: Any) -> Any:
    if alpha == 1:
        return other
    if not isinstance(other, Value):
        return other * alpha
    return replace(other, name=b.op("Mul", other.name, b.like(alpha, other.tensor)))


def _binary(name: str, kind: str) -> None:
    @aten(name)
    def write(b: Builder, node: Any, x: Any, y: Any, alpha: Any = 1, **rest: Any) -> str:
        found: str = b.op(kind, *_operands(b, x, _scaled(b, y, alpha)))
        return found


for _name, _kind in {
    "add": "Add", "sub": "Sub", "mul": "Mul", "maximum": "Max", "minimum": "Min", "fmax": "Max", "fmin": "Min",
}.items():  # fmt: skip
    _binary(_name, _kind)


@aten("rsub")
def _rsub(b: Builder, node: Any, x: Value, y: Any, alpha: Any = 1) -> str:
    return b.op("Sub", *_operands(b, y, _scaled(b, x, alpha)))


@aten("div")
def _div(b: Builder, node: Any, x: Value, y: Any, rounding_mode: str | None = None) -> str:
    result: Tensor = node.meta["val"]
    operands = [v.to(b, result) if isinstance(v, Value) else b.like(v, result) for v in (x, y)]
    found: str = b.op("Div", *operands)
    if rounding_mode == "floor" and not result.is_floating_point():
        return str(_floor_divide(b, node, x, y))
    if rounding_mode is None or not result.is_floating_point():
        return found
    return str(b.op("Floor", found)) if rounding_mode == "floor" else _trunc(b, node, Value(found, result, []))


@aten("floor_divide")
def _floor_divide(b: Builder, node: Any, x: Value, y: Any) -> str:
    if node.meta["val"].is_floating_point():
        return b.op("Floor", b.op("Div", *_operands(b, x, y)))
    first, second = _operands(b, x, y)  # "Div" rounds towards zero, "Mod" is Python's
    return b.op("Div", b.op("Sub", first, b.op("Mod", first, second)), second)


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


def _bitwise(name: str, kind: str) -> None:
    @aten(name)
    def write(b: Builder, node: Any, x: Any, y: Any) -> str:
        of_bits = "" if node.meta["val"].dtype == dtypes.bool_ else "Bitwise"
        found: str = b.op(of_bits + kind, *_operands(b, x, y))
        return found


for _kind in ("And", "Or", "Xor"):
    _logical(f"logical_{_kind.lower()}", _kind)
    _bitwise(f"bitwise_{_kind.lower()}", _kind)


@aten("logical_not")
def _logical_not(b: Builder, node: Any, x: Value) -> str:
    return b.op("Not", x.cast(b, "bool"))


@aten("bitwise_not")
def _bitwise_not(b: Builder, node: Any, x: Value) -> str:
    return b.op("Not" if x.tensor.dtype == dtypes.bool_ else "BitwiseNot", x.name)


@aten("bitwise_left_shift", "__lshift__")
def _left_shift(b: Builder, node: Any, x: Value, y: Any) -> str:
    first, count = _operands(b, x, y)
    return b.op("Mul", first, b.op("Pow", b.like(2, widest(x, y)), count))


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
    found = x.to(b, node.meta["val"])
    for kind, bound in (("Max", min), ("Min", max)):
        if bound is not None:
            like = node.meta["val"]
            found = b.op(kind, found, bound.to(b, like) if isinstance(bound, Value) else b.like(bound, like))
    return found


@aten("clamp_min")
def _clamp_min(b: Builder, node: Any, x: Value, min: Any) -> str:
    return _clamp(b, node, x, min)


@aten("clamp_max")
def _clamp_max(b: Builder, node: Any, x: Value, max: Any) -> str:
    return _clamp(b, node, x, None, max)


@aten("trunc", "fix")
def _trunc(b: Builder, node: Any, x: Value) -> str:
    return b.op("Mul", b.op("Sign", x.name), b.op("Floor", b.op("Abs", x.name)))


@aten("frac")
def _frac(b: Builder, node: Any, x: Value) -> str:
    return b.op("Sub", x.name, _trunc(b, node, x))


@aten("fmod")
def _fmod(b: Builder, node: Any, x: Value, y: Any) -> str:
    return b.op("Mod", *_operands(b, x, y), fmod=1)


@aten("exp2")
def _exp2(b: Builder, node: Any, x: Value) -> str:
    return b.op("Pow", b.like(2, x.tensor), x.name)


@aten("log2", "log10")
def _log_to_base(b: Builder, node: Any, x: Value) -> str:
    base = 2 if node.target._opname == "log2" else 10
    return b.op("Div", b.op("Log", x.name), b.like(math.log(base), x.tensor))


@aten("deg2rad", "rad2deg")
def _degrees(b: Builder, node: Any, x: Value) -> str:
    factor = math.pi / 180 if node.target._opname == "deg2rad" else 180 / math.pi
    return b.op("Mul", x.name, b.like(factor, x.tensor))


@aten("hypot")
def _hypot(b: Builder, node: Any, x: Value, y: Value) -> str:
    first, second = _operands(b, x, y)
    return b.op("Sqrt", b.op("Add", b.op("Mul", first, first), b.op("Mul", second, second)))


@aten("heaviside")
def _heaviside(b: Builder, node: Any, x: Value, values: Value) -> str:
    zero = b.like(0, x.tensor)
    step = b.op("Cast", b.op("Greater", x.name, zero), to=element_type(b.onnx, x.tensor.dtype))
    return b.op("Where", b.op("Equal", x.name, zero), values.to(b, x.tensor), step)


@aten("sinc")
def _sinc(b: Builder, node: Any, x: Value) -> str:
    angle = b.op("Mul", x.name, b.like(math.pi, x.tensor))
    at_zero = b.op("Equal", x.name, b.like(0, x.tensor))
    return b.op("Where", at_zero, b.like(1, x.tensor), b.op("Div", b.op("Sin", angle), angle))


@aten("xlogy")
def _xlogy(b: Builder, node: Any, x: Any, y: Any) -> str:
    first, second = _operands(b, x, y)
    kind = widest(x, y)
    found = b.op("Mul", first, b.op("Log", second))
    return b.op("Where", b.op("Equal", first, b.like(0, kind)), b.like(0, kind), found)


@aten("logaddexp")
def _logaddexp(b: Builder, node: Any, x: Value, y: Value) -> str:
    first, second = _operands(b, x, y)
    difference = b.op("Neg", b.op("Abs", b.op("Sub", first, second)))
    return b.op(
        "Add", b.op("Max", first, second), b.op("Log", b.op("Add", b.op("Exp", difference), b.like(1, x.tensor)))
    )


@aten("erfc")
def _erfc(b: Builder, node: Any, x: Value) -> str:
    return b.op("Sub", b.like(1, x.tensor), b.op("Erf", x.name))


@aten("square")
def _square(b: Builder, node: Any, x: Value) -> str:
    return b.op("Mul", x.name, x.name)


@aten("atan2")
def _atan2(b: Builder, node: Any, y: Value, x: Value) -> str:
    above, right = _operands(b, y, x)
    kind = widest(y, x)
    zero, pi = b.like(0, kind), b.like(math.pi, kind)
    angle = b.op("Atan", b.op("Div", above, right))  # NaN for 0 / 0
    turned = b.op("Where", b.op("Less", above, zero), b.op("Sub", angle, pi), b.op("Add", angle, pi))
    found = b.op("Where", b.op("Less", right, zero), turned, angle)
    both = b.op("And", b.op("Equal", above, zero), b.op("Equal", right, zero))
    return b.op("Where", both, zero, found)


@aten("prelu", "_prelu_kernel")
def _prelu(b: Builder, node: Any, x: Value, weight: Value) -> str:
    slope = weight.name
    if node.target._opname == "prelu" and weight.tensor.numel() > 1:
        slope = b.op("Reshape", slope, b.ints(-1, *[1] * (x.tensor.dim() - 2)))
    return b.op("PRelu", x.name, slope)


@aten("celu")
def _celu(b: Builder, node: Any, x: Value, alpha: float = 1.0) -> str:
    return b.op("Celu", x.name, alpha=float(alpha))


@aten("selu")
def _selu(b: Builder, node: Any, x: Value) -> str:
    return b.op("Selu", x.name)


@aten("glu")
def _glu(b: Builder, node: Any, x: Value, dim: int = -1) -> str:
    half = b.shapes[node][0][dim]
    first, gate = b.split(x.name, (half, half), dim)
    return b.op("Mul", first, b.op("Sigmoid", gate))


@aten("log_sigmoid", "log_sigmoid_forward")
def _log_sigmoid(b: Builder, node: Any, x: Value) -> Any:
    found = b.op("Neg", b.op("Softplus", b.op("Neg", x.name)))
    return [found, ""] if isinstance(node.meta["val"], tuple) else found


@aten("threshold")
def _threshold(b: Builder, node: Any, x: Value, threshold: float, value: float) -> str:
    return b.op("Where", b.op("Greater", x.name, b.like(threshold, x.tensor)), x.name, b.like(value, x.tensor))


@aten("hardshrink")
def _hardshrink(b: Builder, node: Any, x: Value, lambd: float = 0.5) -> str:
    return b.op("Shrink", x.name, lambd=float(lambd), bias=0.0)


@aten("softshrink")
def _softshrink(b: Builder, node: Any, x: Value, lambd: float = 0.5) -> str:
    return b.op("Shrink", x.name, lambd=float(lambd), bias=float(lambd))


@aten("logit")
def _logit(b: Builder, node: Any, x: Value, eps: float | None = None) -> str:
    given = x.name if eps is None else b.op("Clip", x.name, b.like(eps, x.tensor), b.like(1 - eps, x.tensor))
    return b.op("Log", b.op("Div", given, b.op("Sub", b.like(1, x.tensor), given)))


@aten("lerp")
def _lerp(b: Builder, node: Any, x: Value, end: Value, weight: Any) -> str:
    part = weight.to(b, x.tensor) if isinstance(weight, Value) else b.like(weight, x.tensor)
    return b.op("Add", x.name, b.op("Mul", part, b.op("Sub", end.name, x.name)))


@aten("addcmul", "addcdiv")
def _addcmul(b: Builder, node: Any, x: Value, first: Value, second: Value, *, value: Any = 1) -> str:
    found = b.op("Mul" if node.target._opname.startswith("addcmul") else "Div", first.name, second.name)
    return b.op("Add", x.name, b.op("Mul", found, b.like(value, x.tensor)))


@aten("isfinite")
def _isfinite(b: Builder, node: Any, x: Value) -> str:
    return b.op("Not", b.op("Or", b.op("IsNaN", x.name), b.op("IsInf", x.name)))


@aten("nan_to_num")
def _nan_to_num(
    b: Builder, node: Any, x: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> str:
    span = np.finfo(as_array(x.tensor.new_zeros(())).dtype)
    low, high = b.like(span.min if neginf is None else neginf, x.tensor), span.max if posinf is None else posinf
    found = b.op("Where", b.op("IsNaN", x.name), b.like(nan or 0, x.tensor), x.name)
    found = b.op("Where", b.op("IsInf", found, detect_negative=0), b.like(high, x.tensor), found)
    return b.op("Where", b.op("IsInf", found, detect_positive=0), low, found)


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
