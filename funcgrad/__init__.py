"""A pure-functional autodiff core: functions traced into a small IR, transformed by its own rules, run by XLA.

Transforms: ``grad``, ``value_and_grad``, ``vjp``, ``jvp``, ``linearize``, ``linear_transpose``, ``jacfwd``,
``jacrev``, ``hessian``, ``hvp``, ``elementwise_grad``, ``make_ggnvp``, ``multigrad_dict``, ``vmap`` (with ``psum`` and
its kin), ``jit``, ``checkpoint`` (also ``remat``); functions with rules of their own: ``custom_jvp``, ``custom_vjp``,
``stop_gradient``, and ``funcgrad.extend``; functions seen as programs: ``trace``, ``eval_shape``, ``closure_convert``,
``export``. Control flow under ``jit``: the loops ``scan``, ``fori_loop``, ``while_loop``, ``map`` and
``associative_scan``, the branches ``cond`` and ``switch``. Arrays' functions are in ``funcgrad.numpy`` and
``funcgrad.scipy``, XLA's operations by JAX's names in ``funcgrad.lax``, neural networks' in ``funcgrad.nn``, random
numbers in ``funcgrad.random``, functions of pytrees in ``funcgrad.trees``, programs on many devices in
``funcgrad.parallel``, and the way to JAX's functions and back in ``funcgrad.interop``.
"""

import funcgrad.runtime
from funcgrad import fft, linalg, numpy, random, special
from funcgrad.nn import initializers, layers
from funcgrad.core import trees
from funcgrad.transforms import checkpoint_policies
from funcgrad.tools import costs, debug, drawing, extend, flatten_util
from funcgrad import interop, lax, parallel, scipy
from funcgrad.tools.callbacks import pure_callback
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
from funcgrad.transforms.jit import disable_jit, jit
from funcgrad.transforms.map import associative_scan, map
from funcgrad.control import cond, fori_loop, scan, switch, while_loop
from funcgrad.transforms.custom import custom_jvp, custom_vjp
from funcgrad.tools.differential import elementwise_grad, make_ggnvp, multigrad_dict
from funcgrad.core.errors import (
    ConcretizationError,
    DerivativeLostError,
    FuncgradError,
    LeakedTracerError,
    NonDifferentiableError,
    ProgramError,
)
from funcgrad.parallel.devices import block_until_ready, device_get, device_put, devices
from funcgrad.transforms.trace import closure_convert, eval_shape, make_jaxpr, trace
from funcgrad.core.ir import ArrayType, Program
from funcgrad.transforms.jacobians import hessian, jacfwd, jacrev
from funcgrad.parallel.mapping import shard_map
from funcgrad.transforms.checkpoint import checkpoint, checkpoint_name
from funcgrad.tools.export import export, load
from funcgrad.arguments.sharding_constraint import with_sharding_constraint
from funcgrad.transforms.autodiff import grad, hvp, jvp, linear_transpose, linearize, stop_gradient, value_and_grad, vjp
from funcgrad.transforms.vmap import vmap

#: Another name of ``checkpoint``.
remat = checkpoint

__version__ = "0.1.0"
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

funcgrad.runtime.process.imported()
