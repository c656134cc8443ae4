"""``torch.fft``: discrete Fourier transforms.

The operations themselves are declared in ``compat._operators`` and found here under their public names.
"""

from compat._core.tensor.registry import lookups as _lookups

__getattr__, __dir__ = _lookups("fft", globals())
