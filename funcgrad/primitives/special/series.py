"""Power series, and their derivatives with respect to parameters up to the second.

The terms of these series are positive, or of one sign after a few, and their logarithms have simple derivatives with
respect to the parameters; so the derivative of a sum is the sum of the same terms times factors. Summation continues
until no element of the arrays changes. These are functions of JAX arrays, for lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.primitives.complex_lowering import where
from funcgrad.primitives.special.bessel import widened

#: The maximum number of terms of a sum.
_MOST = 20_000

Orders = tuple[int, ...]


def _sum(
    first: Any,
    slopes: Sequence[Any],
    bends: Sequence[Any],
    step: Callable[[Any], tuple[Any, Sequence[Any], Sequence[Any]]],
    wanted: Sequence[int],
) -> Any:
    """The sum of terms, each times the factor for its derivative with respect to parameters.

    Args:
        first: the first term.
        slopes: the derivatives of its logarithm with respect to the parameters in ``wanted``.
        bends: the second derivative of its logarithm, if two parameters are wanted.
        step: maps the index ``k`` of a term, as an array, to the ratio of the next term to it, and the increments of
            the slopes and of the bend.
        wanted: the parameters to differentiate with respect to, at most two.
    """

    def factor(slopes: Sequence[Any], bends: Sequence[Any]) -> Any:
        if len(wanted) < 2:
            return slopes[0] if wanted else 1.0
        return slopes[0] * slopes[-1] + bends[0]

    def going(state: tuple[Any, ...]) -> Any:
        k, _, _, _, _, open = state
        return lax.bitwise_and(k < _MOST, lax.reduce_or(open, tuple(range(open.ndim))))

    def body(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, term, slopes, bends, total, _ = state
        ratio, more, bend = step(lax.convert_element_type(lax.broadcast(k, term.shape), term.dtype))
        term = term * ratio
        slopes = tuple(s + m for s, m in zip(slopes, more, strict=True))
        bends = tuple(b + m for b, m in zip(bends, bend, strict=True))
        added = term * factor(slopes, bends)
        # A slope may pass through 0, so the term itself decides convergence.
        weight = 1 + sum((lax.abs(s) for s in slopes), 0.0) ** 2
        least = lax.abs(total) * np.finfo(term.dtype).eps / 4
        growing = lax.abs(ratio) > 0.999
        open = lax.bitwise_and(lax.bitwise_or(lax.abs(term) * weight > least, growing), lax.abs(term) > 0)
        return k + 1, term, slopes, bends, total + added, open

    total = first * factor(slopes, bends)
    state = (np.int32(0), first, tuple(slopes), tuple(bends), total, lax.abs(first) > 0)
    return lax.while_loop(going, body, state)[4]


def _of(orders: Orders) -> list[int]:
    """Expands derivative orders to parameters: (1, 0, 2) gives [0, 2, 2]."""
    if sum(orders) > 2:
        raise ValueError(f"derivatives by parameters are known up to the second, got orders {orders}")
    return [i for i, n in enumerate(orders) for _ in range(n)]


def _digamma(x: Any) -> Any:
    return lax.digamma(x)


def _trigamma(x: Any) -> Any:
    return lax.polygamma(lax.full_like(x, 1), x)


# ---------------------------------------------------------------- incomplete gamma


def _igamma(a: Any, x: Any, *, order: int) -> Any:
    """The ``order``-th derivative with respect to ``a`` of the regularized lower incomplete gamma function.

    The terms are ``x**(a+k) exp(-x) / gamma(a+k+1)``. Source: Abramowitz and Stegun, 6.5.29.
    """
    inside = lax.bitwise_and(x > 0, lax.bitwise_and(a > 0, x < np.inf))
    safe, b = where(inside, x, 1.0), where(a > 0, a, 1.0)
    log = lax.log(safe)
    first = lax.exp(b * log - safe - lax.lgamma(b + 1))
    slopes = [log - _digamma(b + 1)] * order
    bends = [-_trigamma(b + 1)] if order == 2 else []

    def step(k: Any) -> tuple[Any, list[Any], list[Any]]:
        n = 1 / (b + k + 1)
        return safe * n, [-n] * order, [n * n] if order == 2 else []

    found = _sum(first, slopes, bends, step, [0] * order)
    return where(inside, found, where(a > 0, lax.full_like(x, 0), np.nan))


igamma_by_a = widened(_igamma, np.float64)

# ---------------------------------------------------------------- incomplete beta


def _ibeta(a: Any, b: Any, x: Any, orders: Orders) -> Any:
    """Derivatives with respect to ``a`` and ``b`` of the regularized incomplete beta function, for moderate ``x``.

    The terms are ``x**a (1-x)**b gamma(a+b+k) / (gamma(b) gamma(a+1+k)) x**k``. Source: Abramowitz and Stegun, 26.5.4.
    """
    wanted = _of(orders)
    log = (lax.log(x), lax.log1p(-x))
    first = lax.exp(a * log[0] + b * log[1] + lax.lgamma(a + b) - lax.lgamma(b) - lax.lgamma(a + 1))
    both = _digamma(a + b)
    by = (log[0] + both - _digamma(a + 1), log[1] + both - _digamma(b))
    bends = []
    if len(wanted) == 2:
        own = {(0, 0): -_trigamma(a + 1), (1, 1): -_trigamma(b)}.get((wanted[0], wanted[1]), 0.0)
        bends = [_trigamma(a + b) + own]

    def step(k: Any) -> tuple[Any, list[Any], list[Any]]:
        up, down = 1 / (a + b + k), 1 / (a + 1 + k)
        more = (up - down, up)
        bend = [-up * up + (down * down if wanted == [0, 0] else 0.0)] if len(wanted) == 2 else []
        return x * (a + b + k) * down, [more[i] for i in wanted], bend

    return _sum(first, [by[i] for i in wanted], bends, step, wanted)


def _betainc(a: Any, b: Any, x: Any, *, orders: Orders) -> Any:
    inside = lax.bitwise_and(lax.bitwise_and(x > 0, x < 1), lax.bitwise_and(a > 0, b > 0))
    a, b, x = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
    # I(a, b, x) = 1 - I(b, a, 1 - x), of which the smaller converges faster.
    swapped = x > (a + 1) / (a + b + 2)
    straight = _ibeta(a, b, where(swapped, 0.5 * x, x), orders)
    mirrored = _ibeta(b, a, where(swapped, 1 - x, 0.5 * (1 - x)), orders[::-1])
    return where(inside, where(swapped, -mirrored, straight), 0.0)


betainc_by_parameters = widened(_betainc, np.float64)

# ---------------------------------------------------------------- hypergeometric functions


def _hypergeometric(upper: Sequence[Any], lower: Sequence[Any], x: Any, orders: Orders) -> Any:
    """Derivatives of ``sum((a)_k ... / ((b)_k ...) x**k / k!)`` with respect to its parameters and, last, to ``x``.

    That with respect to ``x`` is a series of the same kind from a later term on, with shifted parameters.
    """
    *by, times = orders
    wanted = _of(tuple(by))
    parameters = [*upper, *lower]
    signs = [1.0] * len(upper) + [-1.0] * len(lower)
    first = lax.full_like(x, 1)
    slopes = [lax.full_like(x, 0) for _ in wanted]
    bends = [lax.full_like(x, 0)] if len(wanted) == 2 else []

    def rates(k: Any) -> tuple[Any, list[Any], list[Any]]:
        """The step of ``(a)_k`` and its like from ``k`` to the next: a factor, and increments of slopes and bend."""
        ratio: Any = 1.0
        for sign, p in zip(signs, parameters, strict=True):
            ratio = ratio * (p + k) if sign > 0 else ratio / (p + k)
        parts = [sign / (p + k) for sign, p in zip(signs, parameters, strict=True)]
        same = len(wanted) == 2 and wanted[0] == wanted[1]
        bend = [-parts[wanted[0]] / (parameters[wanted[0]] + k) if same else 0.0] if len(wanted) == 2 else []
        return ratio, [parts[i] for i in wanted], bend

    for i in range(times):
        ratio, more, bend = rates(float(i))
        first = first * ratio
        slopes = [s + m for s, m in zip(slopes, more, strict=True)]
        bends = [b + m for b, m in zip(bends, bend, strict=True)]

    def step(k: Any) -> tuple[Any, list[Any], list[Any]]:
        ratio, more, bend = rates(k + times)
        return ratio * x / (k + 1), more, bend

    return _sum(first, slopes, bends, step, wanted)


def _hyp1f1(a: Any, b: Any, x: Any, *, orders: Orders) -> Any:
    return _hypergeometric([a], [b], x, orders)


def _hyp2f1(a: Any, b: Any, c: Any, x: Any, *, orders: Orders) -> Any:
    inside = lax.abs(x) < 1
    return where(inside, _hypergeometric([a, b], [c], where(inside, x, 0.0), orders), np.nan)


hyp1f1, hyp2f1 = widened(_hyp1f1, np.float64), widened(_hyp2f1, np.float64)

# ---------------------------------------------------------------- modified Bessel functions of any order


def _ive(v: Any, x: Any) -> Any:
    """``exp(-|x|) I_v(x)``, by its power series, from its largest term in both directions.

    Source: Abramowitz and Stegun, 9.6.10.
    """
    size = where(x > 0, x, 1.0)
    quarter = size * size / 4
    top = lax.floor((lax.sqrt(v * v + size * size) - v) / 2)
    log = (v + 2 * top) * lax.log(size / 2) - lax.lgamma(top + 1) - lax.lgamma(v + top + 1) - size
    first = lax.exp(log)
    up = _sum(first, [], [], lambda k: (quarter / ((top + k + 1) * (v + top + k + 1)), [], []), [])
    down = _sum(first, [], [], lambda k: (where(k < top, (top - k) * (v + top - k) / quarter, 0.0), [], []), [])
    at_zero = where(v == 0, lax.full_like(x, 1), where(v > 0, lax.full_like(x, 0), np.inf))
    return where(x > 0, up + down - first, where(x == 0, at_zero, np.nan))


ive = widened(_ive, np.float64)
