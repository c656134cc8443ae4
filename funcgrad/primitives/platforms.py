"""Lowering rules that differ by platform."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jax import lax


class _Lowering(threading.local):
    """The platforms of the module that this thread is lowering; empty if they are unknown."""

    platforms: tuple[str, ...] = ()


_lowering = _Lowering()


@contextmanager
def lowering_for(platforms: Sequence[str]) -> Iterator[None]:
    """The context in which rules are lowered for these platforms."""
    before, _lowering.platforms = _lowering.platforms, tuple(platforms)
    try:
        yield
    finally:
        _lowering.platforms = before


def by_platform(*operands: Any, cpu: Callable[..., Any], default: Callable[..., Any]) -> Any:
    """The result of ``cpu`` on CPUs, that of ``default`` elsewhere, both with the operands as arguments.

    A module for one platform has the operations of one of them; JAX's ``platform_dependent`` would leave conditionals
    to the compiler, which on a GPU wait for their index.
    """
    on_cpu = {platform == "cpu" for platform in _lowering.platforms}
    if len(on_cpu) == 1:
        return cpu(*operands) if on_cpu.pop() else default(*operands)
    return lax.platform_dependent(*operands, cpu=cpu, default=default)
