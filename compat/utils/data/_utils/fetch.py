"""Fetching batches of a dataset, in any process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from compat.utils.data._utils.collate import default_collate
from compat.utils.data.dataset import IterableDataset


@dataclass(frozen=True)
class Recipe:
    """The settings for making batches, which are sent to workers.

    Attributes:
        dataset: the dataset.
        collate_fn: makes a batch of a list of samples.
        batched: whether samples are batched.
        drop_last: whether to omit a last batch that is incomplete.
        worker_init_fn: called in each worker with its index.
    """

    dataset: Any
    collate_fn: Callable[[Any], Any]
    batched: bool
    drop_last: bool
    worker_init_fn: Callable[[int], None] | None

    def fetcher(self) -> Fetcher:
        """The fetcher of an epoch."""
        return Fetcher(self)


class Fetcher:
    """Makes the batches of an epoch."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        self.samples: Iterator[Any] | None = None
        if isinstance(recipe.dataset, IterableDataset):
            self.samples = iter(recipe.dataset)
        whole = recipe.batched and recipe.collate_fn is default_collate and recipe.worker_init_fn is None
        #: The method of a dataset that returns a whole batch, equal to the collated samples.
        self.stacked = getattr(recipe.dataset, "stacked", None) if whole else None

    def fetch(self, index: Any) -> Any:
        """The batch of these indices, or the next one of an iterable dataset.

        Raises:
            StopIteration: at the end of an iterable dataset.
        """
        return self._by_number(index) if self.samples is None else self._in_turn(index)

    def _by_number(self, index: Any) -> Any:
        recipe, dataset = self.recipe, self.recipe.dataset
        if not recipe.batched:
            return recipe.collate_fn(dataset[index])
        batch = None if self.stacked is None else self.stacked(index)
        if batch is not None:
            return batch
        if callable(getattr(dataset, "__getitems__", None)):
            return recipe.collate_fn(dataset.__getitems__(index))
        return recipe.collate_fn([dataset[i] for i in index])

    def _in_turn(self, index: list | None) -> Any:
        assert self.samples is not None
        if not self.recipe.batched:
            return self.recipe.collate_fn(next(self.samples))
        assert index is not None
        batch = list(itertools.islice(self.samples, len(index)))
        if not batch or (self.recipe.drop_last and len(batch) < len(index)):
            raise StopIteration
        return self.recipe.collate_fn(batch)
