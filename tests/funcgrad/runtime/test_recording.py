"""``recording.c`` and ``Recording`` in Python: the same lists of the same operations."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from funcgrad.runtime import recording
from funcgrad.runtime.deferred import Deferred
from funcgrad.runtime.recording import Entangled, Recording

needs_twin = pytest.mark.skipif(recording._native is None, reason="the C twin is not compiled here")
LISTS = ("codes", "wires", "inputs", "hosted", "numbers", "pending")


def made(value: Any = None) -> Any:
    found = object.__new__(Deferred)
    if value is not None:
        found.value = value
    return found


def operations(seed: int) -> list[Any]:
    """Random operations: operands from outside, of earlier windows, of this one, repeated ones."""
    rng = random.Random(seed)
    outside: list[Any] = [object() for _ in range(4)] + [np.ones(2), np.ones(3)]
    outside += [made(rng.choice(outside)) for _ in range(4)]
    found: list[Any] = []
    for i in range(rng.randrange(1, 400)):
        buffers = tuple(rng.choice(outside[-20:]) for _ in range(rng.randrange(4)))
        results = tuple(made() for _ in range(rng.randrange(1, 3)))
        numbers = (i, 0.5 * i)[: rng.randrange(3)]
        found.append((f"code {i % 7}", list(buffers) if i % 2 else buffers, numbers, results))
        outside += results
    return found


def lists(ops: list[Any]) -> list[Any]:
    found = Recording(ops)
    return [[id(x) if name in ("inputs", "pending") else x for x in getattr(found, name)] for name in LISTS]


@needs_twin
@pytest.mark.parametrize("seed", range(20))
def test_the_same_recording(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ops = operations(seed)
    fast = lists(ops)
    monkeypatch.setattr(recording, "_native", None)
    assert fast == lists(ops)


@pytest.mark.parametrize("native", [True, False])
def test_operands_recorded_by_another_thread_raise_entangled(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(recording, "_native", None)
    with pytest.raises(Entangled):
        Recording([("code", (made(),), (), (made(),))])


@needs_twin
def test_shared_constants_are_inputs_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    constant = object()
    recording.shared[id(constant)] = ()
    try:
        ops = [("code", (constant, constant, made(constant)), (), (made(),))]
        fast = lists(ops)
        monkeypatch.setattr(recording, "_native", None)
        assert fast == lists(ops) and fast[1] == [-1, -2, -3]
    finally:
        recording.shared.pop(id(constant), None)


@needs_twin
def test_wrong_operations_are_errors() -> None:
    with pytest.raises(TypeError, match="an operation is"):
        Recording([("code", ())])
