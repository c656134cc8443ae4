"""Tracing functions to programs, result types, and closure conversion."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import Flat, abstract
from funcgrad.core import trees
from funcgrad.core.ir import Program
from funcgrad.core.tracing import traced, type_of
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.staging import stage


def trace(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Program:
    """The program that ``f`` performs on arguments of these types; nothing is computed.

    Args:
        f: takes and returns pytrees of arrays.
        args, kwargs: arrays, numbers, or anything with a ``shape`` and a ``dtype``.

    Returns:
        The ``Program``, with ``pretty(source=True, names=True)``, ``check()``, ``cost()``, ``stablehlo()`` and
        ``dot()``.

    Raises:
        ConcretizationError: if ``f`` needs the value of an array.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.trace(lambda x: fnp.sin(x) * 2, fnp.ones(3)))
        program(a: f32[3]) {
          b: f32[3] = sin a
          c: f32[3] = mul b 2.0
          return c
        }
    """
    validate.function("trace", f)
    leaves, tree = trees.flatten((args, kwargs))
    flat = Flat(lambda a, k: f(*a, **k), tree, "trace")
    program = stage(flat, [abstract("trace", x) for x in leaves])
    program.arguments = argument_names(f, args, kwargs)
    return program


def argument_names(f: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """The names of the leaves of arguments: the parameter with the path from it, as ``params['w']``."""
    every = [*zip(positional_names(f, len(args)), args, strict=True), *sorted(kwargs.items())]
    return [name + trees.keystr(path) for name, value in every for path, _ in trees.tree_flatten_with_path(value)[0]]


def positional_names(f: Callable[..., Any], count: int) -> list[str]:
    """The names of the first ``count`` positional arguments."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (ValueError, TypeError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p.name for p in parameters if p.kind in kinds]
    return [positional[i] if i < len(positional) else f"argument {i}" for i in range(count)]


def make_jaxpr(f: Callable[..., Any]) -> Callable[..., Program]:
    """A function of the same arguments that returns the program of ``trace``; the name is JAX's.

    Args:
        f: takes and returns pytrees of arrays.

    Returns:
        A function that returns a ``Program``.

    Raises:
        TypeError: if ``f`` is not a function.
        ConcretizationError: from the function, if ``f`` needs the value of an array.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.make_jaxpr(fnp.sin)(1.0))
        program(a: f32[]~) {
          b: f32[]~ = sin a
          return b
        }
    """
    validate.function("make_jaxpr", f)
    return functools.wraps(f)(lambda *args, **kwargs: trace(f, *args, **kwargs))


def eval_shape(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the result of ``f``, without computing it.

    Args:
        f: takes and returns pytrees of arrays.
        args, kwargs: arrays, numbers, or anything with a ``shape`` and a ``dtype``.

    Returns:
        The result's pytree, with an ``ArrayType`` in place of each array.

    Raises:
        ConcretizationError: if ``f`` needs the value of an array.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> fg.eval_shape(lambda x, w: {"y": x @ w}, fnp.ones((3, 4)), fg.ArrayType((4, 2), fnp.float32))
        {'y': f32[3,2]}
    """
    validate.function("eval_shape", f)
    leaves, tree = trees.flatten((args, kwargs))
    flat = Flat(lambda a, k: f(*a, **k), tree, "eval_shape")
    program = stage(flat, [abstract("eval_shape", x) for x in leaves], description="eval_shape")
    return trees.unflatten(flat.out_tree, [t.strong() for t in program.output_types])


def closure_convert(f: Callable[..., Any], *examples: Any) -> tuple[Callable[..., Any], list[Any]]:
    """``f`` with the traced values that it closes over turned into arguments.

    For functions passed to a ``custom_vjp`` or ``custom_jvp`` function, whose rules must see captured values as
    arguments.

    Args:
        f: takes and returns pytrees of arrays.
        examples: arguments, of which only shapes and dtypes are used.

    Returns:
        A function of ``f``'s arguments followed by the captured values, and the list of those: traced and of floating
        dtype, so that derivatives with respect to them exist.

    Raises:
        TypeError: from the function, for arguments of another structure than the examples.

    Example:
        >>> import funcgrad as fg
        >>> def loss(y):
        ...     converted, hoisted = fg.closure_convert(lambda x: x * y, 1.0)
        ...     return converted(3.0, *hoisted)
        >>> print(fg.grad(loss)(2.0))
        3.0
    """
    validate.function("closure_convert", f)
    tree: Any
    leaves, tree = trees.flatten(examples)
    out_trees: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        outs, out_tree = trees.flatten(f(*trees.unflatten(tree, xs)))
        out_trees[:] = [out_tree]
        return outs

    program = stage(flat, [type_of(x) for x in leaves], name=getattr(f, "__name__", "function"))
    hoisted = [x for v, x in program.constants if traced(x) and v.type.inexact]

    def converted(*args: Any) -> Any:
        count = len(args) - len(hoisted)
        given, found = trees.flatten(tuple(args[:count]))
        if found != tree:
            raise TypeError(f"closure_convert: the arguments have the structure {found}, wanted {tree}")
        values = {id(x): value for x, value in zip(hoisted, args[count:], strict=True)}
        known = [(v, values.get(id(x), x)) for v, x in program.constants]
        inner = Program(program.inputs, known, program.equations, program.outputs, program.name)
        return trees.unflatten(out_trees[0], evaluate(inner, given))

    return converted, hoisted
