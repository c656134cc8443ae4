"""Special functions, elementwise: gamma and beta, error functions, Bessel, integrals, hypergeometric; one row each.

Functions that XLA lacks are computed in ``bessel`` (Chebyshev series) and ``series`` (power series). Derivatives with
respect to a parameter, such as the order of an incomplete gamma function, are primitives themselves, with the
derivative's order in ``orders``; orders above two raise an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax.scipy.special as jsp
import numpy as np
from jax import lax

from funcgrad.core.errors import NonDifferentiableError
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.primitives.elementwise import (
    add,
    bitwise_and,
    cos,
    digamma,
    div,
    elementwise,
    eq,
    erf,
    exp,
    lgamma,
    log,
    mul,
    neg,
    number,
    power,
    scale,
    select,
    shift,
    sign,
    sin,
    square,
    sub,
    trigamma,
)
from funcgrad.primitives.special import bessel, series
from funcgrad.primitives.special.bessel import widened

Orders = tuple[int, ...]


def _unary(name: str, lower: Callable[..., Any], slope: Callable[..., Any]) -> Primitive:
    """A function of one real variable; ``slope`` is its derivative, a function of the result and the operand."""
    return elementwise(name, lower, (lambda g, out, x, **p: mul(g, slope(out, x, **p)),), accepts="float")


def _zero(x: Any) -> Any:
    return eq(x, number(0, x))


def _nonzero(x: Any) -> Any:
    return select(_zero(x), number(1, x), x)


def _over(y: Any, x: Any, limit: float) -> Any:
    """``y / x``, and ``limit`` where ``x`` is 0."""
    return select(_zero(x), number(limit, x), div(y, _nonzero(x)))


def _once_more(orders: Orders, index: int) -> Orders:
    return (*orders[:index], orders[index] + 1, *orders[index + 1 :])


def _unknown(what: str) -> Rule:
    def rule(*_: Any, **__: Any) -> Any:
        raise NonDifferentiableError(f"{what} is not known")

    return rule


# ---------------------------------------------------------------- densities: the derivatives by x


def _times_log(n: Any, x: Any) -> Any:
    """``n log x``, 0 where both are 0."""
    return mul(n, log(select(bitwise_and(_zero(n), _zero(x)), number(1, x), x)))


def _derivative(value: Any, slopes: list[Any], bend: Any) -> Any:
    """The factor that turns ``exp(f)`` into its n-th derivative, for n given derivatives of ``f``."""
    if not slopes:
        return value
    return mul(value, slopes[0] if len(slopes) == 1 else add(mul(*slopes), bend))


def _gamma_density(a: Any, x: Any, order: int = 0) -> Any:
    """The derivatives with respect to ``a`` of ``x**(a-1) exp(-x) / gamma(a)``."""
    value = exp(sub(sub(_times_log(shift(a, -1), x), x), lgamma(a)))
    slopes = [sub(log(_nonzero(x)), digamma(a))] * order
    return _derivative(value, slopes, neg(trigamma(a)) if order == 2 else None)


def _beta_density(a: Any, b: Any, x: Any, orders: Orders = (0, 0)) -> Any:
    """The derivatives with respect to ``a`` and ``b`` of ``x**(a-1) (1-x)**(b-1) / beta(a, b)``."""
    rest = sub(number(1, x), x)
    total = add(a, b)
    logs = add(_times_log(shift(a, -1), x), _times_log(shift(b, -1), rest))
    value = exp(sub(logs, sub(add(lgamma(a), lgamma(b)), lgamma(total))))
    slopes = [sub(log(_nonzero(x)), digamma(a))] * orders[0] + [sub(log(_nonzero(rest)), digamma(b))] * orders[1]
    slopes = [add(s, digamma(total)) for s in slopes]
    if sum(orders) < 2:
        return _derivative(value, slopes, None)
    own = {(2, 0): a, (0, 2): b}.get((orders[0], orders[1]))
    return _derivative(value, slopes, trigamma(total) if own is None else sub(trigamma(total), trigamma(own)))


# ---------------------------------------------------------------- incomplete gamma and beta


def _igamma_rule(g: Any, out: Any, a: Any, x: Any, *, order: int) -> Any:
    if order == 2:
        raise NonDifferentiableError(
            "gammainc: of its derivatives by the parameter two are known, and three were asked"
        )
    return mul(g, igamma_by_a(a, x, order=order + 1))


def _betainc_rule(index: int) -> Rule:
    def rule(g: Any, out: Any, a: Any, b: Any, x: Any, *, orders: Orders) -> Any:
        if sum(orders) == 2:
            raise NonDifferentiableError(
                "betainc: of its derivatives by the parameters two are known, and three were asked"
            )
        return mul(g, betainc_by_parameters(a, b, x, orders=_once_more(orders, index)))

    return rule


# The ``order``-th derivative of ``igamma`` with respect to ``a``, 1 or 2.
igamma_by_a = elementwise(
    "igamma_by_a",
    series.igamma_by_a,
    (_igamma_rule, lambda g, out, a, x, *, order: mul(g, _gamma_density(a, x, order))),
    accepts="float",
)
igamma = elementwise(
    "igamma",
    widened(lax.igamma),
    (
        lambda g, out, a, x: mul(g, igamma_by_a(a, x, order=1)),
        lambda g, out, a, x: mul(g, _gamma_density(a, x)),
    ),
    accepts="float",
)
igammac = elementwise(
    "igammac",
    widened(lax.igammac),
    (
        lambda g, out, a, x: neg(mul(g, igamma_by_a(a, x, order=1))),
        lambda g, out, a, x: neg(mul(g, _gamma_density(a, x))),
    ),
    accepts="float",
)
# Derivatives of ``betainc`` with respect to ``a`` and ``b``, of total order one or two.
betainc_by_parameters = elementwise(
    "betainc_by_parameters",
    series.betainc_by_parameters,
    (
        _betainc_rule(0),
        _betainc_rule(1),
        lambda g, out, a, b, x, *, orders: mul(g, _beta_density(a, b, x, orders)),
    ),
    accepts="float",
)
betainc = elementwise(
    "betainc",
    widened(lax.betainc),
    (
        lambda g, out, a, b, x: mul(g, betainc_by_parameters(a, b, x, orders=(1, 0))),
        lambda g, out, a, b, x: mul(g, betainc_by_parameters(a, b, x, orders=(0, 1))),
        lambda g, out, a, b, x: mul(g, _beta_density(a, b, x)),
    ),
    accepts="float",
)


def _slope_by_parameter(g: Any, out: Any, a: Any, x: Any) -> Any:
    bend = div(igamma_by_a(a, x, order=2), _gamma_density(a, x))
    return neg(mul(g, add(bend, mul(out, sub(log(x), digamma(a))))))


def _slope_by_sample(g: Any, out: Any, a: Any, x: Any) -> Any:
    return mul(g, sub(sub(digamma(a), log(x)), mul(out, shift(div(shift(a, -1), x), -1))))


# The derivative of a gamma variable with respect to its parameter, at constant probability (implicit
# reparameterization): minus the derivative of the probability over the density; higher derivatives are those of that
# quotient.
gamma_sample_slope = elementwise(
    "gamma_sample_slope", widened(lax.random_gamma_grad), (_slope_by_parameter, _slope_by_sample), accepts="float"
)

# ---------------------------------------------------------------- zeta

#: ``B(2j) / (2j)!`` for j from 1.
_BERNOULLI = [
    float(Fraction(p, q) / math.factorial(2 * j))
    for j, (p, q) in enumerate(
        [(1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798)], 1
    )
]


def _zeta_by_s(s: Any, q: Any) -> Any:
    """The derivative of Hurwitz's zeta function with respect to the exponent: its Euler-Maclaurin sum, differentiated
    termwise.

    Source: Abramowitz and Stegun, 23.1.30 and 23.2.
    """
    minus = neg(s)
    total = number(0, s)
    for k in range(10):
        at = shift(q, k)
        total = sub(total, mul(log(at), power(at, minus)))
    w = shift(q, 10)
    logarithm, tail = log(w), power(w, minus)
    less = shift(s, -1)
    integral = div(mul(tail, w), less)
    total = sub(total, mul(integral, add(logarithm, div(number(1, s), less))))
    total = sub(total, scale(mul(logarithm, tail), 0.5))
    product, slope, tail = s, div(number(1, s), s), div(tail, w)
    for j, coefficient in enumerate(_BERNOULLI):
        total = add(total, scale(mul(mul(product, tail), sub(slope, logarithm)), coefficient))
        for i in (2 * j + 1, 2 * j + 2):
            product, slope = mul(product, shift(s, i)), add(slope, div(number(1, s), shift(s, i)))
        tail = div(tail, square(w))
    return total


def _zeta(s: Any, q: Any) -> Any:
    """Hurwitz's zeta function; XLA computes a few terms and a tail for ``q`` above zero.

    The terms of a negative ``q`` below zero are, but for their sign, a sum of the same kind above it: with the fraction
    ``f`` of ``-q`` they are those of ``zeta(s, f)`` that ``zeta(s, 1 - q)`` lacks.
    """
    whole = lax.eq(s, lax.floor(s)) & lax.gt(s, lax.full_like(s, 1))
    below = whole & lax.lt(q, lax.full_like(q, 0)) & lax.ne(q, lax.floor(q))

    def turned(s: Any, q: Any) -> Any:
        one = lax.full_like(q, 1)
        fraction = lax.select(below, -q - lax.floor(-q), one / 2)
        sign = one - 2 * lax.rem(s, 2 * one)
        under = lax.zeta(s, fraction) - lax.zeta(s, lax.select(below, one - q, one))
        return lax.select(below, sign * under + lax.zeta(s, one - fraction), lax.zeta(s, q))

    return lax.cond(below.any(), turned, lax.zeta, s, q)


zeta = elementwise(
    "zeta",
    widened(_zeta),
    (
        lambda g, out, s, q: mul(g, _zeta_by_s(s, q)),
        lambda g, out, s, q: neg(mul(g, mul(s, zeta(shift(s, 1), q)))),
    ),
    accepts="float",
)

# ---------------------------------------------------------------- error functions


def _erfcx(x: Any) -> Any:
    # For large arguments its asymptotic series: JAX's quotient loses digits there and then underflows.
    # Source: Abramowitz and Stegun, 7.1.23.
    far = x > 20
    inverse = 1 / lax.square(lax.select(far, x, lax.full_like(x, 20)))
    total = lax.full_like(x, 1)
    for k in range(8, 0, -1):
        total = 1 - (k - 0.5) * inverse * total
    return lax.select(far, total / (x * math.sqrt(math.pi)), jsp.erfcx(lax.min(x, lax.full_like(x, 20))))


def _log_ndtr(x: Any) -> Any:
    low = x < -1
    below, above = lax.select(low, x, lax.full_like(x, -1)), lax.select(low, lax.full_like(x, -1), x)
    tail = lax.log(_erfcx(-below * math.sqrt(0.5)) / 2) - below * below / 2
    return lax.select(low, tail, lax.log1p(-lax.erfc(above * math.sqrt(0.5)) / 2))


erfcx = _unary(
    "erfcx", widened(_erfcx, np.float64), lambda out, x: shift(mul(scale(x, 2), out), -2 / math.sqrt(math.pi))
)
dawsn = _unary("dawsn", jsp.dawsn, lambda out, x: sub(number(1, x), mul(scale(x, 2), out)))
log_ndtr = _unary(
    "log_ndtr",
    widened(_log_ndtr),
    lambda out, x: scale(exp(sub(scale(square(x), -0.5), out)), 1 / math.sqrt(2 * math.pi)),
)
ndtri = _unary("ndtri", widened(jsp.ndtri), lambda out, p: scale(exp(scale(square(out), 0.5)), math.sqrt(2 * math.pi)))
# Faddeeva's function, ``exp(-z**2) erfc(-1j z)``, of complex numbers.
wofz = elementwise(
    "wofz",
    jsp.wofz,
    (lambda g, out, z: mul(g, add(mul(scale(z, -2), out), number(2j / math.sqrt(math.pi), z))),),
    accepts="complex",
)


def _owens_by_h(g: Any, out: Any, h: Any, a: Any) -> Any:
    tail = mul(exp(scale(square(h), -0.5)), erf(scale(mul(a, h), math.sqrt(0.5))))
    return mul(g, scale(tail, -1 / (2 * math.sqrt(2 * math.pi))))


def _owens_by_a(g: Any, out: Any, h: Any, a: Any) -> Any:
    more = shift(square(a), 1)
    return mul(g, scale(div(exp(scale(mul(square(h), more), -0.5)), more), 0.5 / math.pi))


owens_t = elementwise("owens_t", widened(jsp.owens_t, np.float64), (_owens_by_h, _owens_by_a), accepts="float")

# ---------------------------------------------------------------- Bessel functions

_grown = lambda scaled: lambda x: lax.exp(lax.abs(x)) * scaled(x)

j0 = _unary("bessel_j0", bessel.j0, lambda out, x: neg(j1(x)))
j1 = _unary("bessel_j1", bessel.j1, lambda out, x: sub(j0(x), _over(out, x, 0.5)))
y0 = _unary("bessel_y0", bessel.y0, lambda out, x: neg(y1(x)))
y1 = _unary("bessel_y1", bessel.y1, lambda out, x: sub(y0(x), div(out, x)))
jn = _unary(
    "bessel_jn", bessel.jn, lambda out, x, *, order: scale(sub(jn(x, order=order - 1), jn(x, order=order + 1)), 0.5)
)
yn = _unary(
    "bessel_yn", bessel.yn, lambda out, x, *, order: scale(sub(yn(x, order=order - 1), yn(x, order=order + 1)), 0.5)
)
i0 = _unary("bessel_i0", widened(_grown(lax.bessel_i0e)), lambda out, x: i1(x))
i1 = _unary("bessel_i1", widened(_grown(lax.bessel_i1e)), lambda out, x: sub(i0(x), _over(out, x, 0.5)))
i0e = _unary("bessel_i0e", lax.bessel_i0e, lambda out, x: sub(i1e(x), mul(sign(x), out)))
i1e = _unary("bessel_i1e", lax.bessel_i1e, lambda out, x: sub(sub(i0e(x), _over(out, x, 0.5)), mul(sign(x), out)))
k0 = _unary("bessel_k0", bessel.k0, lambda out, x: neg(k1(x)))
k1 = _unary("bessel_k1", bessel.k1, lambda out, x: neg(add(k0(x), div(out, x))))
k0e = _unary("bessel_k0e", bessel.k0e, lambda out, x: sub(out, k1e(x)))
k1e = _unary("bessel_k1e", bessel.k1e, lambda out, x: sub(sub(out, div(out, x)), k0e(x)))
ive = elementwise(
    "bessel_ive",
    series.ive,
    (
        _unknown("the derivative of ive by its order"),
        lambda g, out, v, x: mul(g, add(ive(shift(v, 1), x), sub(mul(_over(v, x, 0), out), out))),
    ),
    accepts="float",
)
airy_ai = _unary("airy_ai", bessel.airy_ai, lambda out, x: airy_ai_prime(x))
airy_ai_prime = _unary("airy_ai_prime", bessel.airy_ai_prime, lambda out, x: mul(x, airy_ai(x)))

# ---------------------------------------------------------------- integrals


def _half_turn(x: Any) -> Any:
    return scale(square(x), math.pi / 2)


fresnel_s = _unary("fresnel_s", bessel.fresnel_s, lambda out, x: sin(_half_turn(x)))
fresnel_c = _unary("fresnel_c", bessel.fresnel_c, lambda out, x: cos(_half_turn(x)))
sine_integral = _unary("sine_integral", widened(lambda x: jsp.sici(x)[0]), lambda out, x: _over(sin(x), x, 1))
cosine_integral = _unary("cosine_integral", widened(lambda x: jsp.sici(x)[1]), lambda out, x: div(cos(x), x))


def _expi(x: Any) -> Any:
    ends = lax.bitwise_or(x == 0, x == math.inf)
    # Below it the result is 0, which the continued fraction does not reach at minus infinity.
    found = jsp.expi(lax.select(ends, lax.full_like(x, 1), lax.max(x, lax.full_like(x, -1e4))))
    return lax.select(ends, lax.select(x == 0, lax.full_like(x, -math.inf), x), found)


expi = _unary("expi", widened(_expi), lambda out, x: div(exp(x), x))


def _expn_slope(out: Any, x: Any, *, order: int) -> Any:
    return neg(expn(x, order=order - 1) if order else mul(out, shift(div(number(1, x), x), 1)))


def _expn(x: Any, *, order: int) -> Any:
    inside = lax.bitwise_and(x != 0, x != math.inf)
    found = jsp.expn(order, lax.select(inside, x, lax.full_like(x, 1)))
    at_zero = lax.full_like(x, 1 / (order - 1) if order > 1 else math.inf)
    return lax.select(inside, found, lax.select(x == 0, at_zero, lax.full_like(x, 0)))


expn = _unary("expn", widened(_expn), _expn_slope)
spence = _unary("spence", widened(jsp.spence), lambda out, x: neg(_over(log(x), shift(x, -1), 1)))

# ---------------------------------------------------------------- hypergeometric functions


def _hypergeometric(name: str, lower: Callable[..., Any], count: int) -> Primitive:
    """One with ``count`` operands; ``orders`` is the derivative's order in each operand, at most two for parameters."""

    def partial(index: int) -> Rule:
        def rule(g: Any, out: Any, *xs: Any, orders: Orders) -> Any:
            more = _once_more(orders, index)
            if sum(more[:-1]) > 2:
                raise NonDifferentiableError(
                    f"{name}: of its derivatives by the parameters two are known, and three were asked"
                )
            return mul(g, primitive(*xs, orders=more))

        return rule

    primitive = elementwise(name, lower, tuple(partial(i) for i in range(count)), accepts="float")
    return primitive


hyp1f1 = _hypergeometric("hyp1f1", series.hyp1f1, 3)
hyp2f1 = _hypergeometric("hyp2f1", series.hyp2f1, 4)
