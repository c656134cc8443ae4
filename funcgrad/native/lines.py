"""Sorting, the largest elements, and running sums along an axis by native kernels."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.ir import Equation
from funcgrad.core.primitive import Primitive
from funcgrad.native.library import RUN_SUFFIXES
from funcgrad.primitives.sorting import top_k

#: Smaller arrays are as fast in XLA.
_LEAST = 1 << 10
#: A place in a line is a number of 32 bits.
_MOST = 2**32 - 1
_KEYS = {np.dtype(name) for name in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"
)} | {dtypes.bfloat16}  # fmt: skip


def _sort_lower(*xs: Any, axis: int) -> Any:
    call = jax.ffi.ffi_call("funcgrad_sort", [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in xs])
    return list(call(*xs, axis=np.int64(axis)))


#: All operands in ascending order of the first one, equal elements in their order.
native_sort = Primitive("native_sort", infer=lambda *types, axis: list(types), lower=_sort_lower, multiple=True)


def sort_translated(equation: Equation) -> list[Equation]:
    """The native form of a ``sort``; nothing where XLA is as fast or the kernel does not support it."""
    axis, keys = equation.params["axis"], equation.params["keys"]
    first, *_ = types = [a.type for a in equation.inputs]
    if keys > 1 or first.dtype not in _KEYS or any(t.dtype.itemsize not in (1, 2, 4, 8) for t in types):
        return []
    if first.size < _LEAST or first.shape[axis] > _MOST:
        return []
    return [Equation(native_sort, equation.inputs, equation.outputs, {"axis": axis}, equation.source)]


def _top_lower(x: Any, *, k: int) -> Any:
    shape = (*x.shape[:-1], k)
    results = [jax.ShapeDtypeStruct(shape, x.dtype), jax.ShapeDtypeStruct(shape, np.int32)]
    return list(jax.ffi.ffi_call("funcgrad_top", results)(x))


#: The k largest elements along the last axis in descending order, and their places; the first ones of equal elements.
native_top = Primitive("native_top", infer=top_k.infer, lower=_top_lower, multiple=True)


def top_translated(equation: Equation) -> list[Equation]:
    """The native form of a ``top_k``; nothing where XLA is as fast or the kernel does not support it."""
    x, k = equation.inputs[0].type, equation.params["k"]
    if not k or x.dtype not in _KEYS or x.size < _LEAST or x.shape[-1] > np.iinfo(np.int32).max:
        return []
    return [Equation(native_top, equation.inputs, equation.outputs, {"k": k}, equation.source)]


def _run_lower(x: Any, *, axis: int, backwards: bool, product: bool) -> Any:
    call = jax.ffi.ffi_call(f"funcgrad_run_{RUN_SUFFIXES[np.dtype(x.dtype)]}", jax.ShapeDtypeStruct(x.shape, x.dtype))
    return call(x, axis=np.int64(axis), backwards=np.bool_(backwards), product=np.bool_(product))


#: Running sums or products along an axis, from its end if ``backwards``; those of float32 are computed in float64.
native_run = Primitive("native_run", infer=lambda x, *, axis, backwards, product: x, lower=_run_lower)


def run_translated(equation: Equation) -> list[Equation]:
    """The native form of a ``cumsum`` or ``cumprod``; nothing where XLA is as fast or there is no kernel."""
    x = equation.inputs[0].type
    if x.dtype not in RUN_SUFFIXES or x.size < _LEAST:
        return []
    params = {
        "axis": equation.params["axis"],
        "backwards": equation.params["reverse"],
        "product": equation.primitive.name == "cumprod",
    }
    return [Equation(native_run, equation.inputs, equation.outputs, params, equation.source)]
