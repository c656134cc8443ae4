"""``torch.utils.data``: datasets, samplers and data loaders."""

from compat.utils.data import _utils, dataloader, datapipes, dataset, distributed, sampler
from compat.utils.data._utils.collate import default_collate, default_convert
from compat.utils.data.dataloader import DataLoader
from compat.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from compat.utils.data.datapipes import functional_datapipe
from compat.utils.data.datapipes.datapipe import DataChunk, DFIterDataPipe, IterDataPipe, MapDataPipe
from compat.utils.data.distributed import DistributedSampler
from compat.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from compat.utils.data._utils.worker import get_worker_info
