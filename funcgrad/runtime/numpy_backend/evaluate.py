"""Evaluates programs with NumPy, and estimates their run time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from funcgrad.core.ir import ArrayType, Atom, Equation, Literal, Program, kept_with_program
from funcgrad.runtime.numpy_backend import arithmetic, control, indexing, linalg, shape, windows  # noqa: F401  # their rules are in the table now
from funcgrad.runtime.numpy_backend.aligned import empty
from funcgrad.runtime.numpy_backend.table import RULES, call_of

#: What an equation takes unless its result is a view, and an element of its largest operand or result, in milliseconds:
#: fitted to the programs of training steps of two transformers, a VAE, a graph network and an actor critic, with
#: products on one thread.
EQUATION_COST, ELEMENT_COST = 0.0015, 1e-6
#: The factor of ``ELEMENT_COST`` for elements of 4 bytes: less for vector instructions, more for what NumPy computes
#: element by element. Measured on arrays of 50,000 to 300,000 elements, with memory reused.
_FACTORS: dict[str, float] = {
    name: factor
    for factor, names in {
        0.5: "abs add div eq ge gt le lt max min mul ne neg sqrt square sub",
        1.5: "cos exp log select sin",
        2.0: "logistic",
        3.0: "exp2 nextafter tanh window_argmax window_argmin",
        6.0: "acosh pow",
        10.0: "acos asin cosh erfc expm1 log1p",
        14.0: "atan cbrt digamma rem remainder sinh tan",
        22.0: "asinh atan2 atanh erf_inv lgamma",
    }.items()
    for name in names.split()
}
#: How many products of matrices are one element's time.
PRODUCTS = 32
#: What an element of an operation that XLA fuses takes, by what one of a product takes; measured on the steps of a GPT,
#: a VAE, a residual network and dense layers.
FUSED = 0.4
#: The bytes from which an array's memory is reused.
LARGE = 1 << 16
#: Primitives whose results are views of their operands, here and mostly in compiled programs.
_VIEWS = frozenset(("broadcast", "constant", "name", "reshape", "slice", "stop_gradient", "transpose"))


def evaluate(program: Program, arguments: Sequence[Any]) -> list[np.ndarray]:
    """The program's results on NumPy arrays. They may be views of the arguments and of each other.

    NumPy may warn of overflow and division by zero, which XLA ignores: enter ``quiet`` around it.

    Raises:
        NotEquivalent: if an operation has no rule here, or none for these values.
    """
    return function(program)(arguments)


control.set_evaluator(evaluate)


#: A function, the indices of its arguments, the indices of its results, and the results' dtypes.
Call = tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], tuple[np.dtype, ...]]


class Steps(NamedTuple):
    """A program as calls of functions of NumPy, for which nothing is looked up while it runs.

    Attributes:
        start: what is in each place at the beginning: the arguments' places first, then constants, and None.
        calls: what is called.
        outputs: the places of the results.
        inputs: how many arguments there are.
        types: the type of each place.
    """

    start: list[Any]
    calls: list[Call]
    outputs: list[int]
    inputs: int
    types: list[ArrayType]


@kept_with_program
def steps(program: Program) -> Steps:
    """The program's steps.

    Raises:
        NotEquivalent: if an operation has no rule here.
    """
    made = _Steps(program)
    for e in program.equations:
        made.add(e)
    return made.finish(program.outputs)


class _Steps:
    """A program's steps in the making. What is the same array as an operand has that one's place."""

    def __init__(self, program: Program) -> None:
        self.inputs = len(program.inputs)
        self.start: list[Any] = [None] * self.inputs
        self.places: dict[Atom, int] = {v: i for i, v in enumerate(program.inputs)}
        #: The places of literals, which are equal if their dtypes and bits are.
        self.literals: dict[tuple[np.dtype, bytes], int] = {}
        #: Of a place whose array is another's in other axes, that one's and its shape.
        self.roots = {i: (i, v.type.shape) for i, v in enumerate(program.inputs)}
        #: Of the place of a broadcast array, what is broadcast, and that one's shape with axes of size 1.
        self.broadcast: dict[int, tuple[int, tuple[int, ...]]] = {}
        #: Of the place of a comparison or selection, the primitive's name and the operands.
        self.chosen: dict[int, tuple[str, tuple[int, ...]]] = {}
        self.types = [v.type for v in program.inputs]
        self.calls: list[Call] = []
        for variable, constant in program.constants:
            self.start[self.place_of(variable)] = np.asarray(constant)

    def place_of(self, atom: Atom) -> int:
        place = self.places.get(atom)
        if place is None and isinstance(atom, Literal):
            value = np.asarray(atom.value)
            place = self.places[atom] = self.literals.setdefault((value.dtype, value.tobytes()), len(self.start))
            if place == len(self.start):
                self.place(atom.type, value)
        elif place is None:
            place = self.places[atom] = self.place(atom.type)
        return place

    def place(self, kind: ArrayType, value: np.ndarray | None = None) -> int:
        """A new place of an array."""
        place = len(self.start)
        self.start.append(value)
        self.roots[place] = place, kind.shape
        self.types.append(kind)
        return place

    def add(self, e: Equation) -> None:
        reads = tuple(map(self.place_of, e.inputs))
        if _is_operand(e):
            self.places[e.outputs[0]] = reads[0]
            return
        if e.primitive.name == "select" and self.decided(reads):
            self.places[e.outputs[0]] = reads[1]
            return
        root = None
        if e.primitive.name == "reshape":
            root, shape = self.roots[reads[0]]
            if shape == e.params["shape"]:
                self.places[e.outputs[0]] = root
                return
            reads = (root,)
        call = call_of(e.primitive.name, [a.type for a in e.inputs], e.params)
        writes = tuple(map(self.place_of, e.outputs))
        if root is not None:
            self.roots[writes[0]] = self.roots[root]
        if e.primitive.name == "broadcast" and list(dims := e.params["dims"]) == sorted(dims):
            self.broadcast[writes[0]] = reads[0], _aligned(self.types[reads[0]].shape, dims, e.outputs[0].type.ndim)
        elif e.primitive.name in _CHOICES:
            self.chosen[writes[0]] = e.primitive.name, reads
        if e.primitive.name == "select" or (isinstance(call, np.ufunc) and call.signature is None):
            reads = self.before_broadcast(reads, e.outputs[0].type.shape)
        elif e.primitive.name == "dynamic_slice" and self.types[reads[1]].size == 1:  # its function takes a number
            reads = reads[0], self.broadcast.get(reads[1], (reads[1],))[0]
        self.calls.append((call, reads, writes, tuple([v.type.dtype for v in e.outputs])))

    def before_broadcast(self, reads: tuple[int, ...], full: tuple[int, ...]) -> tuple[int, ...]:
        """The operands of a function that broadcasts them itself. One of the result's shape stays, which then is it."""
        whole = [r for r in reads if r not in self.broadcast and self.types[r].shape == full]
        if not whole:
            return reads
        return tuple([self.in_axes(*self.broadcast[r]) if r in self.broadcast else r for r in reads])

    def in_axes(self, source: int, sizes: tuple[int, ...]) -> int:
        """The place of an array with these axes, some of which have size 1."""
        kind = self.types[source]
        if kind.shape == sizes:
            return source
        place = self.place(ArrayType(sizes, kind.dtype))
        self.calls.append((methodcaller("reshape", sizes), (source,), (place,), (kind.dtype,)))
        return place

    def decided(self, reads: tuple[int, ...]) -> bool:
        """Whether a selection is its second operand: ``select(x <= y, select(x < y, a, b), b)``, as of a ``relu`` whose
        derivative at 0 is 0."""
        outer, inner = self.chosen.get(reads[0]), self.chosen.get(reads[1])
        if outer is None or inner is None or outer[0] != "le" or inner[0] != "select" or inner[1][2] != reads[2]:
            return False
        return self.chosen.get(inner[1][0]) == ("lt", outer[1])

    def finish(self, outputs: Sequence[Atom]) -> Steps:
        """The steps, without those whose results nothing reads."""
        places = [self.place_of(a) for a in outputs]
        needed, calls = set(places), []
        for call in reversed(self.calls):
            if not needed.isdisjoint(call[2]):
                needed.update(call[1])
                calls.append(call)
        return Steps(self.start, calls[::-1], places, self.inputs, self.types)


#: The primitives of which selections are made.
_CHOICES = ("le", "lt", "select")


def _aligned(sizes: tuple[int, ...], dims: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """The shape of axes ``dims`` among ``ndim``, without leading axes of size 1 that are not among them."""
    axes = dict(zip(dims, sizes, strict=True))
    return tuple([axes.get(d, 1) for d in range(min(dims, default=ndim), ndim)])


def _is_operand(e: Equation) -> bool:
    """Whether an equation's result is its operand, as it is."""
    name = e.primitive.name
    if name in ("stop_gradient", "name", "constant"):
        return True
    if name not in ("reshape", "broadcast", "transpose", "cast"):
        return False
    given, made = e.inputs[0].type, e.outputs[0].type
    if given.shape != made.shape or given.dtype != made.dtype:
        return False
    return name != "transpose" or tuple(e.params["permutation"]) == tuple(range(given.ndim))


@kept_with_program
def function(program: Program) -> Callable[[Sequence[Any]], list[np.ndarray]]:
    """``evaluate`` as a function of the arguments.

    Raises:
        NotEquivalent: if some operation has no rule here.
    """
    made = steps(program)
    start, calls, outputs, inputs, _ = made
    ready = []
    for (call, reads, writes, dtypes), (out, dead) in zip(calls, _memory(made)):
        one = len(writes) == 1 and len(reads) in (1, 2)
        # Most operations have one or two operands and one result; ``first`` marks them.
        first, second = (reads[0], reads[-1] if len(reads) == 2 else None) if one else (None, None)
        ready.append((call, first, second, writes[0], dtypes[0], reads, tuple(zip(writes, dtypes)), out, dead))

    def run(arguments: Sequence[Any]) -> list[np.ndarray]:
        values = start.copy()
        values[:inputs] = arguments
        for call, first, second, place, dtype, reads, writes, out, dead in ready:
            if out is not None:
                to = values[out] if out.__class__ is int else empty(*out)
                values[place] = call(*[values[i] for i in reads], out=to, casting="unsafe")  # as ``fit`` does
            elif first is None:
                found = call(*[values[i] for i in reads])
                found = found if found.__class__ is list else [found]
                for (place, dtype), x in zip(writes, found, strict=True):
                    values[place] = fit(x, dtype)
            else:
                x = call(values[first]) if second is None else call(values[first], values[second])
                values[place] = x if x.__class__ is np.ndarray and x.dtype is dtype else fit(x, dtype)
            for i in dead:
                values[i] = None
        # A number that is a result becomes an array as well.
        return [x if x.__class__ is np.ndarray else np.asarray(x) for x in [values[i] for i in outputs]]

    return run


def _memory(made: Steps) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """For each call, where it writes a large array; and the places that nothing reads afterwards.

    It writes a result of the program into aligned memory of a shape and dtype, which XLA uses as it is, and others into
    the array of an operand that nothing reads afterwards, given by its place. None: where NumPy chooses.
    """
    last: dict[int, int] = {}
    outputs = set(made.outputs)
    viewed: set[int] = set()
    for n, (call, reads, _, _) in enumerate(made.calls):
        last.update(dict.fromkeys(reads, n))
        if not isinstance(call, np.ufunc):
            viewed.update(reads)  # its result may be a view of them
    computed: set[int] = set()
    own: set[int] = set()
    for n, (call, reads, writes, _) in enumerate(made.calls):
        dead = tuple([i for i in dict.fromkeys(reads) if last[i] == n and i in computed and i not in outputs])
        into, kind = writes[0], made.types[writes[0]]
        out: Any = None
        if isinstance(call, np.ufunc) and call.nout == 1 and kind.nbytes >= LARGE:
            if into in outputs:
                out = kind.shape, kind.dtype
            else:
                out = next((i for i in dead if i in own and i not in viewed and made.types[i] == kind), None)
            own.add(into)
        computed.update(writes)
        yield out, dead if any(made.types[i].nbytes >= LARGE for i in dead) else ()


def fit(x: Any, dtype: np.dtype) -> np.ndarray:
    """A rule's result as an array of ``dtype``."""
    if x.__class__ is list:
        (x,) = x
    return x if x.__class__ is np.ndarray and x.dtype == dtype else np.asarray(x, dtype)


def _products(equation: Equation) -> int:
    (contracted, _), x = equation.params["contract"], equation.inputs[0].type
    return equation.outputs[0].type.size * math.prod(x.shape[d] for d in contracted) // PRODUCTS


def _convolved(equation: Equation) -> int:
    """im2col followed by a product."""
    x, w = (a.type for a in equation.inputs)
    out, layout = equation.outputs[0].type, equation.params["config"].layout
    places, window = (math.prod(t.shape[d] for d in dims[2:]) for t, dims in ((out, layout.out), (w, layout.w)))
    written = x.shape[layout.x[0]] * x.shape[layout.x[1]] * places * window
    return written + written * w.shape[layout.w[0]] // equation.params["config"].groups // PRODUCTS


def _windows(equation: Equation) -> int:
    return equation.outputs[0].type.size * math.prod(equation.params["window"].size)


def _on_matrices(equation: Equation) -> int:
    always, part = linalg.ON_MATRICES[equation.primitive.name]
    first, last = equation.inputs[0].type, equation.inputs[-1].type
    *lead, m, n = first.shape
    count = math.prod(lead)
    width = last.size // max(1, count * n) if equation.primitive.name.endswith("solve") else max(m, n)
    return count * (always + int(part * m * n * width))


def _reordered(equation: Equation) -> int:
    """One exchange of rows after the other."""
    return 10_000 + 2_000 * equation.inputs[0].type.size


#: Primitives whose cost is not given by the sizes of operands and results: their cost in elements.
_WORK: dict[str, Callable[[Equation], int]] = {"dot": _products, "dot_in_single": _products, "conv": _convolved}
_WORK.update(dict.fromkeys(linalg.ON_MATRICES, _on_matrices), permutation=_reordered)
_WORK.update(dict.fromkeys(("window_sum", "window_max", "window_min", "window_argmax", "window_argmin"), _windows))


@kept_with_program
def milliseconds(program: Program) -> float:
    """The estimated run time; infinite if the program cannot be evaluated here."""
    return sum(map(_cost, program.equations))


def _cost(equation: Equation) -> float:
    if equation.primitive.name not in RULES:
        return math.inf
    inner = sum(map(milliseconds, equation.programs()))
    wide = max([a.type.dtype.itemsize for a in equation.inputs], default=4) / 4
    factor = _FACTORS[equation.primitive.name] * wide if equation.primitive.name in _FACTORS else 1.0
    always = 0.0 if equation.primitive.name in _VIEWS else EQUATION_COST
    return always + ELEMENT_COST * factor * _elements(equation) + equation.params.get("length", 1) * inner


@kept_with_program
def elements(program: Program) -> float:
    """What a compiled program takes, in the time of an element of a product: the elements of each equation's largest
    operand or result, or its equivalent cost. An element of a fused operation takes a part of that time."""
    return sum(_compiled(e) + e.params.get("length", 1) * sum(map(elements, e.programs())) for e in program.equations)


def _compiled(equation: Equation) -> float:
    return _elements(equation) * (1.0 if equation.primitive.name in _WORK else FUSED)


def _elements(equation: Equation) -> int:
    if equation.primitive.name in _VIEWS:
        return 0
    largest = max([a.type.size for a in (*equation.inputs, *equation.outputs)], default=0)
    return max(largest, _WORK.get(equation.primitive.name, lambda _: 0)(equation))
