"""The intermediate representation: typed, flat, purely functional programs.

A ``Program`` is a list of equations over variables, each assigned once. It is what ``trace`` returns, what every
program-to-program transform reads and writes, and what is lowered to XLA.
"""

from __future__ import annotations

import functools
import gc
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.caching import Interned
from funcgrad.core.collector import untrack
from funcgrad.core.errors import ProgramError, describe_location

if TYPE_CHECKING:
    from funcgrad.core.primitive import Primitive

Shape = tuple[int, ...]


class ArrayType:
    """The type of an array: its shape, its dtype, and whether the dtype is weak.

    ``inexact``: whether the dtype is floating or complex, so that derivatives exist. ``varying``: the mesh axes along
    which devices may hold different values inside ``shard_map``; along other axes the value is replicated.

    Types are interned: two equal types are the same object, so they compare and hash by identity.

    Example:
        >>> ArrayType((2, 3), dtypes.float32)
        f32[2,3]
        >>> ArrayType((2, 3), dtypes.float32) is ArrayType((2, 3), dtypes.float32)
        True
    """

    __slots__ = ("shape", "dtype", "weak", "varying", "ndim", "size", "inexact", "_strong", "__weakref__")
    shape: Shape
    dtype: np.dtype
    weak: bool
    varying: frozenset[str]
    ndim: int
    size: int
    inexact: bool
    _strong: ArrayType

    def __new__(
        cls, shape: Shape, dtype: np.dtype, weak: bool = False, varying: frozenset[str] = frozenset()
    ) -> ArrayType:
        key = (shape, dtype, weak, varying)
        self = _known_types.get(key)
        if self is None:
            self = _types.find(key)
        if self is None:
            self = super().__new__(cls)
            self.shape = tuple(map(int, shape))
            self.dtype = dtypes.canonical(dtype)
            self.weak = bool(weak)
            self.varying = varying
            self.ndim = len(self.shape)
            self.size = math.prod(self.shape)
            self.inexact = dtypes.is_inexact(self.dtype)
            self._strong = ArrayType(self.shape, self.dtype, False, varying) if self.weak else self
            # Racing threads get the same object.
            self = _types.add((self.shape, self.dtype, self.weak, self.varying), self)
            if key not in _known_types:  # another spelling of the key
                _known_types[key] = self
        return self

    def __reduce__(self) -> tuple:
        return ArrayType, (self.shape, self.dtype, self.weak, self.varying)

    def __repr__(self) -> str:
        along = f"{{{','.join(sorted(self.varying))}}}" if self.varying else ""
        return f"{dtypes.SHORT[self.dtype]}[{','.join(map(str, self.shape))}]{along}{'~' if self.weak else ''}"

    def with_shape(self, shape: Shape) -> ArrayType:
        return ArrayType(shape, self.dtype, self.weak, self.varying)

    def without_axis(self, axis: int | None) -> ArrayType:
        """The type with an axis removed; unchanged for None."""
        return self if axis is None else self.with_shape((*self.shape[:axis], *self.shape[axis + 1 :]))

    def with_dtype(self, dtype: np.dtype) -> ArrayType:
        return ArrayType(self.shape, dtype, False, self.varying)

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes."""
        return self.size * self.dtype.itemsize

    def with_varying(self, axes: frozenset[str]) -> ArrayType:
        return self if axes == self.varying else ArrayType(self.shape, self.dtype, self.weak, axes)

    def strong(self) -> ArrayType:
        """The same type, not weak."""
        return self._strong


_types: Interned[tuple, ArrayType] = Interned("types of arrays", 16384)
_known_types = _types.known


class Var:
    """A variable: it has a type, and is the result of one equation or an input of the program."""

    __slots__ = ("type",)

    def __init__(self, type: ArrayType):
        self.type = type


class Literal:
    """A scalar constant in the program."""

    __slots__ = ("value", "type")

    def __init__(self, value: np.generic, type: ArrayType):
        self.value = value
        self.type = type


Atom = Var | Literal


class Equation:
    """``outputs = primitive(*inputs, **params)``, and the user's line that it was traced from."""

    __slots__ = ("primitive", "inputs", "outputs", "params", "source")

    def __init__(
        self,
        primitive: Primitive,
        inputs: Sequence[Atom],
        outputs: Sequence[Var],
        params: dict[str, Any],
        source: Any = None,
    ):
        self.primitive = primitive
        self.inputs = inputs
        self.outputs = outputs
        self.params = params
        self.source = source

    def programs(self) -> list[Program]:
        """The programs among its parameters, such as the body of a loop."""
        found = []
        for value in self.params.values():  # passes ask every equation
            if type(value) is Program:
                found.append(value)
            elif type(value) is tuple:
                found += [p for p in value if type(p) is Program]
        return found


class Code:
    """An equation parameter that is a function or a program.

    Attributes:
        cache: values derived from it (executables), a few of each kind, that live as long as it does. A separate cache
            would keep it, and what it closes over, alive.
    """

    __slots__ = ("cache",)
    cache: dict[Any, Any]


class Program(Code):
    """A function in the IR.

    Attributes:
        inputs: the variables bound by the caller.
        constants: pairs of a variable and the captured value.
        equations: in topological order.
        outputs: variables or literals.
        name: the name used for printing.
        arguments: names of the inputs, such as ``params['w']``; empty if unknown.
    """

    __slots__ = ("inputs", "constants", "equations", "outputs", "name", "arguments", "__weakref__")

    def __init__(
        self,
        inputs: Sequence[Var],
        constants: Sequence[tuple[Var, Any]],
        equations: Sequence[Equation],
        outputs: Sequence[Atom],
        name: str = "program",
    ):
        self.inputs = list(inputs)
        self.constants = list(constants)
        self.equations = list(equations)
        self.outputs = list(outputs)
        self.name = name
        self.arguments: Sequence[str] = ()
        self.cache = {}

    @property
    def input_types(self) -> list[ArrayType]:
        return [v.type for v in self.inputs]

    @property
    def output_types(self) -> list[ArrayType]:
        return [a.type for a in self.outputs]

    def __len__(self) -> int:
        return len(self.equations)

    def __repr__(self) -> str:
        return self.pretty()

    def pretty(self, source: bool = False, names: bool = False) -> str:
        """The program as text.

        Args:
            source: whether to append the user's source line to each equation.
            names: whether inputs have the names of the function's arguments.

        Example:
            >>> import funcgrad as fg
            >>> print(fg.trace(lambda params: params["w"] * 2.0, {"w": 3.0}).pretty(names=True))
            program(params['w']: f32[]~) {
              a: f32[]~ = mul params['w'] 2.0
              return a
            }
        """
        known = dict(zip(self.inputs, self.arguments, strict=True)) if names and self.arguments else {}
        return "\n".join(_print(self, _names(), "", source, known))

    def cost(self) -> Any:
        """Floating-point operations and bytes moved; see ``funcgrad.costs.Cost``.

        Example:
            >>> import funcgrad as fg, funcgrad.numpy as fnp
            >>> fg.trace(lambda x, w: fnp.sin(x @ w), fnp.ones((2, 3)), fnp.ones((3, 4))).cost()
            Cost(56 flops, 168 bytes; dot 48, sin 8)
        """
        return _views["cost"](self)

    def dot(self) -> str:
        """The program as a graph in Graphviz's DOT language."""
        return _views["dot"](self)

    def svg(self) -> str:
        """The graph of ``dot`` rendered as SVG by Graphviz.

        Raises:
            RuntimeError: if Graphviz is not installed.
        """
        return _views["svg"](self)

    def stablehlo(self) -> str:
        """The program as the StableHLO text passed to XLA."""
        return _views["stablehlo"](self)

    def check(self) -> Program:
        """Checks that the program is well formed and well typed; returns it.

        Raises:
            ProgramError: naming the invalid equation and the reason.
        """
        _check(self)
        return self

    def untrack(self) -> None:
        """Removes its variables and equations from Python's garbage collector, which would visit them in each full
        collection.

        Reference counts suffice: no variable is in a reference cycle, nor is an equation without code among its
        parameters.
        """
        for v in self.inputs:
            untrack(v)
        plain = True
        for equation in self.equations:
            if all(map(_is_plain, equation.params.values())):
                for x in (*equation.inputs, *equation.outputs, equation.inputs, equation.outputs, equation.params):
                    untrack(x)
                untrack(equation)
            else:
                plain = False
        if plain:
            untrack(self.equations)

    def closed(self) -> tuple[Program, list[Any]]:
        """The program with its constants turned into leading inputs, and their values."""
        if not self.constants:
            return self, []
        variables, values = zip(*self.constants, strict=True)
        return Program([*variables, *self.inputs], [], self.equations, self.outputs, self.name), list(values)


def _is_plain(value: Any) -> bool:
    """Whether a parameter is no object that the garbage collector tracks, or a tuple of such."""
    return all(map(_is_plain, value)) if value.__class__ is tuple else not gc.is_tracked(value)


def kept_with_program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Memoizes a function of a program and hashable arguments; results live exactly as long as the program."""

    @functools.wraps(function)
    def cached(program: Program, *arguments: Any) -> Any:
        key = (function, *arguments)
        if key not in program.cache:
            program.cache[key] = function(program, *arguments)
        return program.cache[key]

    return cached


# Implementations of ``Program``'s methods in modules that import this one; registered on import.
_views: dict[str, Callable[[Program], Any]] = {}


def set_view(name: str, function: Callable[[Program], Any]) -> None:
    """Registers the function behind a method of ``Program``."""
    _views[name] = function


def view(name: str) -> Callable[[Program], Any]:
    """The registered implementation of a method of ``Program``."""
    return _views[name]


# ---------------------------------------------------------------- printing


def _names() -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for length in itertools.count(1):
        for combination in itertools.product(letters, repeat=length):
            yield "".join(combination)


def _print(
    program: Program, fresh: Iterator[str], indent: str, source: bool, known: dict[Var, str] | None = None
) -> list[str]:
    names: dict[Var, str] = dict(known or {})

    def name(atom: Atom) -> str:
        if isinstance(atom, Literal):
            return f"{atom.value}"
        if atom not in names:
            names[atom] = next(fresh)
        return names[atom]

    def typed(variable: Var) -> str:
        return f"{name(variable)}: {variable.type}"

    head = ", ".join(typed(v) for v in program.inputs)
    captured = ", ".join(typed(v) for v, _ in program.constants)
    lines = [f"{indent}{program.name}({head}){f' with ({captured})' if captured else ''} {{"]
    for equation in program.equations:
        left = ", ".join(typed(v) for v in equation.outputs)
        right = " ".join([equation.primitive.name, *map(name, equation.inputs)])
        plain = {k: v for k, v in equation.params.items() if not isinstance(v, Program) and v is not None}
        params = ", ".join(f"{k}={_short(v)}" for k, v in plain.items())
        where = f"    # {describe_location(equation.source)}" if source else ""
        lines.append(f"{indent}  {left} = {right}{f' {{{params}}}' if params else ''}{where}")
        for inner in equation.params.values():
            if isinstance(inner, Program):
                lines += _print(inner, fresh, indent + "    ", source)
    lines.append(f"{indent}  return {', '.join(map(name, program.outputs))}")
    lines.append(f"{indent}}}")
    return lines


def _short(value: Any) -> str:
    if isinstance(value, np.dtype):
        return dtypes.SHORT.get(value, str(value))
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))}{',' if len(value) == 1 else ''})"
    if hasattr(value, "axis_names"):  # a mesh
        return f"Mesh({', '.join(f'{name}={size}' for name, size in value.shape.items())})"
    return getattr(value, "__name__", None) or repr(value)


# ---------------------------------------------------------------- checking


def _check(program: Program) -> None:
    defined: set[Var] = set()
    _define(defined, program.inputs, "inputs")
    for variable, value in program.constants:
        _define(defined, [variable], "constants")
        if tuple(np.shape(value)) != variable.type.shape:
            raise ProgramError(f"constants: a value of shape {np.shape(value)} for a variable of type {variable.type}")
    for number, equation in enumerate(program.equations):
        try:
            _check_equation(equation, defined)
        except ProgramError as error:
            where = f"equation {number} ({equation.primitive.name}, from {describe_location(equation.source)})"
            raise ProgramError(f"{where}: {error}") from None
    for atom in program.outputs:
        _read(defined, atom)


def _check_equation(equation: Equation, defined: set[Var]) -> None:
    for atom in equation.inputs:
        _read(defined, atom)
    for inner in equation.params.values():
        if isinstance(inner, Program):
            _check(inner)
    expected = equation.primitive.output_types([a.type for a in equation.inputs], equation.params)
    found = [v.type for v in equation.outputs]
    if [t.strong() for t in expected] != [t.strong() for t in found]:
        raise ProgramError(f"gives {expected}, but its variables are of types {found}")
    _define(defined, equation.outputs, "outputs")


def _define(defined: set[Var], variables: Sequence[Var], where: str) -> None:
    for variable in variables:
        if variable in defined:
            raise ProgramError(f"{where}: a variable of type {variable.type} is assigned twice")
        defined.add(variable)


def _read(defined: set[Var], atom: Atom) -> None:
    if isinstance(atom, Var) and atom not in defined:
        raise ProgramError(f"reads a variable of type {atom.type} that nothing has assigned yet")
    if isinstance(atom, Literal) and (atom.type.shape != () or atom.value.dtype != atom.type.dtype):
        raise ProgramError(f"the literal {atom.value!r} is not of its type {atom.type}")
