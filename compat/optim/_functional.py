"""Steps of optimizers as functions of parameters, gradients and state."""

from compat.optim.adadelta import adadelta
from compat.optim.adagrad import adagrad
from compat.optim.adam import adam
from compat.optim.adamax import adamax
from compat.optim.adamw import adamw
from compat.optim.asgd import asgd
from compat.optim.nadam import nadam
from compat.optim.radam import radam
from compat.optim.rmsprop import rmsprop
from compat.optim.rprop import rprop
from compat.optim.sgd import sgd

__all__ = ["adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd"]
