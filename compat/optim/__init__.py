"""``torch.optim``: optimizers."""

from compat.optim import _functional, lr_scheduler, optimizer, swa_utils
from compat.optim.adadelta import Adadelta
from compat.optim.adagrad import Adagrad
from compat.optim.adam import Adam
from compat.optim.adamax import Adamax
from compat.optim.adamw import AdamW
from compat.optim.asgd import ASGD
from compat.optim._adafactor import Adafactor
from compat.optim.lbfgs import LBFGS
from compat.optim._muon import Muon
from compat.optim.nadam import NAdam
from compat.optim.optimizer import Optimizer
from compat.optim.radam import RAdam
from compat.optim.rmsprop import RMSprop
from compat.optim.rprop import Rprop
from compat.optim.sgd import SGD
from compat.optim.sparse_adam import SparseAdam
