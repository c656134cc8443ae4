"""``torch.backends``: settings and queries of PyTorch's backend libraries.

All computations use XLA: settings are stored, so that they can be read back, and ignored.

Example:
    >>> torch.backends.cudnn.benchmark = True
    >>> torch.backends.cudnn.is_available()
    False
"""

from compat.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, nnpack, openmp, opt_einsum

fp32_precision = "none"
__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum"]
