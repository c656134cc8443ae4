"""Random tensors: factories, in-place sampling, sampling with parameters given by tensors, dropout."""

from compat._operators.random import sampling, dropout, inplace, gamma, lowrank, factories
