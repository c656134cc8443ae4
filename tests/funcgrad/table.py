"""Rows of a table: functions of a namespace and of arrays, evaluated with two libraries, with their derivatives.

The first derivative is compared with differences of the other library's values and with JAX's, the second one with
differences of the first, forward over reverse and reverse over forward; a batch with values one by one. One program per
row computes all of it at once.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import trees
from tests.funcgrad.oracle import Arrays, Eager, Ours, Theirs, assert_close

Row = tuple[Callable[..., Any], tuple]

# Central differences with steps of 1e-6 lose 1e-10 / 1e-6 to rounding; their own error is smaller.
STEP, LOST = 1e-6, 1e-7
# So do differences of derivatives, each of which is rounded already.
SECOND = 2e-5


def live_of(arguments: tuple) -> list[int]:
    kinds = [np.asarray(x).dtype.kind in "fc" and not np.isnan(x).any() for x in arguments]
    return [i for i, kind in enumerate(kinds) if kind]


def check_row(
    row: Row,
    ours: Any,
    theirs: Any,
    jax: Any = None,
    *,
    by_value: bool = False,
    second: bool = True,
    lost: float = LOST,
) -> None:
    """Evaluates both namespaces, and JAX's if it has the function.

    Args:
        row: a function of a namespace and of arrays, and these arrays; the floating ones are differentiated.
        by_value: the function reads values, so it is evaluated outside ``jit``, and for first derivatives only.
        second: whether there are second derivatives, at every point.
        lost: how far derivatives may be from differences.
    """
    f, arguments = row
    wanted = value_of(f, theirs, arguments)
    live = live_of(arguments)
    b: Any = Eager if by_value else Ours

    def moving(*xs: Any, xp: Any = ours) -> Arrays:
        every = list(arguments)
        for i, x in zip(live, xs, strict=True):
            every[i] = x
        return [trees.array_of(f(xp, *every))]  # an array, if a writable copy is given

    xs = [np.asarray(arguments[i]) for i in live]
    if not live or wanted.dtype.kind not in "fc":
        (out,) = b.run(moving, xs)
        assert_close(out, wanted, "value")
        return
    rng = np.random.default_rng(1)
    ts = [direction(rng, x) for x in xs]
    ct = direction(rng, wanted)
    differences = partial(difference, f, theirs, arguments, live, ts)
    if by_value:
        check_first(wanted, differences, ts, ct, *eagerly(moving, xs, ts, ct), lost)
        return
    answers = Ours.run(questions(moving, len(xs), second=second), [*xs, *ts, ct])
    n = len(xs)
    batched, one_by_one, *answers = answers
    assert_close(batched, np.asarray(one_by_one), "batched")
    check_first(wanted, differences, ts, ct, answers[0], answers[1], answers[2 : 2 + n], lost)
    if jax is not None:
        found = Theirs.run(lambda *at: Theirs.vjp(partial(moving, xp=jax), at[:n])[1]([at[n]]), [*xs, ct])
        for c, w in zip(answers[2 : 2 + n], found, strict=True):
            assert_close(np.asarray(c).astype(w.dtype), np.asarray(w), "cotangents, and JAX's", 1e-6)
    if second:
        ahead, back, moved = (answers[2 + n * i : 2 + n * (i + 1)] for i in (1, 2, 3))
        for a, r, d in zip(ahead, back, moved, strict=True):
            assert_close(a, np.asarray(r), "second derivative, forwards over backwards, and backwards over forwards")
            assert_close(a, np.asarray(d), "second derivative, and differences of the first", SECOND)


def direction(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    values = rng.normal(size=like.shape)
    if like.dtype.kind == "c":
        values = values + 1j * rng.normal(size=like.shape)
    return values.astype(like.dtype)


def value_of(f: Callable[..., Any], xp: Any, arguments: tuple) -> np.ndarray:
    # A copy, for functions that modify NumPy's array in place.
    with np.errstate(all="ignore"):
        return np.asarray(f(xp, *[np.copy(x) for x in arguments]))


def difference(f: Callable[..., Any], xp: Any, arguments: tuple, live: list[int], ts: Arrays) -> np.ndarray:
    ends = []
    for sign in (1, -1):
        moved = list(arguments)
        for i, t in zip(live, ts, strict=True):
            moved[i] = moved[i] + sign * STEP * t
        ends.append(value_of(f, xp, tuple(moved)))
    return (ends[0] - ends[1]) / (2 * STEP)


def questions(moving: Callable[..., Arrays], n: int, *, second: bool) -> Callable[..., Arrays]:
    """Given points, directions, a cotangent: values in a batch, value, tangent, cotangents, and their derivatives."""

    def backwards(*args: Any) -> Arrays:
        return Ours.vjp(moving, list(args[:n]))[1]([args[n]])

    def ask(*args: Any) -> Arrays:
        xs, ts, ct = list(args[:n]), list(args[n : 2 * n]), args[2 * n]
        out, tangent = Ours.jvp(moving, xs, ts)
        near = [x + 0.01 * t for x, t in zip(xs, ts, strict=True)]
        both = Ours.vmap(moving, 2, [0] * n, [fnp.stack(pair) for pair in zip(xs, near, strict=True)])
        answers = [*both, fnp.stack([*out, *moving(*near)]), *out, *tangent, *backwards(*xs, ct)]
        if not second:
            return answers
        still = fnp.zeros_like(ct)
        answers += Ours.jvp(backwards, [*xs, ct], [*ts, still])[1]
        answers += Ours.vjp(lambda *at: Ours.jvp(moving, list(at), ts)[1], xs)[1]([ct])
        ends = [backwards(*[x + s * STEP * t for x, t in zip(xs, ts, strict=True)], ct) for s in (1, -1)]
        return [*answers, *[(a - b) / (2 * STEP) for a, b in zip(*ends, strict=True)]]

    return ask


def eagerly(moving: Callable[..., Arrays], xs: Arrays, ts: Arrays, ct: Any) -> tuple[Any, Any, Arrays]:
    out, pullback = fg.vjp(lambda *x: moving(*x)[0], *xs)
    return out, fg.jvp(lambda *x: moving(*x)[0], tuple(xs), tuple(ts))[1], list(pullback(ct))


def check_first(
    wanted: np.ndarray,
    differences: Callable[[], np.ndarray],
    ts: Arrays,
    ct: Any,
    out: Any,
    tangent: Any,
    cts: Arrays,
    lost: float,
) -> None:
    assert_close(out, wanted, "value")
    assert_close(tangent, differences().astype(ct.dtype), "tangent", lost)
    assert [c.shape for c in cts] == [t.shape for t in ts]
    along = np.sum(np.real(np.asarray(tangent) * ct))
    back = sum(np.sum(np.real(np.asarray(c) * t)) for c, t in zip(cts, ts, strict=True))
    assert_close(np.float64(back), np.float64(along), "cotangents", None if lost == LOST else lost)


def asked(rows: dict[str, Row]) -> set[str]:
    """The names that rows use."""
    names: set[str] = set()
    codes = [f.__code__ for f, _ in rows.values()]
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return names
