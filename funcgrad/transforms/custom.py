"""Functions with custom derivative rules: ``custom_jvp`` and ``custom_vjp``.

A call is one operation of a primitive whose parameters are the Python function and its rule. Under ``grad`` and ``jvp``
the rule runs on concrete values. For interpreters without values, and for ``vmap``, the operation is *closed* first:
the function is traced to a program, and captured tracers become operands. The rule stays a Python function and runs
when the function is differentiated; it may call the function itself.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.arguments.flatten import check_leaves, kind, match, zero_of, zero_tangent
from funcgrad.control.widening import widen_call
from funcgrad.core import trees
from funcgrad.core.errors import LeakedTracerError, NonDifferentiableError, explained, here
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import Interpreter, Tracer, bind, is_array, state, traced, type_of, typed
from funcgrad.interpreters.batching import Batching, at_axis, batch_flat
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.reverse import Pullback, vjp_from_jvp
from funcgrad.interpreters.rules import accumulate
from funcgrad.interpreters.staging import stage
from funcgrad.interpreters.transpose import transpose_call, transpose_program
from funcgrad.primitives.elementwise import mul, number
from funcgrad.primitives.reductions import reduce_sum
from funcgrad.primitives.shape import zeros

Arrays = Sequence[Any]

# ---------------------------------------------------------------- a call, flat


class _Call:
    """One call: the function and its rule as functions of flat arrays.

    Attributes:
        name: the name of the function.
        fixed: the arguments that are not differentiated, by position.
        tree: the pytree structure of the other arguments.
        out_tree: the structure of the result, set by the first run.
    """

    def __init__(self, owner: _Custom, fixed: dict[int, Any], tree: Any):
        self.owner = owner
        self.name = owner.__name__
        self.fixed = fixed
        self.tree = tree
        self.out_tree: Any = None

    def arguments(self, leaves: Arrays) -> list[Any]:
        """All arguments, in order."""
        given = iter(trees.unflatten(self.tree, leaves))
        return [self.fixed[i] if i in self.fixed else next(given) for i in range(len(self.fixed) + _width(self.tree))]

    def function(self, *leaves: Any) -> list[Any]:
        return self.result(self.owner.function(*self.arguments(leaves)))

    def result(self, value: Any) -> list[Any]:
        """The flat result; stores its structure."""
        outs, tree = trees.flatten(value)
        if self.out_tree is not None and tree != self.out_tree:
            raise TypeError(f"{self.name}: returns the structure {self.out_tree}, but its rule returned {tree}")
        self.out_tree = tree
        if not all(map(is_array, outs)):
            raise TypeError(f"{self.name}: must return arrays, got {kind(value)}")
        return outs

    def of(self, leaves: Arrays) -> tuple[Any, ...]:
        return tuple(trees.unflatten(self.tree, leaves))

    @property
    def pushes(self) -> bool:
        """Whether it has a forward rule."""
        return hasattr(self.owner, "rule")

    def push(self, primals: Arrays, tangents: Arrays, closed_over: Arrays = ()) -> tuple[list[Any], list[Any]]:
        """The results and their tangents, ``None`` where zero, from the user's rule."""
        moving = [zero_tangent(x) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        found = self.owner.rule(*self.fixed.values(), self.of(primals), self.of(moving))
        if not (isinstance(found, (tuple, list)) and len(found) == 2):
            raise TypeError(f"{self.name}: its jvp rule must return (result, tangent), got {kind(found)}")
        outs = self.result(found[0])
        what = f"{self.name}: the tangent that its jvp rule returned"
        return outs, match(what, found[1], self.out_tree, [type_of(o) for o in outs])


def _width(tree: Any) -> int:
    return len(trees.unflatten(tree, [0] * tree.num_leaves))


class _VjpCall(_Call):
    """A call of a function with a reverse rule; stores the types and structures of the forward rule's results."""

    owner: custom_vjp
    residual_tree: Any
    out_types: list[ArrayType]

    def forward(self, primals: Arrays, closed_over: Arrays = ()) -> tuple[list[Any], list[Any]]:
        """The results, and the leaves of the residuals."""
        found = self.owner.forward(*self.arguments(primals))
        if not (isinstance(found, (tuple, list)) and len(found) == 2):
            message = f"{self.name}: fwd must return (result, residuals), got {kind(found)}"
            raise explained(TypeError(message), "custom-rule")
        outs = self.result(found[0])
        self.out_types = [type_of(o) for o in outs]
        kept, self.residual_tree = trees.flatten(found[1])
        return outs, kept

    def backward(
        self, kept: Arrays, cotangents: Arrays, types: Sequence[ArrayType], closed_over: Arrays = ()
    ) -> list[Any]:
        """The cotangents of the operands, of ``types``; ``None`` is zero in arguments and results."""
        residuals = trees.unflatten(self.residual_tree, kept)
        filled = list(cotangents)
        if self.owner.materialize:
            filled = [zero_of(t) if ct is None else ct for ct, t in zip(cotangents, self.out_types, strict=True)]
        found = self.owner.backward(*self.fixed.values(), residuals, trees.unflatten(self.out_tree, filled))
        wanted = trees.unflatten(self.tree, types)
        if not isinstance(found, (tuple, list)) or len(found) != len(wanted):
            message = (
                f"{self.name}: bwd must return a tuple of {len(wanted)} cotangents, one per argument that is "
                f"differentiated, got {kind(found)}"
            )
            raise explained(TypeError(message), "custom-rule")
        cts: list[Any] = []
        for i, (ct, of_argument) in enumerate(zip(found, wanted, strict=True)):
            leaves, tree = trees.flatten(of_argument)
            what = f"{self.name}: the cotangent that bwd returned for argument {i}"
            cts += [None] * len(leaves) if ct is None else match(what, ct, tree, leaves)
        return cts


# ---------------------------------------------------------------- closing


def _close(interpreter: Interpreter, operands: Arrays, params: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    """The operation with a program for the function, and the captured values as leading operands."""
    if "program" in params:
        return operands, params
    call = params["call"]
    program, constants = stage(call.function, [type_of(x) for x in operands], name=call.name).closed()
    lifted = _Lifted(interpreter, constants)
    return [*constants, *operands], {"program": program, "call": call, "lifted": lifted}


class _Lifted:
    """Captured values of a function, passed as its first operands.

    Attributes:
        count: the number of captured values.
        by: the ``vmap`` that closed the operation. While it runs, a rule may close over the same values, which it
            batches.
        values: the captured values, in that case.
    """

    def __init__(self, interpreter: Interpreter, values: Arrays):
        self.count = len(values)
        self.by = interpreter if isinstance(interpreter, Batching) else None
        self.values = tuple(values) if self.by else ()


def _split(operands: Arrays, params: dict[str, Any]) -> tuple[Arrays, Arrays]:
    """The captured values, and the call's operands."""
    count = params["lifted"].count if "lifted" in params else 0
    return operands[:count], operands[count:]


def _refuse_closures(closed_over: Arrays, call: _Call) -> None:
    """Raises if a captured value is differentiated, since the rule has no derivative for it."""
    if any(x is not None and x is not False for x in closed_over):
        raise NonDifferentiableError(
            f"{call.name} closes over a value that is being differentiated, of which its own rule says nothing; at "
            f"{here()}. Pass the value as an argument, or see closure_convert."
        )


def _by_rule(call: _Call, rule: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return rule(*arguments)
    except LeakedTracerError as error:
        raise LeakedTracerError(
            f"the rule of {call.name} closes over a traced value, which is gone when the rule runs. Pass the value as "
            f"an argument. {error}"
        ) from None


class _Batched:
    """Base of vectorized calls of functions with custom rules.

    Attributes:
        call: the call for one batch element.
        lifted: the captured values, the first operands.
        size, dims: the batch size, and the operands' batch axes.
    """

    def __init__(self, call: Any, lifted: _Lifted, size: int, dims: Sequence[int | None]):
        self.call, self.lifted, self.size, self.dims = call, lifted, size, tuple(dims)
        self.name = call.name
        self.pushes: bool = call.pushes

    def over(self, f: Callable[..., Arrays], values: Arrays, dims: Sequence[int | None], closed_over: Arrays) -> Any:
        """Vectorizes ``f``, which makes the call: results and their batch axes.

        Args:
            f: a function of the captured values and ``values``.
        """
        n = self.lifted.count

        def run(*args: Any) -> Arrays:
            if not self.lifted.values or isinstance(self.call, _Batched):
                return f(args[:n], *args[n:])
            # A value that the rule closes over is the unbatched operand, not the batched one.
            program = stage(lambda *xs: f((), *xs), [type_of(x) for x in args[n:]], name=self.name)
            given = {id(x): value for x, value in zip(self.lifted.values, args[:n], strict=True)}
            known = [(v, given.get(id(x), x)) for v, x in program.constants]
            return evaluate(Program(program.inputs, known, program.equations, program.outputs), args[n:])

        outs, found = batch_flat(run, self.size, [*closed_over, *values], [*self.dims[:n], *dims])
        if any(isinstance(x, Tracer) and x.interpreter is self.lifted.by for x in outs):
            raise NonDifferentiableError(
                f"the rule of {self.name} closes over a value that vmap batches; at {here()}. Pass it as an argument."
            )
        return outs, found

    def push(self, primals: Arrays, tangents: Arrays, closed_over: Arrays = ()) -> tuple[list[Any], list[Any]]:
        moving = [i for i, t in enumerate(tangents) if t is not None]
        count = len(primals)
        nonzero: list[bool] = []

        def one(closed: Arrays, *args: Any) -> list[Any]:
            found = dict(zip(moving, args[count:], strict=True))
            outs, pushed = self.call.push(args[:count], [found.get(i) for i in range(count)], closed)
            nonzero[:] = [t is not None for t in pushed]
            return [*outs, *[t for t in pushed if t is not None]]

        dims = self.dims[len(closed_over) :]
        given = [*primals, *[tangents[i] for i in moving]]
        outs, found = self.over(one, given, [*dims, *[dims[i] for i in moving]], closed_over)
        placed = [at_axis(o, d, 0, self.size) for o, d in zip(outs, found, strict=True)]
        pushed = iter(placed[len(nonzero) :])
        return placed[: len(nonzero)], [next(pushed) if m else None for m in nonzero]


def _batch(make: type, size: int, operands: Arrays, dims: Sequence[int | None], **params: Any) -> Any:
    program = params["program"]

    def vectorized(*xs: Any) -> list[Any]:
        outs, found = batch_flat(lambda *args: evaluate(program, args), size, xs, dims)
        return [at_axis(o, d, 0, size) for o, d in zip(outs, found, strict=True)]

    whole = stage(vectorized, [type_of(x) for x in operands], name=f"vmap_{program.name}")
    batched = {"program": whole, "call": make(params["call"], params["lifted"], size, dims), "lifted": params["lifted"]}
    primitive = custom_jvp_p if make is _Batched else custom_vjp_p
    return _apply(primitive, operands, batched), [0] * len(program.outputs)


def _apply(primitive: Primitive, operands: Arrays, params: dict[str, Any]) -> list[Any]:
    """Binds a closed operation, or evaluates it if all operands are plain arrays."""
    if state.floor is None and not any(map(traced, operands)):
        return evaluate(params["program"], operands)
    return bind(primitive, operands, params)


# ---------------------------------------------------------------- forward rules


def _push(primals: Arrays, tangents: Arrays, **params: Any) -> tuple[list[Any], list[Any]]:
    call = params["call"]
    closed_over, primals = _split(primals, params)
    of_closed, tangents = _split(tangents, params)
    _refuse_closures(of_closed, call)
    outs, pushed = _by_rule(call, call.push, primals, tangents, closed_over)
    return outs, pushed


def _pull_pushed(operands: Arrays, needs: Sequence[bool], params: dict[str, Any]) -> tuple[list[Any], Pullback]:
    if any(isinstance(x, ArrayType) for x in operands):
        return [], lambda cts: transpose_call(params["program"], operands, cts)
    return vjp_from_jvp(custom_jvp_p, operands, needs, params)


custom_jvp_p = Primitive(
    "custom_jvp",
    infer=lambda *types, program, call, lifted: program.output_types,
    lower=lambda *xs, program, call, lifted: lowered(program)(*xs),
    jvp=_push,
    vjp=_pull_pushed,
    batch=lambda size, operands, dims, **params: _batch(_Batched, size, operands, dims, **params),
    close=_close,
    widen=widen_call,
    multiple=True,
)

# ---------------------------------------------------------------- reverse rules


class _BatchedVjp(_Batched):
    call: _VjpCall | _BatchedVjp
    kept: list[int | None]

    def forward(self, primals: Arrays, closed_over: Arrays = ()) -> tuple[list[Any], list[Any]]:
        count: list[int] = []

        def one(closed: Arrays, *args: Any) -> list[Any]:
            outs, kept = self.call.forward(args, closed)
            count[:] = [len(outs)]
            return [*outs, *kept]

        outs, found = self.over(one, primals, self.dims[len(closed_over) :], closed_over)
        (n,) = count
        self.kept = found[n:]
        return [at_axis(o, d, 0, self.size) for o, d in zip(outs[:n], found[:n], strict=True)], outs[n:]

    def backward(
        self, kept: Arrays, cotangents: Arrays, types: Sequence[ArrayType], closed_over: Arrays = ()
    ) -> list[Any]:
        dims = self.dims[len(closed_over) :]
        inner = [t.without_axis(d) for t, d in zip(types, dims, strict=True)]
        moving = [i for i, ct in enumerate(cotangents) if ct is not None]
        nonzero: list[bool] = []

        def one(closed: Arrays, *args: Any) -> list[Any]:
            given = dict(zip(moving, args[len(kept) :], strict=True))
            cts = [given.get(i) for i in range(len(cotangents))]
            found = self.call.backward(args[: len(kept)], cts, inner, closed)
            nonzero[:] = [ct is not None for ct in found]
            return [ct for ct in found if ct is not None]

        values = [*kept, *[cotangents[i] for i in moving]]
        outs, found = self.over(one, values, [*self.kept, *[0] * len(moving)], closed_over)
        given = iter(zip(outs, found, strict=True))
        return [self.gathered(*next(given), d) if m else None for m, d in zip(nonzero, dims, strict=True)]

    def gathered(self, ct: Any, dim: int | None, wanted: int | None) -> Any:
        """The cotangent of an operand batched along ``wanted``; for a shared operand, the sum."""
        if wanted is not None:
            return at_axis(ct, dim, wanted, self.size)
        return mul(ct, number(self.size, ct)) if dim is None else reduce_sum(ct, axes=(dim,))


def _run_forward(operands: Arrays, params: dict[str, Any]) -> tuple[list[Any], Callable[[Arrays], list[Any]]]:
    """The results, and the pullback to cotangents of the call's operands."""
    call = params["call"]
    closed_over, primals = _split(operands, params)
    types = [type_of(x) for x in primals]
    outs, kept = _by_rule(call, call.forward, primals, closed_over)

    def back(cotangents: Arrays) -> list[Any]:
        return _by_rule(call, call.backward, kept, cotangents, types, closed_over)

    return outs, back


def _pull(operands: Arrays, needs: Sequence[bool], params: dict[str, Any]) -> tuple[list[Any], Pullback]:
    if any(isinstance(x, ArrayType) for x in operands):
        return [], lambda cts: transpose_call(params["program"], operands, cts)
    of_closed, _ = _split(needs, params)
    _refuse_closures(of_closed, params["call"])
    outs, back = _run_forward(operands, params)
    return outs, lambda cts: [*[None] * len(of_closed), *back(cts)]


def _push_pulled(primals: Arrays, tangents: Arrays, **params: Any) -> tuple[list[Any], list[Any]]:
    """Forward mode: by the ``jvp`` rule if there is one, else by transposing ``bwd``, which is linear."""
    if params["call"].pushes:
        return _push(primals, tangents, **params)
    of_closed, tangents = _split(tangents, params)
    _refuse_closures(of_closed, params["call"])
    outs, back = _run_forward(primals, params)
    inexact = [type_of(o).inexact for o in outs]
    given = [t is not None for t in tangents]

    def linear(*cts: Any) -> list[Any]:
        found = iter(cts)
        pulled = back([next(found) if i else None for i in inexact])
        moved = [ct for ct, g in zip(pulled, given, strict=True) if g]
        return [zeros(type_of(t).strong()) if ct is None else ct for ct, t in zip(moved, moving, strict=True)]

    moving = [t for t in tangents if t is not None]
    program = stage(linear, [type_of(o).strong() for o, i in zip(outs, inexact, strict=True) if i], name="bwd")
    try:
        pushed = iter(transpose_program(program, moving))
    except TypeError as error:
        raise NonDifferentiableError(
            f"{params['call'].name} has a reverse rule only. Its forward derivative is the transpose of bwd, which is "
            f"not linear in the cotangent; at {here()}: {error}"
        ) from None
    return outs, [next(pushed) if i else None for i in inexact]


custom_vjp_p = Primitive(
    "custom_vjp",
    infer=lambda *types, program, call, lifted: program.output_types,
    lower=lambda *xs, program, call, lifted: lowered(program)(*xs),
    jvp=_push_pulled,
    vjp=_pull,
    batch=lambda size, operands, dims, **params: _batch(_BatchedVjp, size, operands, dims, **params),
    close=_close,
    widen=widen_call,
    multiple=True,
)

# ---------------------------------------------------------------- public functions


class _Custom:
    """Base of the two decorators: static and differentiable arguments, and calls."""

    __name__: str
    rule: Callable[..., Any]
    _primitive: Primitive
    _call: type[_Call]
    _stated_by: str

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()):
        functools.update_wrapper(self, function)
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.function = function
        self.nondiff_argnums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)

    def _is_stated(self) -> bool:
        """Whether a rule is defined."""
        raise NotImplementedError

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Defines the forward rule: ``(*nondiff, primals, tangents) -> (result, tangent)``, linear in the tangents.

        ``primals`` and ``tangents`` are tuples, one entry per argument; those of integers are zeros of dtype float0.
        """
        self.rule = jvp
        return jvp

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._is_stated():
            message = f"{self.__name__} has no derivative yet: state it with {self._stated_by}"
            raise explained(AttributeError(message), "custom-rule")
        arguments = self._positional(args, kwargs)
        count = len(arguments)
        out = [n for n in self.nondiff_argnums if not -count <= n < count]
        if out:
            raise ValueError(f"{self.__name__}: nondiff_argnums names argument {out[0]}, but there are {count}")
        skipped = {n % count for n in self.nondiff_argnums}
        fixed = {i: a for i, a in enumerate(arguments) if i in skipped}
        rest = tuple(a for i, a in enumerate(arguments) if i not in skipped)
        leaves, tree = trees.flatten(rest)
        if state.floor is None and not any(map(traced, leaves)):
            return self.function(*arguments)
        names = [f"argument {i}" for i in range(count) if i not in skipped]
        check_leaves(self.__name__, names, rest)
        call = self._call(self, fixed, tree)
        outs = bind(self._primitive, leaves, {"call": call})
        return trees.unflatten(call.out_tree, outs)

    def _positional(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """The arguments by position, including those given by name and defaults."""
        try:
            signature = inspect.signature(self.function)
        except (ValueError, TypeError):  # some builtins have no signature
            return args
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            names = ", ".join(bound.kwargs)
            raise TypeError(f"{self.__name__}: its rule takes arguments by position, but {names} has a name only")
        return bound.args


class custom_jvp(_Custom):
    """A function with a custom forward derivative, from which its reverse derivative is derived.

    Args:
        function: takes and returns pytrees of arrays.
        nondiff_argnums: arguments that are not differentiated, of any type (functions, for example); the rule receives
            them first.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> @custom_jvp
        ... def f(x):
        ...     return fnp.log(1.0 + fnp.exp(x))
        >>> @f.defjvp
        ... def f_jvp(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return f(x), t / (1.0 + fnp.exp(-x))
        >>> print(fg.grad(f)(100.0), fg.jvp(f, (0.0,), (1.0,))[1])
        1.0 0.5
    """

    _primitive, _call, _stated_by = custom_jvp_p, _Call, "defjvp"

    def _is_stated(self) -> bool:
        return hasattr(self, "rule")

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Defines the rule by one function per argument, ``(tangent, result, *primals) -> tangent``; None is zero.

        Example:
            >>> import funcgrad as fg
            >>> @custom_jvp
            ... def product(x, y):
            ...     return x * y
            >>> product.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: x * t)
            >>> print(*fg.grad(product, argnums=(0, 1))(2.0, 3.0))
            3.0 2.0
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps: a function with nondiff_argnums states its rule with defjvp")

        def rule(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
            result = self(*primals)
            total: list[Any] = [None] * len(trees.leaves(result))
            for jvp, tangent in zip(jvps, tangents, strict=True):
                if jvp is not None:
                    term = trees.leaves(jvp(tangent, result, *primals))
                    total = [accumulate(a, typed(b)) for a, b in zip(total, term, strict=True)]
            filled = [zero_tangent(o) if t is None else t for o, t in zip(trees.leaves(result), total, strict=True)]
            return result, trees.unflatten(trees.structure(result), filled)

        self.rule = rule


class custom_vjp(_Custom):
    """A function with a custom reverse derivative, whose transpose is its forward derivative.

    ``bwd`` cannot be transposed if it contains a ``while_loop``; ``defjvp``, as for ``custom_jvp``, adds a forward
    rule.

    Args:
        function: takes and returns pytrees of arrays.
        nondiff_argnums: arguments that are not differentiated, of any type (functions, for example); ``bwd`` receives
            them first, ``fwd`` in their original positions.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> @custom_vjp
        ... def clipped(x):
        ...     return x
        >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (fnp.clip(ct, -1.0, 1.0),))
        >>> print(fg.grad(lambda x: clipped(x) ** 3)(2.0))
        1.0
    """

    _primitive, _call, _stated_by = custom_vjp_p, _VjpCall, "defvjp"
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    materialize: bool

    def _is_stated(self) -> bool:
        return hasattr(self, "forward")

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any], *, materialize: bool = True) -> None:
        """Defines the rule.

        Args:
            fwd: takes the function's arguments; returns its result and the residuals, a pytree.
            bwd: ``(*nondiff, residuals, cotangent)``; returns a tuple of cotangents, one per differentiated argument
                and like it, or None for zero. It must be linear in the cotangent for forward and second derivatives.
            materialize: whether ``bwd`` receives zeros instead of None for unused results.
        """
        self.forward, self.backward, self.materialize = fwd, bwd, materialize
