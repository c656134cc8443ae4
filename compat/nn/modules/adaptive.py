"""An address of PyTorch's: what is here is in ``adaptive_softmax``."""

from compat.nn.modules.adaptive_softmax import AdaptiveLogSoftmaxWithLoss

__all__ = ["AdaptiveLogSoftmaxWithLoss"]
