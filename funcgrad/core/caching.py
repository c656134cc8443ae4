"""Caches with a limited number of entries, in groups.

Every cache whose keys are unbounded (shapes, layouts, program structures, static arguments, strings) is a ``Cache``, a
dictionary that belongs to a ``Group``. All caches of a group share one limit, so memory stays bounded however many
caches there are. ``stats`` lists all groups.

A hit is a dictionary lookup that records nothing. Eviction uses two generations: a new entry is young; when the young
entries of a group reach half its limit, they become the old generation, and the previous old generation is evicted.
Looking up an old entry makes it young again. So an entry used among the last ``limit / 2`` insertions is kept, and a
hit costs more than a plain dictionary lookup at most once per generation::

    found = cache.get(key)             # young
    if found is None:
        found = cache.again(key)       # old, and young from now on
    if found is None:
        found = cache[key] = make()

``cache[key]`` does the first two, and raises KeyError. Values are never None.

An evicted entry is rebuilt at the next lookup, as another object. Objects that are compared by identity (types,
layouts) use ``Interned`` instead.

Caches are thread-safe without locks, so neither a fork nor a finalizer can deadlock. Each step is one dictionary
operation; an entry inserted during a generation change may be lost, which is a later miss, and a limit may be exceeded
by one entry per thread.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")
R = TypeVar("R")

_groups: dict[str, Group] = {}
_NOTHING: dict[Any, Any] = {}


class Counts(NamedTuple):
    """Statistics of a group of caches.

    Attributes:
        entries: the number of entries, young and old.
        limit: the maximum number of entries.
        evictions: how many entries were evicted since the start, excluding those of deleted caches.
    """

    entries: int
    limit: int
    evictions: int


class Group:
    """Caches that share a limit.

    Args:
        name: its unique name in ``stats``.
        limit: the maximum number of entries of all its caches together.
        weight: the number of entries that a value counts as; 1 by default.
        evicted: called with the evicted values.
    """

    __slots__ = (
        "name", "limit", "evictions", "_weight", "_evicted", "_made", "_generation", "_young", "_old", "_turning",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        limit: int,
        weight: Callable[[Any], int] | None = None,
        evicted: Callable[[Iterable[Any]], None] | None = None,
    ):
        if name in _groups:
            raise ValueError(f"Group: there is already a group of caches named {name!r}")
        self.name = name
        self.limit = limit
        self.evictions = 0
        self._weight = weight
        self._evicted = evicted
        self._made = 0  # entries inserted in this generation
        self._generation = 0
        #: The caches that have young entries, and those that have old ones.
        self._young: list[weakref.ref[Cache]] = []
        self._old: list[weakref.ref[Cache]] = []
        self._turning = threading.Lock()
        _groups[name] = self

    def __reduce__(self) -> tuple:
        return _named, (self.name,)

    def counts(self) -> Counts:
        """The current statistics."""
        caches = {id(c): c for r in (*self._young, *self._old) if (c := r()) is not None}
        return Counts(sum(len(c) + len(c._old) for c in caches.values()), self.limit, self.evictions)

    def turn(self) -> None:
        """Starts a new generation: evicts old entries and makes young ones old."""
        if not self._turning.acquire(blocking=False):
            return  # another thread is evicting, or a finalizer of an evicted value re-entered
        try:
            gone, self._old, self._young = self._old, self._young, []
            # After the list: a cache that registers itself concurrently is registered twice, which is harmless.
            self._generation += 1
            self._made = 0
            for reference in gone:
                cache = reference()
                if cache is not None:
                    dropped, cache._old = cache._old, _NOTHING
                    self.evictions += len(dropped)
                    if self._evicted is not None:
                        self._evicted(dropped.values())
                    del dropped  # finalizers of evicted values run here
            for reference in self._old:
                cache = reference()
                if cache is not None and len(cache):
                    cache._old = dict(cache)
                    dict.clear(cache)
        finally:
            self._turning.release()


def _named(name: str) -> Group:
    return _groups[name]


class Cache(dict[K, V]):
    """A dictionary that keeps recently used entries; see the module docstring.

    Args:
        group: the group whose limit it shares.
    """

    __slots__ = ("_group", "_generation", "_old", "__weakref__")

    def __init__(self, group: Group):
        self._group = group
        self._generation = -1
        self._old: dict[K, V] = _NOTHING

    def __setitem__(self, key: K, value: V) -> None:
        dict.__setitem__(self, key, value)
        group = self._group
        if self._generation != group._generation:
            self._generation = group._generation
            group._young.append(weakref.ref(self))
        group._made += 1 if group._weight is None else group._weight(value)
        if group._made * 2 >= group.limit:
            group.turn()

    def again(self, key: K) -> V | None:
        """The value of an old entry, which becomes young again; None if the key is not found."""
        value = self._old.pop(key, None)
        if value is not None:
            self[key] = value
        return value

    def __missing__(self, key: K) -> V:
        value = self.again(key)
        if value is None:
            raise KeyError(key)
        return value

    def setdefault(self, key: K, value: V) -> V:
        """The existing value, or else ``value``: all racing threads get the same one."""
        found = self.get(key)
        if found is None:
            found = self.again(key)
        if found is None:
            found = dict.setdefault(self, key, value)
            self[key] = found  # counted
        return found

    def pop(self, key: K, default: Any = None) -> Any:
        """Removes an entry and returns its value; ``default`` if the key is not found."""
        old = self._old.pop(key, default)
        return dict.pop(self, key, old)

    def clear(self) -> None:
        """Removes all entries."""
        self._old = _NOTHING
        dict.clear(self)

    def __reduce__(self) -> tuple:
        return Cache, (self._group,)  # a copy starts empty


class Interned(Generic[K, V]):
    """Interned objects: equal ones are identical, so they are compared by identity.

    At most one object per key is alive. Recently used ones are referenced here; the others live as long as they are
    referenced elsewhere.

    Args:
        name, limit: as for ``Group``; the limit counts the strong references.

    Attributes:
        known: the strongly referenced objects by key. Look there first.
    """

    __slots__ = ("known", "_alive", "_lock", "__weakref__")

    def __init__(self, name: str, limit: int):
        self.known: Cache[K, V] = Cache(Group(name, limit))
        self._alive: weakref.WeakValueDictionary[K, V] = weakref.WeakValueDictionary()
        _interned.add(self)
        self.renew()

    def renew(self) -> None:
        """Makes an unlocked lock."""
        # Allocations in between may trigger garbage collection, whose finalizers may re-enter.
        self._lock = threading.RLock()

    def find(self, key: K) -> V | None:
        """The object of a key that is not in ``known``, or None."""
        found = self.known.again(key)
        if found is None:
            found = self._alive.get(key)
            if found is not None:
                self.known[key] = found
        return found

    def add(self, key: K, value: V) -> V:
        """The object for a key: ``value``, or the one that another thread has added first."""
        with self._lock:
            found = self._alive.setdefault(key, value)
        self.known[key] = found
        return found


_interned: weakref.WeakSet[Interned] = weakref.WeakSet()


def memoized(name: str, limit: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that caches the results of a function of hashable positional arguments.

    Args:
        name, limit: as for ``Group``.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known: Cache[Any, Any] = Cache(Group(name, limit))
        plain: Any = function

        @wraps(function)
        def kept(*args: Any) -> Any:
            try:
                return known[args][0]
            except KeyError:
                pass
            value = plain(*args)
            known[args] = (value,)
            return value

        return cast("Callable[P, R]", kept)

    return decorate


def stats() -> dict[str, Counts]:
    """Statistics of all groups, by name."""
    return {name: _groups[name].counts() for name in sorted(_groups)}


def groups() -> Iterator[Group]:
    """All groups."""
    return iter(list(_groups.values()))


@contextmanager
def limited(most: int, *names: str) -> Iterator[None]:
    """Context in which the named groups (default: all) start empty and keep at most ``most`` entries each."""
    chosen = [_groups[name] for name in names] if names else list(groups())
    before = [group.limit for group in chosen]
    for group in chosen:
        group.limit = min(most, group.limit)
        group.turn()
        group.turn()
    try:
        yield
    finally:
        for group, limit in zip(chosen, before, strict=True):
            group.limit = limit


def _forked() -> None:
    """After a fork: releases locks held by other threads."""
    for group in groups():
        group._turning = threading.Lock()
    for interned in list(_interned):
        interned.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
