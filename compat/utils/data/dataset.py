"""Datasets: map-style and iterable."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from compat._core.random.generator import engine_of
from compat._core.types.errors import warn
from compat._operators import samplers
from compat._operators.create.from_data import tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A map-style dataset: subclasses define ``__getitem__``, and ``__len__``.

    A subclass that can fetch several samples together may define ``__getitems__(indices) -> list``.
    """

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """An iterable dataset: subclasses define ``__iter__``."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Any]: ...

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple]):
    """A dataset whose samples are the rows of tensors.

    Args:
        *tensors: tensors with equal first dimensions.

    Raises:
        AssertionError: if the first dimensions differ.

    Example:
        >>> TensorDataset(torch.arange(3), torch.ones(3))[1]
        (tensor(1), tensor(1.))
    """

    tensors: tuple[Any, ...]

    def __init__(self, *tensors: Any):
        if any(tensors[0].size(0) != t.size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def stacked(self, indices: Sequence[Any]) -> list | None:
        """The samples at the given indices, stacked as by ``default_collate``, by one operation.

        None if a subclass overrides how samples are fetched.
        """
        if type(self).__getitem__ is not TensorDataset.__getitem__ or not all(type(i) is int for i in indices):
            return None
        if any(t.requires_grad or not t.is_contiguous() for t in self.tensors):
            return None
        chosen = tensor(indices)
        return [t[chosen] for t in self.tensors]


class Subset(Dataset[T_co]):
    """A subset of a dataset.

    Args:
        dataset: the dataset.
        indices: the indices of the samples.

    Example:
        >>> list(torch.utils.data.Subset(["a", "b", "c"], [2, 0]))
        ['c', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[Any]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[Any]) -> list:
        numbers = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(numbers)
        return [self.dataset[i] for i in numbers]

    def __len__(self) -> int:
        return len(self.indices)

    def stacked(self, indices: Sequence[Any]) -> list | None:
        """As for ``TensorDataset``, for a subset of one."""
        method = getattr(self.dataset, "stacked", None)
        if method is None or type(self).__getitem__ is not Subset.__getitem__:
            return None
        return method([self.indices[i] for i in indices])


class ConcatDataset(Dataset[T_co]):
    """The concatenation of datasets.

    Args:
        datasets: at least one dataset, none of them an ``IterableDataset``.

    Raises:
        AssertionError: for invalid ``datasets``.

    Example:
        >>> list(torch.utils.data.ConcatDataset([[1, 2], [3]]))
        [1, 2, 3]
    """

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """The concatenation of iterable datasets."""

    def __init__(self, datasets: Iterable[Any]):
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from iter(dataset)

    def __len__(self) -> int:
        total = 0
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            total += len(dataset)  # type: ignore[arg-type]
        return total


class StackDataset(Dataset):
    """A dataset whose samples combine one sample from each of several datasets.

    Args:
        *args, **kwargs: the datasets, all of one length: samples are tuples, or dictionaries under these names.

    Raises:
        ValueError: for no datasets, both positional and named datasets, or datasets of different lengths.
    """

    datasets: Any

    def __init__(self, *args: Any, **kwargs: Any):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        sizes = {len(d) for d in args or kwargs.values()}
        if len(sizes) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = sizes.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list) -> list:
        named = isinstance(self.datasets, dict)
        columns = [_several(d, indices) for d in (self.datasets.values() if named else self.datasets)]
        return [dict(zip(self.datasets, row)) if named else row for row in zip(*columns)]

    def __len__(self) -> int:
        return self._length


def _several(dataset: Any, indices: list) -> Any:
    """Several samples of a dataset, in one call if supported."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    found = dataset.__getitems__(indices)
    if len(found) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(found)}")
    return found


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Splits a dataset randomly into subsets of given lengths.

    Args:
        dataset: the dataset.
        lengths: numbers of samples, or fractions that add up to 1; the remainder of rounding is distributed to the
            first subsets.
        generator: the random number generator.

    Raises:
        ValueError: for fractions outside ``[0, 1]``, or lengths that do not add up.

    Example:
        >>> parts = random_split(range(5), [3, 2], generator=torch.Generator().manual_seed(0))
        >>> [list(part) for part in parts]
        [[4, 0, 1], [3, 2]]
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _from_fractions(lengths, len(dataset))
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = samplers.permutation(engine_of("random_split", generator), int(sum(lengths))).tolist()
    ends = list(itertools.accumulate(int(n) for n in lengths))
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(lengths, ends)]


def _from_fractions(fractions: Sequence[float], total: int) -> list[int]:
    lengths = []
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths.append(math.floor(total * fraction))
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
    return lengths
