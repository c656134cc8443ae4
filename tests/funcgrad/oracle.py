"""The oracle of the primitives' tests: JAX's own autodiff and finite differences of the same function.

A ``Case`` is one function twice, in funcgrad's primitives and in ``jax.lax``, with operands. ``check`` computes with
both all results at once (values, jvp, vjp, second derivatives in both modes, batches of all of these), each as one
compiled program, and compares them. The computations are written once, over two backends with the same three methods.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.batching import at_axis, batch_flat
from funcgrad.interpreters.forward import jvp_flat
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.shape import zeros
from tests.funcgrad.tolerances import DIFFERENCED

# A counterexample is small already, and shrinking it would compile hundreds of programs.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def examples(n: int) -> Any:
    """Hypothesis settings for ``n`` examples, each of which costs two compilations."""
    return settings(max_examples=n, phases=_PHASES)


Sampler = Callable[[np.random.Generator], np.ndarray]
Arrays = list[Any]

BATCH = 2
# Compiling takes nearly all of the time, and every program runs once.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@dataclass
class Case:
    """One function in two libraries.

    Attributes:
        ours, theirs: functions of the operands; both return an array or a list of them.
        operands: each draws one operand.
        frozen: operands without a derivative although they are floating.
        differences: whether finite differences apply (not at kinks, nor for functions that are not real).
        order: 0 values only, 1 first derivatives, 2 second ones too.
    """

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    operands: Sequence[Sampler]
    frozen: Sequence[int] = ()
    differences: bool = True
    order: int = 2


# ---------------------------------------------------------------- operands


def normal(shape: Sequence[int], dtype: Any, low: float | None = None, high: float | None = None) -> Sampler:
    """Random numbers of a dtype; uniform in [low, high] if given, small integers for integers."""
    kind = np.dtype(dtype)

    def sample(rng: np.random.Generator) -> np.ndarray:
        if kind == np.bool_:
            return np.asarray(rng.integers(0, 2, shape), kind)
        if np.issubdtype(kind, np.integer):
            least = 0 if np.issubdtype(kind, np.unsignedinteger) else -5
            return np.asarray(
                rng.integers(least if low is None else int(low), 6 if high is None else int(high) + 1, shape), kind
            )

        def part() -> np.ndarray:
            return rng.normal(size=shape) if low is None else rng.uniform(low, high, shape)

        values = part() + 1j * part() if kind.kind == "c" else part()
        return np.asarray(values).astype(kind)

    return sample


def distinct(shape: Sequence[int], dtype: Any) -> Sampler:
    """Distinct numbers, well separated: for extrema and sorts, whose derivative jumps at ties."""

    def sample(rng: np.random.Generator) -> np.ndarray:
        n = int(np.prod(shape))
        return (np.asarray(rng.permutation(n), float).reshape(shape) * 0.25 - n * 0.125).astype(dtype)

    return sample


def integers(low: int, high: int, shape: Sequence[int], dtype: Any = np.int32) -> Sampler:
    """Integers in [low, high)."""
    return lambda rng: np.asarray(rng.integers(low, high, shape), dtype)


def like(array: np.ndarray) -> Sampler:
    """A random array of the type of another."""
    return normal(array.shape, array.dtype)


# ---------------------------------------------------------------- Hypothesis strategies

Draw = Callable[[Any], Any]


def a_shape(draw: Draw, least: int = 0, most: int = 3, sizes: Sequence[int] = (2, 3, 1, 4, 0)) -> tuple[int, ...]:
    # Hypothesis begins with the simplest example, which should be a meaningful one.
    telling = st.just([2, 3, 4][:most])
    return tuple(draw(telling | st.lists(st.sampled_from(sizes), min_size=least, max_size=most)))


def a_dtype(draw: Draw, *more: Any) -> np.dtype:
    """A dtype with derivatives, mostly; others only if given."""
    usual = [np.float64, np.float32, np.complex128, ml_dtypes.bfloat16, np.float16]
    return np.dtype(draw(st.sampled_from([*usual, *more])))


def a_real_dtype(draw: Draw, *more: Any) -> np.dtype:
    return np.dtype(draw(st.sampled_from([np.float64, np.float32, ml_dtypes.bfloat16, np.float16, *more])))


def some_axes(draw: Draw, ndim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if draw(st.booleans()))


def an_axis(draw: Draw, ndim: int) -> int:
    return draw(st.integers(0, ndim - 1))


# ---------------------------------------------------------------- two backends


def as_list(result: Any) -> Arrays:
    return list(result) if isinstance(result, list | tuple) else [result]


class Ours:
    """funcgrad, staged into one program, which is checked, compiled and run."""

    @staticmethod
    def run(f: Callable[..., Arrays], arrays: Arrays) -> Arrays:
        program = stage(f, [type_of(x) for x in arrays]).check()
        return jax.jit(lowered(program), compiler_options=QUICK)(*arrays)

    @staticmethod
    def vjp(f: Callable[..., Arrays], xs: Arrays) -> tuple[Arrays, Callable[[Arrays], Arrays]]:
        outs, pullback = vjp_flat(f, xs)
        return outs, lambda cts: [_filled(ct, x) for ct, x in zip(pullback(cts), xs, strict=True)]

    @staticmethod
    def jvp(f: Callable[..., Arrays], xs: Arrays, ts: Arrays) -> tuple[Arrays, Arrays]:
        outs, tangents = jvp_flat(f, xs, ts)
        return outs, [_filled(t, o) for t, o in zip(tangents, outs, strict=True)]

    @staticmethod
    def vmap(f: Callable[..., Arrays], size: int, dims: Sequence[int | None], xs: Arrays) -> Arrays:
        outs, found = batch_flat(f, size, xs, dims)
        return [at_axis(o, d, 0, size) for o, d in zip(outs, found, strict=True)]


class Eager(Ours):
    """funcgrad, operation by operation."""

    @staticmethod
    def run(f: Callable[..., Arrays], arrays: Arrays) -> Arrays:
        return f(*[jnp.asarray(x) for x in arrays])


class Theirs:
    """JAX."""

    @staticmethod
    def run(f: Callable[..., Arrays], arrays: Arrays) -> Arrays:
        return jax.jit(f, compiler_options=QUICK)(*arrays)

    @staticmethod
    def vjp(f: Callable[..., Arrays], xs: Arrays) -> tuple[Arrays, Callable[[Arrays], Arrays]]:
        outs, pullback = jax.vjp(lambda *a: tuple(f(*a)), *xs)
        return list(outs), lambda cts: list(pullback(tuple(cts)))

    @staticmethod
    def jvp(f: Callable[..., Arrays], xs: Arrays, ts: Arrays) -> tuple[Arrays, Arrays]:
        return jax.jvp(f, xs, ts)

    @staticmethod
    def vmap(f: Callable[..., Arrays], size: int, dims: Sequence[int | None], xs: Arrays) -> Arrays:
        return jax.vmap(f, in_axes=tuple(dims), axis_size=size)(*xs)


def _filled(x: Any, like: Any) -> Any:
    return zeros(type_of(like)) if x is None else x


# ---------------------------------------------------------------- the computations


@dataclass
class _Inputs:
    """The operands of both sides: for each label a list of arrays."""

    arrays: dict[str, Arrays] = field(default_factory=dict)
    dims: dict[str, list[int | None]] = field(default_factory=dict)

    def flat(self) -> Arrays:
        return [x for group in self.arrays.values() for x in group]

    def rebuilt(self, flat: Sequence[Any]) -> dict[str, Arrays]:
        values = iter(flat)
        return {label: [next(values) for _ in group] for label, group in self.arrays.items()}


def _batches(n: int) -> Iterator[tuple[bool, ...]]:
    """Which operands are batched: every choice for up to three, otherwise each alone, all but each, and all."""
    if n <= 3:
        yield from (c for c in itertools.product((False, True), repeat=n) if any(c))
    else:
        yield (True,) * n
        for i in range(n):
            yield tuple(j == i for j in range(n))
            yield tuple(j != i for j in range(n))


def _inputs(case: Case, rng: np.random.Generator, live: list[int], outs: list[np.ndarray], batched: bool) -> _Inputs:
    xs = [sample(rng) for sample in case.operands]
    given = _Inputs({"x": xs})
    if live and outs and case.order:
        moving = [like(xs[i]) for i in live]
        given.arrays |= {
            "t": [s(rng) for s in moving],
            "ct": [like(o)(rng) for o in outs],
            "t2": [s(rng) for s in [*moving, *map(like, outs)]],
            "ct2": [s(rng) for s in moving],
        }
    if not batched:
        return given
    samplers = list(case.operands)
    if "ct" in given.arrays:
        samplers += [like(o) for o in outs]
    for choice in _batches(len(case.operands)):
        # With one operand batched the cotangents are not, so that rules get a batched value beside an unbatched one.
        flags = [*choice, *[sum(choice) != 1 or len(choice) == 1] * (len(samplers) - len(choice))]
        label = "batch" + "".join(".x"[f] for f in flags)
        group, dims = [], []
        for sample, flag in zip(samplers, flags, strict=True):
            one = sample(rng)
            dim = int(rng.integers(0, one.ndim + 1)) if flag else None
            dims.append(dim)
            group.append(one if dim is None else np.stack([one, *[sample(rng) for _ in range(BATCH - 1)]], axis=dim))
        given.arrays[label], given.dims[label] = group, dims
    return given


def _questions(
    b: Any,
    f: Callable[..., Any],
    given: dict[str, Arrays],
    dims: dict[str, Any],
    live: list[int],
    real: list[int],
    order: int,
) -> dict[str, Arrays]:
    n = len(given["x"])

    def whole(*xs: Any) -> Arrays:
        return as_list(f(*xs))

    def moving(xs: Sequence[Any]) -> Callable[..., Arrays]:
        def g(*moved: Any) -> Arrays:
            every = list(xs)
            for i, x in zip(live, moved, strict=True):
                every[i] = x
            outs = whole(*every)
            return [outs[j] for j in real]

        return g

    def pulled(xs: Sequence[Any]) -> Callable[..., Arrays]:
        def g(*args: Any) -> Arrays:
            return b.vjp(moving(xs), list(args[: len(live)]))[1](list(args[len(live) :]))

        return g

    xs = given["x"]
    answers: dict[str, Arrays] = {"value": whole(*xs)}
    at = [xs[i] for i in live]
    if "t" in given:
        answers["jvp"] = b.jvp(moving(xs), at, given["t"])[1]
        answers["vjp"] = pulled(xs)(*at, *given["ct"])
        if order > 1:
            point = [*at, *given["ct"]]
            answers["forward over reverse"] = b.jvp(pulled(xs), point, given["t2"])[1]
            answers["reverse over reverse"] = b.vjp(pulled(xs), point)[1](given["ct2"])
    for label, where in dims.items():
        answers[label] = b.vmap(whole, BATCH, where[:n], given[label][:n])
        carrying = sum(d is not None for d in where[:n])
        if "t" in given and carrying in (1, n):

            def pullback(*args: Any) -> Arrays:
                return pulled(args[:n])(*[args[i] for i in live], *args[n:])

            answers[f"vjp of {label}"] = b.vmap(pullback, BATCH, where, given[label])
    return answers


# ---------------------------------------------------------------- comparing

# Per dtype: the error of one operation, and the additional error of its derivatives' formulas.
_TOLERANCE = {
    np.dtype(np.float64): 1e-11,
    np.dtype(np.complex128): 1e-11,
    np.dtype(np.float32): 2e-5,
    np.dtype(np.complex64): 2e-5,
    np.dtype(np.float16): 5e-3,
    np.dtype(ml_dtypes.bfloat16): 4e-2,
}


def assert_close(got: Any, wanted: Any, label: str, tolerance: float | None = None) -> None:
    """Equal dtype and shape; integers and bools equal, others within a tolerance of the largest magnitude."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"{label}: shape {got.shape}, wanted {wanted.shape}"
    assert got.dtype == wanted.dtype, f"{label}: dtype {got.dtype}, wanted {wanted.dtype}"
    if not dtypes.is_inexact(got.dtype):
        np.testing.assert_array_equal(got, wanted, err_msg=label)
        return
    wide = np.complex128 if dtypes.is_complex(got.dtype) else np.float64
    rtol = _TOLERANCE[got.dtype] if tolerance is None else tolerance
    got, wanted = got.astype(wide), wanted.astype(wide)
    finite = np.abs(wanted[np.isfinite(wanted)])
    atol = rtol * max(1.0, finite.max(initial=0.0))
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, err_msg=label, equal_nan=True)


def check(case: Case, seed: int = 0, *, batched: bool = True, tolerance: float | None = None) -> None:
    """Compares ours with theirs, and jvp with finite differences in float64."""
    rng = np.random.default_rng(seed)
    xs = [sample(rng) for sample in case.operands]
    types = stage(lambda *a: as_list(case.ours(*a)), [type_of(x) for x in xs]).check().output_types
    live = [i for i, x in enumerate(xs) if dtypes.is_inexact(x.dtype) and i not in case.frozen]
    real = [j for j, t in enumerate(types) if dtypes.is_inexact(t.dtype)]
    outs = [np.empty(types[j].shape, types[j].dtype) for j in real]
    given = _inputs(case, rng, live, outs, batched)

    ours = _ask(Ours, case.ours, case, given, live, real)
    theirs = _ask(Theirs, case.theirs, case, given, live, real)
    for label, wanted in theirs.items():
        assert len(ours[label]) == len(wanted), label
        for i, (a, w) in enumerate(zip(ours[label], wanted, strict=True)):
            assert_close(a, w, f"{label}, number {i}", tolerance)
    if (
        case.differences
        and "jvp" in ours
        and all(given.arrays["x"][i].dtype in (np.float64, np.complex128) for i in live)
    ):
        _check_differences(case, given, live, real, ours["jvp"])


def _ask(
    b: Any, f: Callable[..., Any], case: Case, given: _Inputs, live: list[int], real: list[int]
) -> dict[str, Arrays]:
    counts: dict[str, int] = {}

    def everything(*flat: Any) -> Arrays:
        answers = _questions(b, f, given.rebuilt(flat), given.dims, live, real, case.order)
        counts.update({label: len(group) for label, group in answers.items()})
        return [x for group in answers.values() for x in group]

    values = iter(b.run(everything, given.flat()))
    return {label: [next(values) for _ in range(n)] for label, n in counts.items()}


def _check_differences(case: Case, given: _Inputs, live: list[int], real: list[int], tangents: Arrays) -> None:
    step = 1e-6
    ends = []
    for sign in (1, -1):
        moved = list(given.arrays["x"])
        for i, t in zip(live, given.arrays["t"], strict=True):
            moved[i] = moved[i] + sign * step * t
        ends.append(moved)
    n = len(given.arrays["x"])

    def both(*flat: Any) -> Arrays:
        return [*as_list(case.ours(*flat[:n])), *as_list(case.ours(*flat[n:]))]

    outs = Ours.run(both, [*ends[0], *ends[1]])
    half = len(outs) // 2
    for j, t in zip(real, tangents, strict=True):
        difference = (np.asarray(outs[j]) - np.asarray(outs[half + j])) / (2 * step)
        assert_close(
            np.asarray(t), difference.astype(np.asarray(t).dtype), f"finite differences, number {j}", 10 * DIFFERENCED
        )


def check_eager(case: Case, seed: int = 0) -> None:
    """Values and vjp, run operation by operation."""
    rng = np.random.default_rng(seed)
    xs = [sample(rng) for sample in case.operands]
    live = [i for i, x in enumerate(xs) if dtypes.is_inexact(x.dtype) and i not in case.frozen]
    values = as_list(case.theirs(*map(jnp.asarray, xs)))
    real = [j for j, o in enumerate(values) if dtypes.is_inexact(np.dtype(o.dtype))]
    given = _inputs(case, rng, live, [np.asarray(values[j]) for j in real], batched=False)
    once = Case(case.ours, case.theirs, case.operands, case.frozen, order=1)
    ours, theirs = _ask(Eager, case.ours, once, given, live, real), _ask(Theirs, case.theirs, once, given, live, real)
    for label, wanted in theirs.items():
        for i, (a, w) in enumerate(zip(ours[label], wanted, strict=True)):
            assert_close(a, w, f"eager {label}, number {i}")
