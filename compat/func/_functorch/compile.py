"""``functorch.compile``: functions compiled with their backward pass, by compilers of graphs of ``aten`` operators."""

from compat._decomp import get_decompositions
from compat._functorch import config
from compat._functorch.aot_autograd import (
    aot_function,
    aot_module,
    aot_module_simplified,
    make_boxed_compiler,
    make_boxed_func,
)
from compat._functorch.compilers import default_decompositions, memory_efficient_fusion, nop, print_compile
from compat._functorch.partitioners import default_partition, min_cut_rematerialization_partition

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "config", "default_decompositions", "default_partition",
    "get_decompositions", "make_boxed_compiler", "make_boxed_func", "memory_efficient_fusion",
    "min_cut_rematerialization_partition", "nop", "print_compile",
]  # fmt: skip
