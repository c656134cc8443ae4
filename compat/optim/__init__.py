"""``torch.optim``: what changes parameters by their gradients."""

from compat.optim import lr_scheduler, optimizer, swa_utils
from compat.optim.adam import Adam, AdamW
from compat.optim.adams import Adamax, NAdam, RAdam
from compat.optim.adaptive import Adadelta, Adagrad, RMSprop
from compat.optim.factored import Adafactor
from compat.optim.lbfgs import LBFGS
from compat.optim.muon import Muon
from compat.optim.optimizer import Optimizer
from compat.optim.others import ASGD, Rprop
from compat.optim.sgd import SGD
from compat.optim.sparse_adam import SparseAdam
