"""Random tensors: factories, operators in place, sampling with tensors of parameters, dropout."""

from compat._operators.random import sampling, dropout, inplace, gamma, lowrank, factories
