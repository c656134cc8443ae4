"""Elementwise functions, with NumPy's broadcasting and funcgrad's promotion."""

from funcgrad.numpy.elementwise.arithmetic import *
from funcgrad.numpy.elementwise.transcendental import *
from funcgrad.numpy.elementwise.logic import *
from funcgrad.numpy.elementwise.complex_parts import *
from funcgrad.numpy.elementwise.logic import where as where  # of three operands; the public one takes one, too
