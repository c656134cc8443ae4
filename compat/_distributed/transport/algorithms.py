"""Collectives of NumPy arrays by point-to-point messages.

Reductions are divided among the processes: each receives the others' parts of its share, reduces them in rank order,
and sends the result to all. So the traffic is that of a ring, the result is bit-identical everywhere and in each run,
and no process waits for a chain of others. Small arrays are sent to all directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compat._distributed.transport.call import Call

#: Up to so many bytes each process sends everything to all: latency dominates.
SMALL = 1 << 15
#: The chunk size in bytes of a share, so that reducing and sending overlap.
PIECE = 1 << 22

Reduce = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _with(f: np.ufunc) -> Reduce:
    return lambda x, y: f(x, y, out=x)


#: The in-place reduction of two arrays, into the first.
REDUCTIONS: dict[str, Reduce] = {
    "SUM": _with(np.add), "AVG": _with(np.add), "PRODUCT": _with(np.multiply), "MIN": _with(np.minimum),
    "MAX": _with(np.maximum), "BAND": _with(np.bitwise_and), "BOR": _with(np.bitwise_or),
    "BXOR": _with(np.bitwise_xor),
}  # fmt: skip


def _finished(array: np.ndarray, op: str, size: int) -> np.ndarray:
    if op != "AVG":
        return array
    return np.divide(array, array.dtype.type(size), out=array)


def barrier(call: Call) -> None:
    """Waits until all processes have called it."""
    all_gather(call, np.zeros(1, np.uint8))


def all_gather(call: Call, array: np.ndarray) -> list[np.ndarray]:
    """All processes' arrays, of the shape and dtype of this one's."""
    found = [array if r == call.rank else np.empty_like(array) for r in range(call.size)]
    _swap(call, [array] * call.size, found)
    return found


def all_to_all(call: Call, sent: Sequence[np.ndarray], like: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Each process's array for this one.

    Args:
        sent: the array for each rank.
        like: for each rank an array of the shape and dtype that it sends; not written.
    """
    found = [sent[r] if r == call.rank else np.empty_like(x) for r, x in enumerate(like)]
    _swap(call, sent, found)
    return found


def _swap(call: Call, sent: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> None:
    slots = [call.expect(r, found[r]) for r in call.others()]
    for r in call.others():
        call.send(r, sent[r])
    for slot in slots:
        call.take(slot)


def broadcast(call: Call, array: np.ndarray, source: int) -> np.ndarray:
    """Broadcasts one process's array; a large one is scattered and then gathered."""
    if call.size == 1:
        return array
    if array.nbytes <= SMALL or call.size == 2:
        if call.rank == source:
            for r in call.others():
                call.send(r, array)
            return array
        found = np.empty_like(array)
        call.take(call.expect(source, found))
        return found
    shares = scatter(
        call, _shares(array, call.size) if call.rank == source else None, _shares(array, call.size), source
    )
    found = array if call.rank == source else np.empty_like(array)
    parts = _shares(found, call.size)
    slots = [call.expect(r, parts[r], 1) for r in call.others() if call.rank != source and r != source]
    if call.rank != source:
        parts[call.rank][...] = shares
        for r in call.others():
            if r != source:
                call.send(r, shares, 1)
        slots.append(call.expect(source, parts[source], 2))
    else:
        for r in call.others():
            call.send(r, parts[source], 2)
    for slot in slots:
        call.take(slot)
    return found


def scatter(call: Call, arrays: Sequence[np.ndarray] | None, like: Sequence[np.ndarray], source: int) -> np.ndarray:
    """This process's array of those that one process has for each."""
    if call.rank == source:
        assert arrays is not None
        for r in call.others():
            call.send(r, arrays[r])
        return arrays[call.rank]
    found = np.empty_like(like[call.rank])
    call.take(call.expect(source, found))
    return found


def gather(call: Call, array: np.ndarray, to: int) -> list[np.ndarray] | None:
    """All processes' arrays, at one of them."""
    if call.rank != to:
        call.send(to, array)
        return None
    found = [array if r == to else np.empty_like(array) for r in range(call.size)]
    for slot in [call.expect(r, found[r]) for r in call.others()]:
        call.take(slot)
    return found


def reduce(call: Call, array: np.ndarray, op: str, to: int) -> np.ndarray | None:
    """The reduction of all processes' arrays, at one of them."""
    found = gather(call, array, to)
    return None if found is None else _reduced(found, op)


def _reduced(arrays: Sequence[np.ndarray], op: str) -> np.ndarray:
    """Reduces in rank order, so that the result is bit-identical everywhere."""
    total = arrays[0].copy()
    for other in arrays[1:]:
        REDUCTIONS[op](total, other)
    return _finished(total, op, len(arrays))


def reduce_scatter(call: Call, arrays: Sequence[np.ndarray], op: str) -> np.ndarray:
    """The reduction of all processes' arrays for this one."""
    return _reduced(all_to_all(call, arrays, [arrays[call.rank]] * call.size), op)


def all_reduce(call: Call, array: np.ndarray, op: str) -> np.ndarray:
    """The reduction of all processes' arrays."""
    if call.size == 1:
        return _finished(array.copy(), op, 1)
    if array.nbytes <= SMALL:
        return _reduced(all_gather(call, array), op)
    result = np.empty_like(array)
    given, into = _shares(array, call.size), _shares(result, call.size)
    step = max(PIECE // array.itemsize, 1)
    pieces = [range(0, len(share), step) for share in given]
    mine = given[call.rank]
    room = [np.empty_like(mine) for _ in range(call.size - 1)]
    incoming = [
        [call.expect(r, room[i][at : at + step], 2 * at) for i, r in enumerate(call.others())]
        for at in pieces[call.rank]
    ]
    outgoing = [call.expect(r, into[r][at : at + step], 2 * at + 1) for r in call.others() for at in pieces[r]]
    for at in pieces[0]:  # the first share is the longest
        for r in call.others():
            if at < len(given[r]):
                call.send(r, given[r][at : at + step], 2 * at)
    order = sorted([(call.rank, -1), *((r, i) for i, r in enumerate(call.others()))])
    for at, slots in zip(pieces[call.rank], incoming):
        for slot in slots:
            call.take(slot)
        piece = into[call.rank][at : at + step]
        parts = [(mine if i < 0 else room[i])[at : at + step] for _, i in order]
        np.copyto(piece, parts[0])
        for part in parts[1:]:
            REDUCTIONS[op](piece, part)
        _finished(piece, op, call.size)
        for r in call.others():
            call.send(r, piece, 2 * at + 1)
    for slot in outgoing:
        call.take(slot)
    return result


def _shares(array: np.ndarray, count: int) -> list[np.ndarray]:
    """An array split into one part per process."""
    return np.array_split(array.reshape(-1), count)
