"""Lowering: a whole program as one JAX primitive, whose lowering to StableHLO walks the equations.

JAX then traces one operation instead of one per equation, and needs only this one rule. Tracing and lowering a
primitive's ``lower`` rule is slow, so it is done once per kind of equation, and the emitted operations are reused as a
recipe. Operations are named after the primitive and located at the user's line.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from funcgrad import native
from funcgrad.core.caching import Cache, Group, memoized
from funcgrad.core.errors import file_and_line
from funcgrad.core.ir import ArrayType, Equation, Program, Var, kept_with_program, set_view
from funcgrad.core.precision import configured, of_products
from funcgrad.core.primitive import Primitive
from funcgrad.interpreters.hlo_templates import Recipe, Step
from funcgrad.interpreters.vectors import vectorized
from funcgrad.primitives.contraction import worth_turning
from funcgrad.primitives.markers import alike_p, anywhere_on
from funcgrad.primitives.platforms import lowering_for

try:
    import jax.extend.core
    from jax.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func, sdy

    _lower_fun, _ir_constant, _dtype_to_ir_type = mlir.lower_fun, mlir.ir_constant, mlir.dtype_to_ir_type
    _register_lowering, _new_primitive = mlir.register_lowering, jax.extend.core.Primitive
    _new_function, _sharding_group = cast(Any, func.FuncOp), sdy.sharding_group
except (ImportError, AttributeError) as missing:
    raise ImportError(
        f"funcgrad lowers programs through jax.extend.core, jax.interpreters.mlir and jaxlib.mlir. In JAX "
        f"{jax.__version__}, which is installed, a part that it needs is not there: {missing}. JAX 0.10 to 0.12 have "
        "all of them."
    ) from missing

try:
    # JAX caches the parameters of what it traced; instances of these types only weakly. Not public API: without it the
    # last few thousand programs stay in memory.
    from jax._src.util import weakref_cache_key_types

    weakref_cache_key_types.add(Program)
except ImportError:
    pass

program_p = _new_primitive("funcgrad_program")
program_p.multiple_results = True


@memoized("JAX's types", 8192)
def aval(type: ArrayType) -> jax.core.ShapedArray:
    return jax.core.ShapedArray(type.shape, type.dtype, weak_type=type.weak)


@program_p.def_abstract_eval
def _avals(*_: Any, program: Program) -> list[jax.core.ShapedArray]:
    return [aval(t) for t in program.output_types]


@program_p.def_impl
def _run(*arguments: Any, program: Program) -> list[Any]:
    """The implementation outside JAX's tracing: compiled once per program."""
    run = program.cache.get(_run)
    if run is None:
        run = program.cache[_run] = jax.jit(lambda *xs: program_p.bind(*xs, program=program))
    with jax.disable_jit(False):  # compiling is the only implementation
        return run(*arguments)


def lowered(program: Program) -> Callable[..., list[Any]]:
    """A function of JAX arrays or tracers that computes ``program``, for use under ``jax.jit``."""
    closed, constants = program.closed()
    # JAX references it weakly, as long as the function below lives; the program's cache may hold that.
    bare = _without_cache(closed)

    said = _a_sharding(closed)

    def run(*arguments: Any) -> list[Any]:
        if _local.by_equation:
            return _by_equation(closed, [*constants, *arguments])
        outs = program_p.bind(*constants, *arguments, program=bare)
        return outs if said is None or not outs else [anywhere_on(said.mesh, outs[0]), *outs[1:]]

    return run


class _Local(threading.local):
    """Thread-local: whether programs are passed to JAX equation by equation."""

    by_equation = False


_local = _Local()


@contextmanager
def by_equation() -> Iterator[bool]:
    """Context in which JAX traces each equation of a ``lowered`` program: inside ``shard_map`` it must see axis names.

    Returns:
        A context manager, which yields whether that was already so.
    """
    before = _local.by_equation
    _local.by_equation = True
    try:
        yield before
    finally:
        _local.by_equation = before


def _by_equation(program: Program, arguments: Sequence[Any]) -> list[Any]:
    values: dict[Any, Any] = dict(zip(program.inputs, arguments, strict=True))

    def read(atom: Any) -> Any:
        return values[atom] if type(atom) is Var else atom.value

    for equation in program.equations:
        found = equation.primitive.lower(*map(read, equation.inputs), **equation.params)
        values.update(zip(equation.outputs, found if equation.primitive.multiple else [found], strict=True))
    return [read(a) for a in program.outputs]


def _a_sharding(program: Program) -> NamedSharding | None:
    """The first sharding that the program constrains a value to. JAX does not look into the program, so it must be told
    the mesh.

    Otherwise it compiles for one device if the arguments are uncommitted.
    """
    for equation in program.equations:
        for value in equation.params.values():
            if isinstance(value, NamedSharding):
                return value
            if isinstance(value, Mesh):
                return NamedSharding(value, PartitionSpec())
            for inner in value if type(value) is tuple else (value,):
                found = _a_sharding(inner) if isinstance(inner, Program) else None
                if found is not None:
                    return found
    return None


@kept_with_program
def _partly_divided(program: Program) -> bool:
    """Whether the compiler partitions computations inside a ``shard_map``; XLA then fails for groups of shardings."""
    for equation in program.equations:
        params = equation.params
        if equation.primitive.name == "shard_map" and len(params["axes"]) < len(params["mesh"].axis_names):
            return True
        inner = [v for value in params.values() for v in (value if type(value) is tuple else (value,))]
        if any(isinstance(v, Program) and _partly_divided(v) for v in inner):
            return True
    return False


def _without_cache(program: Program) -> Program:
    """A copy with empty caches, also for nested programs."""
    equations = []
    for equation in program.equations:
        if any(isinstance(v, (Program, tuple)) for v in equation.params.values()):
            params = {k: _bare(v) for k, v in equation.params.items()}
            equation = Equation(equation.primitive, equation.inputs, equation.outputs, params, equation.source)
        equations.append(equation)
    return Program(program.inputs, program.constants, equations, program.outputs, program.name)


def _bare(value: Any) -> Any:
    if isinstance(value, Program):
        return _without_cache(value)
    return tuple(map(_bare, value)) if type(value) is tuple and any(isinstance(v, Program) for v in value) else value


# Besides the elementwise primitives: those of one StableHLO operation whose attributes depend on parameters, dtypes and
# ranks, not on sizes; with the parameters that are sizes, which occur in the result type only.
_SIZE_FREE: dict[str, frozenset[str]] = {
    "broadcast": frozenset({"shape"}), "reshape": frozenset({"shape"}),
    **dict.fromkeys(("all", "any", "concatenate", "dot", "prod", "reverse", "sum", "transpose"), frozenset()),
}  # fmt: skip

# Sizes for which one of these is lowered to more than that operation.
_UNLESS: dict[str, Callable[..., bool]] = {"dot": worth_turning}

# The numbers of groups of values with the same sharding, unique in a module.
_groups = itertools.count()

# Resizable recipes as the text of functions, by platform, precision and key; text, since an MLIR operation belongs to
# its module's context.
_texts: Cache[tuple, str] = Cache(Group("recipes", 1024))


def _is_for_this_machine(module: Any, platforms: tuple[str, ...]) -> bool:
    """Whether the lowered program will run on one device of this machine, a CPU: neither partitioned nor exported."""
    devices = getattr(module.axis_context, "num_devices", None)
    return platforms == ("cpu",) and devices == 1 and not module.lowering_parameters.for_export


class _Emitter:
    """Emits one program into one MLIR module.

    Equal equations are emitted by the same recipe. An equation that differs in sizes only uses a resizable recipe, if
    its primitive allows it; these outlive the module. All others get a new recipe from JAX's lowering of the
    primitive's rule.

    Attributes:
        context: JAX's lowering context.
        platforms: the platforms of the module.
        scope: the enclosing name scope, as JAX gives it: ``jit(loss)/``.
        recipes: by primitive, types and parameters.
        resizable: recipes by primitive, dtypes, ranks and the parameters that are not sizes.
        locations: MLIR's locations, by primitive and source.
        types: MLIR's types, by ours.
        alike: whether groups of shardings may be emitted.
        native: whether native kernels may be called.
    """

    __slots__ = ("context", "platforms", "scope", "recipes", "resizable", "locations", "types", "alike", "native")

    def __init__(self, context: Any, alike: bool):
        self.alike = alike
        self.context = context
        self.platforms = tuple(context.platforms or context.module_context.platforms)
        self.scope = f"{context.name_stack}/" if str(context.name_stack) else ""
        self.recipes: dict[tuple, Recipe] = {}
        self.resizable: dict[tuple, Recipe] = {}
        self.locations: dict[tuple, Any] = {}
        self.types: dict[ArrayType, Any] = {}
        self.native = _is_for_this_machine(context.module_context, self.platforms) and native.library.available()

    def program(self, program: Program, arguments: Sequence[Any]) -> list[Any]:
        """Emits all equations at the current insertion point; returns the values of the outputs."""
        if self.native:
            program = native.rewritten(program)
        if self.platforms == ("cpu",):
            program = vectorized(program)
        values: dict[Var, Any] = dict(zip(program.inputs, arguments, strict=True))
        literals: dict[tuple, Any] = {}

        def constant(atom: Any) -> Any:
            key = (atom.type, atom.value.tobytes())
            found = literals.get(key)
            if found is None:
                found = literals[key] = _ir_constant(atom.value)
            return found

        for equation in program.equations:
            operands = [values[a] if type(a) is Var else constant(a) for a in equation.inputs]
            kind = (equation.primitive, *[a.type for a in equation.inputs], *equation.params.items())
            recipe = self.recipes.get(kind)
            if recipe is None:
                if equation.primitive is alike_p:
                    values[equation.outputs[0]] = self.grouped(operands)
                    continue
                if equation.primitive.name == "call":
                    values.update(zip(equation.outputs, self.program(equation.params["program"], operands)))
                    continue
                recipe = self.recipes[kind] = self.recipe(equation)
            values.update(zip(equation.outputs, recipe.emit(operands, self.location(equation))))
        return [values[a] if isinstance(a, Var) else constant(a) for a in program.outputs]

    def grouped(self, operands: Sequence[Any]) -> Any:
        """The first of values that get the same sharding."""
        if self.alike:
            group = next(_groups)
            for operand in operands:
                _sharding_group(operand, group)
        return operands[0]

    def recipe(self, equation: Equation) -> Recipe:
        """The recipe for an equation, created for the first one of its kind."""
        primitive, params = equation.primitive, equation.params
        types = [a.type for a in equation.inputs]
        if not primitive.elementwise:
            sizes = _SIZE_FREE.get(primitive.name)
            unless = _UNLESS.get(primitive.name)
            if sizes is None or (unless is not None and unless(*types, **params)):
                return Recipe.of(self.function(primitive, types, params))
            return self.of_any_size(equation, types, sizes)
        shape = equation.outputs[0].type.shape
        spreads = {i: self.spread(t, shape, i) for i, t in enumerate(types) if t.shape != shape}
        recipe = self.of_any_size(equation, [t.with_shape(shape) for t in types], frozenset())
        return recipe.after(spreads, len(types)) if spreads else recipe

    def of_any_size(self, equation: Equation, types: Sequence[ArrayType], sizes: frozenset[str]) -> Recipe:
        """The recipe for operands of ``types``, of a primitive whose operation does not depend on sizes.

        Args:
            sizes: the names of the parameters that are sizes.
        """
        primitive, params = equation.primitive, equation.params
        key = (primitive, *[(t.dtype, t.ndim) for t in types], *[p for p in params.items() if p[0] not in sizes])
        outlives = (self.platforms, configured(), of_products(), key)
        recipe = self.resizable.get(key)
        if recipe is None:
            text = _texts.get(outlives) or _texts.again(outlives)
            function = ir.Operation.parse(text) if text else self.function(primitive, types, params)
            recipe = Recipe.of(function)
            if not recipe.has_sizes_in_types_only():
                return recipe
            self.resizable[key] = recipe
            if not text:
                _texts[outlives] = str(function.get_asm(print_generic_op_form=True))
        return recipe.resized([self.type(v.type) for v in equation.outputs])

    def function(self, primitive: Primitive, types: Sequence[ArrayType], params: dict[str, Any]) -> Any:
        """A standalone function, lowered by JAX from a primitive's rule."""
        avals = [aval(t.strong()) for t in types]
        context = self.context.replace(primitive=None, avals_in=avals, avals_out=None, tokens_out=None)

        def rule(*xs: Any) -> Any:
            return primitive.lower(*xs, **params)

        inputs = [self.type(t) for t in types]
        function = _new_function(primitive.name, ir.FunctionType.get(inputs, []), ip=False)
        block = function.add_entry_block()
        with ir.InsertionPoint(block), lowering_for(self.platforms):
            results = list(_lower_fun(rule, multiple_results=primitive.multiple)(context, *block.arguments))
            func.ReturnOp(results)
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [r.type for r in results]))
        return function.operation

    def spread(self, type: ArrayType, shape: tuple[int, ...], place: int) -> Step:
        """The value at index ``place``, broadcast to ``shape`` by NumPy's rule."""
        dims = ir.DenseI64ArrayAttr.get(range(len(shape) - type.ndim, len(shape)))
        result = self.type(type.with_shape(shape))
        return Step("stablehlo.broadcast_in_dim", [result], {"broadcast_dimensions": dims}, [place])

    def type(self, type: ArrayType) -> Any:
        """MLIR's tensor type."""
        found = self.types.get(type)
        if found is None:
            found = self.types[type] = ir.RankedTensorType.get(type.shape, _dtype_to_ir_type(type.dtype))
        return found

    def location(self, equation: Equation) -> Any:
        """MLIR's location: the primitive's name and the user's line."""
        source = equation.source
        # Keyed by identity: hashing a code object hashes its contents each time.
        key = (equation.primitive, source and id(source[0]), source and source[1])
        found = self.locations.get(key)
        if found is None:
            line = ir.Location.file(*file_and_line(source), 0) if source else ir.Location.unknown()
            found = self.locations[key] = ir.Location.name(f"{self.scope}{equation.primitive.name}", childLoc=line)
        return found


def _emit(context: Any, *arguments: Any, program: Program) -> Sequence[Any]:
    alike = jax.config.values.get("jax_use_shardy_partitioner", True) and not _partly_divided(program)
    return _Emitter(context, alike).program(program, arguments)


# Not cacheable: JAX would emit the program twice, as a function and inlined.
_register_lowering(program_p, _emit, cacheable=False)


def stablehlo(program: Program) -> str:
    """The program's StableHLO as text."""
    types = [jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak) for t in program.input_types]
    return jax.jit(lowered(program)).lower(*types).as_text()


set_view("stablehlo", stablehlo)
