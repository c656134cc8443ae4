"""More derivatives: elementwise, with respect to all arguments by name, Gauss-Newton products."""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from funcgrad.arguments.flatten import Argnums, partial_of, positions_of
from funcgrad.core import trees
from funcgrad.core.tracing import type_of
from funcgrad.numpy.reductions import sum
from funcgrad.transforms.autodiff import grad, jvp, vjp

__all__ = ["elementwise_grad", "make_ggnvp", "multigrad_dict"]


def elementwise_grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The derivative of each element of a result with respect to the same element of an argument.

    Args:
        f: an elementwise function; for others, the result is the column sums of the Jacobian.
        argnums: the arguments to differentiate with respect to.

    Returns:
        A function of the same arguments; its result is like the argument, or a tuple of these.

    Raises:
        TypeError: if ``f`` returns complex arrays, or an argument is not floating.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> print(elementwise_grad(fnp.square)(fnp.array([1.0, 2.0, 3.0])))
        [2. 4. 6.]
    """

    def total(*args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        wrong = [type_of(x) for x in trees.leaves(out) if type_of(x).dtype.kind == "c"]
        if wrong:
            raise TypeError(f"elementwise_grad: the function must return real arrays, got {wrong[0]}")
        return functools.reduce(lambda a, b: a + b, [sum(x) for x in trees.leaves(out)])

    return functools.wraps(f)(grad(total, argnums))


def _half_square(x: Any) -> Any:
    return 0.5 * functools.reduce(lambda a, b: a + b, [sum(leaf * leaf) for leaf in trees.leaves(x)])


def make_ggnvp(f: Callable[..., Any], g: Callable[..., Any] = _half_square, f_argnum: int = 0) -> Callable[..., Any]:
    """Products of vectors with the Gauss-Newton matrix ``J.T @ H @ J`` of ``g`` composed with ``f``.

    Args:
        f: the function with Jacobian ``J``; takes and returns pytrees of floating arrays.
        g: maps the result of ``f`` to a real scalar; its Hessian is ``H``. By default half the sum of squares.
        f_argnum: the argument of ``f`` to differentiate with respect to, an integer.

    Returns:
        A function of the arguments of ``f`` that returns a linear function of pytrees like that argument, to pytrees
        like it.

    Raises:
        TypeError: from that function, if a leaf of the argument or of the result is not a floating array, or ``g`` does
            not return a real scalar.
        ValueError: if there is no such argument; from the linear function, for a different structure, shape or dtype.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> a = fnp.array([[1.0, 2.0], [0.0, 3.0]])
        >>> print(make_ggnvp(lambda x: a @ x)(fnp.zeros(2))(fnp.array([1.0, 0.0])))
        [1. 2.]
    """

    def at(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        (position,) = positions_of("make_ggnvp", f_argnum, len(args))
        of_one = partial_of(f, (position,), args, kwargs)
        x = args[position]
        out, pull = vjp(of_one, x)

        def product(v: Any) -> Any:
            moved = jvp(of_one, (x,), (v,))[1]
            curved = jvp(grad(g), (out,), (moved,))[1]
            return pull(curved)[0]

        return product

    return at


def multigrad_dict(f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of a scalar function with respect to all its arguments, by name.

    Args:
        f: returns a scalar.

    Returns:
        A function of the same arguments. It returns a dictionary with an entry for each parameter in the signature,
        including defaults; the entry of ``*args`` is a tuple, that of ``**kwargs`` a dictionary.

    Raises:
        TypeError: if ``f`` returns anything but a real scalar, or an argument is not floating.

    Example:
        >>> gradients = multigrad_dict(lambda x, y=3.0: x * y)(2.0)
        >>> print({name: float(g) for name, g in gradients.items()})
        {'x': 3.0, 'y': 2.0}
    """
    signature = inspect.signature(f)

    @functools.wraps(f)
    def gradients(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_all(given: dict[str, Any]) -> Any:
            again = inspect.BoundArguments(signature, OrderedDict(given))
            return f(*again.args, **again.kwargs)

        found = grad(of_all)(dict(bound.arguments))
        return {name: found[name] for name in bound.arguments}

    return gradients
