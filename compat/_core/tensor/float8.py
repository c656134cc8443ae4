"""The operators that accept float8 tensors.

These dtypes are for storage. PyTorch moves, casts, compares and multiplies them, and has no other arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import FLOAT8
from compat._core.types.errors import lacks

#: Operators that accept them: those that move elements, casts, comparisons for equality, and matrix products.
TAKES = frozenset(
    ["_to_copy", "abs", "addmm", "alias", "all", "any", "as_strided_scatter", "baddbmm", "bmm", "cat"]
    + ["clone", "conj", "constant_pad_nd", "contiguous", "copy", "detach", "diag", "diag_embed", "diag_scatter"]
    + ["diagonal_copy", "diagonal_scatter", "embedding", "empty_like", "eq", "expand", "fill", "full_like"]
    + ["index", "index_put", "index_select", "isnan", "lift_fresh", "linear", "masked_select", "meshgrid", "mm"]
    + ["ne", "ones_like", "outer", "pad", "positive", "real", "repeat", "reshape", "resolve_conj"]
    + ["resolve_neg", "roll", "select", "select_scatter", "slice", "slice_scatter", "stack", "tile", "tril"]
    + ["triu", "unfold", "view", "where", "zero", "zeros_like"]
)
#: PyTorch's kernel names, unless they are the operator's name and ``_cpu``.
_KERNELS = {
    "add": "add_stub", "sub": "add_stub", "rsub": "add_stub", "mul": "mul_cpu_reduced_float", "dot": "dot",
    "vdot": "vdot", "max": "max_all", "min": "min_all", "isinf": "isinf", "isfinite": "isfinite", "mean": "sum_cpu",
    "amax": "max_values_cpu", "amin": "min_values_cpu", "logsumexp": "max_values_cpu", "clamp": "clamp_scalar_cpu",
    "relu": "clamp_min_scalar_cpu", "pow": "pow", "linalg_vector_norm": "norm_cpu", "prod": "prod_out_cpu",
    "cumsum": "cumsum_out_cpu", "cumprod": "cumprod_out_cpu", "sort": "sorting_kernel_method_name",
    "masked_fill": "masked_fill", "gather": "gather_expanded_index", "sgn": "sign_cpu", "nan_to_num": "nan_to_num",
    "lerp": "lerp_kernel_scalar", "gelu": "GeluKernelImpl", "_softmax": "softmax_lastdim_kernel_impl",
    "native_layer_norm": "LayerNormKernelImpl", "searchsorted": "searchsorted_out_cpu", "isin": "isin_default_cpu",
    "softmax": "softmax_lastdim_kernel_impl", "layer_norm": "LayerNormKernelImpl",
    "_unique2": "unique", "isclose": "mul_cpu_reduced_float", "argsort": "sorting_kernel_method_name",
    "count_nonzero": "nonzero_count_cpu", "histc": "aminmax_cpu",
}  # fmt: skip
#: Functions whose kernel name ends with ``_vml_cpu``.
_VECTORS = frozenset(
    ["acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "log", "log10"]
    + ["log1p", "log2", "round", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"]
)


def check_taken(name: str, tensors: Sequence[Tensor]) -> None:
    """Raises an error for an operator that does not accept float8 tensors, if all tensors have one such dtype.

    For tensors of several dtypes promotion raises an error.

    Raises:
        NotImplementedError: naming the kernel and the dtype.
    """
    kinds = {t._layout_.dtype for t in tensors if t._layout_.dtype.is_floating_point}
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    product = name == "mul" and len(tensors) == 2
    if kind in FLOAT8 and name not in TAKES and not product:
        raise lacks(_KERNELS.get(name, f"{name}_vml_cpu" if name in _VECTORS else f"{name}_cpu"), kind)


__all__ = ["TAKES", "check_taken"]
