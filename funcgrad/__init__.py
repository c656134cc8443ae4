"""A pure-functional autodiff core: functions traced into a small IR, transformed by its own rules, run by XLA.

Transforms: ``grad``, ``value_and_grad``, ``vjp``, ``jvp``, ``linearize``, ``jacfwd``, ``jacrev``, ``hessian``,
``vmap``, ``jit``, ``trace``, ``stop_gradient``. Control flow under ``jit``: the loops ``scan``, ``fori_loop`` and
``while_loop``, and the branch, ``cond``. Arrays' functions are in ``funcgrad.numpy``, neural networks' in
``funcgrad.nn``, random numbers in ``funcgrad.random``, functions of pytrees in ``funcgrad.trees``.
"""

import funcgrad.runtime
from funcgrad import fft, nn, numpy, random, trees
from funcgrad import checkpoint_policies
from funcgrad.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
)
from funcgrad.compilation import jit
from funcgrad.control import cond, fori_loop, scan, while_loop
from funcgrad.custom import closure_convert, custom_jvp, custom_vjp
from funcgrad.errors import (
    ConcretizationError,
    FuncgradError,
    LeakedTracerError,
    NonDifferentiableError,
    ProgramError,
)
from funcgrad.ir import ArrayType, Program
from funcgrad.jacobians import hessian, jacfwd, jacrev
from funcgrad.rematerialization import checkpoint, checkpoint_name
from funcgrad.transforms import grad, jvp, linearize, stop_gradient, trace, value_and_grad, vjp
from funcgrad.vectorization import vmap

__version__ = "0.1.0"
__all__ = [
    "ArrayType", "ConcretizationError", "FuncgradError", "LeakedTracerError", "NonDifferentiableError", "Program",
    "ProgramError", "cond", "fft", "fori_loop", "grad", "hessian", "jacfwd", "jacrev", "jit", "jvp", "linearize", "nn",
    "numpy", "random", "scan", "stop_gradient", "trace", "trees", "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip
