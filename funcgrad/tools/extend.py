"""Opaque primitives with derivative rules per argument: ``primitive``, ``defvjp``, ``defjvp``.

For code that cannot be traced, such as that of other libraries: the function receives NumPy arrays if there are
concrete values. A call behaves like one of ``custom_vjp``, or of ``custom_jvp`` if only forward rules are given.

Example:
    >>> import funcgrad as fg
    >>> @primitive
    ... def logsumexp(x):
    ...     largest = np.max(x)
    ...     return largest + np.log(np.sum(np.exp(x - largest)))
    >>> defvjp(logsumexp, lambda ans, x: lambda g: g * np.exp(x - ans))
    >>> print(fg.grad(logsumexp)(np.array([0.0, 0.0])))
    [0.5 0.5]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.arguments.flatten import kind, zero_tangent
from funcgrad.core import dtypes, trees
from funcgrad.core.errors import NonDifferentiableError, here
from funcgrad.core.tracing import is_array, traced, type_of, typed
from funcgrad.numpy.elementwise import real
from funcgrad.numpy.promotion import astype
from funcgrad.transforms.custom import custom_jvp, custom_vjp

__all__ = ["defjvp", "defvjp", "primitive"]


class _Opaque:
    """A function whose derivatives ``defvjp`` and ``defjvp`` define.

    Attributes:
        pullbacks, pushforwards: by argument number; None for a zero derivative.
    """

    __name__: str

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.function = function
        self.pullbacks: dict[int, Callable[..., Any] | None] = {}
        self.pushforwards: dict[int, Callable[..., Any] | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(map(traced, trees.leaves(kwargs))):
            raise NonDifferentiableError(
                f"{self.__name__} was called with a traced array by name, for which there are no rules; pass it by "
                f"position; at {here()}"
            )
        live = [i for i, x in enumerate(args) if any(map(traced, trees.leaves(x)))]
        if not live:
            return self.function(*args, **kwargs)

        def everything(xs: Sequence[Any]) -> list[Any]:
            found = dict(zip(live, trees.map(_plain, tuple(xs)), strict=True))
            return [found.get(i, x) for i, x in enumerate(args)]

        def function(*xs: Any) -> Any:
            return trees.map(typed, self.function(*everything(xs), **kwargs))

        function.__name__ = self.__name__
        rules = self._by_pushforwards if self.pushforwards and not self.pullbacks else self._by_pullbacks
        return rules(function, live, everything, kwargs)(*[args[i] for i in live])

    def _by_pullbacks(self, function: Any, live: list[int], everything: Any, kwargs: dict[str, Any]) -> custom_vjp:
        call = custom_vjp(function)

        def forward(*xs: Any) -> tuple[Any, Any]:
            self._require("defvjp", self.pullbacks, live)
            out = self(*everything(xs), **kwargs)
            return trees.map(typed, out), (out, xs)

        def backward(kept: Any, ct: Any) -> tuple[Any, ...]:
            out, xs = kept
            full = everything(xs)
            makers = [(self.pullbacks[i], x) for i, x in zip(live, xs, strict=True)]
            return tuple(None if make is None else _cast(make(out, *full, **kwargs)(ct), x) for make, x in makers)

        call.defvjp(forward, backward)
        if self.pushforwards:
            call.defjvp(self._pushed(live, everything, kwargs))
        return call

    def _by_pushforwards(self, function: Any, live: list[int], everything: Any, kwargs: dict[str, Any]) -> custom_jvp:
        call = custom_jvp(function)
        call.defjvp(self._pushed(live, everything, kwargs))
        return call

    def _pushed(self, live: list[int], everything: Any, kwargs: dict[str, Any]) -> Callable[..., Any]:
        def rule(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
            self._require("defjvp", self.pushforwards, live)
            out = self(*everything(primals), **kwargs)
            rules = [(self.pushforwards[i], t) for i, t in zip(live, tangents, strict=True)]
            terms = [push(t, out, *everything(primals), **kwargs) for push, t in rules if push is not None]
            if not terms:
                return out, trees.map(zero_tangent, out)
            return out, _cast(functools.reduce(lambda a, b: trees.map(lambda x, y: x + y, a, b), terms), out)

        return rule

    def _require(self, stated_by: str, rules: dict[int, Any], live: list[int]) -> None:
        missing = [i for i in live if i not in rules]
        if missing:
            raise NonDifferentiableError(
                f"{self.__name__} has no derivative by argument {missing[0]}: state it with {stated_by}, None for "
                f"zero; at {here()}"
            )


def _plain(x: Any) -> Any:
    """A concrete array as a NumPy array; numbers and tracers unchanged."""
    return x if traced(x) or np.isscalar(x) or not is_array(x) else np.asarray(x)


def _cast(found: Any, like: Any) -> Any:
    """A tangent or cotangent in its primal's dtype; real for a real primal."""

    def one(x: Any, of: Any) -> Any:
        dtype = type_of(of).dtype
        if not dtypes.is_inexact(dtype):
            return zero_tangent(of)
        return astype(real(x) if dtypes.is_complex(type_of(x).dtype) and not dtypes.is_complex(dtype) else x, dtype)

    return trees.map(one, found, like)


def primitive(function: Callable[..., Any]) -> Any:
    """``function`` as a single primitive, whose derivatives ``defvjp`` and ``defjvp`` define.

    Args:
        function: returns a pytree of arrays. It receives the values of traced arguments as NumPy arrays, and may do
            anything with them; under ``jit`` and ``vmap``, where there are no values, it receives tracers.

    Returns:
        A function of the same arguments.

    Raises:
        NonDifferentiableError: from the function, for a traced argument without a derivative rule.

    Example:
        >>> import funcgrad as fg
        >>> cube = primitive(lambda x: np.power(x, 3))
        >>> defvjp(cube, lambda ans, x: lambda g: 3 * g * x**2)
        >>> print(fg.grad(cube)(2.0), fg.grad(fg.grad(cube))(2.0))
        12.0 12.0
    """
    return _Opaque(function)


def _state(name: str, rules: dict[int, Any], given: Sequence[Any], argnums: Sequence[int] | None) -> None:
    places = range(len(given)) if argnums is None else list(argnums)
    if len(places) != len(given):
        raise ValueError(f"{name}: argnums has {len(places)} entries, but there are {len(given)} rules")
    rules.update(zip(places, given, strict=True))


def _opaque(name: str, function: Any) -> _Opaque:
    if not isinstance(function, _Opaque):
        raise TypeError(f"{name}: takes a function made by primitive, got {kind(function)}")
    return function


def defvjp(function: Any, *makers: Callable[..., Any] | None, argnums: Sequence[int] | None = None) -> None:
    """Defines reverse derivatives of a primitive.

    Args:
        function: the result of ``primitive``.
        makers: one per argument: ``(result, *args, **kwargs)`` returns the linear function from the result's cotangent
            to the argument's; None if it is zero. It is differentiated for second derivatives.
        argnums: the argument numbers; by default the first ones.

    Returns:
        None.

    Raises:
        TypeError: if ``function`` is not a primitive.
        ValueError: if the numbers of ``argnums`` and makers differ.

    Example:
        >>> import funcgrad as fg
        >>> scaled = primitive(lambda x, y: x * y)
        >>> defvjp(scaled, lambda ans, x, y: lambda g: g * y, None)
        >>> print(*fg.grad(scaled, argnums=(0, 1))(2.0, 3.0))
        3.0 0.0
    """
    found = _opaque("defvjp", function)
    _state("defvjp", found.pullbacks, makers, argnums)


def defjvp(function: Any, *pushforwards: Callable[..., Any] | None, argnums: Sequence[int] | None = None) -> None:
    """Defines forward derivatives of a primitive; without ``defvjp`` the reverse ones are derived from them.

    Args:
        function: the result of ``primitive``.
        pushforwards: one per argument: ``(tangent, result, *args, **kwargs)`` returns the tangent of the result,
            linear; None if it is zero.
        argnums: the argument numbers; by default the first ones.

    Returns:
        None.

    Raises:
        TypeError: if ``function`` is not a primitive.
        ValueError: if the numbers of ``argnums`` and functions differ.

    Example:
        >>> import funcgrad as fg
        >>> square = primitive(lambda x: x * x)
        >>> defjvp(square, lambda t, ans, x: 2 * x * t)
        >>> print(fg.jvp(square, (3.0,), (1.0,))[1], fg.grad(square)(3.0))
        6.0 6.0
    """
    found = _opaque("defjvp", function)
    _state("defjvp", found.pushforwards, pushforwards, argnums)
