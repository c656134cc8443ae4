"""``jit``: a function traced and compiled once per argument signature.

``jit(f)`` is ``jax.jit(g)``, where ``g`` traces ``f`` with funcgrad and binds the program as one JAX operation. ``g``
runs only on a cache miss; a hit is JAX's C++ path. Called on tracers, it records one call equation instead.
"""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from funcgrad.arguments.flatten import Flat, is_float0, kind, no_tangent, settled
from funcgrad.arguments.sharding_constraint import look_for_devices
from funcgrad.arguments.shardings import check_kinds, constrained, of_arguments, of_results
from funcgrad.control.call import call_program
from funcgrad.core import dtypes, trees
from funcgrad.core.caching import Cache, Group
from funcgrad.core.errors import explained
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.passes import common_subexpressions, dead_code
from funcgrad.core.tracing import Tracer, call_when_running, is_array, state, type_of
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.collectives import MeshAxis
from funcgrad.runtime.compiled import compiled
from funcgrad.runtime.process import in_child, process, refuse
from funcgrad.transforms.trace import argument_names, eval_shape, positional_names


class _ClosesOverTracer(Exception):
    """The traced function closes over a tracer of a surrounding transform: it cannot be compiled on its own."""


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Callable[..., Any]:
    """``f`` compiled by XLA: traced and compiled for each new combination of shapes, dtypes and static arguments.

    Args:
        f: takes and returns pytrees of arrays; side effects happen only while tracing. Captured arrays are constants
            with values, on which their own operators are evaluated while tracing.
        static_argnums, static_argnames: arguments that are hashable Python values; each new value recompiles.
        donate_argnums, donate_argnames: arguments whose buffers the results may reuse; do not use them afterwards.
        keep_unused: whether unused arguments stay arguments of the compiled program.
        in_shardings, out_shardings: the shardings of positional arguments and of results, as for ``jax.jit``: one for
            all, or a tuple of one entry per non-static argument (for results, with their structure), of shardings or
            prefix pytrees of them. With None arguments keep their sharding, and the compiler chooses that of results.
            Inside another transform they are constraints in its program.

    Returns:
        A function like ``f``, with the methods ``trace(*args)``, the optimized ``Program``; ``lower(*args)``, as of
        ``jax.jit(...).lower``, with ``as_text()`` and ``compile()``; ``eval_shape(*args)``, the result types, as of
        ``funcgrad.eval_shape``.

    Raises:
        ConcretizationError: from the call, if ``f`` needs the value of a traced array.
        ValueError: from the call, if a sharding is invalid for an argument or a result, which the message names.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> @fg.jit
        ... def f(x):
        ...     return fnp.sin(x) * 2
        >>> print(f(fnp.zeros(3)))
        [0. 0. 0.]
    """
    if f is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames,
            donate_argnums=donate_argnums, donate_argnames=donate_argnames, keep_unused=keep_unused,
            in_shardings=in_shardings, out_shardings=out_shardings,
        )  # fmt: skip
    if not callable(f):
        raise TypeError(f"jit: wants a function, got {kind(f)}")
    statics = _Statics(f, static_argnums, static_argnames)
    shardings = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    for name, given in shardings.items():
        check_kinds(name, given)
    traced = _Traced(f, statics, **shardings)
    made = compiled(
        traced.stage, many=True, check=traced.check,
        static_argnums=tuple(sorted(statics.positions)), static_argnames=tuple(sorted(statics.names)),
        donate_argnums=donate_argnums, donate_argnames=donate_argnames, keep_unused=keep_unused,
        **{name: given for name, given in shardings.items() if given is not None},
    )  # fmt: skip
    return Jitted(f, made, traced)


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Context in which functions returned by ``jit`` run uncompiled on concrete values, for printing and debugging.

    Control flow primitives are unaffected: their bodies are still staged.

    Args:
        disable: False re-enables ``jit`` within such a context.

    Returns:
        A context manager.

    Example:
        >>> import funcgrad as fg
        >>> f = fg.jit(lambda x: x if x > 0 else -x)
        >>> with disable_jit():
        ...     print(f(-2.0))
        2.0
    """
    with jax.disable_jit(disable):
        yield


def _disabled() -> bool:
    return jax.config.jax_disable_jit  # type: ignore[attr-defined]


class Jitted:
    """The compiled function that ``jit`` returns.

    Attributes:
        lower: as ``jax.jit(...).lower``.
        clear_cache: deletes the compiled programs.
    """

    # While no transform runs, a call goes directly to JAX's C++ function: a Python frame in between would be 5% of a
    # small call. While one runs, in any thread, calls go through _call_while_running.
    __slots__ = ("_compiled", "_jax", "_route", "_traced", "__dict__", "__weakref__")
    __call__ = property(operator.attrgetter("_route"))

    def __init__(self, function: Callable[..., Any], compiled: Any, traced: _Traced):
        functools.update_wrapper(self, function)
        self._compiled = traced.explained(compiled) if traced.refused_in_c else compiled
        self._jax = compiled
        self._route = self._call_first
        self._traced = traced
        self.lower = compiled.lower
        self.clear_cache = compiled.clear_cache

    def _call_first(self, /, *args: Any, **kwargs: Any) -> Any:
        trees.check_depth(args)
        trees.check_depth(kwargs)
        try:
            result = self._compiled(*args, **kwargs)
        except (TypeError, ValueError) as error:
            failed = error
        else:
            self._route = self._compiled
            return result
        self._traced.check(args, kwargs)
        raise failed

    def _call_while_running(self, /, *args: Any, **kwargs: Any) -> Any:
        if state.depth:
            return self._traced.under_transform(self._compiled, args, kwargs)
        if process.forked:
            refuse(repr(self))
        return self._compiled(*args, **kwargs)

    @property
    def compiled(self) -> Any:
        """The function as ``jax.jit`` compiled it."""
        return self._jax

    def trace(self, /, *args: Any, **kwargs: Any) -> Program:
        """The optimized program for arguments of these types."""
        program = self._traced.program(args, kwargs)[0]
        (dynamic, named), _ = self._traced.statics.split(args, kwargs)
        program.arguments = argument_names(self._traced.function, dynamic, named)
        return program

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result types for arguments of these types."""
        dynamic, static = self._traced.statics.split(args, kwargs)
        return eval_shape(self._traced.of_dynamic(static), *dynamic)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[attr-defined]  # found by name, as functions are

    def __repr__(self) -> str:
        return f"<jit of {self._traced.function!r}>"


_ROUTES = {False: Jitted.__call__, True: Jitted._call_while_running}
call_when_running(lambda running: setattr(Jitted, "__call__", _ROUTES[running or process.forked]))
in_child(lambda: setattr(Jitted, "__call__", Jitted._call_while_running))


def _refuse_backend_note(error: Exception) -> None:
    """Removes JAX's note about its traceback switch from errors, which does not concern user code."""

    def add_note(note: str) -> None:
        del error.add_note
        if "JAX_TRACEBACK_FILTERING" not in note:
            error.add_note(note)

    error.add_note = add_note  # type: ignore[method-assign]


class _Statics:
    """Which arguments are static, by position and by name."""

    __slots__ = ("positions", "names", "signature")

    def __init__(self, f: Callable[..., Any], argnums: Any, argnames: Any):
        try:
            self.signature: inspect.Signature | None = inspect.signature(f)
        except (ValueError, TypeError):
            self.signature = None
        self.positions = {argnums} if isinstance(argnums, int) else set(argnums or ())
        self.names = {argnames} if isinstance(argnames, str) else set(argnames or ())
        parameters = list(self.signature.parameters.values()) if self.signature else []
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if any(p.kind is p.VAR_POSITIONAL for p in parameters) or not parameters:
            return
        self.positions = {p % len(positional) if p < 0 else p for p in self.positions}
        self.names |= {positional[p] for p in self.positions if p < len(positional)}
        self.positions |= {i for i, n in enumerate(positional) if n in self.names}

    def split(self, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        """The dynamic arguments as a pytree, and the static ones in hashable form."""
        fixed = tuple((i, a) for i, a in enumerate(args) if i in self.positions)
        named = tuple((k, v) for k, v in sorted(kwargs.items()) if k in self.names)
        dynamic = tuple(None if i in self.positions else a for i, a in enumerate(args))
        return (dynamic, {k: v for k, v in kwargs.items() if k not in self.names}), (fixed, named)


_PROGRAMS = Group("programs of jit", 2048)


class _Traced:
    """A function to be compiled, with the programs cached for its calls under other transforms.

    Attributes:
        in_shardings, out_shardings: the arguments of ``jit``.
        programs: cached by argument structure, types and static arguments.
    """

    __slots__ = ("function", "name", "statics", "in_shardings", "out_shardings", "programs")

    def __init__(self, function: Callable[..., Any], statics: _Statics, in_shardings: Any, out_shardings: Any):
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.statics = statics
        self.in_shardings = in_shardings
        self.out_shardings = out_shardings
        self.programs: Cache[tuple, tuple[Program, Any, _Results]] = Cache(_PROGRAMS)

    @property
    def stage(self) -> Callable[..., Any]:
        """The function that JAX traces: it stages the user's function into one operation on JAX's tracers."""

        def staged(*args: Any, **kwargs: Any) -> Any:
            try:
                return self.staged(args, kwargs)
            except Exception as error:
                _refuse_backend_note(error)
                raise

        staged.__name__ = staged.__qualname__ = self.name
        if self.statics.signature is not None:
            staged.__signature__ = self.statics.signature  # type: ignore[attr-defined]
        return staged

    def staged(self, args: tuple, kwargs: dict) -> Any:
        """The result of the function on JAX's tracers and static arguments."""
        if _disabled():
            return self.function(*args, **kwargs)
        look_for_devices()
        leaves, tree = trees.flatten((args, kwargs))
        leaves = [no_tangent(x.shape) if is_float0(x) else x for x in leaves]
        dynamic = [i for i, x in enumerate(leaves) if isinstance(x, jax.core.Tracer)]
        operands = [_canonical(leaves[i]) for i in dynamic]
        types = [ArrayType(x.shape, x.dtype, leaves[i].aval.weak_type) for i, x in zip(dynamic, operands, strict=True)]
        flat = Flat(lambda a, k: self.function(*a, **k), tree, "jit")
        results = _Results()

        def of_dynamic(*traced: Any) -> Any:
            full = list(leaves)
            for i, x in zip(dynamic, traced, strict=True):
                full[i] = x
            outs = settled(flat(*full))
            if self.out_shardings is not None:  # JAX applies them, if valid
                of_results(self.out_shardings, trees.unflatten(flat.out_tree, outs))
            return results.arrays(outs)

        program = _optimized(stage(of_dynamic, types, name=self.name, description="jit"))
        if any(isinstance(x, Tracer) for _, x in program.constants):
            raise _ClosesOverTracer
        program, used = _without_unused(program)
        found = lowered(program)(*[x for x, u in zip(operands, used, strict=True) if u])
        return trees.unflatten(flat.out_tree, results.whole(found))

    def under_transform(self, compiled: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """A call while a transform runs: compiled if no operand is traced, else one call equation."""
        if _disabled():
            return self.function(*args, **kwargs)
        # Programs compiled outside do not know the named axes in scope.
        if not state.axes and not any(isinstance(x, Tracer) for x in trees.leaves((args, kwargs))):
            try:
                return compiled(*args, **kwargs)
            except _ClosesOverTracer:
                pass
        (dynamic, named), static = self.statics.split(args, kwargs)
        leaves, tree = trees.flatten((dynamic, named))
        _check_arrays(leaves)
        nothing = tuple(x.shape if is_float0(x) else None for x in leaves)
        leaves = [x for x in leaves if not is_float0(x)]
        # The type is part of the key: True and 1.0 equal 1.
        kinds = tuple(type(value) for group in static for _, value in group)
        axes = tuple((n, size, axis if isinstance(axis, MeshAxis) else None) for n, (axis, size) in state.axes.items())
        key = (tree, tuple(type_of(x) for x in leaves), static, kinds, nothing, axes)
        try:
            found = self.programs.get(key) or self.programs.again(key)
        except TypeError:
            raise TypeError(f"jit: static arguments must be hashable, got {static}") from None
        if found is None:
            found = self.program(args, kwargs)
            # A program that closes over a tracer, JAX's included, cannot be cached.
            if not any(isinstance(x, (Tracer, jax.core.Tracer)) for _, x in found[0].constants):
                self.programs[key] = found
        program, out_tree, results = found
        return trees.unflatten(out_tree, results.whole(call_program(program, leaves)))

    def shardings_of(self, args: tuple, kwargs: dict) -> list[Any]:
        """The shardings of the leaves of non-static arguments; static positions are omitted from both."""
        (dynamic, named), _ = self.statics.split(args, kwargs)
        given = [i for i in range(len(args)) if i not in self.statics.positions]
        names = positional_names(self.function, len(args))
        return of_arguments(self.in_shardings, [names[i] for i in given], [dynamic[i] for i in given], named)

    def explained(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps the compiled function: where JAX refuses a call in C++, the error names the argument."""

        @functools.wraps(compiled)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return compiled(*args, **kwargs)
            except (TypeError, ValueError) as error:
                failed = error
            if self.in_shardings is not None:
                self.shardings_of(args, kwargs)
            self.check(args, kwargs)
            raise failed

        return call

    @property
    def refused_in_c(self) -> bool:
        """Whether JAX may refuse a call in C++: unhashable static arguments, invalid shardings."""
        return self.in_shardings is not None or bool(self.statics.positions or self.statics.names)

    def check(self, args: tuple, kwargs: dict) -> None:
        """Raises an error that names an argument that is not an array, or an unhashable static one."""
        (dynamic, named), static = self.statics.split(args, kwargs)
        for part in static:
            for where, value in part:
                try:
                    hash(value)
                except TypeError:
                    called = f"argument {where}" if isinstance(where, int) else repr(where)
                    message = f"jit: static arguments must be hashable, but {called} is {kind(value)}"
                    raise explained(ValueError(message), "jit-argument") from None
        _check_arrays(trees.leaves((dynamic, named)))

    def of_dynamic(self, static: Any) -> Callable[[tuple, dict], Any]:
        """The function of the dynamic arguments."""
        fixed, fixed_named = static

        def called(args: tuple, kwargs: dict) -> Any:
            full = list(args)
            for i, a in fixed:
                full[i] = a
            return self.function(*full, **kwargs, **dict(fixed_named))

        return called

    def program(self, args: tuple, kwargs: dict) -> tuple[Program, Any, _Results]:
        """The optimized program for these arguments, its result's structure, and its operands."""
        (dynamic, named), static = self.statics.split(args, kwargs)
        leaves, tree = trees.flatten((dynamic, named))
        _check_arrays(leaves)
        flat = Flat(self.of_dynamic(static), tree, "jit")
        results = _Results()
        types = [type_of(x) for x in leaves if not is_float0(x)]
        places = None if self.in_shardings is None else self.shardings_of(args, kwargs)

        def of_arrays(*xs: Any) -> list[Any]:
            given = iter(xs)
            full = [x if is_float0(x) else next(given) for x in leaves]
            outs = settled(flat(*(full if places is None else constrained(full, places))))
            if self.out_shardings is not None:
                found = of_results(self.out_shardings, trees.unflatten(flat.out_tree, outs))
                outs = constrained(outs, found)
            return results.arrays(outs)

        program = stage(of_arrays, types, name=self.name, description="jit")
        return _optimized(program), flat.out_tree, results


class _Results:
    """The computed flat results, and those of dtype ``float0``, which are not computed."""

    __slots__ = ("others",)

    def __init__(self) -> None:
        self.others: dict[int, np.ndarray] = {}

    def arrays(self, outs: Sequence[Any]) -> list[Any]:
        """The computed results; stores the others."""
        self.others = {i: x for i, x in enumerate(outs) if is_float0(x)}
        return [x for i, x in enumerate(outs) if i not in self.others]

    def whole(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """All results, given the computed ones."""
        if not self.others:
            return arrays
        computed = iter(arrays)
        return [self.others[i] if i in self.others else next(computed) for i in range(len(arrays) + len(self.others))]


def _check_arrays(leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if not is_array(leaf):
            message = f"jit: an argument is {kind(leaf)}, wanted an array or a number, or name it in static_argnums"
            raise explained(TypeError(message), "jit-argument")


def _without_unused(program: Program) -> tuple[Program, list[bool]]:
    """The program without unused inputs, and the indices of the used ones: JAX then drops the others."""
    read = {id(a) for equation in program.equations for a in equation.inputs} | {id(a) for a in program.outputs}
    used = [id(v) in read for v in program.inputs]
    inputs = [v for v, u in zip(program.inputs, used, strict=True) if u]
    return Program(inputs, program.constants, program.equations, program.outputs, program.name), used


def _optimized(program: Program) -> Program:
    return dead_code(common_subexpressions(program))


def _canonical(x: Any) -> Any:
    """Casts Python floats to weak float32; JAX would make them weak float64."""
    if x.aval.weak_type:
        wanted = {dtypes.float64: dtypes.float32, dtypes.complex128: dtypes.complex64}.get(x.dtype)
        if wanted is not None:
            return jax.lax.convert_element_type(x, wanted)
    return x
