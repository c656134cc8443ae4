"""The communication of a compiled multi-device program, read from its HLO."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

__all__ = ["Collective", "collectives"]

_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")
#: The first line of a computation, and an instruction: its name, type, opcode, and the rest.
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
_ARRAY = re.compile(r"([a-z]+\d*)(?:e\d+m\d+\w*)?\[([\d,]*)\]")
_CALLED = re.compile(r"(?:body|condition|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'known_trip_count"?:\s*\{"?n"?:\s*"?(\d+)')
_BITS = {"pred": 8, "c64": 64, "c128": 128}


@dataclass(frozen=True)
class Collective:
    """Collectives of one kind, array size and number of devices in a program.

    Attributes:
        kind: HLO's opcode: ``"all-reduce"``, ``"all-gather"``, ``"reduce-scatter"``, ...
        devices: the number of devices in a group.
        bytes: the size of the global array that is summed, gathered, scattered or sent.
        count: the number of executions per device in one run of the program.
        bounded: False in a loop with an unknown trip count, which counts as one iteration.

    Example:
        >>> Collective("all-reduce", 4, 1000, 2).sent
        3000
    """

    kind: str
    devices: int
    bytes: int
    count: int = 1
    bounded: bool = True

    @property
    def sent(self) -> int:
        """The bytes that a device sends in a ring algorithm, the minimum except for small arrays.

        An all-reduce over n devices sends 2 (n - 1) / n of the array, an all-gather or reduce-scatter (n - 1) / n, a
        permutation all.
        """
        n = max(self.devices, 1)
        share = {"all-reduce": 2 * (n - 1), "collective-permute": n}.get(self.kind, n - 1)
        return self.count * (self.bytes * share // n)


@dataclass
class _Computation:
    exchanges: list[Collective] = field(default_factory=list)
    calls: list[tuple[str, int, bool]] = field(default_factory=list)  # whom, how often, and whether that is known


def collectives(compiled: Any) -> list[Collective]:
    """The collectives of a compiled program, with those in loops counted by trip count.

    Args:
        compiled: the result of ``jit(f).lower(*args).compile()``, or the text of its HLO. Arguments may be
            ``jax.ShapeDtypeStruct``s with shardings: nothing is allocated.

    Returns:
        A list with an entry for each kind, size and group size, sorted by descending traffic.

    Raises:
        TypeError: for an argument that is neither text nor has ``as_text``.
        ValueError: if the text is not an HLO module.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> collectives(fg.jit(fnp.sin).lower(fnp.ones(2)).compile())
        []
    """
    text = compiled if isinstance(compiled, str) else getattr(compiled, "as_text", lambda: None)()
    if not isinstance(text, str):
        raise TypeError(f"collectives: takes a compiled program or its HLO, got {type(compiled).__name__}")
    entry, computations = _parsed(text)
    counts: dict[tuple[str, int, int, bool], int] = {}
    for found, times, bounded in _reached(computations, entry, 1, True):
        key = (found.kind, found.devices, found.bytes, bounded)
        counts[key] = counts.get(key, 0) + times
    made = [Collective(kind, devices, size, n, bounded) for (kind, devices, size, bounded), n in counts.items()]
    return sorted(made, key=lambda c: (-c.sent, c.kind))


def _reached(
    computations: dict[str, _Computation], name: str, times: int, bounded: bool
) -> Iterator[tuple[Collective, int, bool]]:
    found = computations.get(name, _Computation())
    for exchange in found.exchanges:
        yield exchange, times, bounded
    for called, steps, known in found.calls:
        yield from _reached(computations, called, times * steps, bounded and known)


def _parsed(text: str) -> tuple[str, dict[str, _Computation]]:
    if not text.startswith("HloModule"):
        raise ValueError("collectives: this is no text of an HLO module")
    partitions = re.search(r"num_partitions=(\d+)", text)
    everyone = int(partitions.group(1)) if partitions else 1
    computations: dict[str, _Computation] = {}
    entry, current = "", _Computation()
    types: dict[str, str] = {}
    for line in text.splitlines():
        begin = _COMPUTATION.match(line)
        if begin:
            current = computations[begin.group(2)] = _Computation()
            types = {}
            entry = begin.group(2) if begin.group(1) else entry
            continue
        instruction = _INSTRUCTION.match(line)
        if instruction:
            name, type_, kind, rest = instruction.groups()
            types[name] = type_
            _note(current, kind, type_, rest, everyone)
    return entry, computations


def _note(current: _Computation, kind: str, type_: str, rest: str, everyone: int) -> None:
    plain = kind.removesuffix("-start")
    if plain in _KINDS:
        devices = _group_size(rest, everyone)
        for size in _sizes(type_, kind, plain):
            whole = size * devices if plain == "reduce-scatter" else size
            current.exchanges.append(Collective(plain, devices, whole))
        return  # a reduction's scalar function
    trips = _TRIPS.search(rest)
    steps, known = (int(trips.group(1)) if trips else 1, bool(trips)) if kind == "while" else (1, True)
    names = _CALLED.findall(rest) if kind != "reduce" else []
    for branches in _BRANCHES.findall(rest):
        names += [name.strip(" %") for name in branches.split(",")]
    current.calls += [(name, steps, known) for name in names]


def _sizes(type_: str, kind: str, plain: str) -> list[int]:
    """The bytes of the results; the type of an asynchronous start includes the operands."""
    arrays = [_bytes(*found) for found in _ARRAY.findall(type_)]
    if kind.endswith("-start") and plain != "all-reduce":
        return arrays[len(arrays) // 2 : len(arrays) // 2 * 2]
    if plain == "all-to-all":
        return [sum(arrays)]
    return arrays


def _bytes(dtype: str, shape: str) -> int:
    bits = _BITS.get(dtype) or int(re.sub(r"\D", "", dtype) or 8)
    return prod(int(n) for n in shape.split(",") if n) * bits // 8


def _group_size(rest: str, everyone: int) -> int:
    """The size of a group: groups are listed, or given by their number and size."""
    listed = re.search(r"replica_groups=\{\{([\d,]*)\}", rest)
    if listed:
        return len(listed.group(1).split(","))
    counted = re.search(r"replica_groups=\[\d+,(\d+)\]", rest)
    return int(counted.group(1)) if counted else everyone
