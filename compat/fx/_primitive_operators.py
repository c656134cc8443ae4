"""Programs of funcgrad's primitives as operators of ``aten``: the steps of derivatives in traces.

A derivative is a program that funcgrad derives. Here each equation of it is computed by functions of ``torch``, which a
trace records as operators. An equation of constants is evaluated at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from compat._core.tensor.namespace import torch
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import from_numpy
from compat.fx._indexing_operators import dynamic_slice, dynamic_update_slice, gather, scatter
from funcgrad.core.ir import ArrayType, Equation, Literal, Program

__all__ = ["run_as_operators", "without_operator"]

Rule = Callable[..., Any]


def without_operator(program: Program) -> str | None:
    """The name of the first primitive of a program that has no operators here; None if all have."""
    for equation in program.equations:
        if equation.primitive.name not in RULES and any(not isinstance(x, Literal) for x in equation.inputs):
            return str(equation.primitive.name)
        for inner in equation.programs():
            found = without_operator(inner)
            if found is not None:
                return found
    return None


def run_as_operators(program: Program, values: Sequence[Any]) -> list[Any]:
    """The results of a program, computed by functions of ``torch``.

    Args:
        values: tensors, and scalar or NumPy constants.
    """
    known: dict[Any, Any] = dict(zip(program.inputs, values, strict=True))
    known.update((v, np.asarray(value)) for v, value in program.constants)
    for equation in program.equations:
        operands = [x.value if isinstance(x, Literal) else known[x] for x in equation.inputs]
        found = _equation(equation, operands)
        known.update(zip(equation.outputs, found if equation.primitive.multiple else [found], strict=True))
    return [as_tensor(x.value if isinstance(x, Literal) else known[x], x.type) for x in program.outputs]


def _equation(equation: Equation, operands: list[Any]) -> Any:
    constant = not any(isinstance(x, Tensor) for x in operands)
    name = equation.primitive.name
    if constant and operands and name not in ("broadcast", "scan"):
        typed = [np.asarray(x, a.type.dtype) for x, a in zip(operands, equation.inputs)]
        found = equation.primitive(*typed, **equation.params)
        return [np.asarray(x) for x in found] if equation.primitive.multiple else np.asarray(found)
    types = [x.type for x in equation.inputs]
    return RULES[name](*[Operand(x, t) for x, t in zip(operands, types)], **equation.params)


def as_tensor(x: Any, type: ArrayType) -> Tensor:
    """A value as a tensor."""
    if isinstance(x, Tensor):
        return x
    array = np.asarray(x, type.dtype)
    dtype = from_numpy(type.dtype)
    if array.size and (array == array.flat[0]).all():
        made: Tensor = torch.full(list(array.shape), array.flat[0].item(), dtype=dtype)
        return made
    found: Tensor = torch.tensor(array.tolist(), dtype=dtype).reshape(array.shape)
    return found


class Operand:
    """An operand of an equation: a tensor or a constant, and its type."""

    __slots__ = ("value", "type")

    def __init__(self, value: Any, type: ArrayType):
        self.value, self.type = value, type

    @property
    def tensor(self) -> Any:
        return as_tensor(self.value, self.type)

    @property
    def constant(self) -> np.ndarray | None:
        """The values of a constant."""
        return None if isinstance(self.value, Tensor) else np.asarray(self.value, self.type.dtype)

    @property
    def either(self) -> Any:
        """A tensor, or the number of a scalar constant."""
        fixed = self.constant
        return self.tensor if fixed is None or fixed.ndim else fixed.item()


# ---------------------------------------------------------------- elementwise


def _unary(function: str) -> Rule:
    return lambda x: getattr(torch, function)(x.tensor)


def _binary(function: str, swapped: str | None = None) -> Rule:
    """A rule of two operands; if the first is a number, ``swapped`` is called with the second one first."""

    def rule(x: Operand, y: Operand) -> Any:
        if isinstance(x.either, Tensor) or swapped is None:
            return getattr(torch, function)(x.tensor, y.either)
        return getattr(torch, swapped)(y.tensor, x.either)

    return rule


def _extreme(function: str) -> Rule:
    return lambda x, y: getattr(torch, function)(x.tensor, y.tensor)


def _div(x: Operand, y: Operand) -> Any:
    rounding = None if x.type.inexact else "trunc"
    return torch.div(x.tensor, y.either, rounding_mode=rounding) if rounding else torch.div(x.tensor, y.either)


def _cast(x: Operand, *, dtype: np.dtype, weak: bool = False) -> Any:
    if x.type.dtype.kind == "c" and np.dtype(dtype).kind != "c" and np.dtype(dtype) != np.bool_:
        return torch.real(x.tensor).to(from_numpy(np.dtype(dtype)))
    return x.tensor.to(from_numpy(np.dtype(dtype)))


def _clamp(low: Operand, x: Operand, high: Operand) -> Any:
    return torch.minimum(torch.maximum(x.tensor, low.tensor), high.tensor)


def _select(condition: Operand, x: Operand, y: Operand) -> Any:
    a, b = x.either, y.either
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        a = x.tensor
    return torch.where(condition.tensor, a, b)


# ---------------------------------------------------------------- shapes


def _broadcast(x: Operand, *, shape: Sequence[int], dims: Sequence[int]) -> Any:
    if x.constant is not None and x.constant.ndim == 0:
        return torch.full(list(shape), x.constant.item(), dtype=from_numpy(x.type.dtype))
    aligned = [1] * len(shape)
    for d, n in zip(dims, x.type.shape):
        aligned[d] = n
    first = next((i for i, n in enumerate(aligned) if i in dims), len(aligned))
    viewed = tuple(aligned[first:])
    t = x.tensor if viewed == x.type.shape else x.tensor.reshape(viewed)
    return t if tuple(shape) == viewed else t.expand(list(shape))


def _transpose(x: Operand, *, permutation: Sequence[int]) -> Any:
    return x.tensor.t() if tuple(permutation) == (1, 0) else x.tensor.permute(list(permutation))


def _sum(x: Operand, *, axes: Sequence[int]) -> Any:
    exact = {} if x.type.inexact else {"dtype": from_numpy(x.type.dtype)}
    return x.tensor.sum(list(axes), **exact) if axes else x.tensor


def _over_axes(function: Callable[[Any, int], Any]) -> Rule:
    """A reduction of one axis after the other."""

    def rule(x: Operand, *, axes: Sequence[int]) -> Any:
        t = x.tensor
        for axis in sorted(axes, reverse=True):
            t = function(t, axis)
        return t

    return rule


def _any(t: Any, axis: int) -> Any:
    return torch.any(t, axis)


def _all(t: Any, axis: int) -> Any:
    return torch.all(t, axis)


def _slice(x: Operand, *, start: Sequence[int], limit: Sequence[int], strides: Sequence[int]) -> Any:
    t = x.tensor
    for d, (a, b, s) in enumerate(zip(start, limit, strides)):
        if (a, b, s) != (0, x.type.shape[d], 1):
            t = torch.ops.aten.slice.Tensor(t, d, a, b, s)
    return t


def _pad(x: Operand, value: Operand, *, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Any:
    return padded(x.tensor, value.tensor, low, high, interior)


def _filled(like: Any, shape: Sequence[int], value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.expand(list(shape))
    return torch.full(list(shape), value, dtype=like.dtype, device=like.device)


def padded(t: Any, value: Any, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Any:
    """``t`` with edges (removed where negative) and elements in between, of a tensor or number ``value``."""
    for d, between in enumerate(interior):
        n = t.shape[d]
        if between and n > 1:
            shape = list(t.shape)
            shape[d] = (n - 1) * (between + 1) + 1
            base = _filled(t, shape, value)
            t = torch.slice_scatter(base, t, d, 0, shape[d], between + 1)
    for d, (a, b) in enumerate(zip(low, high)):
        n = t.shape[d]
        if a < 0 or b < 0:
            t = torch.ops.aten.slice.Tensor(t, d, max(0, -a), n - max(0, -b), 1)
        shape = list(t.shape)
        edges = []
        for width in (max(a, 0), max(b, 0)):
            shape[d] = width
            edges.append(_filled(t, shape, value))
        parts = [p for p in (edges[0], t, edges[1]) if p.shape[d]]
        t = torch.cat(parts, d) if len(parts) > 1 else t
    return t


def _iota(*, shape: Sequence[int], axis: int, dtype: np.dtype) -> Any:
    row = torch.arange(shape[axis], dtype=from_numpy(np.dtype(dtype)))
    view = [1] * len(shape)
    view[axis] = shape[axis]
    return row if len(shape) == 1 else row.reshape(view).expand(list(shape))


def _cumulative(function: str) -> Rule:
    def rule(x: Operand, *, axis: int, reverse: bool) -> Any:
        t = x.tensor.flip([axis]) if reverse else x.tensor
        exact = {} if x.type.inexact else {"dtype": t.dtype}
        found = getattr(torch, function)(t, axis, **exact)
        return found.flip([axis]) if reverse else found

    return rule


def _window_sum(x: Operand, *, window: Any) -> Any:
    none = [0] * len(window.size)
    low, high = zip(*window.padding)
    t = padded(x.tensor, 0, none, none, [n - 1 for n in window.base_dilation])
    t = padded(t, 0, low, high, none)
    for d, (size, stride, hole) in enumerate(zip(window.size, window.strides, window.window_dilation)):
        if (size, stride) != (1, 1):
            windows = t.unfold(d, (size - 1) * hole + 1, stride)
            t = (windows[..., ::hole] if hole > 1 else windows).sum(-1)
    return t


# ---------------------------------------------------------------- products


def _dot(x: Operand, y: Operand, *, contract: Any, batch: Any, single: bool = False) -> Any:
    a, b = (v.tensor.to(torch.float32) if single else v.tensor for v in (x, y))
    (ca, cb), (ba, bb) = contract, batch
    free_a = [d for d in range(a.ndim) if d not in ca and d not in ba]
    free_b = [d for d in range(b.ndim) if d not in cb and d not in bb]
    shape = [a.shape[d] for d in (*ba, *free_a)] + [b.shape[d] for d in free_b]
    if a.ndim == b.ndim == 2 and len(ca) == 1 and not ba:
        return torch.mm(a if ca[0] == 1 else a.t(), b if cb[0] == 0 else b.t())
    size = lambda t, dims: int(np.prod([t.shape[d] for d in dims], dtype=int))
    a3 = _ordered(a, (*ba, *free_a, *ca)).reshape(size(a, ba), size(a, free_a), size(a, ca))
    b3 = _ordered(b, (*bb, *cb, *free_b)).reshape(size(b, bb), size(b, cb), size(b, free_b))
    found = torch.bmm(a3, b3) if ba else torch.mm(a3[0], b3[0])
    return found if list(found.shape) == shape else found.reshape(shape)


def _ordered(t: Any, dims: Sequence[int]) -> Any:
    return t if list(dims) == list(range(len(dims))) else t.permute(list(dims))


def _conv(x: Operand, w: Operand, *, config: Any) -> Any:
    layout, n = config.layout, len(config.strides)
    a, b = _ordered(x.tensor, layout.x), _ordered(w.tensor, layout.w)
    dense = [0, 0]
    a = padded(a, 0, [0] * (n + 2), [0] * (n + 2), dense + [d - 1 for d in config.lhs_dilation])
    padding = [p[0] for p in config.padding]
    if any(low != high or low < 0 for low, high in config.padding):
        low, high = zip(*config.padding)
        a, padding = padded(a, 0, (*dense, *low), (*dense, *high), [0] * (n + 2)), [0] * n
    found = torch.convolution(
        a, b, None, list(config.strides), padding, list(config.rhs_dilation), False, [0] * n, config.groups
    )
    return _ordered(found, sorted(range(n + 2), key=layout.out.__getitem__))


# ---------------------------------------------------------------- programs


def _call(*operands: Operand, program: Program, **_: Any) -> list[Any]:
    return run_as_operators(program, [x.value for x in operands])


def _scan(
    *operands: Operand, program: Program, consts: int, carries: int, length: int, reverse: bool, unroll: int
) -> list[Any]:
    """A loop, unrolled."""
    fixed, stacked = [x.value for x in operands[:consts]], [x.tensor for x in operands[consts + carries :]]
    carry = [x.tensor for x in operands[consts : consts + carries]]
    rows: list[list[Any]] = []
    for i in reversed(range(length)) if reverse else range(length):
        found = run_as_operators(program, [*fixed, *carry, *[t[i] for t in stacked]])
        carry = found[:carries]
        rows.append(found[carries:])
    if reverse:
        rows.reverse()
    if rows:
        return [*carry, *[torch.stack(list(column)) for column in zip(*rows)]]
    empty = [torch.full([0, *t.shape], 0, dtype=from_numpy(t.dtype)) for t in program.output_types[carries:]]
    return [*carry, *empty]


def _sort(*operands: Operand, axis: int, keys: int, stable: bool) -> list[Any]:
    values, order = torch.sort(operands[0].tensor, dim=axis, stable=stable)
    return [values, *[torch.gather(x.tensor, axis, order) for x in operands[1:]]]


def _same(*operands: Operand) -> list[Any]:
    return [x.tensor for x in operands]


RULES: dict[str, Rule] = {
    **{name: _unary(name) for name in (
        "neg", "square", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
        "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "digamma", "lgamma", "floor", "ceil", "round", "trunc", "abs",
        "expm1", "log1p", "sign", "real", "imag",
    )},
    **{name: _unary(function) for name, function in (
        ("logistic", "sigmoid"), ("erf_inv", "erfinv"), ("is_finite", "isfinite"), ("not", "bitwise_not"),
        ("complex_abs", "abs"), ("conj", "conj_physical"),
    )},
    "add": _binary("add", "add"), "mul": _binary("mul", "mul"), "sub": _binary("sub", "rsub"), "div": _div,
    **{name: _binary(name, swapped) for name, swapped in (
        ("eq", "eq"), ("ne", "ne"), ("lt", "gt"), ("le", "ge"), ("gt", "lt"), ("ge", "le"), ("pow", None),
        ("remainder", None), ("floor_divide", None),
    )},
    "rem": _binary("fmod"), "and": _binary("bitwise_and", "bitwise_and"), "or": _binary("bitwise_or", "bitwise_or"),
    "xor": _binary("bitwise_xor", "bitwise_xor"), "atan2": _extreme("atan2"), "max": _extreme("maximum"),
    "min": _extreme("minimum"), "complex": _extreme("complex"), "clamp": _clamp, "select": _select, "cast": _cast,
    "integer_pow": lambda x, *, exponent: torch.pow(x.tensor, exponent),
    "reshape": lambda x, *, shape: x.tensor.reshape(list(shape)), "transpose": _transpose, "broadcast": _broadcast,
    "sum": _sum, "prod": _over_axes(lambda t, d: torch.prod(t, d, dtype=t.dtype)),
    "any": _over_axes(_any), "all": _over_axes(_all),
    "reduce_max": lambda x, *, axes: torch.amax(x.tensor, list(axes)) if axes else x.tensor,
    "reduce_min": lambda x, *, axes: torch.amin(x.tensor, list(axes)) if axes else x.tensor,
    "slice": _slice, "pad": _pad, "iota": _iota, "cumsum": _cumulative("cumsum"), "cumprod": _cumulative("cumprod"),
    "concatenate": lambda *xs, axis: torch.cat([x.tensor for x in xs], axis),
    "reverse": lambda x, *, axes: x.tensor.flip(list(axes)) if axes else x.tensor, "window_sum": _window_sum,
    "dot": _dot, "dot_in_single": partial(_dot, single=True), "conv": _conv, "sort": _sort,
    "gather": gather, "scatter_add": partial(scatter, accumulate=True), "scatter": scatter,
    "put": scatter, "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "stop_gradient": lambda x: x.tensor, "alike": lambda x, like: x.tensor, "optimization_barrier": _same,
    "call": _call, "attention_forward": _call, "attention_backward": _call, "scan": _scan,
}  # fmt: skip
