"""``torch.utils.data._utils``: making batches, and worker processes."""

from compat.utils.data._utils import collate, fetch, pin_memory, worker
