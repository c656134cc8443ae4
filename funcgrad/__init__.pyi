from . import runtime
from . import fft, linalg, nn, numpy, random, special
from .nn import initializers, layers
from .core import trees
from .transforms import checkpoint_policies
from .tools import costs, debug, drawing, extend, flatten_util
from . import interop, lax, parallel, scipy
from .tools.callbacks import pure_callback
from .lax.collectives import (
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
from .transforms.jit import disable_jit, jit
from .transforms.map import associative_scan, map
from .control import cond, fori_loop, scan, switch, while_loop
from .transforms.custom import custom_jvp, custom_vjp
from .tools.differential import elementwise_grad, make_ggnvp, multigrad_dict
from .core.errors import (
    ConcretizationError,
    DerivativeLostError,
    FuncgradError,
    LeakedTracerError,
    NonDifferentiableError,
    ProgramError,
)
from .parallel.devices import block_until_ready, device_get, device_put, devices
from .transforms.trace import closure_convert, eval_shape, make_jaxpr, trace
from .core.ir import ArrayType, Program
from .transforms.jacobians import hessian, jacfwd, jacrev
from .parallel.mapping import shard_map
from .transforms.checkpoint import checkpoint, checkpoint_name
from .tools.export import export, load
from .arguments.sharding_constraint import with_sharding_constraint
from .transforms.autodiff import grad, hvp, jvp, linear_transpose, linearize, stop_gradient, value_and_grad, vjp
from .transforms.vmap import vmap

from .transforms.checkpoint import remat

__version__: str
__all__ = [
    "ArrayType", "ConcretizationError", "DerivativeLostError", "FuncgradError", "LeakedTracerError",
    "NonDifferentiableError", "Program", "ProgramError",
    "all_gather", "all_to_all", "associative_scan", "axis_index", "axis_size", "block_until_ready",
    "checkpoint", "checkpoint_name", "checkpoint_policies", "closure_convert", "cond", "custom_jvp", "custom_vjp",
    "debug", "device_get", "device_put", "devices", "disable_jit", "elementwise_grad", "eval_shape", "export",
    "extend", "fft", "flatten_util", "fori_loop", "grad", "hessian", "hvp", "initializers", "interop", "jacfwd",
    "jacrev", "jit", "jvp", "lax", "linalg", "linear_transpose", "linearize", "load", "make_ggnvp", "make_jaxpr",
    "map", "multigrad_dict", "nn", "numpy", "parallel", "pcast", "pmax", "pmean", "pmin", "ppermute", "pshuffle",
    "psum", "psum_scatter", "pure_callback", "random", "remat", "scan", "scipy", "shard_map", "special",
    "stop_gradient", "switch", "trace", "trees", "value_and_grad", "vjp", "vmap", "while_loop",
    "with_sharding_constraint",
]  # fmt: skip
