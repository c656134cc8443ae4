"""Ordinary differential equations and integrals.

Source of the method: J. Dormand, P. Prince, "A family of embedded Runge-Kutta formulae", J. Comput. Appl. Math. 6
(1980); of the choice of steps: E. Hairer, S. Nørsett, G. Wanner, "Solving ordinary differential equations I", II.4.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import kind
from funcgrad.control import scan, while_loop
from funcgrad.core import dtypes, trees
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.creation.arrays import full_like, zeros_like
from funcgrad.numpy.indexing.getitem import getitem
from funcgrad.numpy.numerical import trapezoid
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.reductions import sum
from funcgrad.numpy.shape import concatenate, expand_dims, flip
from funcgrad.transforms.autodiff import jvp, vjp
from funcgrad.transforms.custom import custom_vjp
from funcgrad.transforms.trace import closure_convert

__all__ = ["odeint", "trapezoid"]

State = list[Any]
Rate = Callable[..., State]

# The weights of the previous stages for each stage. The last stage is the end of the step, where the next one begins.
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
# The weights of the step minus those of the embedded method of order four.
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class _Options(NamedTuple):
    rtol: float
    atol: float
    most: int
    largest: float


def _moved(y: State, h: Any, weights: Sequence[float], rates: Sequence[State]) -> State:
    """``y`` plus ``h`` times a combination of rates."""
    out = []
    for i, x in enumerate(y):
        terms = [w * r[i] for w, r in zip(weights, rates, strict=True) if w]
        out.append(astype(x + h * functools.reduce(lambda a, b: a + b, terms), type_of(x).dtype))
    return out


def _norm(y: State) -> Any:
    """The root mean square of all elements."""
    count = functools.reduce(lambda a, b: a + b, [type_of(x).size for x in y])
    return e.sqrt(functools.reduce(lambda a, b: a + b, [sum(e.real(x * e.conj(x))) for x in y]) / max(count, 1))


def _step(f: Rate, y: State, rate: State, t: Any, h: Any, args: State) -> tuple[State, State, State]:
    """The state and the rate after a step, and the error estimate."""
    rates, after = [rate], y
    for weights, part in zip(_STAGES, _TIMES, strict=True):
        after = _moved(y, h, weights, rates)
        rates.append(f(after, t + part * h, args))
    wrong = _moved([x * 0 for x in y], h, _ERROR, rates)
    return after, rates[-1], wrong


def _first_step(f: Rate, y: State, t: Any, rate: State, args: State, options: _Options, way: Any) -> Any:
    """The initial step size, from the rate and its change."""
    scale = [options.atol + options.rtol * abs(x) for x in y]
    size = _norm([x / s for x, s in zip(y, scale, strict=True)])
    fast = _norm([x / s for x, s in zip(rate, scale, strict=True)])
    h = e.where((size < 1e-5) | (fast < 1e-5), 1e-6, 0.01 * size / e.where(fast > 0, fast, 1))
    there = f(_moved(y, h * way, (1.0,), [rate]), t + h * way, args)
    bent = _norm([(a - b) / s for a, b, s in zip(there, rate, scale, strict=True)]) / h
    most = e.maximum(fast, bent)
    return e.minimum(100 * h, e.where(most <= 1e-15, e.maximum(1e-6, h * 1e-3), (0.01 / e.maximum(most, 1e-15)) ** 0.2))


def _advance(f: Rate, y: State, start: Any, end: Any, h: Any, args: State, options: _Options) -> tuple[State, Any]:
    """The state at ``end``, and the next step size; nonfinite if there would be too many steps."""
    way = e.sign(end - start)

    def going(carry: Any) -> Any:
        _, _, t, _, count = carry
        return ((end - t) * way > 0) & (count < options.most)

    def one(carry: Any) -> Any:
        y, rate, t, h, count = carry
        left = (end - t) * way
        last = h >= left
        size = e.minimum(h, left)
        after, rate_after, wrong = _step(f, y, rate, t, size * way, args)
        scale = [options.atol + options.rtol * e.maximum(abs(a), abs(b)) for a, b in zip(y, after, strict=True)]
        ratio = _norm([w / s for w, s in zip(wrong, scale, strict=True)])
        good = ratio <= 1
        factor = e.clip(0.9 * e.where(ratio > 0, ratio, 1e-10) ** -0.2, 0.2, e.where(good, 10.0, 1.0))
        # A truncated step says little about the next step size.
        grown = e.where(good & last, e.maximum(h, size * factor), size * e.where(e.isnan(factor), 0.2, factor))
        at = e.where(last, end, t + size * way)
        pick = [e.where(good, a, b) for a, b in zip([*after, *rate_after, at], [*y, *rate, t], strict=True)]
        n = len(y)
        return (
            pick[:n],
            pick[n : 2 * n],
            pick[-1],
            astype(e.minimum(grown, options.largest), type_of(h).dtype),
            count + 1,
        )

    first = f(y, start, args)
    found, _, t, h, _ = while_loop(going, one, (y, first, start, h, np.int32(0)))
    arrived = (end - t) * way <= 0
    return [e.where(arrived, x, np.nan) for x in found], h


def _solved(f: Rate, options: _Options, y: State, times: Any, args: State) -> State:
    """The states at all times, stacked, given the first."""
    start = getitem(times, 0)
    way = e.sign(getitem(times, -1) - start)
    h = e.minimum(_first_step(f, y, start, f(y, start, args), args, options, way), options.largest)

    def interval(carry: Any, end: Any) -> Any:
        y, start, h = carry
        y, h = _advance(f, y, start, end, h, args, options)
        return (y, end, h), y

    _, rest = scan(interval, (y, start, astype(h, type_of(times).dtype)), getitem(times, slice(1, None)))
    return [concatenate([expand_dims(x, 0), r]) for x, r in zip(y, rest, strict=True)]


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _states(f: Rate, options: _Options, y: State, times: Any, args: State) -> State:
    return _solved(f, options, y, times, args)


# ---------------------------------------------------------------- derivatives


def _along(f: Rate, y: State, times: Any, args: State, dy: State, dargs: State) -> State:
    """The tangents of ``f`` at a state, without that of time: a solution depends on its end times only."""
    return jvp(lambda y, args: f(y, times, args), (y, args), (dy, dargs))[1]


@_states.defjvp
def _states_pushed(f: Rate, options: _Options, primals: tuple, tangents: tuple) -> tuple[State, State]:
    (y, times, args), (dy, dtimes, dargs) = primals, tangents
    n, count = len(y), len(args)

    def both(state: State, t: Any, given: State) -> State:
        y, dy, args, dargs = state[:n], state[n:], given[:count], given[count:]
        return [*f(y, t, args), *_along(f, y, t, args, dy, dargs)]

    first = f(y, getitem(times, 0), args)
    later = _moved(dy, -getitem(dtimes, 0), (1.0,), [first])
    found = _states(both, options, [*y, *later], times, [*args, *dargs])
    out, moved = found[:n], found[n:]

    def ended(_: Any, at: Any) -> Any:
        y, moved, t, dt = at
        return None, _moved(moved, dt, (1.0,), [f(y, t, args)])

    return out, scan(ended, None, (out, moved, times, dtimes))[1]


def _states_kept(f: Rate, options: _Options, y: State, times: Any, args: State) -> tuple[State, Any]:
    out = _states(f, options, y, times, args)
    return out, (out, times, args)


def _paired(a: State, b: State) -> Any:
    return functools.reduce(lambda x, y: x + y, [sum(p * q) for p, q in zip(a, b, strict=True)])


def _states_pulled(f: Rate, options: _Options, kept: Any, cts: State) -> tuple[State, Any, State]:
    out, times, args = kept
    n = len(out)

    def back(state: State, t: Any, args: State) -> State:
        y, a = state[:n], state[n : 2 * n]
        rate, pull = vjp(lambda y, args: f(y, t, args), y, args)
        of_y, of_args = pull(a)
        return [*rate, *[-x for x in of_y], *[-x for x in of_args]]

    def interval(carry: Any, at: Any) -> Any:
        a, of_args = carry
        y, ct, t, before = at
        a = [x + c for x, c in zip(a, ct, strict=True)]
        by_end = _paired(f(y, t, args), ct)
        ends = concatenate([expand_dims(t, 0), expand_dims(before, 0)])
        found = [getitem(x, -1) for x in _states(back, options, [*y, *a, *of_args], ends, args)]
        return (found[n : 2 * n], found[2 * n :]), by_end

    def reversed_(x: Any) -> Any:
        return flip(getitem(x, slice(1, None)), 0)

    nothing = ([zeros_like(getitem(x, 0)) for x in out], [zeros_like(x) for x in args])
    befores = flip(getitem(times, slice(None, -1)), 0)
    steps = ([reversed_(x) for x in out], [reversed_(c) for c in cts], reversed_(times), befores)
    (a, of_args), by_ends = scan(interval, nothing, steps)
    first = f([getitem(x, 0) for x in out], getitem(times, 0), args)
    by_times = concatenate([expand_dims(-_paired(first, a), 0), flip(by_ends, 0)])
    return [x + getitem(c, 0) for x, c in zip(a, cts, strict=True)], e.real(by_times), of_args


_states.defvjp(_states_kept, _states_pulled)

# ---------------------------------------------------------------- public functions


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple[Any, ...] = (),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    mxstep: int = 10_000,
    hmax: float = 0.0,
    tfirst: bool = False,
) -> Any:
    """The solution of ``dy/dt = func(y, t, *args)`` at given times, from ``y0`` at the first of them.

    Step sizes are adaptive. Derivatives, of any order, are computed by the adjoint method: reverse mode solves an
    equation for the cotangents backwards in time and stores no steps, forward mode one for the tangents. They are with
    respect to ``y0``, ``t``, ``args``, and values that ``func`` closes over.

    Args:
        func: takes the state, the time and ``args``; returns a pytree like the state.
        y0: a pytree of arrays; computed in the promoted floating dtype of ``y0`` and ``t``.
        t: ``(n,)``, ascending or descending.
        args: pytrees of arrays.
        rtol, atol: the error tolerance of a step: ``atol + rtol * abs(y)``. By default 1.49e-8, for float32 1.4e-6.
        mxstep: the maximum number of steps between two times; if exceeded, the result is NaN.
        hmax: the maximum step size; 0 for none.
        tfirst: whether ``func`` takes the time first.

    Returns:
        A pytree like ``y0``, with a leading axis of ``n`` for each leaf.

    Raises:
        TypeError: for an invalid argument, and if ``func`` returns another pytree than the state.
        ValueError: if ``t`` is not a nonempty vector, or ``y0`` has no arrays.

    Example:
        >>> import funcgrad as fg
        >>> times = np.array([0.0, 1.0])
        >>> print(np.round(odeint(lambda y, t: -y, np.array([1.0]), times), 6).ravel())
        [1.       0.367879]
        >>> print(fg.grad(lambda k: odeint(lambda y, t: -k * y, 1.0, times)[-1])(np.float64(1.0)).round(6))
        -0.367879
    """
    validate.function("odeint", func, "func")
    tree: Any
    leaves, tree = trees.flatten(y0)
    if not leaves:
        raise ValueError(f"odeint: y0 must have at least one array, got {y0!r}")
    times = asoperand(t, "odeint")
    if type_of(times).ndim != 1 or not type_of(times).size:
        raise ValueError(f"odeint: t must be a vector of times, got {type_of(times)}")
    *y, _ = promoted(*[asoperand(x, "odeint") for x in leaves], times, floating=True)
    dtype = type_of(y[0]).dtype
    real = dtypes.real_of(dtype) if dtypes.is_complex(dtype) else dtype
    times = astype(times, real)
    given, args_tree = trees.flatten(validate.sequence("odeint", "args", args))

    def rate(state: State, time: Any, values: State) -> State:
        now, others = trees.unflatten(tree, state), trees.unflatten(args_tree, values)
        found = func(time, now, *others) if tfirst else func(now, time, *others)
        moving, out_tree = trees.flatten(found)
        if out_tree != tree:
            raise TypeError(f"odeint: func must return a pytree like y0, {tree}, got {kind(found)}")
        return [
            full_like(x, 0) + astype(asoperand(m, "odeint"), type_of(x).dtype)
            for m, x in zip(moving, state, strict=True)
        ]

    floating = [dtypes.is_inexact(type_of(x).dtype) for x in given]
    converted, hoisted = closure_convert(rate, list(y), getitem(times, 0), given)
    fixed = [x for x, live in zip(given, floating, strict=True) if not live]
    live = [asoperand(x, "odeint") for x, live in zip(given, floating, strict=True) if live]

    def of_live(state: State, time: Any, values: State) -> State:
        own, others = iter(values[: len(live)]), iter(fixed)
        every = [next(own) if is_live else next(others) for is_live in floating]
        return converted(state, time, every, *values[len(live) :])

    least = 1.49e-8 if real == dtypes.float64 else 1.4e-6
    limits = {"rtol": least if rtol is None else rtol, "atol": least if atol is None else atol, "hmax": hmax}
    relative, absolute, longest = (validate.number("odeint", what, x) for what, x in limits.items())
    options = _Options(relative, absolute, validate.integer("odeint", "mxstep", mxstep), longest or np.inf)
    return trees.unflatten(tree, _states(of_live, options, list(y), times, [*live, *hoisted]))
