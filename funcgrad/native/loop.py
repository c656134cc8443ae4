"""Loops whose steps treat batch rows independently, such as recurrent layers, by a native kernel: compiles a ``scan``
to its instructions.

All values of a step are then rows, one per batch element, and all operations a product with a loop-invariant matrix, an
elementwise function, a slice of a row, or a concatenation of rows. A thread takes some rows through the whole loop; XLA
would start and end a dozen operations at each step, mostly on one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from funcgrad.core.ir import ArrayType, Equation, Literal, Program, Var
from funcgrad.core.primitive import Primitive

#: Opcodes, as in ``source/loop.cc``.
_OPERATIONS = {name: i for i, name in enumerate(("add", "sub", "mul", "div", "max", "min", "neg", "tanh", "logistic"))}
_COPY, _DOT = 9, 10
_SLAB, _FIXED, _SLICE, _LITERAL, _RESULT = range(5)
#: Fewer rows, steps or total multiplications are as fast in XLA.
_LEAST_ROWS, _LEAST_STEPS, _LEAST_WORK = 4, 4, 1 << 18

_FLOAT = np.dtype(np.float32)


class Place(NamedTuple):
    """The storage of a value's rows, and its first column."""

    space: int
    which: int
    offset: int = 0


class Instruction(NamedTuple):
    """One operation on rows; operands and result by index. ``depth`` is the inner size of a product."""

    operation: int
    out: int
    a: int
    b: int
    columns: int
    depth: int = 0


class Unsuitable(Exception):
    """A step that the kernel does not support."""


class Code(NamedTuple):
    """The kernel's description of a loop; hashable."""

    places: tuple[Place, ...]
    instructions: tuple[Instruction, ...]
    slabs: tuple[tuple[int, int], ...]
    literals: tuple[float, ...]
    rows: int


class _Translation:
    """Translates the program of a step to instructions."""

    def __init__(self, program: Program, consts: int, carries: int):
        self.program, self.consts, self.carries = program, consts, carries
        self.places: list[Place] = []
        self.numbers: dict[Place, int] = {}
        self.instructions: list[Instruction] = []
        self.slabs: list[tuple[int, int]] = []
        self.literals: list[float] = []
        self.found: dict[Any, Place] = {}
        self.rows = self._rows()

    def _rows(self) -> int:
        rows = {v.type.shape[0] for v in self.program.inputs[self.consts :] if len(v.type.shape) == 2}
        if len(rows) != 1 or self.carries == 0:
            raise Unsuitable
        return rows.pop()

    def columns(self, type: ArrayType) -> int:
        """The number of columns of a value that has a row per batch element."""
        if type.dtype != _FLOAT or len(type.shape) != 2 or type.shape[0] != self.rows or not type.shape[1]:
            raise Unsuitable
        return type.shape[1]

    def translate(self) -> Code:
        inputs, fixed = self.program.inputs, self.consts + self.carries
        for v in inputs[self.consts : fixed]:
            self.found[v] = self.slab(self.columns(v.type), block=True)
        for i, v in enumerate(inputs[fixed:]):
            self.columns(v.type)
            self.found[v] = Place(_SLICE, fixed + i)
        crossing = self._crossing()
        for equation in self.program.equations:
            self.equation(equation, equation.outputs[0] in crossing)
        self.ends()
        return Code(
            tuple(self.places), tuple(self.instructions), tuple(self.slabs), tuple(self.literals), self.rows
        )  # fmt: skip

    def _crossing(self) -> set[Any]:
        """The results of products, and values that are read after a later product."""
        since: dict[Any, int] = dict.fromkeys(self.program.inputs, 0)
        count, crossing = 0, set()
        aliases: dict[Any, Any] = {}

        def used(atom: Any) -> None:
            atom = aliases.get(atom, atom)
            if type(atom) is not Literal and since.get(atom, 0) != count:
                crossing.add(atom)

        for e in self.program.equations:
            if e.primitive.name == "dot":
                crossing.update(aliases.get(a, a) for a in e.inputs)
                count += 1
                crossing.update(e.outputs)
            for a in e.inputs:
                used(a)
            if e.primitive.name == "slice":
                aliases[e.outputs[0]] = aliases.get(e.inputs[0], e.inputs[0])
            since[e.outputs[0]] = count
        for a in self.program.outputs:
            used(a)
        return crossing

    def slab(self, width: int, block: bool) -> Place:
        self.slabs.append((width, int(block)))
        return Place(_SLAB, len(self.slabs) - 1)

    def number(self, place: Place) -> int:
        if place not in self.numbers:
            self.numbers[place] = len(self.places)
            self.places.append(place)
        return self.numbers[place]

    def literal(self, value: float) -> Place:
        self.literals.append(value)
        return Place(_LITERAL, len(self.literals) - 1)

    def operand(self, atom: Any, columns: int | None = None) -> Place:
        """The location of an operand: rows, one row shared by all, or one scalar."""
        if type(atom) is Literal:
            if atom.type.shape or atom.type.dtype != _FLOAT:
                raise Unsuitable
            return self.literal(float(atom.value))
        if atom not in self.found and atom in self.program.inputs[: self.consts] and len(atom.type.shape) == 1:
            if atom.type.dtype != _FLOAT or atom.type.shape[0] != columns:
                raise Unsuitable
            return Place(_FIXED, self.program.inputs.index(atom))
        if atom not in self.found:
            raise Unsuitable
        return self.found[atom]

    def equation(self, equation: Equation, crossing: bool) -> None:
        name, (out,) = equation.primitive.name, equation.outputs
        rule = getattr(self, f"_{name}", None) if name in ("slice", "broadcast", "concatenate", "dot") else None
        if rule is not None:
            rule(equation, out, crossing)
            return
        if name not in _OPERATIONS:
            raise Unsuitable
        columns = self.columns(out.type)
        if any(type(a) is not Literal and len(a.type.shape) == 2 and a.type.shape != out.type.shape
               for a in equation.inputs):  # fmt: skip
            raise Unsuitable
        a, *more = [self.operand(atom, columns) for atom in equation.inputs]
        self.found[out] = self.slab(columns, crossing)
        self.add(_OPERATIONS[name], self.found[out], a, more[0] if more else a, columns)

    def add(self, operation: int, out: Place, a: Place, b: Place, columns: int) -> None:
        first, second, third = map(self.number, (out, a, b))
        self.instructions.append(Instruction(operation, first, second, third, columns))

    def _slice(self, equation: Equation, out: Any, crossing: bool) -> None:
        start, strides = equation.params["start"], equation.params["strides"]
        self.columns(out.type)
        if start[0] or any(s != 1 for s in strides):
            raise Unsuitable
        whole = self.operand(equation.inputs[0])
        self.found[out] = whole._replace(offset=whole.offset + (0 if whole.space == _LITERAL else start[1]))

    def _broadcast(self, equation: Equation, out: Any, crossing: bool) -> None:
        (x,), dims = equation.inputs, equation.params["dims"]
        self.columns(out.type)
        if type(x) is Literal:
            self.found[out] = self.operand(x)
        elif x in self.program.inputs[: self.consts] and dims == (1,) and x.type.shape[0] == out.type.shape[1]:
            if x.type.dtype != _FLOAT:
                raise Unsuitable
            self.found[out] = Place(_FIXED, self.program.inputs.index(x))
        else:
            raise Unsuitable

    def _concatenate(self, equation: Equation, out: Any, crossing: bool) -> None:
        if equation.params["axis"] != 1:
            raise Unsuitable
        joined = self.found[out] = self.slab(self.columns(out.type), crossing)
        at = 0
        for x in equation.inputs:
            part = self.operand(x)
            self.add(_COPY, joined._replace(offset=at), part, part, self.columns(x.type))
            at += self.columns(x.type)

    def _dot(self, equation: Equation, out: Any, crossing: bool) -> None:
        (x, w), ((cx, cw), batch) = equation.inputs, equation.params.values()
        fixed = self.program.inputs[: self.consts]
        if batch != ((), ()) or cx != (1,) or w not in fixed or len(w.type.shape) != 2:
            raise Unsuitable
        left = self.operand(x)
        if left.space not in (_SLAB, _SLICE):
            raise Unsuitable
        matrix = fixed.index(w) if cw == (0,) else -1 - fixed.index(w)
        self.found[out] = self.slab(self.columns(out.type), True)
        self.instructions.append(
            Instruction(_DOT, self.number(self.found[out]), self.number(left), matrix, self.columns(out.type),
                        self.columns(x.type))
        )  # fmt: skip

    def ends(self) -> None:
        """The results and carries of a step."""
        carried, results = self.program.outputs[: self.carries], self.program.outputs[self.carries :]
        for i, atom in enumerate(results):
            value = self.operand(atom)
            out = Place(_RESULT, self.carries + i)
            self.add(_COPY, out, value, value, self.columns(atom.type))
        for i, atom in enumerate(carried):
            value = self.operand(atom)
            if value.space == _SLAB and value.which < self.carries and value.which != i:
                raise Unsuitable  # two carries are swapped
            self.add(_COPY, Place(_SLAB, i), value, value, self.columns(atom.type))


def _hoisted(program: Program, consts: Sequence[Any]) -> tuple[list[Equation], Program, list[Any]]:
    """Loop-invariant code motion.

    Args:
        program: the program of a step.
        consts: captured values.

    Returns:
        The hoisted equations, the remaining program, and the hoisted values that it reads.
    """
    same: dict[Any, Any] = dict(zip(program.inputs, consts))
    inner = list(program.inputs[: len(consts)])
    before: list[Equation] = []
    rest: list[Equation] = []
    for e in program.equations:
        known = [type(a) is Literal or a in same for a in e.inputs]
        if not all(known) or all(type(a) is Literal for a in e.inputs) or e.primitive.name == "broadcast":
            rest.append(e)
            continue
        outputs = [Var(v.type) for v in e.outputs]
        inputs = [a if type(a) is Literal else same[a] for a in e.inputs]
        before.append(Equation(e.primitive, inputs, outputs, e.params, e.source))
        same.update(zip(e.outputs, outputs, strict=True))
        inner += e.outputs
    if not before:
        return [], program, list(consts)
    left = Program([*inner, *program.inputs[len(consts) :]], program.constants, rest, program.outputs, program.name)
    return before, left, [same[v] for v in inner]


def translated(equation: Equation) -> list[Equation]:
    """The loop by the native kernel, with the hoisted computations; None if the kernel does not support it or is
    slower."""
    params = equation.params
    length, carries = params["length"], params["carries"]
    if length < _LEAST_STEPS or carries == 0 or params["program"].constants:
        return []
    fixed, varying = equation.inputs[: params["consts"]], equation.inputs[params["consts"] :]
    before, program, fixed = _hoisted(params["program"], fixed)
    try:
        code = _Translation(program, len(fixed), carries).translate()
    except Unsuitable:
        return []
    if any(type(a) is not Literal and a.type.dtype != _FLOAT for a in (*fixed, *varying)):
        return []
    work = sum(i.columns * i.depth for i in code.instructions if i.operation == _DOT) * code.rows * length
    if code.rows < _LEAST_ROWS or work < _LEAST_WORK:
        return []
    told = {
        "code": code, "consts": len(fixed), "carries": carries, "length": length, "reverse": params["reverse"],
        "types": tuple(v.type.strong() for v in equation.outputs),
    }  # fmt: skip
    return [*before, Equation(native_loop, (*fixed, *varying), equation.outputs, told, equation.source)]


def _lower(*operands: Any, code: Code, consts: int, carries: int, length: int, reverse: bool, types: Any) -> Any:
    def numbers(records: Any) -> np.ndarray:
        return np.array([n for record in records for n in record], np.int64)

    call = jax.ffi.ffi_call("funcgrad_loop_f32", [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in types])
    return call(
        *operands, values=numbers(code.places), code=numbers(code.instructions), slabs=numbers(code.slabs),
        literals=np.array(code.literals, np.float32), fixed=np.int64(consts), carries=np.int64(carries),
        length=np.int64(length), rows=np.int64(code.rows), reverse=reverse,
    )  # fmt: skip


native_loop = Primitive(
    "native_loop", infer=lambda *operands, types, **params: list(types), lower=_lower, multiple=True
)
