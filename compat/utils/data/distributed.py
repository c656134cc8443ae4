"""``DistributedSampler``: the part of a dataset for each process."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from compat._core.random.generator import Generator
from compat._core.tensor.registry import names_of
from compat._distributed.groups import get_rank, get_world_size
from compat.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every n-th sample of an order that is the same in all processes.

    Args:
        dataset: the dataset.
        num_replicas: the number of processes; by default the world size.
        rank: the rank of this process; by default its rank in the group.
        shuffle: whether to use a random order, determined by ``seed`` and the epoch.
        seed: the seed, the same in all processes.
        drop_last: whether to drop the remainder; otherwise samples are repeated to divide evenly.

    Raises:
        ValueError: for a rank out of range, and without ``num_replicas`` and ``rank`` before ``init_process_group``.

    Example:
        >>> from compat.utils.data.distributed import DistributedSampler
        >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
        [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ):  # fmt: skip
        num_replicas = get_world_size() if num_replicas is None else num_replicas
        rank = get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.shuffle, self.seed, self.drop_last = 0, shuffle, seed, drop_last
        whole, left = divmod(len(dataset), num_replicas)
        self.num_samples = whole + (left > 0 and not drop_last)
        self.total_size = self.num_samples * num_replicas

    def _order_(self) -> list[int]:
        n = len(self.dataset)
        if not self.shuffle:
            return list(range(n))
        generator = Generator()
        generator.manual_seed(self.seed + self.epoch)
        return names_of("torch")["randperm"](n, generator=generator).tolist()

    def __iter__(self) -> Iterator[int]:
        order = self._order_()
        if len(order) < self.total_size:
            order *= math.ceil(self.total_size / len(order))
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which determines the random order."""
        self.epoch = epoch
