"""The two shuffles behind ``torch.randperm``: R. Durstenfeld, "Algorithm 235: random permutation", CACM 7 (1964)."""

from __future__ import annotations

import numpy as np

from compat._core.random.engine import Engine

__all__ = ["forward_shuffle", "inside_out_shuffle"]

_SHORT = 4096  # arrays up to this length are shuffled one exchange at a time
_BATCH = 32  # else a batch is this part of what is left, so that few of its exchanges meet


def forward_shuffle(engine: Engine, n: int) -> np.ndarray:
    """Exchange each place in turn with a random one not before it: one word a place, none for the last."""
    order = np.arange(n)
    if n < 2:
        return order
    places = np.arange(n - 1, dtype=np.uint32)
    partners = (engine.random32(n - 1) % (np.uint32(n) - places) + places).astype(np.int64)
    start = _exchange_batches(order, partners)
    rest = order[start:].tolist()
    for place, partner in enumerate((partners[start:] - start).tolist()):
        rest[place], rest[partner] = rest[partner], rest[place]
    order[start:] = rest
    return order


def _exchange_batches(order: np.ndarray, partners: np.ndarray) -> int:
    """Exchange from the front until little is left; returns where that starts.

    Exchanges that share no place can be done at once. Those of a batch that do share one with another, because their
    partner is in the batch too or is partner twice, are few and are done one by one.
    """
    n, start = len(order), 0
    owner = np.empty(n, np.int32)
    while n - start > _SHORT:
        size = min(_SHORT, (n - start) // _BATCH)
        batch = partners[start : start + size]
        steps = np.arange(size, dtype=np.int32)
        owner[batch] = steps
        claimed = owner[batch]
        twice = claimed != steps
        within = batch - start
        inner = (within < size) & (within != steps)
        meets = twice | inner
        meets[claimed[twice]] = True
        meets[within[inner]] = True
        free = np.flatnonzero(~meets)
        places, others = free + start, batch[free]
        order[places], order[others] = order[others], order[places]
        for step in np.flatnonzero(meets).tolist():
            place, other = start + step, batch[step]
            order[place], order[other] = order[other], order[place]
        start += size
    return start


def inside_out_shuffle(engine: Engine, n: int) -> np.ndarray:
    """Inserts each number in turn at a random place so far, moving the number there to the end: two words a number."""
    order = np.empty(n, np.int64)
    for start in range(0, n, 1 << 20):  # the words of all places at once would take 16 bytes each
        places = np.arange(start, min(n, start + (1 << 20)), dtype=np.uint64)
        partners = engine.random64(len(places)) % (places + np.uint64(1))
        for place, partner in enumerate(partners.tolist(), start):
            order[place] = order[partner]
            order[partner] = place
    return order
