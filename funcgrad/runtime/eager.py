"""The bottom interpreter: a primitive on plain arrays, run at once by an executable compiled for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from funcgrad.core.caching import Cache, Group
from funcgrad.core.ir import ArrayType, Code, Equation, Literal, Program, Var
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import Base, JaxArray, set_base, state, type_of, typed
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.staging import stage
from funcgrad.runtime import numpy_backend
from funcgrad.runtime.compiled import compiled
from funcgrad.runtime.constants import copied, scalar
from funcgrad.runtime.deferred import Deferred, local, ready, record, record_all
from funcgrad.runtime.process import process
from funcgrad.runtime.programs import Executable, executable, one_cpu

try:
    # Not public: whether JAX traces nothing here.
    from jax._src.core import trace_state_clean as _traces_nothing
except ImportError:

    def _traces_nothing() -> bool:
        return False


_PYTHON_NUMBERS = frozenset((int, float, complex))
_executables: Cache[tuple, Callable[..., Any]] = Cache(Group("operations", 2048))


def execute(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Runs ``primitive`` on arrays by an executable cached by (primitive, params) and, inside JAX, by types."""
    if process.forked:
        return _without_xla(primitive, operands, params)
    key = (primitive, *params.items())
    cache = _executables if primitive.vjp is None else cache_of_code(params)
    run = cache.get(key)
    if run is None and cache is _executables:
        run = _executables.again(key)
    if run is None:
        run = cache[key] = compiled(_checked(primitive, params), many=True)
    return run(*operands)


def _without_xla(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """``execute`` in a forked child."""
    code, _ = _code_for(primitive, params, [primitive, *map(type_of, operands)])
    with numpy_backend.quiet():
        results = [copied(np.asarray(x)) for x in code.now(operands, ())]
    return results if primitive.multiple else results[0]


def cache_of_code(params: dict[str, Any]) -> dict[Any, Any]:
    """The executable cache for a primitive that carries programs or functions: it is owned by the first of them, which
    may reference user data."""
    return next((p.cache for p in params.values() if isinstance(p, Code)), _executables)


def _checked(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """The primitive's ``lower`` rule, after ``infer`` has accepted the types: once per types, as JAX traces it."""

    def run(*operands: Any) -> Any:
        primitive.output_types([type_of(x) for x in operands], params)
        return primitive.lower(*operands, **params)

    return run


def _is_weak(x: Any) -> bool:
    return type(x) in _PYTHON_NUMBERS or (isinstance(x, JaxArray) and x.weak_type)


def _execute_whole(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The result by a program that JAX does not trace into. For Python numbers alone it is weak, as under tracing: ``x
    * sqrt(2.0)`` has the dtype of x."""
    key = (primitive, *map(type_of, operands), *params.items())
    run = _executables.get(key) or _executables.again(key)
    if run is None:
        types = [type_of(x) for x in operands]
        program = stage(lambda *xs: _as_list(primitive(*xs, **params)), types)
        run = _executables[key] = _numbers_by_numpy(program) if process.forked else compiled(lowered(program))
    results = run(*[typed(x) for x in operands])
    return results if primitive.multiple else results[0]


def _numbers_by_numpy(program: Program) -> Callable[..., Any]:
    """Evaluates a program of numbers in a forked child. Its 0-d results are Python numbers, which are weak as well."""
    code = executable(program)

    def run(*operands: Any) -> list[Any]:
        with numpy_backend.quiet():
            results = [np.asarray(x) for x in code.now(operands, ())]
        return [copied(x) if x.ndim or x.dtype.kind not in "ifc" else x.item() for x in results]

    return run


def _as_list(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]


class Eager(Base):
    """Executes operations immediately, or records them. It is level 0 of every stack, and never exits.

    Inside a transform operations are deferred, and so are those with a deferred operand: transforms return arrays to
    their caller, and no level in between reads values unless Python code does.
    """

    __slots__ = ()
    description = "evaluation"

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        if not (state.depth or state.deferring or Deferred in map(type, operands)):
            return self.now(primitive, operands, params)
        # The kind of each operand: the type of an array, the class of a number.
        kinds: list[Any] = [primitive]
        arrays: list[Any] = []
        numbers: Sequence[Any] = ()
        for x in operands:
            cls = x.__class__
            if cls is Deferred:
                kinds.append(x.type)
                arrays.append(x)
            elif cls in _NUMBERS:
                kinds.append(cls)
                numbers = (*numbers, x)
            else:
                x = held(x)
                if x is None:  # JAX's own tracers can only be used now
                    return self.now(primitive, [ready(x) for x in operands], params)
                kinds.append(type_of(x))
                arrays.append(x)
        code, types = _code_for(primitive, params, kinds)
        if primitive.multiple:
            return note_all(code, types, arrays, numbers)
        result = record(code, arrays, numbers)
        result.type = types[0]
        return result

    def now(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """The result on arrays."""
        if operands and all(map(_is_weak, operands)):
            return _execute_whole(primitive, operands, params)
        operands = [typed(x) for x in operands]
        try:
            return execute(primitive, operands, params)
        except (TypeError, ValueError):
            # ``infer`` raises the error in the user's terms; if it accepts the types, XLA's error is raised.
            primitive.output_types([type_of(x) for x in operands], params)
            raise
        except Exception as error:
            # On a mesh of explicit axes JAX's types carry shardings, and JAX cannot always infer that of the result.
            if type(error).__name__ != "ShardingTypeError":
                raise
            return _execute_whole(primitive, operands, params)  # the compiler chooses

    def held(self, x: Any) -> Any:
        return held(x)

    def ready(self, x: Any) -> Any:
        return ready(x)

    def walk(self, backward: Any, tape: Sequence[Any], seeds: Sequence[Any], inputs: Sequence[Any]) -> Any:
        return _walk(backward, tape, seeds, inputs) if local.ops else None


_walk: Callable[..., Any]


def set_walk(walk: Callable[..., Any]) -> None:
    """Sets the function that runs a whole backward pass over a tape."""
    global _walk
    _walk = walk


# ---------------------------------------------------------------- deferred

_NUMBERS = frozenset((bool, int, float, complex, np.bool_, *(np.dtype(c).type for c in "bBhHiIlLefdFD")))
_codes: Cache[tuple, tuple[Executable, list[ArrayType]]] = Cache(Group("operations recorded", 8192))


def held(x: Any) -> Any:
    """An array as an operand that may be read later: a copy of a NumPy array; None for other types."""
    cls = x.__class__
    if cls is Deferred or cls is JaxArray:
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        held = Deferred()
        held.type = type_of(x)
        held.value = np.array(x)
        return held
    return None


def kind_of(x: Any) -> Any:
    """The kind of operand ``x``: the type of an array, the class of a number; None if it cannot be deferred."""
    cls = x.__class__
    if cls is Deferred:
        return x.type
    return cls if cls in _NUMBERS else type_of(x) if cls is JaxArray else None


class Stepwise(Executable):
    """A program that is compiled only as part of a window; otherwise its equations run one by one."""

    __slots__ = ()

    def takes_alone(self) -> float:
        return min(self.takes(), self.takes_compiled(len(self.program)))

    def now(self, buffers: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
        program = self.program
        values: dict[Any, Any] = dict(program.constants)
        values.update(zip(program.inputs, (*buffers, *numbers), strict=True))
        for equation, last in zip(program.equations, _last_uses(program), strict=True):
            # By the executables that the same operations use when called from Python.
            kinds: list[Any] = [equation.primitive]
            arrays: list[Any] = []
            given: list[Any] = []
            for atom in equation.inputs:
                x = atom.value if isinstance(atom, Literal) else values[atom]
                number = x.__class__ in _NUMBERS
                kinds.append(x.__class__ if number else atom.type)
                (given if number else arrays).append(x)
            code, _ = _code_for(equation.primitive, equation.params, kinds)
            values.update(zip(equation.outputs, code.now(arrays, given), strict=True))
            for variable in last:
                del values[variable]
        self.warm = True
        results = [a.value if isinstance(a, Literal) else values[a] for a in program.outputs]
        return [scalar(x, a.type.dtype) if x.__class__ in _NUMBERS else x for x, a in zip(results, program.outputs)]


def _last_uses(program: Program) -> list[set[Var]]:
    """After each equation, the variables that are no longer needed."""
    needed = set(program.outputs)
    uses = []
    for equation in reversed(program.equations):
        atoms = {a for a in (*equation.inputs, *equation.outputs) if isinstance(a, Var)}
        uses.append(atoms - needed)
        needed |= atoms
    return uses[::-1]


def note_all(code: Executable, types: Sequence[ArrayType], arrays: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
    """Records an operation whose results carry their types."""
    results = record_all(code, arrays, numbers)
    for r, t in zip(results, types):
        r.type = t
    return list(results)


def _code_for(primitive: Primitive, params: dict[str, Any], kinds: list[Any]) -> tuple[Executable, list[ArrayType]]:
    """The executable for an operation on operands of ``kinds``, whose first element is the primitive."""
    key = (*kinds, *params.items()) if params else tuple(kinds)
    cache = _codes if primitive.vjp is None else cache_of_code(params)
    found = cache.get(key)
    if found is None and cache is _codes:
        found = _codes.again(key)
    if found is None:
        found = cache[key] = _code(primitive, params, kinds[1:])
    if cache is not _codes:
        local.queue.transient = found[0]
    return found


def _code(primitive: Primitive, params: dict[str, Any], kinds: Sequence[Any]) -> tuple[Executable, list[ArrayType]]:
    """The executable for a primitive: its program, of arrays and then numbers; and the types of its results."""
    types = [k if isinstance(k, ArrayType) else type_of(k()) for k in kinds]
    out_types = primitive.output_types(types, params)
    operands, results = [Var(t) for t in types], [Var(t) for t in out_types]
    arrays = [v for v, k in zip(operands, kinds) if isinstance(k, ArrayType)]
    numbers = [v for v, k in zip(operands, kinds) if not isinstance(k, ArrayType)]
    equation = Equation(primitive, operands, results, params)
    program = Program([*arrays, *numbers], [], [equation], results, primitive.name)
    return executable(program, len(numbers)), out_types


_eager = Eager()
set_base(_eager)
Deferred.interpreter = _eager  # type: ignore[misc]  # on the class: the same for all instances


def as_array(x: Any) -> jax.Array:
    """Converts a NumPy array or scalar to a JAX array; JAX arrays are unchanged."""
    if isinstance(x, jax.Array):
        return x
    # JAX's own function compiles a program for the first array of a process.
    if process.forked or (one_cpu() and _traces_nothing()):
        return copied(np.asarray(x))
    return jax.numpy.asarray(np.asarray(x))
