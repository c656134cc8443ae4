"""``torch.nn._reduction``: reductions of losses as numbers and strings, for losses that packages write."""

from compat._operators.loss.pointwise import reduction_number
from compat._operators.loss.reduction_modes import legacy_reduction

__all__ = ["get_enum", "legacy_get_string"]

get_enum, legacy_get_string = reduction_number, legacy_reduction
