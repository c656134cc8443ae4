"""``torch._functorch.compilers``: compilers of the graphs of ``aot_function``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.tensor.namespace import torch
from compat._decomp import get_decompositions
from compat._functorch._boxed import make_boxed_compiler
from compat._functorch.aot_autograd import aot_function, aot_module
from compat._functorch.partitioners import min_cut_rematerialization_partition
from compat.nn.modules.module import Module

__all__ = ["default_decompositions", "memory_efficient_fusion", "nop", "print_compile"]

#: Operations that ``memory_efficient_fusion`` decomposes where there is a decomposition.
_DECOMPOSED = ("elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mse_loss", "silu", "softplus")
default_decompositions = get_decompositions([getattr(torch.ops.aten, name) for name in _DECOMPOSED])


@make_boxed_compiler
def nop(fx_g: Any, _: Any) -> Any:
    """Returns the graph, which runs operator by operator."""
    return fx_g


@make_boxed_compiler
def print_compile(fx_g: Any, _: Any) -> Any:
    """Prints the graph's code and returns the graph."""
    print(fx_g.code)
    return fx_g


def memory_efficient_fusion(fn: Callable[..., Any] | Module, **kwargs: Any) -> Any:
    """A function or module whose backward pass computes cheap values again instead of saving them.

    Its graphs run as eager code does, fused by XLA.

    Args:
        fn: the function or module.
        kwargs: options of ``aot_function``.
    """
    options = {
        "fw_compiler": nop, "bw_compiler": nop, "partition_fn": min_cut_rematerialization_partition,
        "decompositions": default_decompositions, **kwargs,
    }  # fmt: skip
    return aot_module(fn, **options) if isinstance(fn, Module) else aot_function(fn, **options)
