"""Reductions along axes."""

from funcgrad.numpy.reductions.totals import *
from funcgrad.numpy.reductions.extremes import *
from funcgrad.numpy.reductions.averages import *
from funcgrad.numpy.reductions.running import *
from funcgrad.numpy.reductions.exponentials import *
