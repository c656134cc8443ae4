"""The two algorithms of ``torch.randperm``: R. Durstenfeld, "Algorithm 235: random permutation", CACM 7 (1964)."""

from __future__ import annotations

import numpy as np

from compat._core.random.engine import Engine

__all__ = ["forward_shuffle", "inside_out_shuffle"]

_SHORT = 4096  # arrays up to this length are shuffled one exchange at a time
_BATCH = 32  # a batch has this fraction of the remaining exchanges, so that few of them share an element


def forward_shuffle(engine: Engine, n: int) -> np.ndarray:
    """Exchanges each element in turn with a random one that is not before it; draws one word for each but the last."""
    order = np.arange(n)
    if n < 2:
        return order
    indices = np.arange(n - 1, dtype=np.uint32)
    partners = (engine.random32(n - 1) % (np.uint32(n) - indices) + indices).astype(np.int64)
    start = _exchange_batches(order, partners)
    tail = order[start:].tolist()
    for i, partner in enumerate((partners[start:] - start).tolist()):
        tail[i], tail[partner] = tail[partner], tail[i]
    order[start:] = tail
    return order


def _exchange_batches(order: np.ndarray, partners: np.ndarray) -> int:
    """Exchanges elements in batches, up to the last ``_SHORT`` ones; returns the index of the first of these.

    Exchanges without a common element are done together. The few exchanges of a batch that share an element with
    another one, since their partner is in the batch or is a partner twice, are done one by one.
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
        shares = twice | inner
        shares[claimed[twice]] = True
        shares[within[inner]] = True
        separate = np.flatnonzero(~shares)
        indices, others = separate + start, batch[separate]
        order[indices], order[others] = order[others], order[indices]
        for step in np.flatnonzero(shares).tolist():
            i, other = start + step, batch[step]
            order[i], order[other] = order[other], order[i]
        start += size
    return start


def inside_out_shuffle(engine: Engine, n: int) -> np.ndarray:
    """Inserts each number in turn at a random index and moves the one there to the end; draws two words for each."""
    order = np.empty(n, np.int64)
    for start in range(0, n, 1 << 20):  # in blocks, since the words take 16 bytes for each number
        indices = np.arange(start, min(n, start + (1 << 20)), dtype=np.uint64)
        partners = engine.random64(len(indices)) % (indices + np.uint64(1))
        for i, partner in enumerate(partners.tolist(), start):
            order[i] = order[partner]
            order[partner] = i
    return order
