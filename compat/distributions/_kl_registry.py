"""The registry of divergences of pairs of distribution types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from compat._core.types.errors import warn
from funcgrad.core.caching import Cache, Group

__all__ = ["kl_divergence", "register_kl"]

_functions: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_cache: Cache[tuple[type, type], Callable[[Any, Any], Any] | Literal[False]] = Cache(Group("divergences", 1024))


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    """A decorator that registers the divergence of two types.

    It also applies to subclasses, unless a more specific pair is registered.

    Raises:
        TypeError: if one is not a class.
    """
    if not (isinstance(type_p, type) and isinstance(type_q, type)):
        raise TypeError("issubclass() arg 1 must be a class")

    def register(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        _functions[type_p, type_q] = function
        _cache.clear()
        return function

    return register


def _closest(pairs: list[tuple[type, type]], order: tuple[int, int]) -> tuple[type, type]:
    """The most specific pair of types, with priority to ``order[0]``."""
    best = pairs[0]
    for pair in pairs[1:]:
        for i in order:
            if pair[i] is not best[i]:
                best = pair if issubclass(pair[i], best[i]) else best
                break
    return best


def _function_for(type_p: type, type_q: type) -> Callable[[Any, Any], Any] | None:
    pairs = [pair for pair in _functions if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not pairs:
        return None
    by_p, by_q = _closest(pairs, (0, 1)), _closest(pairs, (1, 0))
    if _functions[by_p] is not _functions[by_q]:
        warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({by_p[0].__name__}, "
            f"{by_q[1].__name__})",
            RuntimeWarning,
        )
    return _functions[by_p]


def kl_divergence(p: Any, q: Any) -> Any:
    """The divergence of q from p: the mean under p of ``log p(x) - log q(x)``.

    Returns:
        A tensor of the batch shape.

    Raises:
        NotImplementedError: if no divergence is registered for these types.

    Example:
        >>> kl_divergence(torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(1.0, 1.0))
        tensor(0.5000)
    """
    kinds = type(p), type(q)
    function = _cache.get(kinds)
    if function is None:
        function = _cache[kinds] = _cache.again(kinds) or _function_for(*kinds) or False
    if not function:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return function(p, q)
