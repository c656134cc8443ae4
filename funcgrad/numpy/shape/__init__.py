"""Changing shapes: reshape, transpose, broadcast, join, split, repeat."""

from funcgrad.numpy.shape.reshaping import *
from funcgrad.numpy.shape.axes import *
from funcgrad.numpy.shape.broadcasting import *
from funcgrad.numpy.shape.joining import *
from funcgrad.numpy.shape.splitting import *
from funcgrad.numpy.shape.repeating import *
