"""Caches: bounded for any keys; entries in use are kept; equal objects stay identical."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import interop, runtime
from funcgrad.core import caching
from funcgrad.core.caching import Cache, Group, Interned, limited, memoized
from funcgrad.core.ir import ArrayType
from funcgrad.runtime import compiled as compiling


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Group]:
    made = Group(f"of {request.node.name}", 10)
    yield made
    del caching._groups[made.name]


class Value:
    """An object that can be weakly referenced."""


# ---------------------------------------------------------------- the mechanism


def test_a_cache_keeps_no_more_than_its_limit(group: Group) -> None:
    cache: Cache[int, Value] = Cache(group)
    alive = []
    for i in range(100):
        value = cache[i] = Value()
        alive.append(weakref.ref(value))
        del value
        assert group.counts().entries <= 10
        assert sum(r() is not None for r in alive) <= 10
    assert group.counts().evictions == 100 - group.counts().entries
    assert 99 in cache or cache.again(99) is not None


def test_recently_used_entries_are_kept(group: Group) -> None:
    cache: Cache[Any, Any] = Cache(group)
    first = cache["used"] = Value()
    for i in range(100):
        cache[i] = Value()
        found = cache.get("used")
        assert (cache.again("used") if found is None else found) is first
        assert cache["used"] is first  # the same by subscript
    with pytest.raises(KeyError):
        cache[0]
    assert cache.get(0) is None and cache.again(0) is None


def test_caches_of_a_group_share_its_limit(group: Group) -> None:
    caches: list[Cache[int, int]] = [Cache(group) for _ in range(50)]
    for i in range(1000):
        caches[i % 50][i] = i + 1
        assert group.counts().entries <= 10
    del caches
    gc.collect()
    assert group.counts().entries == 0


def test_entries_have_weights_and_callbacks_on_eviction() -> None:
    gone: list[int] = []
    group = Group("weighed", 100, weight=lambda value: value, evicted=gone.extend)
    try:
        cache: Cache[int, int] = Cache(group)
        for i in range(40):
            cache[i] = 30
        assert group.counts().entries <= 4 and len(gone) >= 36 and set(gone) == {30}
    finally:
        del caching._groups["weighed"]


def test_entries_are_taken_out(group: Group) -> None:
    cache: Cache[int, int] = Cache(group)
    for i in range(8):
        cache[i] = i + 1
    assert cache.pop(0) == 1 and cache.pop(7) == 8 and cache.pop(7, 5) == 5  # an old one, a recent one, none
    assert cache.again(0) is None
    assert cache.setdefault(1, 9) == 2 and cache.setdefault(100, 9) == 9 and cache[100] == 9
    cache.clear()
    assert group.counts().entries == 0 and cache.again(2) is None


def test_copies_start_with_an_empty_cache(group: Group) -> None:
    cache: Cache[int, int] = Cache(group)
    cache[1] = 2
    for other in (copy.deepcopy(cache), copy.copy(cache), pickle.loads(pickle.dumps(cache))):
        assert isinstance(other, Cache) and not other and other._group is group
        other[3] = 4
        assert 3 not in cache


def test_no_two_groups_have_one_name(group: Group) -> None:
    with pytest.raises(ValueError, match=f"already a group of caches named '{group.name}'"):
        Group(group.name, 5)


def test_a_memoized_function_is_called_once_for_each_argument_that_is_in_use() -> None:
    calls: list[Any] = []

    @memoized("memoized for a test", 10)
    def square(x: int, shown: bool = True) -> int | None:
        calls.append(x)
        return x * x if x else None

    try:
        assert [square(0), square(0), square(3), square(3, True)] == [None, None, 9, 9]
        assert calls == [0, 3, 3]
        for i in range(1000):
            square(i)
            square(7)
        assert caching.stats()["memoized for a test"].entries <= 10
        assert calls.count(7) <= 2
        with pytest.raises(TypeError, match="unhashable"):
            square([])  # type: ignore[arg-type]
    finally:
        del caching._groups["memoized for a test"]


def test_equal_objects_are_one_while_it_is_referenced() -> None:
    interned: Interned[int, Value] = Interned("interned for a test", 4)
    try:
        held = interned.add(0, Value())
        for i in range(1, 100):
            interned.add(i, Value())
        assert interned.known.get(0) is None
        assert interned.find(0) is held and interned.add(0, Value()) is held
        assert interned.find(1) is None  # without references
        assert len(interned._alive) <= 5
    finally:
        del caching._groups["interned for a test"]


def test_threads_may_use_one_cache(group: Group) -> None:
    caches: list[Cache[int, int]] = [Cache(group) for _ in range(3)]
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        chance = np.random.default_rng(seed)
        try:
            for i in chance.integers(0, 40, 4000).tolist():
                cache = caches[i % 3]
                found = cache.get(i)
                if found is None:
                    found = cache.again(i)
                if found is None:
                    cache[i] = i + 1
                elif found != i + 1:
                    raise AssertionError((i, found))
                if i == 17:
                    cache.pop(i)
                if i == 18:
                    cache.clear()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    assert group.counts().entries <= 10 + 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_locks_of_other_threads_are_free_in_a_fork() -> None:
    lock, group = caching.Interned.__slots__, next(caching.groups())
    assert "_lock" in lock
    held = ArrayType((3, 1, 4, 1), np.dtype(np.float32))
    before = group._turning
    with before:
        caching._forked()  # what a child does first
        assert group._turning is not before and group._turning.acquire(blocking=False)
        group._turning.release()
    assert ArrayType((3, 1, 4, 1), np.dtype(np.float32)) is held


# ---------------------------------------------------------------- users of the mechanism


def test_types_stay_themselves_when_all_are_evicted() -> None:
    with limited(2):
        held = [ArrayType((n, 2), np.dtype(np.float32), weak) for n in range(50) for weak in (False, True)]
        again = [ArrayType((n, 2), np.dtype(np.float32), weak) for n in range(50) for weak in (False, True)]
        assert all(a is b for a, b in zip(held, again, strict=True))
        assert ArrayType((np.int64(7), 2), np.dtype(np.float32)) is held[14]  # type: ignore[arg-type]
    counts = caching.stats()["types of arrays"]
    assert counts.limit > 2 and counts.evictions > 0


def _programs(n: int) -> Any:
    """Results of many kinds of calls on arrays of a size."""
    x = np.linspace(0.1, 1, n, dtype=np.float32)
    loss = lambda w: fnp.sum(fnp.tanh(x * w) * x + 1) if w < 2 else fnp.sum(x * w)
    scanned = lambda w: fg.scan(lambda c, v: (c * w + fnp.sin(v), c), 1.0, fnp.asarray(x))[0]
    return [
        fg.grad(loss)(0.5), fg.value_and_grad(loss)(3.0), fg.grad(fg.grad(loss))(0.3), fg.grad(scanned)(0.7),
        fg.vmap(lambda v: fnp.dot(x, x) * v)(x), fg.jacfwd(lambda v: v * v[::-1])(x), fnp.std(x), fnp.sort(x)[: n // 2],
        fnp.add(x, 1.0), fnp.where(x > 0.5, x, 0), fnp.reshape(x, (-1, 1)) @ fnp.ones((1, 2)),
    ]  # fmt: skip


def test_results_are_equal_with_caches_that_evict_every_entry() -> None:
    wanted = [_programs(n) for n in (3, 4)]
    with limited(2):
        for _ in range(2):
            for n, want in zip((3, 4), wanted, strict=True):
                for a, b in zip(jax.tree.leaves(_programs(n)), jax.tree.leaves(want), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-6)
    assert all(c.entries <= c.limit for c in caching.stats().values())


def test_memory_is_bounded_over_new_shapes() -> None:
    gradient = fg.grad(lambda w, x: fnp.sum(fnp.tanh(x * w) * x + 1))

    def run(first: int, count: int) -> None:
        for i in range(first, first + count):
            gradient(0.5, np.ones((1 + i % 40, 1 + i // 40), np.float32)).block_until_ready()

    with limited(40):
        run(0, 200)
        gc.collect()
        before = len(gc.get_objects())
        run(200, 400)
        gc.collect()
        grown = len(gc.get_objects()) - before
    assert grown < 20_000  # 62,000 if all were kept


def test_closed_over_values_are_freed_with_their_functions() -> None:
    def run() -> list[Any]:
        x = fnp.asarray(np.ones(100, np.float32))
        jitted = fg.jit(lambda w: fnp.sum(x * w))
        functions = [jitted, lambda w: fnp.sum(x * w), lambda w: fg.scan(lambda c, v: (c * w + v, c), 1.0, x)[0]]
        for f in functions:
            for _ in range(3):
                fg.grad(f)(2.0)
        return [weakref.ref(x), weakref.ref(jitted)]

    held = run()
    runtime.flush()
    gc.collect()
    assert [r() for r in held] == [None, None]


def test_closed_over_values_of_jax_functions_are_freed_with_them() -> None:
    def run() -> Any:
        x = jax.numpy.ones(100)
        fg.grad(interop.from_jax(lambda w: (x * w).sum()))(2.0)
        return weakref.ref(x)

    held = [run() for _ in range(5)]
    runtime.flush()
    gc.collect()
    assert sum(r() is not None for r in held) <= 1  # the last recorded ones


# ---------------------------------------------------------------- JAX's caches


def test_traces_are_freed_once_they_were_called() -> None:
    traced: list[Any] = []

    def double(x: Any) -> Any:
        traced.append(x.shape)
        return x * 2

    first, second = compiling.compiled(double, many=True), compiling.compiled(double)
    for n in range(1, 6):
        first(np.ones(n))
    second.lower(np.ones(50)).compile()  # prepared, but not called
    first(np.ones(51))
    count = len(traced)
    second(np.ones(50))
    for n in range(1, 6):
        first(np.ones(n))
    assert len(traced) == count, "something was traced again"
    first.lower(np.ones(3))
    assert traced[count:] == [(3,)], "the trace was still there"


def test_the_number_of_types_compiled_for_is_bounded() -> None:
    with limited(8, "compiled for types"):
        double = fg.jit(lambda x: x * 2)
        for n in range(1, 16):
            assert double(fnp.ones(n)).shape == (n,)
            assert double.compiled._cache_size() <= 9
        for n in (1, 15):
            np.testing.assert_array_equal(double(fnp.ones(n)), np.full(n, 2.0))
    assert caching.stats()["compiled for types"].evictions > 0


def test_compiled_programs_are_bounded_and_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.settings, "by_numpy", False)
    with limited(4, "compiled programs"):
        made = []
        for n in range(2, 12):
            program = fg.trace(lambda x: fnp.sin(x) + 1, fnp.ones(n))
            made.append(runtime.executable(program))
            made[-1].now([fnp.ones(n)], ())
        assert sum(len(code._run) + len(code._run._old) for code in made if code._run is not None) <= 4
        for n, code in zip(range(2, 12), made, strict=True):
            np.testing.assert_allclose(code.now([fnp.ones(n)], ())[0], np.full(n, np.sin(1.0) + 1), rtol=1e-6)


def test_a_constant_that_two_threads_make_at_once_is_one() -> None:
    from funcgrad.runtime import constants

    first = []

    def make() -> np.ndarray:
        first.append(constants.table(("made at once",), lambda: np.ones(3)))  # as another thread, meanwhile
        return np.ones(3)

    before = len(constants.shared)
    assert constants.table(("made at once",), make) is first[0] and runtime.is_constant(first[0])
    assert len(constants.shared) == before + 1


def test_freed_constants_are_not_shared() -> None:
    from funcgrad.runtime import constants

    kind = np.dtype(np.float32)
    with limited(8, "constants"):
        made = [constants.filled((n,), 0.5, kind) for n in range(1, 40)]
        shared = [runtime.is_constant(b) for b in made]
        assert sum(shared) <= 8 and shared[-1]
        kept = [*constants._kept.values(), *constants._kept._old.values()]
        assert {id(b) for b in kept} == set(constants.shared)
