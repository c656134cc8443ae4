"""``jax.lax`` by its own names: XLA's operations one by one, and control flow, for programs that are written in them.

    from funcgrad import lax

Names, arguments and results are those of ``jax.lax``, and all of it is differentiated, batched and compiled as
everything here is. What is strict there is strict here: operands have one dtype, and as many axes as each other unless
they are scalars. A Python number takes the dtype of the arrays beside it, if that can hold it. Axes may be counted from
the end. Wrong dtypes are a ``TypeError``, wrong shapes a ``ValueError``.

``precision`` asks for less than there is: products are of the highest precision. ``preferred_element_type`` is the
dtype in which is multiplied and summed. ``with_sharding_constraint`` requests a sharding.
"""

from jax.lax import (
    ConvDimensionNumbers,
    DotDimensionNumbers,
    FftType,
    GatherDimensionNumbers,
    GatherScatterMode,
    Precision,
    RoundingMethod,
    ScatterDimensionNumbers,
)

from funcgrad.lax import linalg
from funcgrad.lax.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
)
from funcgrad.transforms.map import associative_scan, map
from funcgrad.control import fori_loop, scan, while_loop
from funcgrad.lax.contraction import *
from funcgrad.lax.control import *
from funcgrad.lax.convolution import *
from funcgrad.lax.creation import *
from funcgrad.lax.elementwise import *
from funcgrad.lax.fourier import fft
from funcgrad.lax.indexing import *
from funcgrad.lax.parallel import *
from funcgrad.lax.reductions import *
from funcgrad.lax.shapes import *
from funcgrad.lax.slicing import *
from funcgrad.lax.solvers import *
from funcgrad.lax.sorting import *
from funcgrad.lax.windows import *
from funcgrad.arguments.sharding_constraint import with_sharding_constraint
from funcgrad.transforms.autodiff import stop_gradient
