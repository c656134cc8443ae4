"""``torch.utils.model_zoo``: ``torch.hub``'s functions under their deprecated names."""

from importlib import import_module

_hub = import_module("compat.hub")
load_url = _hub.load_state_dict_from_url
tqdm = _hub.tqdm

__all__ = ["load_url", "tqdm"]
