"""Samplers: orders of the samples of a dataset. The same seed gives the same order as in PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from compat._core.random.generator import engine_of
from compat._core.tensor.tensor import array_of
from compat._core.types.dtype import float64
from compat._operators import samplers
from compat._operators.create.from_buffer import as_tensor

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """A sampler: subclasses define ``__iter__``, which yields indices or lists of them, and optionally ``__len__``."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class SequentialSampler(Sampler[int]):
    """Indices in sequential order.

    Example:
        >>> list(torch.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Any):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Args:
        data_source: the dataset.
        replacement: whether to draw with replacement.
        num_samples: the number of samples; by default all.
        generator: the random number generator.

    Raises:
        TypeError, ValueError: if ``replacement`` is not a bool, or there are no samples.

    Example:
        >>> sorted(torch.utils.data.RandomSampler("abc"))
        [0, 1, 2]
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _check_number("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """The number of samples."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        yield from samplers.random_indices(
            engine_of("RandomSampler", self.generator),
            len(self.data_source),
            replacement=self.replacement,
            num_samples=self.num_samples,
            shared=self.generator is not None,
        )

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order.

    Example:
        >>> sorted(torch.utils.data.SubsetRandomSampler([4, 2]))
        [2, 4]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = samplers.permutation(engine_of("SubsetRandomSampler", self.generator), len(self.indices))
        yield from (self.indices[i] for i in order.tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Random indices below ``len(weights)``, drawn with these weights.

    Args:
        weights: unnormalized probabilities.
        num_samples: the number of samples to draw.
        replacement: whether to draw with replacement.
        generator: the random number generator.

    Raises:
        ValueError: if ``weights`` is not a sequence of numbers, or for other invalid arguments.

    Example:
        >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
        [1, 1, 1]
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None):
        _check_number("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        engine = engine_of("WeightedRandomSampler", self.generator)
        weights = np.asarray(array_of(self.weights), order="C")
        yield from samplers.multinomial(engine, weights, self.num_samples, self.replacement).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of ``batch_size`` indices from another sampler.

    Args:
        sampler: any iterable.
        batch_size: the length of the lists.
        drop_last: whether to omit a last list that is incomplete.

    Raises:
        ValueError: for invalid arguments.

    Example:
        >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool):
        _check_number("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return count + (rest > 0 and not self.drop_last)
