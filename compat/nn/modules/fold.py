"""An address of PyTorch's: what is here is in ``folding``."""

from compat.nn.modules.folding import Fold, Unfold

__all__ = ["Fold", "Unfold"]
