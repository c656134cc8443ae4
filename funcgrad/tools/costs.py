"""The cost of a program: floating-point operations and bytes moved, counted from its equations' types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from funcgrad.core.ir import Equation, Program, set_view


@dataclass(frozen=True)
class Cost:
    """The cost of a program.

    Attributes:
        flops: arithmetic operations; an addition, a multiplication and a sine count as one each.
        transcendentals: the number of these that are not additions, multiplications or comparisons.
        bytes: memory traffic if each equation reads its operands from memory and writes its results. XLA fuses
            equations and needs less.
        by_primitive: the flops of each primitive.
        bounded: False if there is a loop with an unknown number of steps, which counts as one step.
    """

    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0
    by_primitive: Counter[str] = field(default_factory=Counter)
    bounded: bool = True

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops, self.transcendentals + other.transcendentals, self.bytes + other.bytes,
            self.by_primitive + other.by_primitive, self.bounded and other.bounded,
        )  # fmt: skip

    def __mul__(self, times: int) -> Cost:
        counts = Counter({name: n * times for name, n in self.by_primitive.items()})
        return Cost(
            self.flops * times, self.transcendentals * times, self.bytes * times, counts, self.bounded
        )  # fmt: skip

    def __repr__(self) -> str:
        most = ", ".join(f"{name} {count:,}" for name, count in self.by_primitive.most_common(3) if count)
        at_least = "" if self.bounded else "at least "
        return f"Cost({at_least}{self.flops:,} flops, {self.bytes:,} bytes{f'; {most}' if most else ''})"


# Elementwise primitives without arithmetic, and those of one addition, multiplication or comparison.
_FREE = frozenset(("constant", "name", "stop_gradient", "bitcast", "cast", "real", "imag", "conj", "complex"))
_SIMPLE = frozenset((
    "abs", "add", "and", "ceil", "clamp", "div", "eq", "floor", "floor_divide", "ge", "gt", "integer_pow", "is_finite",
    "le", "lt", "max", "min", "mul", "ne", "neg", "nextafter", "not", "or", "rem", "remainder", "round", "select",
    "shift_left", "shift_right", "shift_right_logical", "sign", "square", "sub", "trunc", "xor",
))  # fmt: skip
# Primitives that are not elementwise and only move elements.
_MOVING = frozenset((
    "alike", "all_gather", "all_to_all", "axis_index", "broadcast", "concatenate", "dynamic_slice",
    "dynamic_update_slice", "gather", "iota", "optimization_barrier", "pad", "permutation", "ppermute", "put", "pvary",
    "reshape", "reverse", "scatter", "sharding_constraint", "slice", "transpose",
))  # fmt: skip


def _dot(equation: Equation) -> int:
    (contracted, _), x = equation.params["contract"], equation.inputs[0].type
    return 2 * equation.outputs[0].type.size * int(np.prod([x.shape[d] for d in contracted], dtype=np.int64))


def _conv(equation: Equation) -> int:
    kernel, layout = equation.inputs[1].type, equation.params["config"].layout
    return 2 * equation.outputs[0].type.size * (kernel.size // max(kernel.shape[layout.w[0]], 1))


def _factorization(per_cube: float) -> Callable[[Equation], int]:
    """For matrices with m >= n: a multiple of m * n * n."""

    def flops(equation: Equation) -> int:
        x = equation.inputs[0].type
        *lead, m, n = x.shape
        return int(per_cube * np.prod([*lead, max(m, n), min(m, n) ** 2], dtype=np.float64))

    return flops


def _fft(equation: Equation) -> int:
    size = max(equation.inputs[0].type.size, equation.outputs[0].type.size)
    return int(5 * size * np.log2(max(size, 2)))


def _sort(equation: Equation) -> int:
    size = equation.inputs[0].type.size
    return int(size * np.log2(max(size, 2)))


_FLOPS: dict[str, Callable[[Equation], int]] = {
    "dot": _dot,
    "dot_in_single": _dot,
    "conv": _conv,
    "cholesky": _factorization(1 / 3),
    "lu": _factorization(2 / 3),
    "inverse": _factorization(2),
    "qr": _factorization(2),
    "hessenberg": _factorization(10 / 3),
    "tridiagonal": _factorization(4 / 3),
    "tridiagonal_solve": lambda e: 8 * e.outputs[0].type.size,
    "eigh": _factorization(9),
    "svd": _factorization(14),
    "eig": _factorization(25),
    "triangular_solve": lambda e: e.inputs[0].type.shape[-1] * e.outputs[0].type.size,
    "fft": _fft,
    "rfft": _fft,
    "irfft": _fft,
    "sort": _sort,
    "top_k": _sort,
}


def cost(program: Program) -> Cost:
    """The cost of ``program``: the sum over its equations, with a loop's step times the number of steps."""
    total = Cost()
    for equation in program.equations:
        total += _of_equation(equation)
    return total


def _of_equation(equation: Equation) -> Cost:
    inner = [v for v in equation.params.values() if isinstance(v, Program)]
    name = equation.primitive.name
    if name == "cond":
        return max(map(cost, inner), key=lambda c: c.flops)
    if name == "while":
        total = sum(map(cost, inner), Cost())
        return Cost(total.flops, total.transcendentals, total.bytes, total.by_primitive, bounded=False)
    if inner:
        return sum(map(cost, inner), Cost()) * equation.params.get("length", 1)
    flops = _flops(equation)
    hard = flops if equation.primitive.elementwise and name not in _SIMPLE else 0
    return Cost(flops, hard, _bytes(equation), Counter({name: flops}))


def _flops(equation: Equation) -> int:
    name, outs = equation.primitive.name, sum(v.type.size for v in equation.outputs)
    if name in _FLOPS:
        return _FLOPS[name](equation)
    if name in _FREE or name in _MOVING:
        return 0
    # One operation per element of the result, or, for reductions, of the operand.
    return outs if equation.primitive.elementwise else max([outs, *[a.type.size for a in equation.inputs]])


def _bytes(equation: Equation) -> int:
    return sum([a.type.nbytes for a in (*equation.inputs, *equation.outputs)])


_view: Any = cost
set_view("cost", _view)
