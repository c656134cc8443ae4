"""Estimates XLA's compile time of a program from its equations.

Generating a kernel for each stored value takes most of the time; equal kernels are generated once. Values are
recomputed in several kernels (``interpreters.fusion``), so there may be many more operations than equations: if all
results of a chain of ``n`` multiplications by numbers are live, the last kernel has all ``n``, and together they have
``n * (n + 1) / 2``. ``Fusion`` counts kernels and operations.

All times are milliseconds. ``python -m benchmarks.compile_times`` compares them with measurements.
"""

from __future__ import annotations

from funcgrad.core.ir import Atom, Equation, Literal, Program, kept_with_program
from funcgrad.interpreters.fusion import FUNCTIONS, Fused, moves, takes_in
from funcgrad.interpreters.vectors import suits
from funcgrad.native import library
from funcgrad.native.attention import NATIVE, pays

#: The compile time of a program; of an equation not listed below, without its kernel; of a kernel; of an operation in
#: it.
PROGRAM, EQUATION, KERNEL, OPERATION = 20.0, 0.3, 20.0, 0.15
#: How many operations more a function counts as.
FUNCTION = 0.5
#: The cost of merging values computed in the same kernel, per operation they depend on; and its maximum.
JOINED, MOST_JOINED = 1.0, 50.0
#: The cost of a function that is computed in vector registers.
IN_VECTORS = 12.0


#: Primitives that take longer than an equation.
_TIMES: dict[str, float] = {
    "dot": 1.5, "dot_in_single": 1.5, "conv": 30.0, "scan": 30.0, "while": 20.0, "cond": 15.0, "concatenate": 2.0
}  # fmt: skip
#: Functions that XLA expands into many operations, and how many; also when recomputed.
_FUNCTIONS = dict.fromkeys(FUNCTIONS, 3.0)
_FUNCTIONS |= dict.fromkeys(
    ("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "digamma", "erf_inv", "lgamma", "ndtri", "polygamma"), 60.0
)
_FUNCTIONS |= dict.fromkeys(("betainc", "gamma_sample_slope", "igamma", "igamma_by_a", "igammac", "zeta"), 600.0)
_TIMES |= dict.fromkeys(("sort", "top_k", "permutation", "fft", "rfft", "irfft", "gather", "put"), 15.0)
_TIMES |= dict.fromkeys(("scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul"), 15.0)
_TIMES |= dict.fromkeys(("window_sum", "window_max", "window_min", "window_argmax", "window_argmin"), 40.0)
_TIMES |= dict.fromkeys(
    ("cholesky", "cummax", "cummin", "cumprod", "cumsum", "eig", "eigh", "hessenberg", "lu", "qr", "random_bits",
     "reflectors", "schur", "svd", "tridiagonal"),
    30.0,
)  # fmt: skip
_TIMES |= dict.fromkeys(("random_binomial", "random_gamma", "random_poisson"), 300.0)
_TIMES |= dict.fromkeys(
    ("definite_solve", "factored_determinant", "factored_solve", "inverse", "triangular_solve"), 50.0
)


def equation_cost(equation: Equation) -> float:
    """The cost of one equation."""
    name = equation.primitive.name
    if name in NATIVE and library.available() and pays(name, [x.type for x in equation.inputs]):
        return EQUATION  # its program is not compiled
    inner = sum([compile_cost(p) - PROGRAM for p in equation.programs()]) if equation.params else 0.0
    if suits(equation):
        inner += IN_VECTORS
    return _TIMES.get(name, EQUATION * _FUNCTIONS.get(name, 1.0)) + inner


@kept_with_program
def equations_cost(program: Program) -> float:
    """The cost of a program's equations, without recomputation."""
    return sum(map(equation_cost, program.equations))


@kept_with_program
def compile_cost(program: Program) -> float:
    """The estimated compile time of a program."""
    fusion = Fusion(program)
    for e in program.equations:
        fusion.add(e)
    return fusion.cost()


class Fusion:
    """Counts the kernels of a program and their operations, as equations are added.

    Attributes:
        equations: the total cost of the equations, without their kernels.
        operations: the number of operations of all different kernels.
        largest: the number of operations of the largest kernel.
    """

    __slots__ = (
        "equations", "operations", "largest", "_stored", "_inlined", "_masks", "_forms", "_kernels", "_functions",
        "_made", "_fused", "_count",
    )  # fmt: skip

    def __init__(self, program: Program) -> None:
        fused = Fused(program)
        self._inlined, self._stored = fused.inlined, fused.stored
        self.begin()

    def begin(self) -> None:
        """Starts another program, which reads values computed before."""
        self.equations = self.operations = 0.0
        self.largest = self._count = 0
        self._masks: dict[Atom, int] = {}
        self._forms: dict[Atom, int] = {}  # of values recomputed in kernels: hashes of their expressions
        self._kernels: set[int] = set()
        self._functions = 0  # bit mask of the operations that are functions
        self._made = self._fused = 0.0

    def add(self, equation: Equation) -> None:
        """Adds an equation to the program."""
        self.equations += equation_cost(equation)
        fuses = takes_in(equation)
        inlined = [a for a in equation.inputs if a in self._inlined] if fuses else []
        mask = 0
        for atom in inlined:
            mask |= self._masks.get(atom, 0)
        if mask and equation.primitive.name == "concatenate":
            self.equations += min(JOINED * mask.bit_count(), MOST_JOINED)
        if not moves(equation):
            mask |= self._operation(equation)
        stored = False
        form = self._form(equation) if fuses else 0
        for v in equation.outputs:
            if v in self._inlined:
                self._masks[v], self._forms[v] = mask, form
            stored = stored or v in self._stored or v not in self._inlined
        if stored:
            count = mask.bit_count() + FUNCTION * (mask & self._functions).bit_count()
            self._fused += count
            if fuses and form not in self._kernels and (mask or equation.primitive.name != "reshape"):
                self._kernels.add(form)
                self.operations += count
        self.largest = max(self.largest, mask.bit_count())  # of a kernel that is not complete yet, too

    def _operation(self, equation: Equation) -> int:
        """The bit mask of an equation's operation."""
        bit = 1 << self._count
        self._count += 1
        self._made += 1
        if equation.primitive.name in _FUNCTIONS:
            self._functions |= bit
            self._made += FUNCTION
        return bit

    def _form(self, equation: Equation) -> int:
        """The hash of what an equation's kernel computes: equal for kernels that are generated once."""
        operands = [
            (a.type, a.value.tobytes()) if type(a) is Literal else self._forms.get(a, a.type) for a in equation.inputs
        ]
        types = [v.type for v in equation.outputs]
        return hash((equation.primitive, *operands, *types, *equation.params.items()))

    def repeated(self) -> float:
        """The number of recomputed operations."""
        return max(0.0, self._fused - self._made)

    def cost(self) -> float:
        """The estimated compile time."""
        return PROGRAM + self.equations + KERNEL * len(self._kernels) + OPERATION * self.operations
