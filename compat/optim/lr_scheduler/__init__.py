"""``torch.optim.lr_scheduler``: learning rate schedules."""

from compat.optim.lr_scheduler._base import EPOCH_DEPRECATION_WARNING, LRScheduler, _enable_get_lr_call, _LRScheduler
from compat.optim.lr_scheduler._cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from compat.optim.lr_scheduler._cyclic import CyclicLR, OneCycleLR
from compat.optim.lr_scheduler._lambda import LambdaLR, MultiplicativeLR
from compat.optim.lr_scheduler._plateau import ReduceLROnPlateau
from compat.optim.lr_scheduler._step import ExponentialLR, MultiStepLR, StepLR
from compat.optim.lr_scheduler._warmup import ConstantLR, LinearLR, PolynomialLR
from compat.optim.lr_scheduler._composite import ChainedScheduler, SequentialLR

__all__ = [
    "EPOCH_DEPRECATION_WARNING", "ChainedScheduler", "ConstantLR", "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR",
    "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
