"""``torch.__future__``: how conversions of modules treat parameters."""

from __future__ import annotations

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether ``module.double()`` and the like replace parameters by new ones.

    Otherwise the existing parameters get new contents.
    """
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """The present setting."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether conversions and ``load_state_dict`` swap parameters with new ones: ``torch.utils.swap_tensors``."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """The present setting."""
    return _swap_module_params_on_conversion
