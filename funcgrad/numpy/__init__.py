"""The array API: NumPy's names, over arrays and tracers, with funcgrad's promotion."""

from funcgrad.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from funcgrad.numpy import linalg as linalg
from funcgrad.numpy import operators as _operators
from funcgrad.numpy import protocols as _protocols
from funcgrad.numpy.constants import *
from funcgrad.numpy.creation import *
from funcgrad.numpy.einsum import *
from funcgrad.numpy.elementwise import *
from funcgrad.numpy.indexing import *
from funcgrad.numpy.numerical import *
from funcgrad.numpy.products import *
from funcgrad.numpy.promotion import astype as astype, result_type as result_type
from funcgrad.numpy.reductions import *
from funcgrad.numpy.shape import *
from funcgrad.numpy.sorting import *
