"""``torch.masked.MaskedTensor``: tensors some of whose elements are unspecified."""

from compat.masked.maskedtensor import _functions
from compat.masked.maskedtensor.core import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

del _functions
