"""``torch.masked``: reductions and normalizations of masked tensors."""

from compat.masked._normalizations import cumprod, cumsum, log_softmax, logaddexp, normalize, softmax, softmin
from compat.masked._reductions import amax, amin, argmax, argmin, logsumexp, mean, median, norm, prod, std, sum, var

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip
