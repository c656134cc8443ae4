"""``torch.optim.lr_scheduler``: learning rates that change from epoch to epoch."""

from compat.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING, LRScheduler, _LRScheduler
from compat.optim.lr_scheduler.by_curves import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from compat.optim.lr_scheduler.by_cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from compat.optim.lr_scheduler.by_functions import LambdaLR, MultiplicativeLR
from compat.optim.lr_scheduler.plateau import ReduceLROnPlateau
from compat.optim.lr_scheduler.several import ChainedScheduler, SequentialLR

__all__ = [
    "EPOCH_DEPRECATION_WARNING", "ChainedScheduler", "ConstantLR", "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR",
    "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
