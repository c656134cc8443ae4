"""``torch.testing``: comparing results, and making random tensors."""

from compat.testing._comparison import assert_allclose, assert_close
from compat.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
