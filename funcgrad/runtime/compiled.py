"""``jax.jit`` with a limited cache of compiled programs.

Beside what runs, JAX keeps what it came from, the trace and its lowering, as long as the function lives: four fifths of
the megabyte and a half that a small program takes. It is of no use any more once what was compiled has been called.
JAX releases it when the cache of a function is cleared; that of a second ``jit`` of the same function, which has
nothing compiled itself, will do.

A function that is compiled for ever new types keeps all of them. Those of all functions have one limit; when it is
passed, the functions that were compiled longest ago begin anew.
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

#: What JAX makes a compiled function of, after its name, the function and the one for what is not compiled.
_PARTS = ("static_argnums", "static_argnames", "global_cache_key", "pytree_registry", "shard_arg_fallback", "cache")
#: Options that no function here has, as JAX takes functions with the same ones for the same.
_OTHERWISE = {"xla_allow_excess_precision": True}
#: Functions traced and perhaps not called yet, with JAX's compiled function of each.
_traced: deque[tuple[weakref.ref, weakref.ref]] = deque(maxlen=64)
#: What JAX made of functions of which something is to be forgotten.
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
    """``jax.jit(function, **options)``, of which no more is kept than is of use.

    Args:
        many: whether it may be compiled for many types, rather than for those of one program.
        check: called with the arguments of a call that fails before it runs: raises a better error, or returns.
    """
    known: Cache[Hashable, weakref.ref] = Cache(SIGNATURES)
    itself: list[weakref.ref] = []  # weak: freed with the last strong reference, not by a collection

    @wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        # JAX calls this when there is something new to compile.
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
    """JAX's compiled function, with ``check`` to look at the arguments of calls that fail.

    JAX calls a function of Python's for arguments that nothing is compiled for, wrong ones too. Errors are caught
    in that function, so other calls stay in C. Not public: without it, errors are JAX's own.
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
