"""Declares distributions by a few functions, from which the others are derived.

A distribution's functions take their argument, its parameters, ``loc`` and, if it is continuous, ``scale``; by
position, in this order, or by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, ClassVar

import numpy as np

from funcgrad.core.tracing import type_of, typed
from funcgrad.numpy import elementwise as n
from funcgrad.numpy.elementwise.rounding import floor
from funcgrad.primitives.elementwise import cast
from funcgrad.runtime.call_cache import composite
from funcgrad.special.declare import operands

Function = Callable[..., Any]

_DOCUMENT = """{what}

Args:
    {first}
    {last}

Returns:
    A floating array of the broadcast shape and the promoted dtype.

Raises:
    TypeError: for operands that are not arrays, or complex ones; for arguments that are missing or unknown.
    ValueError: for shapes that do not broadcast.

Example:
    {example}
"""
_MEANING = {
    "x": "where; real, as all arguments are, which broadcast together. Integers count as float32.",
    "k": "a whole number, of any dtype; real, as all arguments are, which broadcast together.",
    "q": "the probability; real, as all arguments are, which broadcast together.",
}


def _plain(xs: Sequence[Any]) -> list[Any]:
    """Operands as arrays without Python numbers, so that operators preserve their dtype."""
    return [cast(typed(x), dtype=type_of(x).dtype) for x in xs]


class _Distribution:
    """Base of continuous and discrete distributions.

    Attributes:
        name: SciPy's name.
        parameters: its parameters, by name, with descriptions.
        formulas: the given functions by name; optional ones may be missing.
    """

    #: The names of the arguments after the parameters, with their defaults and descriptions.
    _LAST: ClassVar[dict[str, int]]
    _LAST_MEANING: str

    def __init__(self, name: str, parameters: dict[str, str], words: str | None, formulas: dict[str, Function]):
        self._home, _, self.name = name.rpartition(".")
        self.parameters = parameters
        self.formulas = formulas
        self.__doc__ = "\n\n".join([words or "", *(f"``{given}``: {what}" for given, what in parameters.items())])

    def __repr__(self) -> str:
        return f"<distribution {self.name}({', '.join((*self.parameters, *self._LAST))})>"

    def function(self, name: str, example: str) -> Function:
        """One of its functions, as a member of the module of the distribution's name.

        Args:
            name: the name of the function.
            example: a doctest for its docstring, with the lines after the first one indented by four.
        """
        method = getattr(self, name)
        first = next(iter(inspect.signature(method).parameters))

        def made(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        said = {first: _MEANING[first], **self.parameters}
        made.__doc__ = _DOCUMENT.format(
            what=(method.__doc__ or "").partition("\n")[0],
            first="\n    ".join(f"{given}: {what}" for given, what in said.items()),
            last=f"{', '.join(self._LAST)}: {self._LAST_MEANING}",
            example=example,
        )
        made.__name__ = made.__qualname__ = name
        made.__module__ = f"{self._home}.{self.name}"
        required = [Parameter(given, Parameter.POSITIONAL_OR_KEYWORD) for given in said]
        last = [Parameter(given, Parameter.POSITIONAL_OR_KEYWORD, default=value) for given, value in self._LAST.items()]
        made.__signature__ = Signature([*required, *last])  # type: ignore[attr-defined]
        return made

    def _formula(self, function: str) -> Function:
        if function not in self.formulas:
            raise AttributeError(f"{self.name}.{function}: there is no formula for it")
        return self.formulas[function]

    def _given(self, function: str, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The parameters, ``loc`` and ``scale``, from the arguments of a call."""
        names = [*self.parameters, *self._LAST]
        what = f"{self.name}.{function}"
        if len(args) > len(names) or not kwargs.keys() <= set(names[len(args) :]):
            raise TypeError(f"{what}: takes {', '.join(names)}, got {len(args)} of them and {', '.join(kwargs)}")
        found = {**self._LAST, **dict(zip(names, args, strict=False)), **kwargs}
        missing = [name for name in self.parameters if name not in found]
        if missing:
            raise TypeError(f"{what}: {', '.join(missing)} missing")
        return [found[name] for name in names]


class Continuous(_Distribution):
    """A distribution with a density.

    Example:
        >>> from funcgrad.scipy.stats import logistic
        >>> print(logistic.pdf(1.0, loc=1.0), logistic.cdf(1.0, 1.0, 2.0))
        0.25 0.5
    """

    _LAST: ClassVar[dict[str, int]] = {"loc": 0, "scale": 1}
    _LAST_MEANING = "the variable is a standard one times ``scale``, which is positive, plus ``loc``."

    def __init__(
        self,
        name: str,
        parameters: dict[str, str],
        words: str,
        density: Function,
        support: tuple[float, float] = (-np.inf, np.inf),
        **functions: Function,
    ):
        """
        Args:
            name, parameters, words: its name, or its module's; its parameters, with descriptions; a description of it.
            density: the log density, as a function of the standardized variable and the parameters.
            support: the bounds of the standardized variable.
            functions: ``cdf``, ``sf``, ``logcdf``, ``logsf`` of the same arguments, ``ppf`` and ``isf`` of a
                probability and the parameters.
        """
        super().__init__(name, parameters, words, functions)
        self._density = density
        self._support = support

    def _standard(self, function: str, x: Any, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The standardized variable, ``scale`` and the parameters."""
        *shapes, loc, scale = self._given(function, args, kwargs)
        x, loc, scale, *shapes = _plain(operands(f"{self.name}.{function}", x, loc, scale, *shapes))
        return [n.divide(n.subtract(x, loc), scale), scale, *shapes]

    def _of(self, function: str, x: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        formula = self._formula(function)
        z, _, *shapes = self._standard(function, x, args, kwargs)
        low, high = self._support
        return formula(z if np.isinf(low) and np.isinf(high) else n.clip(z, low, high), *shapes)

    @composite
    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the density."""
        z, scale, *shapes = self._standard("logpdf", x, args, kwargs)
        low, high = self._support
        if np.isinf(low) and np.isinf(high):
            return n.subtract(self._density(z, *shapes), n.log(scale))
        outside = (z < low) | (z > high)
        # Outside the support the formula is evaluated at a point inside, for finite derivatives.
        some = low + 1 if np.isinf(high) else (low + high) / 2
        found = n.subtract(self._density(n.where(outside, some, z), *shapes), n.log(scale))
        return n.where(outside, -np.inf, found)

    @composite
    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The density."""
        return n.exp(self.logpdf(x, *args, **kwargs))

    @composite
    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of at most ``x``."""
        return self._of("cdf", x, args, kwargs)

    @composite
    def sf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of more than ``x``."""
        return self._of("sf", x, args, kwargs)

    @composite
    def logcdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of ``cdf``."""
        known = "logcdf" in self.formulas
        return self._of("logcdf", x, args, kwargs) if known else n.log(self.cdf(x, *args, **kwargs))

    @composite
    def logsf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of ``sf``."""
        known = "logsf" in self.formulas
        return self._of("logsf", x, args, kwargs) if known else n.log(self.sf(x, *args, **kwargs))

    def _inverse(self, function: str, q: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        formula = self._formula(function)
        *shapes, loc, scale = self._given(function, args, kwargs)
        q, loc, scale, *shapes = _plain(operands(f"{self.name}.{function}", q, loc, scale, *shapes))
        return n.add(loc, n.multiply(scale, formula(q, *shapes)))

    @composite
    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The inverse of ``cdf``.

        Raises:
            AttributeError: for a distribution without a formula for it.
        """
        return self._inverse("ppf", q, args, kwargs)

    @composite
    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The inverse of ``sf``.

        Raises:
            AttributeError: for a distribution without a formula for it.
        """
        return self._inverse("isf", q, args, kwargs)


def _from_zero(*parameters: Any) -> tuple[float, float]:
    return 0.0, np.inf


class Discrete(_Distribution):
    """A distribution of integers.

    Example:
        >>> from funcgrad.scipy.stats import binom
        >>> print(binom.pmf(1, 2, 0.5).round(4), binom.cdf(1, n=2, p=0.5).round(4))
        0.5 0.75
    """

    _LAST: ClassVar[dict[str, int]] = {"loc": 0}
    _LAST_MEANING = "what is added to the variable."

    def __init__(
        self,
        name: str,
        parameters: dict[str, str],
        words: str,
        mass: Function,
        support: Function | None = None,
        **functions: Function,
    ):
        """
        Args:
            name, parameters, words: its name, or its module's; its parameters, with descriptions; a description of it.
            mass: the log probability, as a function of the number and the parameters.
            support: the smallest and the largest number, as functions of the parameters; by default all from 0.
            functions: ``cdf`` and ``sf`` of a number in the support and the parameters, if there are formulas.
        """
        super().__init__(name, parameters, words, functions)
        self._mass = mass
        self._support = support or _from_zero

    def _operands(self, function: str, k: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any, Any]:
        *shapes, loc = self._given(function, args, kwargs)
        k, loc, *shapes = _plain(operands(f"{self.name}.{function}", k, loc, *shapes))
        return n.subtract(k, loc), shapes, *self._support(*shapes)

    @composite
    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the probability of ``k``."""
        k, shapes, low, high = self._operands("logpmf", k, args, kwargs)
        there = (k >= low) & (k <= high) & n.equal(floor(k), k)
        # Outside the support the formula is evaluated at a number inside, for finite derivatives.
        return n.where(there, self._mass(n.where(there, k, n.add(n.multiply(k, 0), low)), *shapes), -np.inf)

    @composite
    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of ``k``."""
        return n.exp(self.logpmf(k, *args, **kwargs))

    def _of(self, function: str, below: float, k: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        formula = self._formula(function)
        k, shapes, low, high = self._operands(function, k, args, kwargs)
        k = floor(k)
        reached = formula(n.clip(k, low, n.maximum(low, n.subtract(high, 1))), *shapes)
        return n.where(k < low, below, n.where(k >= high, 1 - below, reached))

    @composite
    def cdf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of at most ``k``.

        Raises:
            AttributeError: for a distribution without a formula for it.
        """
        return self._of("cdf", 0.0, k, args, kwargs)

    @composite
    def sf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of more than ``k``.

        Raises:
            AttributeError: for a distribution without a formula for it.
        """
        return self._of("sf", 1.0, k, args, kwargs)
