"""The array API: NumPy's functions for arrays and tracers, with funcgrad's promotion.

Unless documented otherwise, functions behave like NumPy's of the same name. In all of them:

- ``x``, ``y``, ``x1``, ``x2``, ``a``, and each of ``xs`` and ``arrays``, is an array, traced or not, a number, or
  nested lists of these, of any shape and dtype; several broadcast against each other, and promote.
- ``axis`` is an integer, negative from the end; a tuple where several are allowed; None for all.
- ``keepdims`` keeps reduced axes, with size one.
- ``dtype`` is that of the result and of intermediate sums.
- ``shape`` is an integer or a sequence of them; ``device`` is a JAX device for a new array.
- ``where`` selects the elements to include, and ``initial`` is the start value of a reduction.

They raise TypeError for operands that are not arrays or have an unsupported dtype, and ValueError for incompatible
shapes.
"""

import importlib

from numpy import (
    complexfloating,
    floating,
    generic,
    index_exp,
    inexact,
    integer,
    number,
    s_,
    signedinteger,
    unsignedinteger,
)

from funcgrad.numpy import inspection as _inspection
from funcgrad.numpy import linalg as linalg
from funcgrad.numpy import operators as _operators
from funcgrad.numpy import protocols as _protocols
from funcgrad.numpy.elementwise.angles import *
from funcgrad.numpy.bits import *
from funcgrad.numpy.constants import *
from funcgrad.numpy.creation.arrays import *
from funcgrad.numpy.diagonals import *
from funcgrad.numpy.indexing.dynamic import *
from funcgrad.numpy.indexing.editing import *
from funcgrad.numpy.einsum import *
from funcgrad.numpy.elementwise.arithmetic import *
from funcgrad.numpy.elementwise.logic import *
from funcgrad.numpy.elementwise.complex_parts import *
from funcgrad.numpy.elementwise.transcendental import *
from funcgrad.numpy.functional import *
from funcgrad.numpy.grids import *
from funcgrad.numpy.indexing.getitem import *
from funcgrad.numpy.creation.index_tricks import *
from funcgrad.numpy.elementwise.logarithms import *
from funcgrad.numpy.creation.matrices import *
from funcgrad.numpy.statistics.nans import *
from funcgrad.numpy.numerical import *
from funcgrad.numpy.padding import *
from funcgrad.numpy.polynomials import *
from funcgrad.numpy.nonzero_indices import *
from funcgrad.numpy.predicates import *
from funcgrad.numpy.products import *
from funcgrad.numpy.promotion import astype as astype, result_type as result_type
from funcgrad.numpy.statistics.quantiles import *
from funcgrad.numpy.creation.ranges import *
from funcgrad.numpy.reductions.averages import *
from funcgrad.numpy.reductions.exponentials import *
from funcgrad.numpy.reductions.extremes import *
from funcgrad.numpy.reductions.running import *
from funcgrad.numpy.reductions.totals import *
from funcgrad.numpy.elementwise.rounding import *
from funcgrad.numpy.creation.scalars import (
    bfloat16,
    bool_,
    bool_ as bool,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    ndarray,
    uint8,
    uint16,
    uint32,
    uint64,
)
from funcgrad.numpy.selecting import *
from funcgrad.numpy.sets import *
from funcgrad.numpy.shape.axes import *
from funcgrad.numpy.shape.broadcasting import *
from funcgrad.numpy.shape.reshaping import *
from funcgrad.numpy.shape.joining import *
from funcgrad.numpy.shape.repeating import *
from funcgrad.numpy.shape.splitting import *
from funcgrad.numpy.sorting import *
from funcgrad.numpy.window_functions import *
from funcgrad.numpy.statistics.correlation import *
from funcgrad.numpy.statistics.histograms import *

__array_api_version__ = _inspection.API_VERSION
__array_namespace_info__ = _inspection.Info


def __getattr__(name: str) -> object:
    """``funcgrad.fft`` under NumPy's name, and ``funcgrad.special`` under SciPy's."""
    if name in ("fft", "special"):
        return importlib.import_module(f"funcgrad.{name}")  # which are written in terms of this package
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
