"""``torch.backends``: what scripts ask of libraries that PyTorch computes with, and tell them.

Everything here is computed by XLA on the CPU: settings are kept, so that they read as they were set, and change
nothing.

Example:
    >>> torch.backends.cudnn.benchmark = True
    >>> torch.backends.cudnn.is_available()
    False
"""

from compat.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

fp32_precision = "none"
__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
