"""``torch.utils.data.datapipes``: composable datasets, ``IterDataPipe`` and ``MapDataPipe``."""

from compat.utils.data.datapipes import datapipe, iter, map
from compat.utils.data.datapipes._decorator import functional_datapipe

__all__ = ["datapipe", "functional_datapipe", "iter", "map"]
