"""The random numbers of PyTorch's Python code: indices of data loaders, truncated normal numbers."""

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
    """``torch.empty((), dtype=torch.int64).random_()``, of two words, a number below 2**63.

    The iterator of a data loader draws it when it is created, a sampler without ``generator`` when it starts.

    >>> base_seed(Engine(0))
    900450186894289455
    """
    return engine.next64() & ((1 << 63) - 1)


def random_indices(
    engine: Engine, n: int, *, replacement: bool = False, num_samples: int | None = None, shared: bool = False
) -> Iterator[int]:
    """The indices that ``RandomSampler`` yields for ``n`` items; they are drawn when they are yielded.

    With ``shared``, ``engine`` is the ``generator=`` of the sampler, which draws from it; else the sampler draws from
    it the seed of a new engine. Without replacement there is a permutation for every ``n`` items, and one more at the
    end, of which ``num_samples % n`` items are used, possibly none.

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
    if shared or count % n:  # a new engine is not used afterwards
        yield from permutation(source, n).tolist()[: count % n]


def sampler_permutation(engine: Engine, n: int, *, shared: bool = False) -> np.ndarray:
    """The indices of the items of a ``DataLoader`` with ``shuffle=True`` in one epoch: int64, shape ``(n,)``.

    ``engine`` is that of the default generator, or with ``shared=True`` of the ``generator=`` of the loader. It gets
    the state that PyTorch's generator has during the epoch. At the end of the epoch a shared generator draws one more
    permutation of ``n`` (see :func:`random_indices`), the default generator nothing.

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

    If the interval has a probability of more than 0.3, arrays of normals are drawn until every element was inside once;
    else uniform numbers are accepted with the relative height of the density. That involves a logarithm in the
    precision of the dtype, so an element may differ from PyTorch's if the two logarithms differ at the threshold.

    >>> bool(np.abs(truncated_normal(Engine(0), 1000)).max() <= 2)
    True
    """
    dtype = np.dtype(dtype)
    if _normal_cdf((high - mean) / std) - _normal_cdf((low - mean) / std) > 0.3:
        return _by_redrawing(engine, size, dtype, mean, std, low, high)
    return _by_rejection(engine, size, dtype, mean, std, low, high)


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _by_redrawing(
    engine: Engine, size: Size, dtype: np.dtype, mean: float, std: float, low: float, high: float
) -> np.ndarray:
    lowest, highest = dtype.type(low), dtype.type(high)
    result = normal(engine, size, dtype, mean, std)
    while (outside := (result < lowest) | (result > highest)).any():
        result = np.where(outside, normal(engine, size, dtype, mean, std), result)
    return result


def _by_rejection(
    engine: Engine, size: Size, dtype: np.dtype, mean: float, std: float, low: float, high: float
) -> np.ndarray:
    wide = np.dtype(np.float32) if dtype in HALVES else dtype  # each step of 16-bit floats is computed in float32
    mode = max(low, min(mean, high))

    def step(values: ArrayLike) -> np.ndarray:
        return np.asarray(values).astype(dtype).astype(wide)

    centre, peak = step(mean), step(-0.5 * ((mode - mean) / std) ** 2)  # both are rounded before they are subtracted

    def is_rejected(candidates: np.ndarray) -> np.ndarray:
        distance = step(step(candidates.astype(wide) - centre) / wide.type(std))
        height = step(step(step(distance * distance) * wide.type(-0.5)) - peak)
        with np.errstate(divide="ignore"):
            return step(np.log(uniform(engine, size, dtype).astype(wide))) > height

    result = uniform(engine, size, dtype, low, high)
    rejected = is_rejected(result)
    while rejected.any():
        candidates = uniform(engine, size, dtype, low, high)
        result = np.where(rejected, candidates, result)
        rejected &= is_rejected(candidates)
    return result
