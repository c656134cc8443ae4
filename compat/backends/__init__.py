"""``torch.backends``: settings and queries of PyTorch's backend libraries.

All computations use XLA: settings are stored, so that they can be read back, and ignored, except the precision of
float32 products and convolutions on accelerators.

Example:
    >>> torch.backends.cudnn.benchmark = True
    >>> torch.backends.cudnn.is_available()
    False
"""

from compat.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, nnpack, openmp, opt_einsum
from compat.backends._settings import precision, set_properties

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum"]
set_properties(__name__, fp32_precision=precision("generic"))
