"""``jax.jit`` with a bounded cache of compiled programs.

Besides the executable JAX keeps the trace and its lowering while the function lives: four fifths of the 1.5 MB of a
small program. They are no longer needed once the executable has been called. JAX releases them when a function's cache
is cleared; clearing that of a second ``jit`` of the same function, which has compiled nothing itself, suffices.

A function compiled for many types keeps all of its executables. Those of all functions share one limit; beyond it the
functions that were compiled longest ago are cleared.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Any

import jax

try:
    from jaxlib._jax import pjit as _make  # type: ignore[import-not-found]
except ImportError:
    _make: Any = None  # type: ignore[no-redef]

from funcgrad.core.caching import Cache, Group
from funcgrad.native.scheduling import batch_scheduling

#: The arguments for creating a compiled function in JAX, after its name, the function and its cache-miss function.
_PARTS = ("static_argnums", "static_argnames", "global_cache_key", "pytree_registry", "shard_arg_fallback", "cache")
#: An option unique to this module, since JAX shares caches between functions with the same options.
_OTHERWISE = {"xla_allow_excess_precision": True}
#: Traced functions that may not have been called yet, with JAX's compiled function of each.
_traced: deque[tuple[weakref.ref, weakref.ref]] = deque(maxlen=64)
#: JAX's compiled functions whose traces are to be released.
_stale: deque[weakref.ref] = deque()


def _forget(functions: Iterable[weakref.ref]) -> None:
    _stale.extend(dict.fromkeys(functions))


SIGNATURES = Group("compiled for types", 2048, evicted=_forget)


def compiled(
    function: Callable[..., Any],
    *,
    many: bool = False,
    check: Callable[[tuple, dict[str, Any]], None] | None = None,
    **options: Any,
) -> Any:
    """``jax.jit(function, **options)`` that releases its trace and lowering.

    Args:
        many: whether it may be compiled for many types, rather than for those of one program.
        check: called with the arguments of a call that fails before it runs; raises a better error, or returns.
    """
    known: Cache[Hashable, weakref.ref] = Cache(SIGNATURES)
    itself: list[weakref.ref] = []  # weak: freed with the last strong reference, not by a collection

    @wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        # JAX calls this on a cache miss.
        batch_scheduling()
        _tidy()
        _traced.append((itself[0], itself[1]))
        if many:
            known[object()] = itself[1]
        return function(*args, **kwargs)

    jitted = jax.jit(traced, **options)
    if check is not None:
        jitted = _checked(jitted, check)
    itself += weakref.ref(traced), weakref.ref(jitted)
    return jitted


def _checked(jitted: Any, check: Callable[[tuple, dict[str, Any]], None]) -> Any:
    """JAX's compiled function, with ``check`` called for calls that fail.

    JAX calls a Python function on cache misses, invalid arguments included. Errors are caught there, so hits stay in
    C++. Not public API: without it, errors are JAX's own.
    """
    if _make is None:
        return jitted
    try:
        state = jitted.__getstate__()
        missed = state["cache_miss"]
        parts = [state[name] for name in _PARTS]
    except (AttributeError, KeyError, TypeError):
        return jitted

    def cache_miss(*args: Any, **kwargs: Any) -> Any:
        try:
            return missed(*args, **kwargs)
        except (TypeError, ValueError) as error:
            failed = error
        check(args, kwargs)
        raise failed

    made = _make(state["function_name"], state["fun"], cache_miss, *parts)
    made.__dict__.update(jitted.__dict__)
    return made


def _tidy() -> None:
    """Clears the traces of functions called since, and evicted entries."""
    while _stale:
        jitted = _stale.popleft()()
        if jitted is not None:
            jitted.clear_cache()
    for _ in range(len(_traced)):
        try:
            entry = _traced.popleft()
        except IndexError:  # another thread took it
            return
        function, jitted = entry[0](), entry[1]()
        if function is None or jitted is None:
            continue
        if _was_called(jitted):
            second: Any = jax.jit(function, compiler_options=_OTHERWISE)
            second.clear_cache()
        else:
            _traced.append(entry)


def _was_called(jitted: Any) -> bool:
    # Not public: without it traces stay as long as functions do.
    size = getattr(jitted, "_cache_size", None)
    return size is not None and size() > 0
