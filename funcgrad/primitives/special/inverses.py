"""Inverses of distribution functions: gamma, beta, Student's t, and the normal one by its logarithm.

Each is computed by root finding and differentiated implicitly: where ``F(a, x) = p``, the derivative with respect to
``p`` is one over the density at ``x``, and that with respect to ``a`` is minus that of ``F`` over the density. So
derivatives of all orders are those of ``F``.

Roots are found on an unbounded scale, the logarithm of ``x`` or of its odds, from the logarithm of the smaller of ``F``
and ``1 - F``, so that tiny results and probabilities keep their relative accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.scipy.special as jsp
import numpy as np
from jax import lax

from funcgrad.primitives.complex_lowering import where
from funcgrad.primitives.elementwise import (
    add,
    div,
    elementwise,
    exp,
    lgamma,
    log1p,
    mul,
    neg,
    number,
    scale,
    shift,
    sign,
    square,
    sub,
)
from funcgrad.primitives.elementwise import log as logarithm
from funcgrad.primitives.special.bessel import widened
from funcgrad.primitives.special.functions import (
    _beta_density,
    _erfcx,
    _gamma_density,
    _log_ndtr,
    betainc_by_parameters,
    erfcx,
    igamma_by_a,
)

#: The maximum number of steps: enough for bisection alone over the whole scale.
_MOST = 100
#: The logarithm of the smallest normal float64: smaller results are 0.
_LEAST = math.log(float(np.finfo(np.float64).tiny))

# ---------------------------------------------------------------- roots, as JAX functions


def _root(f: Callable[[Any], tuple[Any, Any]], start: Any, low: Any, high: Any) -> Any:
    """The root of an increasing function: Newton's method, with bisection when a step leaves the bracket.

    Args:
        f: returns the value and the slope; the value may be infinite on underflow.
        start: the initial guess.
        low, high: the bracket.
    """
    eps = float(np.finfo(start.dtype).eps)

    def going(state: tuple[Any, ...]) -> Any:
        k, *_, open = state
        return lax.bitwise_and(k < _MOST, lax.reduce_or(open, tuple(range(open.ndim))))

    def body(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, u, low, high, open = state
        value, slope = f(u)
        below = value <= 0
        low, high = where(below, u, low), where(below, high, u)
        newton = u - value / slope
        inside = lax.bitwise_and(newton >= low, newton <= high)
        after = where(open, where(inside, newton, (low + high) / 2), u)
        moved = lax.abs(after - u) > 4 * eps * (1 + lax.abs(u))
        return k + 1, after, low, high, lax.bitwise_and(moved, lax.abs(value) > 2 * eps)

    start = lax.clamp(low, start, high)
    return lax.while_loop(going, body, (np.int32(0), start, low, high, start == start))[1]


def _off(lower: Any, below: Any, above: Any, p: Any, q: Any, log_slope: Any) -> tuple[Any, Any]:
    """The error in the logarithm of the smaller probability, as an increasing function; and its slope."""
    value = where(lower, lax.log(below) - lax.log(p), lax.log(q) - lax.log(above))
    return value, lax.exp(log_slope - lax.log(where(lower, below, above)))


def _ends(found: Any, good: Any, p: Any, q: Any, first: float, last: float) -> Any:
    """The root; the ends of the support for probabilities 0 and 1; NaN outside [0, 1]."""
    found = where(p == 0, lax.full_like(p, first), where(q == 0, lax.full_like(p, last), found))
    return where(lax.bitwise_and(good, lax.bitwise_and(p >= 0, q >= 0)), found, np.nan)


def _gamma_root(a: Any, p: Any, q: Any) -> Any:
    """The point where the regularized incomplete gamma functions are ``p`` and ``q = 1 - p``."""
    good, usual = a > 0, lax.bitwise_and(lax.bitwise_and(p > 0, q > 0), a > 0)
    a, low_p, high_p = where(usual, a, 1.0), where(usual, p, 0.5), where(usual, q, 0.5)
    lower, gamma = low_p <= 0.5, lax.lgamma(a)

    def off(u: Any) -> tuple[Any, Any]:
        x = lax.exp(u)
        return _off(lower, lax.igamma(a, x), lax.igammac(a, x), low_p, high_p, a * u - x - gamma)

    # At least the estimate from the first term of the series; for large shapes the cube root is nearly normal.
    # Sources: Abramowitz and Stegun, 6.5.29 and 26.4.17.
    first = (lax.log(low_p) + lax.lgamma(a + 1)) / a
    normal = lax.sign(low_p - 0.5) * lax.sqrt(-2 * lax.log(lax.min(low_p, high_p)))
    cube = 1 - 1 / (9 * a) + normal / (3 * lax.sqrt(a))
    near = lax.log(a) + 3 * lax.log(where(cube > 0.1, cube, 0.1))
    # By Chernoff's bound the root is below this for every float64 probability.
    high = lax.log(a + lax.sqrt(1500 * a) + 750)
    u = _root(off, where(a > 1, lax.max(first, near), first), lax.full_like(a, _LEAST), high)
    return _ends(where(u > _LEAST, lax.exp(u), 0.0), good, p, q, 0.0, math.inf)


def _log_odds(u: Any) -> tuple[Any, Any]:
    """The logarithms of ``x`` and ``1 - x`` from the logarithm of ``x / (1 - x)``."""
    more = lax.log1p(lax.exp(-lax.abs(u)))
    return lax.min(u, lax.full_like(u, 0)) - more, lax.min(-u, lax.full_like(u, 0)) - more


def _beta_odds(a: Any, b: Any, p: Any, q: Any) -> Any:
    """The logarithm of ``x / (1 - x)`` at which the regularized incomplete beta functions are ``p`` and ``q``."""
    lower, beta = p <= 0.5, lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)

    def off(u: Any) -> tuple[Any, Any]:
        log_x, log_y = _log_odds(u)
        below, above = lax.betainc(a, b, lax.exp(log_x)), lax.betainc(b, a, lax.exp(log_y))
        return _off(lower, below, above, p, q, a * log_x + b * log_y - beta)

    # Near an end the first term of the series suffices; elsewhere the mean is close.
    mean = lax.log(a) - lax.log(b)
    left, right = (lax.log(p) + lax.log(a) + beta) / a, (lax.log(q) + lax.log(b) + beta) / b
    start = where(lower, lax.min(left, mean), lax.max(-right, mean))
    return _root(off, start, lax.full_like(a, _LEAST), lax.full_like(a, -_LEAST))


def _beta_root(a: Any, b: Any, p: Any, q: Any) -> Any:
    good = lax.bitwise_and(a > 0, b > 0)
    usual = lax.bitwise_and(lax.bitwise_and(p > 0, q > 0), good)
    odds = _beta_odds(*[where(usual, x, other) for x, other in ((a, 1.0), (b, 1.0), (p, 0.5), (q, 0.5))])
    return _ends(where(odds > _LEAST, lax.exp(_log_odds(odds)[0]), 0.0), good, p, q, 0.0, 1.0)


def _student_root(df: Any, p: Any) -> Any:
    """By the beta variable ``df / (df + t**2)``, whose odds are ``df / t**2``."""
    tail = lax.min(p, 1 - p)
    usual = lax.bitwise_and(lax.bitwise_and(tail > 0, tail < 0.5), df > 0)
    half, twice = where(usual, df / 2, 1.0), where(usual, 2 * tail, 0.5)
    size = lax.sqrt(2 * half) * lax.exp(_beta_odds(half, lax.full_like(half, 0.5), twice, 1 - twice) / -2)
    found = where(tail == 0, lax.full_like(p, math.inf), where(tail == 0.5, lax.full_like(p, 0), size))
    return where(lax.bitwise_and(df > 0, tail >= 0), lax.sign(p - 0.5) * found, np.nan)


def _student(df: Any, t: Any) -> Any:
    """Student's distribution function. Source: Abramowitz and Stegun, 26.7.1."""
    t_square = t * t
    total, half = df + t_square, lax.full_like(df, 0.5)
    near = t_square < 1
    # The smaller of the beta variable and its complement is accurate.
    beyond = lax.betainc(df / 2, half, where(near, 0.5, df / total))
    within = lax.betainc(half, df / 2, where(near, t_square / total, 0.5))
    tail = where(t_square == np.inf, lax.full_like(t, 0), where(near, 1 - within, beyond) / 2)
    return where(lax.bitwise_and(df > 0, t == t), where(t > 0, 1 - tail, tail), np.nan)


def _log_normal_root(y: Any) -> Any:
    """The point where the logarithm of the normal distribution function is ``y``, by Newton's method.

    The logarithm is concave, so from below the steps increase monotonically towards the root.
    """
    usual = lax.bitwise_and(y < 0, y > -np.inf)
    wanted = where(usual, y, -1.0)
    low = wanted < -0.5
    # Near 0 the quantile of the other tail; else a bound from the density without its factor.
    start = where(low, -math.sqrt(2) * lax.sqrt(-wanted), -jsp.ndtri(where(low, 0.5, -lax.expm1(wanted))))

    def step(_: Any, x: Any) -> Any:
        return where(low, x - (_log_ndtr(x) - wanted) * math.sqrt(math.pi / 2) * _erfcx(-x * math.sqrt(0.5)), x)

    found = lax.fori_loop(0, 12, step, start)
    return where(usual, found, where(y == 0, lax.full_like(y, math.inf), where(y == -np.inf, y, np.nan)))


# ---------------------------------------------------------------- primitives


def _inverse(name: str, root: Callable[..., Any], slopes: tuple[Callable[..., Any], ...]) -> Any:
    """A primitive of parameters and, last, a probability; ``slopes`` take the result and these."""
    rules = [lambda g, out, *xs, slope=slope: mul(g, slope(out, *xs)) for slope in slopes]
    return elementwise(name, widened(root, np.float64), tuple(rules), accepts="float")


def _inverses(
    name: str, root: Callable[..., Any], by_parameters: tuple[Callable[..., Any], ...], density: Callable[..., Any]
) -> tuple[Any, Any]:
    """The inverses of a function and of its complement.

    Args:
        root: a function of the parameters, the lower and the upper probability.
        by_parameters: the function's derivatives with respect to its parameters, as functions of these and the point.
        density: the derivative with respect to the point, likewise.
    """

    def moved(by: Callable[..., Any]) -> Callable[..., Any]:
        return lambda out, *xs: neg(div(by(*xs[:-1], out), density(*xs[:-1], out)))

    own = tuple(moved(by) for by in by_parameters)
    below = _inverse(
        f"{name}_inverse",
        lambda *xs: root(*xs, 1 - xs[-1]),
        (*own, lambda out, *xs: div(number(1, out), density(*xs[:-1], out))),
    )
    above = _inverse(
        f"{name}c_inverse",
        lambda *xs: root(*xs[:-1], 1 - xs[-1], xs[-1]),
        (*own, lambda out, *xs: neg(div(number(1, out), density(*xs[:-1], out)))),
    )
    return below, above


igamma_inverse, igammac_inverse = _inverses(
    "igamma", _gamma_root, (lambda a, x: igamma_by_a(a, x, order=1),), _gamma_density
)
betainc_inverse, betaincc_inverse = _inverses(
    "betainc",
    _beta_root,
    (
        lambda a, b, x: betainc_by_parameters(a, b, x, orders=(1, 0)),
        lambda a, b, x: betainc_by_parameters(a, b, x, orders=(0, 1)),
    ),
    _beta_density,
)


def _student_density(df: Any, t: Any) -> Any:
    half, more = scale(df, 0.5), scale(shift(df, 1), 0.5)
    factor = sub(sub(lgamma(more), lgamma(half)), scale(logarithm(scale(df, math.pi)), 0.5))
    return exp(sub(factor, mul(more, log1p(div(square(t), df)))))


def _student_by_df(df: Any, t: Any) -> Any:
    """Through the parameter of the incomplete beta function, and through its argument."""
    half = scale(df, 0.5)
    by_parameter = betainc_by_parameters(half, number(0.5, half), div(df, add(df, square(t))), orders=(1, 0))
    through_place = div(mul(_student_density(df, t), t), df)
    return neg(add(scale(mul(sign(t), by_parameter), 0.25), scale(through_place, 0.5)))


student = elementwise(
    "student",
    widened(_student, np.float64),
    (
        lambda g, out, df, t: mul(g, _student_by_df(df, t)),
        lambda g, out, df, t: mul(g, _student_density(df, t)),
    ),
    accepts="float",
)
student_inverse = _inverse(
    "student_inverse",
    _student_root,
    (
        lambda t, df, p: neg(div(_student_by_df(df, t), _student_density(df, t))),
        lambda t, df, p: div(number(1, t), _student_density(df, t)),
    ),
)
log_ndtr_inverse = _inverse(
    "log_ndtr_inverse",
    _log_normal_root,
    (lambda x, y: scale(erfcx(scale(x, -math.sqrt(0.5))), math.sqrt(math.pi / 2)),),
)
