"""``torch.__future__``: what conversions of modules do with their parameters."""

from __future__ import annotations

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Says whether ``module.double()`` and the like put new parameters in the place of the old ones.

    Else the old ones get the new contents.
    """
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What was said so."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Says whether conversions and ``load_state_dict`` swap parameters with new ones: ``torch.utils.swap_tensors``."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """What was said so."""
    return _swap_module_params_on_conversion
