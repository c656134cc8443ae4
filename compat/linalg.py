"""``torch.linalg``: norms and products of vectors and matrices.

The operations themselves are declared in ``compat._operators`` and found here under their public names.
"""

from compat._core.tensor.registry import lookups as _lookups

__getattr__, __dir__ = _lookups("linalg", globals())
