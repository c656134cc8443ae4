"""``torch._tensor``: the Tensor class under its Python address."""

from compat._core.tensor.tensor import Tensor
from compat._serialization.unpickler import KNOWN

__all__ = ["Tensor"]

# Functions that saved files call to rebuild tensors, for programs that read such files themselves.
globals().update({known.name: found for known, found in KNOWN.items() if known.module == "torch._tensor"})
