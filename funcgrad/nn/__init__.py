"""Neural network functions: activations, convolution, pooling, attention, cross entropy, initializers."""

from funcgrad.nn import initializers
from funcgrad.nn.layers import *
from funcgrad.nn.layers import __all__ as __all__
