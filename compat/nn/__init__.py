"""``torch.nn``: modules, their parameters, the functions they compute and what they are filled with at first."""

from compat.nn import functional, init, modules, parameter, utils
from compat.nn.parameter import Buffer, Parameter
from compat.nn.modules import *
