"""``torch._tensor``: the class of tensors under the address that it has in Python."""

from compat._core.tensor.tensor import Tensor
from compat._serialization.unpickler import KNOWN

__all__ = ["Tensor"]

# Functions that saved files call to make tensors, for programs that read such files themselves.
globals().update({known.name: found for known, found in KNOWN.items() if known.module == "torch._tensor"})
