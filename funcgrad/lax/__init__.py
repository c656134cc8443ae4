"""XLA's operations and control flow under the names of ``jax.lax``.

    from funcgrad import lax

Names, arguments and results are those of ``jax.lax``; all of it can be differentiated, batched and compiled. As in JAX,
operands must have one dtype, and equal ranks unless they are scalars. A Python number takes the dtype of the array
operands, if representable. Axes may be negative. Invalid dtypes raise a ``TypeError``, invalid shapes a ``ValueError``.

``precision`` is ignored: products have the precision of the process, by default the highest, else that of
``jax_default_matmul_precision`` in JAX's configuration. ``preferred_element_type`` is the dtype of products and
sums. ``with_sharding_constraint`` requests a sharding.
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
