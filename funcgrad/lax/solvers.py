"""Solvers of equations, differentiated implicitly instead of through the solver's steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.arguments.flatten import zero_tangent
from funcgrad.core import trees
from funcgrad.core.errors import NonDifferentiableError, here
from funcgrad.transforms.autodiff import jvp, linear_transpose, linearize, vjp
from funcgrad.transforms.custom import custom_jvp, custom_vjp
from funcgrad.transforms.trace import closure_convert

__all__ = ["custom_linear_solve", "custom_root"]

Function = Callable[[Any], Any]
Solver = Callable[[Function, Any], Any]


def _minus(x: Any, y: Any) -> Any:
    return trees.map(lambda a, b: a - b, x, y)


def _negative(x: Any) -> Any:
    return trees.map(lambda a: -a, x)


def custom_root(f: Function, initial_guess: Any, solve: Solver, tangent_solve: Solver, has_aux: bool = False) -> Any:
    """A root of a function, by any solver; differentiated by the implicit function theorem.

    Args:
        f: maps a pytree of arrays to one of the same structure and types. The root is differentiated with respect to
            the values that it closes over.
        initial_guess: the start of the search; the root does not depend on it.
        solve: maps ``(f, initial_guess)`` to the root; it may contain a ``while_loop``.
        tangent_solve: maps ``(g, y)``, with ``g`` linear, to the solution of ``g(x) = y``.
        has_aux: whether ``solve`` returns a pair of the root and auxiliary data, whose derivative is zero.

    Returns:
        The root, or that pair.

    Raises:
        TypeError: from ``f`` or the solvers, if structures differ.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> def newton(f, x):
        ...     step = lambda x: x - f(x) / fg.grad(f)(x)
        ...     return fg.while_loop(lambda x: fnp.abs(f(x)) > 1e-6, step, x)
        >>> root = lambda a: custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
        >>> print(root(4.0), fg.grad(root)(4.0), fg.grad(fg.grad(root))(4.0))
        2.0 0.25 -0.03125
    """
    converted, hoisted = closure_convert(f, initial_guess)

    @custom_jvp
    def root(guess: Any, *values: Any) -> Any:
        return solve(lambda x: converted(x, *values), guess)

    @root.defjvp
    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        guess, *values = primals
        out = root(guess, *values)
        x = out[0] if has_aux else out
        _, change = jvp(lambda *vs: converted(x, *vs), tuple(values), tuple(tangents[1:]))
        _, pushed = linearize(lambda x: converted(x, *values), x)
        moved = tangent_solve(pushed, _negative(change))
        return out, (moved, trees.map(zero_tangent, out[1])) if has_aux else moved

    if hoisted:
        return root(initial_guess, *hoisted)
    return solve(f, initial_guess)


def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Solver,
    transpose_solve: Solver | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The solution of ``matvec(x) = b`` by a given solver, differentiated by solving linear systems.

    Args:
        matvec: a linear map from a pytree of arrays to one of the same structure and types. The solution is also
            differentiated with respect to the values that it closes over.
        b: a pytree of arrays.
        solve: maps ``(matvec, b)`` to the solution; it may contain a ``while_loop``.
        transpose_solve: maps ``(vecmat, b)`` to the solution of the transposed system, for reverse mode.
        symmetric: whether ``matvec`` is its own transpose, so that ``solve`` serves for both.
        has_aux: whether the solvers return a pair of the solution and auxiliary data, whose derivative is zero.

    Returns:
        The solution, or that pair.

    Raises:
        NonDifferentiableError: in reverse mode, without a solver of the transposed system.
        TypeError: from ``matvec`` or the solvers, if structures differ.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> by_columns = lambda matvec, b: fnp.linalg.solve(fg.jacfwd(matvec)(b), b)
        >>> def f(a, b):
        ...     return fnp.sum(custom_linear_solve(lambda x: a @ x, b, by_columns, by_columns))
        >>> print(fg.grad(f, argnums=1)(fnp.array([[2.0, 0.0], [0.0, 4.0]]), fnp.ones(2)))
        [0.5  0.25]
    """
    converted, hoisted = closure_convert(matvec, b)
    back = solve if symmetric else transpose_solve

    @custom_vjp
    def solution(b: Any, *values: Any) -> Any:
        return solve(lambda x: converted(x, *values), b)

    def forward(b: Any, *values: Any) -> tuple[Any, Any]:
        out = solution(b, *values)
        return out, (out[0] if has_aux else out, values)

    def backward(kept: Any, ct: Any) -> tuple[Any, ...]:
        x, values = kept
        if back is None:
            raise NonDifferentiableError(
                "custom_linear_solve: reverse mode solves the transposed equation; give transpose_solve, or "
                f"symmetric=True; at {here()}"
            )
        transposed = linear_transpose(lambda v: converted(v, *values), x)
        found = custom_linear_solve(
            lambda v: transposed(v)[0], ct[0] if has_aux else ct, back, solve, symmetric, has_aux
        )
        w = found[0] if has_aux else found
        return (w, *vjp(lambda *vs: converted(x, *vs), *values)[1](_negative(w))) if values else (w,)

    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        b, *values = primals
        out = solution(b, *values)
        x, moved = out[0] if has_aux else out, tangents[0]
        if values:
            moved = _minus(moved, jvp(lambda *vs: converted(x, *vs), tuple(values), tuple(tangents[1:]))[1])
        pushed = solution(moved, *values)
        return out, (pushed[0], trees.map(zero_tangent, out[1])) if has_aux else pushed

    solution.defvjp(forward, backward)
    solution.defjvp(rule)
    return solution(b, *hoisted)
