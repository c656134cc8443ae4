"""``functorch.compile``: functions compiled with their backward pass, by compilers of graphs of ``aten`` operators."""

from importlib import import_module

# By their names, since torch._functorch imports torch.func, which this module is part of.
_aot = import_module("compat._functorch.aot_autograd")
_compilers = import_module("compat._functorch.compilers")
_partitioners = import_module("compat._functorch.partitioners")
config = import_module("compat._functorch.config")

aot_function, aot_module, aot_module_simplified = _aot.aot_function, _aot.aot_module, _aot.aot_module_simplified
make_boxed_compiler, make_boxed_func = _aot.make_boxed_compiler, _aot.make_boxed_func
nop, print_compile = _compilers.nop, _compilers.print_compile
memory_efficient_fusion, default_decompositions = _compilers.memory_efficient_fusion, _compilers.default_decompositions
default_partition = _partitioners.default_partition
min_cut_rematerialization_partition = _partitioners.min_cut_rematerialization_partition

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "config", "default_decompositions", "default_partition",
    "make_boxed_compiler", "make_boxed_func", "memory_efficient_fusion", "min_cut_rematerialization_partition", "nop",
    "print_compile",
]  # fmt: skip
