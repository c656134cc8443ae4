"""``torch.testing``: comparing results, and making tensors to test with."""

from compat.testing.comparison import assert_close
from compat.testing.creation import make_tensor

__all__ = ["assert_close", "make_tensor"]
