"""Uses of the samplers by PyTorch's Python code: the shuffling data loader, truncated normals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from compat._core.random.engine import Engine
from compat._operators.samplers.distributions import normal, uniform
from compat._operators.samplers.dtypes import HALVES, Size
from compat._operators.samplers.integers import permutation, random

__all__ = ["base_seed", "random_indices", "sampler_permutation", "truncated_normal"]


def base_seed(engine: Engine) -> int:
    """``torch.empty((), dtype=torch.int64).random_()``: two words as a number below 2**63.

    A data loader's iterator draws one when it is made, a sampler without ``generator`` one when it starts.

    >>> base_seed(Engine(0))
    900450186894289455
    """
    return engine.next64() & ((1 << 63) - 1)


def random_indices(
    engine: Engine, n: int, *, replacement: bool = False, num_samples: int | None = None, shared: bool = False
) -> Iterator[int]:
    """The indices that ``RandomSampler`` yields over ``n`` items, drawn lazily, as there.

    ``shared`` says that ``engine`` is the sampler's own ``generator=``, from which it draws; otherwise it only draws a
    seed for a new engine. Without replacement a new permutation starts after every ``n`` items, and one more is drawn
    at the very end, of which ``num_samples % n`` items are used, be it none.

    >>> list(random_indices(Engine(0), 4, num_samples=6))
    [2, 3, 0, 1, 1, 0]
    """
    count = n if num_samples is None else num_samples
    source = engine if shared else Engine(base_seed(engine))
    if replacement:
        for _ in range(count // 32):
            yield from random(source, 32, np.int64, 0, n).tolist()
        yield from random(source, count % 32, np.int64, 0, n).tolist()
        return
    for _ in range(count // n):
        yield from permutation(source, n).tolist()
    if shared or count % n:  # draws of a private engine need not match
        yield from permutation(source, n).tolist()[: count % n]


def sampler_permutation(engine: Engine, n: int, *, shared: bool = False) -> np.ndarray:
    """The order in which ``DataLoader(dataset of n items, shuffle=True)`` visits them: int64, shape ``(n,)``.

    ``engine`` stands for the default generator, or with ``shared=True`` for the ``generator=`` given to the loader. It
    is left as PyTorch's generator is while the epoch runs. When the epoch ends, a shared generator has drawn one more
    permutation of ``n`` (see :func:`random_indices`); the default generator draws nothing more.

    >>> sampler_permutation(Engine(0), 6)
    array([0, 4, 3, 5, 2, 1])
    """
    base_seed(engine)
    return np.fromiter(itertools.islice(random_indices(engine, n, shared=shared), n), np.int64, n)


def truncated_normal(
    engine: Engine,
    size: Size,
    dtype: DTypeLike = np.float32,
    mean: float = 0.0,
    std: float = 1.0,
    low: float = -2.0,
    high: float = 2.0,
) -> np.ndarray:
    """Normal numbers within ``[low, high]``, as ``torch.nn.init.trunc_normal_``.

    Where more than 0.3 of the normal's mass lies within, whole arrays of normals are drawn until every element has been
    within; elsewhere uniform numbers are accepted by the density's height, which involves a logarithm at the dtype's
    precision: should it differ from PyTorch's in the last bit just at the threshold, so will an element.

    >>> bool(np.abs(truncated_normal(Engine(0), 1000)).max() <= 2)
    True
    """
    dtype = np.dtype(dtype)
    if _mass_below((high - mean) / std) - _mass_below((low - mean) / std) > 0.3:
        return _redrawn(engine, size, dtype, mean, std, low, high)
    return _accepted(engine, size, dtype, mean, std, low, high)


def _mass_below(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _redrawn(
    engine: Engine, size: Size, dtype: np.dtype, mean: float, std: float, low: float, high: float
) -> np.ndarray:
    least, most = dtype.type(low), dtype.type(high)
    result = normal(engine, size, dtype, mean, std)
    while (outside := (result < least) | (result > most)).any():
        result = np.where(outside, normal(engine, size, dtype, mean, std), result)
    return result


def _accepted(
    engine: Engine, size: Size, dtype: np.dtype, mean: float, std: float, low: float, high: float
) -> np.ndarray:
    wide = np.dtype(np.float32) if dtype in HALVES else dtype  # 16-bit floats are computed in float32, step by step
    mode = max(low, min(mean, high))

    def step(values: ArrayLike) -> np.ndarray:
        return np.asarray(values).astype(dtype).astype(wide)

    centre, peak = step(mean), step(-0.5 * ((mode - mean) / std) ** 2)  # the subtrahend is rounded first, too

    def pending(candidates: np.ndarray) -> np.ndarray:
        distance = step(step(candidates.astype(wide) - centre) / wide.type(std))
        height = step(step(step(distance * distance) * wide.type(-0.5)) - peak)
        with np.errstate(divide="ignore"):
            return step(np.log(uniform(engine, size, dtype).astype(wide))) > height

    result = uniform(engine, size, dtype, low, high)
    waiting = pending(result)
    while waiting.any():
        candidates = uniform(engine, size, dtype, low, high)
        result = np.where(waiting, candidates, result)
        waiting &= pending(candidates)
    return result
