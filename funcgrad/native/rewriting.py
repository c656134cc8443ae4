"""Rewrites programs to call native kernels where they are faster.

Those for products, convolutions and attention take any axis order, so transposes of operands and results are absorbed.
"""

from __future__ import annotations

from typing import Any

from funcgrad.core.ir import Equation, Program, kept_with_program
from funcgrad.core.passes import dead_code, reads
from funcgrad.native import attention, contraction, convolution, lines, loop
from funcgrad.native.contraction import native_dot
from funcgrad.native.convolution import native_conv
from funcgrad.primitives.shape import reverse, transpose

Dims = tuple[int, ...]


@kept_with_program
def rewritten(program: Program) -> Program:
    """The program with native kernels where they are faster; the same object if nowhere."""
    rewriting = _Rewriting(program)
    rules = {
        "dot": rewriting.dot,
        "conv": rewriting.conv,
        "attention_forward": rewriting.attention,
        "attention_backward": rewriting.attention,
        "scan": loop.translated,
        "sort": lines.sort_translated,
        "top_k": lines.top_translated,
        "cumsum": lines.run_translated,
        "cumprod": lines.run_translated,
    }
    if not any(e.primitive.name in rules for e in program.equations):
        return program
    found = [rules[e.primitive.name](e) if e.primitive.name in rules else [] for e in program.equations]
    if not any(found):
        return program
    # A kernel may write the transposed result directly.
    computed = {v for new in found for e in new for v in e.outputs}
    equations: list[Equation] = []
    for old, new in zip(program.equations, found, strict=True):
        if new or computed.isdisjoint(old.outputs):
            equations += new or [old]
    return dead_code(Program(program.inputs, program.constants, equations, program.outputs, program.name))


class _Rewriting:
    """Rewrites the operations around a program's products.

    Attributes:
        made_by: the equations that transpose or reverse, by their results.
        turned_by: the transpose that is a result's only use, besides attention.
        attentive: how often attention reads each value.
    """

    def __init__(self, program: Program):
        moving = [e for e in program.equations if e.primitive in (transpose, reverse)]
        self.made_by: dict[Any, Equation] = {e.outputs[0]: e for e in moving}
        uses = reads(program.equations, program.outputs)
        self.attentive = reads([e for e in program.equations if e.primitive.name in attention.NATIVE], ())
        self.turned_by: dict[Any, Equation] = {
            e.inputs[0]: e
            for e in moving
            if e.primitive is transpose and uses[e.inputs[0]] == 1 + self.attentive[e.inputs[0]]
        }

    def before(self, atom: Any) -> tuple[Any, Dims]:
        """The operand that was transposed to give ``atom``, and its axis order: axis d of ``atom`` is its axis
        order[d]."""
        equation = self.made_by.get(atom)
        if equation is None or equation.primitive is not transpose:
            return atom, tuple(range(atom.type.ndim))
        return equation.inputs[0], equation.params["permutation"]

    def after(self, out: Any, kept: bool = False) -> tuple[Any, Dims]:
        """The final transpose of a result, and its axes in terms of the result's; ``kept`` if attention that reads the
        result itself does not prevent it."""
        equation = self.turned_by.get(out)
        if equation is None or (self.attentive[out] and not kept):
            return out, tuple(range(out.type.ndim))
        return equation.outputs[0], equation.params["permutation"]

    def dot(self, equation: Equation) -> list[Equation]:
        x, y = equation.inputs
        if not contraction.pays(x.type, y.type, **equation.params):
            return []
        x_labels, y_labels, out_labels = contraction.labels_of(x.type, y.type, **equation.params)
        x, x_order = self.before(x)
        y, y_order = self.before(y)
        out, out_order = self.after(equation.outputs[0])
        labels = {
            "x_labels": _before(x_labels, x_order),
            "y_labels": _before(y_labels, y_order),
            "out_labels": tuple(out_labels[d] for d in out_order),
        }
        if contraction.left_to_xla(x.type, y.type, **labels):
            return []
        return [Equation(native_dot, (x, y), (out,), labels, equation.source)]

    def conv(self, equation: Equation) -> list[Equation]:
        (x, w), config = equation.inputs, equation.params["config"]
        if not convolution.pays(x.type, w.type, config):
            return []
        layout = config.layout
        reversed_axes: Dims = ()
        x, x_order = self.before(x)
        made = self.made_by.get(w)
        if made is not None and made.primitive is reverse and set(made.params["axes"]) <= set(layout.w[2:]):
            w, reversed_axes = made.inputs[0], made.params["axes"]
        w, w_order = self.before(w)
        out, out_order = self.after(equation.outputs[0])
        layout = layout._replace(
            x=tuple(x_order[d] for d in layout.x),
            w=tuple(w_order[d] for d in layout.w),
            out=tuple(out_order.index(d) for d in layout.out),
        )
        params = {
            "config": config._replace(layout=layout),
            "reverse": tuple(w_order[d] for d in reversed_axes),
        }
        return [Equation(native_conv, (x, w), (out,), params, equation.source)]

    def attention(self, equation: Equation) -> list[Equation]:
        name = equation.primitive.name
        if not attention.pays(name, [x.type for x in equation.inputs]):
            return []
        operands, outputs, orders = [], [], []
        for x in equation.inputs:
            x, order = self.before(x) if x.type.ndim == 4 else (x, ())
            operands.append(x)
            orders.append(order)
        back: list[Equation] = []
        for v in equation.outputs:
            found, order = self.after(v, kept=True) if v.type.ndim == 4 else (v, ())
            outputs.append(found)
            orders.append(tuple(order.index(d) for d in range(len(order))))
            if self.attentive[v] and found is not v:
                self.made_by[v] = Equation(transpose, (found,), (v,), {"permutation": orders[-1]}, equation.source)
                back.append(self.made_by[v])
        params = {k: v for k, v in equation.params.items() if k != "program"} | {"orders": tuple(orders)}
        return [Equation(attention.NATIVE[name], operands, outputs, params, equation.source), *back]


def _before(labels: Dims, order: Dims) -> Dims:
    """The labels before a transpose by ``order``, given those after it."""
    return tuple(labels[order.index(d)] for d in range(len(order)))
