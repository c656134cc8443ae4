"""Random tensors: made, filled in place, drawn as other tensors say, and dropout."""

from compat._operators.random import drawing, dropout, filling, gamma, lowrank, making
