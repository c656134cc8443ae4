"""``torch.utils.data.datapipes.iter.combinatorics``: the data pipe that shuffles, by its full name."""

from compat.utils.data.datapipes.iter import Shuffler as ShufflerIterDataPipe

__all__ = ["ShufflerIterDataPipe"]
