"""How long XLA takes to compile a program, estimated from its equations.

On a CPU XLA makes a kernel of every value that has to be stored, out of the elementwise operations that it comes of
(fusion). A value that several kernels need is computed again in each of them, unless that would read more memory, so
the operations to compile may be many more than the equations: if the results of a chain of ``n`` multiplications by
numbers are all held, the last kernel has all ``n``, and together they have ``n * (n + 1) / 2``. ``Fusion`` counts them.
"""

from __future__ import annotations

from collections.abc import Iterable

from funcgrad.core.ir import Atom, Equation, Program, Var, kept_with_program

#: What compiling takes, in milliseconds: a program; an equation in it; an operation that is computed again; the square
#: of the operations of the largest kernel. Measured on chains whose results are held and not held, on gradients of
#: loops, and on training steps of an MLP, a convolutional network, an LSTM and transformers.
PROGRAM_COST, EQUATION_COST, FUSED_COST, LARGE_COST = 14.0, 1.0, 0.15, 0.0015

#: What takes longer than an equation, in equations.
_WEIGHTS: dict[str, float] = {"conv": 150.0, "dot": 4.0, "scan": 30.0, "while": 30.0, "cond": 15.0}
_WEIGHTS |= dict.fromkeys(
    ("sort", "top_k", "cumsum", "cumprod", "cummax", "cummin", "random_bits", "permutation"), 60.0
)
_WEIGHTS |= dict.fromkeys(("window_sum", "window_max", "window_min", "window_argmax", "window_argmin"), 40.0)
_WEIGHTS |= dict.fromkeys(
    ("betainc", "igamma", "igammac", "igamma_by_a", "gamma_sample_slope", "random_gamma", "random_binomial",
     "random_poisson", "zeta", "polygamma", "digamma", "lgamma", "svd", "eigh", "eig", "qr", "lu", "cholesky", "schur"),
    60.0,
)  # fmt: skip

#: Beside the elementwise primitives, those which XLA puts into the kernels of what they are operands of, and those into
#: whose kernels it puts their operands.
_MOVES = frozenset(
    ("broadcast", "reshape", "slice", "transpose", "reverse", "pad", "concatenate", "iota", "gather", "dynamic_slice")
)
_REDUCES = frozenset(("sum", "prod", "reduce_max", "reduce_min", "all", "any"))


def weight(equation: Equation) -> float:
    """How many plain equations one compares to."""
    inner = sum([size(p) for p in _programs(equation)])
    return _WEIGHTS.get(equation.primitive.name, 1.0) + inner


def _programs(equation: Equation) -> Iterable[Program]:
    for value in equation.params.values():
        for inner in value if type(value) is tuple else (value,):
            if isinstance(inner, Program):
                yield inner


@kept_with_program
def size(program: Program) -> float:
    """How many plain equations a program compares to."""
    return sum([weight(e) for e in program.equations])


def compile_cost(equations: float) -> float:
    """About how long compiling a program of so many plain equations takes, in milliseconds."""
    return PROGRAM_COST + EQUATION_COST * equations


class Fusion:
    """How many operations the kernels of a program have, of some equations after the other.

    Attributes:
        equations: of those so far, how many plain ones they compare to.
        fused: how many operations their kernels have, and
        largest: the largest of them.
    """

    __slots__ = ("equations", "fused", "largest", "_stored", "_inlined", "_masks", "_count")

    def __init__(self, program: Program) -> None:
        self._stored: set[Atom] = set(program.outputs)  # values that have a kernel of their own
        blocked = set(self._stored)  # values that somebody needs who computes none in his kernel
        uses: dict[Atom, int] = {}
        reduced: set[Atom] = set()
        for e in program.equations:
            if not _takes_in(e):
                blocked.update(e.inputs)
            elif not _goes_in(e):
                reduced.update(e.inputs)
            for a in set(e.inputs):
                uses[a] = uses.get(a, 0) + 1
        # What is needed beside its sum, as in a softmax, is not computed twice.
        blocked |= {a for a in reduced if uses[a] > 1}
        #: Values that are computed again in the kernels of those who need them.
        self._inlined: set[Var] = set()
        for e in program.equations:
            if _goes_in(e) and (_unary(e) or e.outputs[0] not in blocked):
                self._inlined.add(e.outputs[0])
        self._stored |= blocked
        self.begin()

    def begin(self) -> None:
        """Begins a program of its own, which reads what was computed before."""
        self.equations = 0.0
        self.fused = self.largest = self._count = 0
        self._masks: dict[Atom, int] = {}

    def add(self, equation: Equation) -> None:
        """Adds an equation to the program."""
        self.equations += weight(equation)
        mask = 1 << self._count
        self._count += 1
        if _takes_in(equation):
            for atom in equation.inputs:
                if atom in self._inlined:
                    mask |= self._masks.get(atom, 0)
        stored = False
        for v in equation.outputs:
            if v in self._inlined:
                self._masks[v] = mask
            stored = stored or v in self._stored or v not in self._inlined
        if stored:
            self.fused += mask.bit_count()
        self.largest = max(self.largest, mask.bit_count())  # of what is going to be in a kernel, too

    def repeated(self) -> int:
        """How many of the operations are computed again."""
        return max(0, self.fused - self._count)

    def cost(self) -> float:
        """About how long compiling it takes, in milliseconds."""
        return compile_cost(self.equations) + FUSED_COST * self.repeated() + LARGE_COST * self.largest**2


def _goes_in(equation: Equation) -> bool:
    return equation.primitive.elementwise or equation.primitive.name in _MOVES


def _takes_in(equation: Equation) -> bool:
    return _goes_in(equation) or equation.primitive.name in _REDUCES


def _unary(equation: Equation) -> bool:
    """Whether it reads no more than one array of the size of its result: XLA computes such a one again and again."""
    large = {a for a in equation.inputs if type(a) is Var and a.type.size >= equation.outputs[0].type.size}
    return len(large) <= 1
