"""``torch.utils.data._utils``: how batches are made, and by whom."""

from compat.utils.data._utils import collate, fetch, worker
