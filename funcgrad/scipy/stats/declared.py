"""Distributions that are declared by the few functions that make them: the others follow from these.

A distribution's functions take where they are asked, its parameters, ``loc`` and, if it is continuous, ``scale``; by
position, in this order, or by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.numpy.rounding import floor
from funcgrad.primitives.elementwise import cast
from funcgrad.scipy.stats.parts import inside, standard
from funcgrad.special import (
    betainc,
    betaincc,
    betaln,
    expit,
    gammaincc,
    gammaln,
    i0e,
    log_expit,
    log_ndtr,
    logit,
    xlog1py,
    xlogy,
)
from funcgrad.special.declare import operands
from funcgrad.tracing import type_of, typed

Function = Callable[..., Any]


def _plain(xs: Sequence[Any]) -> list[Any]:
    """Operands as arrays that no Python number is among, so that Python's operators leave their dtype."""
    return [cast(typed(x), dtype=type_of(x).dtype) for x in xs]


class _Distribution:
    """What both kinds share.

    Attributes:
        name: as SciPy has it.
        parameters: the names of its parameters.
        formulas: by name, the functions that follow from no others; there may be none of some.
    """

    #: The names of what follows the parameters, with what they are by default.
    _LAST: tuple[tuple[str, float], ...]

    def __init__(self, name: str, parameters: str, words: str, formulas: dict[str, Function]):
        self.name = name
        self.parameters = tuple(parameters.split())
        self.formulas = formulas
        self.__doc__ = words

    def __repr__(self) -> str:
        return f"<distribution {self.name}({', '.join((*self.parameters, *(last for last, _ in self._LAST)))})>"

    def _formula(self, function: str) -> Function:
        if function not in self.formulas:
            raise AttributeError(f"{self.name}.{function}: there is no formula for it")
        return self.formulas[function]

    def _given(self, function: str, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The parameters, ``loc`` and ``scale``, of the arguments of a call."""
        names = [*self.parameters, *(name for name, _ in self._LAST)]
        what = f"{self.name}.{function}"
        if len(args) > len(names) or not kwargs.keys() <= set(names[len(args) :]):
            raise TypeError(f"{what}: takes {', '.join(names)}, got {len(args)} of them and {', '.join(kwargs)}")
        found = {**dict(self._LAST), **dict(zip(names, args, strict=False)), **kwargs}
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

    _LAST = (("loc", 0.0), ("scale", 1.0))

    def __init__(self, name: str, parameters: str, words: str, density: Function, **functions: Function):
        """
        Args:
            name, parameters, words: its name, those of its parameters, its docstring.
            density: the logarithm of the density, of the standardized variable and the parameters.
            functions: ``cdf``, ``sf``, ``logcdf``, ``logsf`` of the same, ``ppf`` of a probability and the parameters.
        """
        super().__init__(name, parameters, words, functions)
        self._density = density

    def _of(self, function: str, x: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        formula = self._formula(function)
        *shapes, loc, scale = self._given(function, args, kwargs)
        z, _, *shapes = _plain(standard(f"{self.name}.{function}", x, loc, scale, *shapes))
        return formula(z, *shapes)

    @composite
    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the density."""
        *shapes, loc, scale = self._given("logpdf", args, kwargs)
        z, scale, *shapes = _plain(standard(f"{self.name}.logpdf", x, loc, scale, *shapes))
        return n.subtract(self._density(z, *shapes), n.log(scale))

    @composite
    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The density."""
        return n.exp(self.logpdf(x, *args, **kwargs))

    @composite
    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability to be below ``x``."""
        return self._of("cdf", x, args, kwargs)

    @composite
    def sf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability to be above ``x``."""
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

    @composite
    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """Where ``cdf`` is ``q``.

        Raises:
            AttributeError: for a distribution of which there is no formula for it.
        """
        formula = self._formula("ppf")
        *shapes, loc, scale = self._given("ppf", args, kwargs)
        q, loc, scale, *shapes = _plain(operands(f"{self.name}.ppf", q, loc, scale, *shapes))
        return n.add(loc, n.multiply(scale, formula(q, *shapes)))


class Discrete(_Distribution):
    """A distribution of whole numbers.

    Example:
        >>> from funcgrad.scipy.stats import binom
        >>> print(binom.pmf(1, 2, 0.5).round(4), binom.cdf(1, n=2, p=0.5).round(4))
        0.5 0.75
    """

    _LAST = (("loc", 0.0),)

    def __init__(
        self, name: str, parameters: str, words: str, mass: Function, support: Function, **functions: Function
    ):
        """
        Args:
            name, parameters, words: its name, those of its parameters, its docstring.
            mass: the logarithm of a number's probability, of the number and the parameters.
            support: the smallest number and the largest one, of the parameters.
            functions: ``cdf`` and ``sf`` of a number in the support and the parameters, if there are formulas.
        """
        super().__init__(name, parameters, words, functions)
        self._mass = mass
        self._support = support

    def _asked(self, function: str, k: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any, Any]:
        *shapes, loc = self._given(function, args, kwargs)
        k, loc, *shapes = _plain(operands(f"{self.name}.{function}", k, loc, *shapes))
        return n.subtract(k, loc), shapes, *self._support(*shapes)

    @composite
    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the probability of ``k``."""
        k, shapes, low, high = self._asked("logpmf", k, args, kwargs)
        there = (k >= low) & (k <= high) & n.equal(floor(k), k)
        # Elsewhere the formula is asked of a number that is there, for the sake of derivatives.
        return inside(there, self._mass(n.where(there, k, n.add(n.multiply(k, 0), low)), *shapes))

    @composite
    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of ``k``."""
        return n.exp(self.logpmf(k, *args, **kwargs))

    def _of(self, function: str, below: float, k: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        formula = self._formula(function)
        k, shapes, low, high = self._asked(function, k, args, kwargs)
        k = floor(k)
        reached = formula(n.clip(k, low, n.maximum(low, n.subtract(high, 1))), *shapes)
        return n.where(k < low, below, n.where(k >= high, 1 - below, reached))

    @composite
    def cdf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of at most ``k``.

        Raises:
            AttributeError: for a distribution of which there is no formula for it.
        """
        return self._of("cdf", 0.0, k, args, kwargs)

    @composite
    def sf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of more than ``k``.

        Raises:
            AttributeError: for a distribution of which there is no formula for it.
        """
        return self._of("sf", 1.0, k, args, kwargs)


# ---------------------------------------------------------------- continuous ones

_HALF_LOG_TAU = math.log(2 * math.pi) / 2


def _flip(f: Function) -> Function:
    return lambda z, *shapes: f(-z, *shapes)


def _cauchy_cdf(z: Any) -> Any:
    # By the other angle, which is exact where the probability is small.
    return n.atan2(1.0, -z) / math.pi


def _gumbel_logcdf(z: Any) -> Any:
    return -n.exp(-z)


logistic = Continuous(
    "logistic", "", "The logistic distribution.",
    lambda z: log_expit(z) + log_expit(-z),
    cdf=expit, sf=_flip(expit), logcdf=log_expit, logsf=_flip(log_expit), ppf=logit,
)  # fmt: skip
cauchy = Continuous(
    "cauchy", "", "The Cauchy distribution.",
    lambda z: -n.log1p(n.square(z)) - math.log(math.pi),
    cdf=_cauchy_cdf, sf=_flip(_cauchy_cdf), ppf=lambda q: n.tan(math.pi * (q - 0.5)),
)  # fmt: skip
gumbel_r = Continuous(
    "gumbel_r", "", "Gumbel's distribution of the largest value.",
    lambda z: -z - n.exp(-z),
    cdf=lambda z: n.exp(_gumbel_logcdf(z)), sf=lambda z: -n.expm1(_gumbel_logcdf(z)), logcdf=_gumbel_logcdf,
    ppf=lambda q: -n.log(-n.log(q)),
)  # fmt: skip
gumbel_l = Continuous(
    "gumbel_l", "", "Gumbel's distribution of the smallest value.",
    lambda z: z - n.exp(z),
    cdf=lambda z: -n.expm1(-n.exp(z)), sf=lambda z: n.exp(-n.exp(z)), logsf=lambda z: -n.exp(z),
    ppf=lambda q: n.log(-n.log1p(-q)),
)  # fmt: skip


def _in_pareto(z: Any, value: Any, outside: float) -> Any:
    return n.where(z >= 1, value, outside)


def _at_least_one(z: Any) -> Any:
    return n.where(z >= 1, z, 1)


pareto = Continuous(
    "pareto", "b", "The Pareto distribution, from 1 on, with the exponent ``b``.",
    lambda z, b: _in_pareto(z, n.log(b) - (b + 1) * n.log(_at_least_one(z)), -np.inf),
    cdf=lambda z, b: _in_pareto(z, -n.expm1(-b * n.log(_at_least_one(z))), 0.0),
    sf=lambda z, b: _in_pareto(z, _at_least_one(z) ** -b, 1.0),
    logsf=lambda z, b: _in_pareto(z, -b * n.log(_at_least_one(z)), 0.0),
    ppf=lambda q, b: n.exp(-n.log1p(-q) / b),
)  # fmt: skip


def _power(z: Any, beta: Any) -> Any:
    return n.abs(z) ** beta


def _gennorm_cdf(z: Any, beta: Any) -> Any:
    tail = gammaincc(1 / beta, _power(z, beta)) / 2
    return n.where(z < 0, tail, 1 - tail)


gennorm = Continuous(
    "gennorm", "beta", "The generalized normal distribution, with density like ``exp(-abs(x) ** beta)``.",
    lambda z, beta: n.log(beta / 2) - gammaln(1 / beta) - _power(z, beta),
    cdf=_gennorm_cdf, sf=_flip(_gennorm_cdf),
)  # fmt: skip


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of what a normal variable has between two bounds, from the side where it has less."""
    mirrored = a > 0
    low, high = n.where(mirrored, -b, a), n.where(mirrored, -a, b)
    upper = log_ndtr(high)
    return upper + n.log1p(-n.exp(log_ndtr(low) - upper))


def _truncated(z: Any, a: Any, b: Any) -> Any:
    return n.where((z >= a) & (z <= b), -n.square(z) / 2 - _HALF_LOG_TAU - _log_mass(a, b), -np.inf)


def _truncnorm_logcdf(z: Any, a: Any, b: Any) -> Any:
    there = (z > a) & (z < b)
    return n.where(there, _log_mass(a, n.where(there, z, b)) - _log_mass(a, b), n.where(z <= a, -np.inf, 0.0))


truncnorm = Continuous(
    "truncnorm", "a b", "The normal distribution cut off at ``a`` and ``b``, before it is moved and stretched.",
    _truncated,
    cdf=lambda z, a, b: n.exp(_truncnorm_logcdf(z, a, b)), logcdf=_truncnorm_logcdf,
    sf=lambda z, a, b: n.exp(_truncnorm_logcdf(-z, -b, -a)), logsf=lambda z, a, b: _truncnorm_logcdf(-z, -b, -a),
)  # fmt: skip
vonmises = Continuous(
    "vonmises", "kappa", "Von Mises' distribution of angles, concentrated by ``kappa``; it has no ``cdf`` here.",
    lambda z, kappa: kappa * (n.cos(z) - 1) - n.log(i0e(kappa)) - 2 * _HALF_LOG_TAU,
)  # fmt: skip
wrapcauchy = Continuous(
    "wrapcauchy", "c", "The Cauchy distribution wound around the circle, from 0 to 2 pi; it has no ``cdf`` here.",
    lambda z, c: n.where(
        (z >= 0) & (z <= 2 * math.pi),
        n.log1p(-n.square(c)) - n.log1p(n.square(c) - 2 * c * n.cos(z)) - 2 * _HALF_LOG_TAU,
        -np.inf,
    ),
)  # fmt: skip

# ---------------------------------------------------------------- discrete ones


def _log_choose(count: Any, k: Any) -> Any:
    return gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)


def _from_zero(*parameters: Any) -> tuple[float, float]:
    return 0.0, np.inf


bernoulli = Discrete(
    "bernoulli", "p", "1 with the probability ``p``, else 0.",
    lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), lambda p: (0.0, 1.0),
    cdf=lambda k, p: 1 - p, sf=lambda k, p: p,
)  # fmt: skip
binom = Discrete(
    "binom", "n p", "How many of ``n`` trials succeed, each with the probability ``p``.",
    lambda k, count, p: _log_choose(count, k) + xlogy(k, p) + xlog1py(count - k, -p), lambda count, p: (0.0, count),
    cdf=lambda k, count, p: betaincc(k + 1, count - k, p), sf=lambda k, count, p: betainc(k + 1, count - k, p),
)  # fmt: skip
geom = Discrete(
    "geom", "p", "How many trials it takes to succeed once, each with the probability ``p``.",
    lambda k, p: xlog1py(k - 1, -p) + n.log(p), lambda p: (1.0, np.inf),
    cdf=lambda k, p: -n.expm1(k * n.log1p(-p)), sf=lambda k, p: n.exp(k * n.log1p(-p)),
)  # fmt: skip
nbinom = Discrete(
    "nbinom", "n p", "How many trials fail before ``n`` have succeeded, each with the probability ``p``.",
    lambda k, count, p: gammaln(k + count) - gammaln(k + 1) - gammaln(count) + xlogy(count, p) + xlog1py(k, -p),
    _from_zero,
    cdf=lambda k, count, p: betainc(count, k + 1, p), sf=lambda k, count, p: betaincc(count, k + 1, p),
)  # fmt: skip
betabinom = Discrete(
    "betabinom", "n a b", "How many of ``n`` trials succeed, where the probability has a beta distribution.",
    lambda k, count, a, b: _log_choose(count, k) + betaln(k + a, count - k + b) - betaln(a, b),
    lambda count, a, b: (0.0, count),
)  # fmt: skip
