"""Bessel, Airy and Fresnel functions: Chebyshev series near the origin, and far from it the asymptotic form, whose
slowly varying factors are Chebyshev series too.

``tools/make_special_tables.py`` generates the tables. These are functions of JAX arrays, for lowering.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.primitives.complex_lowering import where
from funcgrad.primitives.special import tables

Function = Callable[..., Any]


def widened(f: Function, least: Any = np.float32) -> Function:
    """``f`` computed in at least dtype ``least``, since float16 and bfloat16 would lose accuracy."""

    def wide(*xs: Any, **params: Any) -> Any:
        dtype = xs[0].dtype
        if np.dtype(least).itemsize <= dtype.itemsize:
            return f(*xs, **params)
        return lax.convert_element_type(f(*[lax.convert_element_type(x, least) for x in xs], **params), dtype)

    return wide


def series(table: Sequence[float], t: Any) -> Any:
    """The Chebyshev series at ``t`` in [-1, 1], by Clenshaw's recurrence."""
    # Terms below the dtype's precision are skipped.
    least = np.finfo(t.dtype).eps * max(map(abs, table)) / 16
    used = table[: 1 + max(i for i, c in enumerate(table) if abs(c) > least)]
    one, two = lax.full_like(t, 0), lax.full_like(t, 0)
    for c in reversed(used[1:]):
        one, two = 2 * t * one - two + c, one
    return t * one - two + used[0]


def _near(table: Sequence[float], x: Any, end: float, power: int = 2) -> Any:
    return series(table, 2 * lax.integer_pow(x / end, power) - 1)


def _far(table: Sequence[float], x: Any, start: float, power: float = 2) -> Any:
    ratio = start / x
    return series(table, 2 * (lax.integer_pow(ratio, int(power)) if power % 1 == 0 else ratio**power) - 1)


# ---------------------------------------------------------------- Bessel functions of orders 0 and 1


def _waves(x: Any, p: Sequence[float], q: Sequence[float], order: int) -> tuple[Any, Any]:
    """J and Y for ``x`` of at least 8."""
    # cos and sin of x - pi/4 from those of x: subtracting first would lose digits of large x.
    c, s = lax.cos(x), lax.sin(x)
    cos, sin = (c + s, s - c) if order == 0 else (s - c, -(s + c))
    size = lax.rsqrt(math.pi * x)
    a, b = _far(p, x, 8), _far(q, x, 8) / x
    return size * (a * cos - b * sin), size * (a * sin + b * cos)


def _j(x: Any, order: int) -> Any:
    table, p, q = ((tables.J0, tables.P0, tables.Q0), (tables.J1, tables.P1, tables.Q1))[order]
    size = lax.abs(x)
    small = size < 8
    near = _near(table, where(small, size, 0.0), 8)
    near = near * x if order else near
    far, _ = _waves(where(small, 8.0, size), p, q, order)
    return where(small, near, far * lax.sign(x) if order else far)


def _y(x: Any, order: int) -> Any:
    table, j, p, q = (
        (tables.Y0, tables.J0, tables.P0, tables.Q0),
        (tables.Y1, tables.J1, tables.P1, tables.Q1),
    )[order]
    small = x < 8
    inside = where(small, x, 8.0)
    safe = where(inside > 0, inside, 1.0)
    near = _near(table, safe, 8)
    if order == 0:
        near = near + 2 / math.pi * lax.log(safe) * _near(j, safe, 8)
    else:
        near = near * safe + 2 / math.pi * (lax.log(safe) * safe * _near(j, safe, 8) - 1 / safe)
    _, far = _waves(where(small, 8.0, x), p, q, order)
    found = where(small, near, far)
    return where(x > 0, found, where(x == 0, lax.full_like(x, -np.inf), np.nan))


def _k(x: Any, order: int, scaled: bool) -> Any:
    """K, times ``exp(x)`` if ``scaled``."""
    table, i, tail = ((tables.K0, tables.I0, tables.K0_FAR), (tables.K1, tables.I1, tables.K1_FAR))[order]
    small = x < 2
    safe = where(lax.bitwise_and(small, x > 0), x, 1.0)
    near, growing = _near(table, safe, 2), lax.log(safe / 2) * _near(i, safe, 2)
    near = near - growing if order == 0 else (near + growing) * safe + 1 / safe
    outside = where(small, 2.0, x)
    far = _far(tail, outside, 2, 1) * lax.rsqrt(outside)
    found = where(small, near * lax.exp(safe), far) if scaled else where(small, near, far * lax.exp(-outside))
    return where(x > 0, found, where(x == 0, lax.full_like(x, np.inf), np.nan))


j0, j1 = (widened(lambda x, n=n: _j(x, n)) for n in (0, 1))
y0, y1 = (widened(lambda x, n=n: _y(x, n)) for n in (0, 1))
k0, k1 = (widened(lambda x, n=n: _k(x, n, False)) for n in (0, 1))
k0e, k1e = (widened(lambda x, n=n: _k(x, n, True)) for n in (0, 1))

# ---------------------------------------------------------------- other integer orders


def _upwards(first: Any, second: Any, x: Any, order: int) -> Any:
    """The function of ``order`` from those of 0 and 1, by the common upward recurrence."""
    if order == 0:
        return first

    def step(n: Any, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        before, now = pair
        return now, lax.convert_element_type(2 * n, x.dtype) / x * now - before

    return lax.fori_loop(1, order, step, (first, second))[1]


@widened
def jn(x: Any, *, order: int) -> Any:
    """J of an integer order: upwards where ``|x|`` is larger than it, and downwards elsewhere (Miller's algorithm)."""
    n = abs(order)
    size = lax.abs(x)
    large = size > n
    safe = where(large, size, n + 1.0)
    up = _upwards(_j(safe, 0), _j(safe, 1), safe, n)
    inner = where(lax.bitwise_or(large, size == 0), 1.0, size)
    start = 2 * ((n + int(math.sqrt(60.0 * (n + 1)))) // 2 + 4)

    def step(i: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        k = start - i
        after, now, total, wanted = state
        before = lax.convert_element_type(2 * k, x.dtype) / inner * now - after
        # They grow fast far from 0; only their ratios matter.
        shrink = where(lax.abs(before) > 1e15, lax.full_like(x, 1e-15), 1.0)
        now, before = now * shrink, before * shrink
        wanted = where(lax.broadcast(k - 1 == n, x.shape), before, wanted * shrink)
        even = lax.convert_element_type((k - 1) % 2 == 0, x.dtype) * where(
            lax.broadcast(k == 1, x.shape), x * 0 + 1, 2.0
        )
        return now, before, total * shrink + even * before, wanted

    zero = lax.full_like(x, 0)
    _, _, total, wanted = lax.fori_loop(0, start, step, (zero, lax.full_like(x, 1e-30), zero, zero))
    # 1 is J0 + 2 J2 + 2 J4 + ...
    down = where(size == 0, 0.0 if n else 1.0, wanted / total)
    found = where(large, up, down)
    found = found * lax.sign(x) if n % 2 and order > 0 else found
    return found if order >= 0 or n % 2 == 0 else -found * lax.sign(x)


@widened
def yn(x: Any, *, order: int) -> Any:
    """Y of an integer order: the upward recurrence is stable."""
    n = abs(order)
    safe = where(x > 0, x, 1.0)
    found = _upwards(_y(safe, 0), _y(safe, 1), safe, n)
    # Near 0 it overflows the dtype, and the recurrence then subtracts infinities.
    found = where(found != found, -np.inf, found)
    found = where(x > 0, found, where(x == 0, lax.full_like(x, -np.inf), np.nan))
    return -found if order < 0 and n % 2 else found


# ---------------------------------------------------------------- Airy and Fresnel functions


def _airy(x: Any, derivative: int) -> Any:
    name = "AI_PRIME" if derivative else "AI"
    middle, right, cosine, sine = (getattr(tables, name + end) for end in ("", "_RIGHT", "_COS", "_SIN"))
    inside = series(middle, (lax.clamp(lax.full_like(x, -4), x, lax.full_like(x, 2)) + 1) / 3)
    up = where(x > 2, x, 2.0)
    quarter = lax.sqrt(lax.sqrt(up))
    decayed = _far(right, up, 2, 1.5) * lax.exp(-2 / 3 * up * lax.sqrt(up))
    decayed = decayed * quarter if derivative else decayed / quarter
    down = where(x < -4, -x, 4.0)
    zeta = 2 / 3 * down * lax.sqrt(down)
    a, b = _far(cosine, down, 4, 3), _far(sine, down, 4, 3)
    later = down * lax.sqrt(down)
    a, b = (a / later, b) if derivative else (a, b / later)
    c, s = (lax.cos(zeta) + lax.sin(zeta)) * math.sqrt(0.5), (lax.sin(zeta) - lax.cos(zeta)) * math.sqrt(0.5)
    quarter = lax.sqrt(lax.sqrt(down)) * math.sqrt(math.pi)
    waves = a * c + b * s
    waves = waves / math.sqrt(math.pi) * lax.sqrt(lax.sqrt(down)) if derivative else waves / quarter
    found = where(x > 2, decayed, where(x < -4, waves, inside))
    return where(x == np.inf, 0.0, found)


airy_ai, airy_ai_prime = (widened(lambda x, d=d: _airy(x, d)) for d in (0, 1))


def _fresnel(x: Any, sine: bool) -> Any:
    size = lax.abs(x)
    small = size < 2
    inner, outer = where(small, size, 0.0), where(small, 2.0, size)
    if sine:
        near = _near(tables.FRESNEL_S, inner, 2, 4) * lax.integer_pow(inner, 3)
    else:
        near = _near(tables.FRESNEL_C, inner, 2, 4) * inner
    f = _far(tables.FRESNEL_F, outer, 2, 4) / outer
    g = _far(tables.FRESNEL_G, outer, 2, 4) / lax.integer_pow(outer, 3)
    # The angle modulo a full turn, to which an even integer part of x**2 / 2 does not contribute.
    turns = outer * outer / 2
    angle = math.pi * (turns - 2 * lax.floor(turns / 2))
    c, s = lax.cos(angle), lax.sin(angle)
    far = 0.5 - f * c - g * s if sine else 0.5 + f * s - g * c
    far = where(outer == np.inf, 0.5, far)
    return lax.sign(x) * where(small, near, far)


fresnel_s, fresnel_c = (widened(lambda x, s=s: _fresnel(x, s)) for s in (True, False))
