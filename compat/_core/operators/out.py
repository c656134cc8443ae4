"""The ``out=`` variants: compute, then write into the caller's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.autograd.forward_ad import is_dual
from compat._core.config.flags import unset_value
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import contiguous_strides, layout_of, room
from compat._core.operators.inplace import check_memory
from compat._core.tensor import capture_checks
from compat._core.tensor.autograd_state import SHARED
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import level_stack, vmap_checks
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types import dtype as dtypes
from compat._core.types.errors import cpp_name, dual_out, recorded_out, warn
from compat._core.types.structseq import return_type
from compat._core.types.type_promotion import check_cast


def into_out(op: Any, args: Sequence[Any], out: Any) -> Any:
    """Runs an operation into ``out``; returns it.

    Raises:
        RuntimeError: if an argument requires grad, or the result's dtype cannot be cast.
    """
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for t in outs:
        if not isinstance(t, Tensor):
            raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(t).__name__}")
    _check_derivatives(op, args, outs)
    if op.broadcasts:
        for t in outs:
            check_memory(t, op.values(args))
    with no_grad():
        result = op.miss(_in_dtype_of(op, args, outs[0]))
        results = result if isinstance(result, tuple) else (result,)
        if isinstance(result, tuple) == isinstance(out, Tensor):
            wanted = "tuple of Tensors" if isinstance(out, Tensor) else "Tensor"
            raise TypeError(f"{op.name}(): argument 'out' must be {wanted}, not {type(out).__name__}")
        if len(results) != len(outs):
            raise TypeError(f"expected tuple of {len(results)} elements but got {len(outs)}")
        for r, t in zip(results, outs):
            if op.takes is None:
                check_dtype(r, t, exact=not op.casts)
            else:
                op.takes(r, t, args)
            if r.device is not t.device:
                raise RuntimeError(
                    f"Attempting to copy from device {r.device} to device {t.device}, but cross-device copies are not "
                    "allowed!"
                )
        for r, t in zip(results, outs):
            resize_out(t, tuple(r.shape), r.stride() if op.layout == "pointwise" else None)
            t.copy_(r)
    if isinstance(out, Tensor):
        return out
    if not hasattr(result, "_fields"):
        return type(result)(out)
    return return_type(f"{type(result).__name__}_out", result._fields)(*outs)


def _check_derivatives(op: Any, args: Sequence[Any], outs: Sequence[Tensor]) -> None:
    """Checks that no operand or ``out`` is differentiated, since the derivative would be lost."""
    tensors = [v for v in (*op.values(args), *outs) if isinstance(v, Tensor)]
    if level_stack.state.levels:
        vmap_checks.check_out(op.name, tensors)
    if mode.grad and any(t.requires_grad for t in tensors):
        raise recorded_out(op.name)
    if level_stack.state.duals is not None and any(map(is_dual, tensors)):
        raise dual_out(op.name)


def _in_dtype_of(op: Any, args: Sequence[Any], out: Tensor) -> list[Any]:
    """The arguments, with the dtype of ``out`` as the default of ``dtype``, unless the operation casts its result."""
    fill = {p.name: out.dtype for p in op.params if p.name == "dtype" and not op.casts}
    return [fill.get(p.name, a) if a is None else a for p, a in zip(op.params, args)]


def check_dtype(result: Tensor, out: Tensor, exact: bool) -> None:
    """Checks that a result may be written into a tensor of another dtype."""
    if result.dtype is out.dtype:
        return
    if exact:
        raise RuntimeError(
            f"Expected out tensor to have dtype {cpp_name(result.dtype)}, but got {cpp_name(out.dtype)} instead"
        )
    check_cast(result.dtype, out.dtype)


def of_dtype(message: str, *also: dtypes.dtype) -> Callable[..., None]:
    """The check of an ``out`` that must have the result's dtype.

    Args:
        message: the error for another dtype; ``{out}`` and ``{result}`` are names of ``ScalarType``, ``{out_cpp}`` and
            ``{result_cpp}`` C++ types.
        also: further accepted dtypes.
    """

    def check(result: Tensor, out: Tensor, operands: Sequence[Any]) -> None:
        if out.dtype is not result.dtype and out.dtype not in also:
            raise RuntimeError(
                message.format(
                    out=out.dtype.scalar_name,
                    result=result.dtype.scalar_name,
                    out_cpp=cpp_name(out.dtype),
                    result_cpp=cpp_name(result.dtype),
                )
            )

    return check


#: The check of PyTorch's unary functions that keep the dtype.
same_dtype = of_dtype("Found dtype {out} but expected {result}")


def resize_out(t: Tensor, size: tuple[int, ...], stride: tuple[int, ...] | None = None) -> None:
    """Resizes ``out`` to the size of the result, with strides or row-major; warns if it had elements."""
    if t._storage_.born < mode.since:
        capture_checks.let(t)
    if tuple(t.shape) == size:
        return
    if t.numel():
        warn(
            f"An output with one or more elements was resized since it had shape {list(t.shape)}, which does not match "
            f"the required output shape {list(size)}. This behavior is deprecated, and in a future PyTorch release "
            "outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by "
            "resizing it, inplace, to zero elements with t.resize_(0)."
        )
    resize(t, size, stride)


def make_room(
    storage: UntypedStorage, size: tuple[int, ...], stride: tuple[int, ...], offset: int, dtype: dtypes.dtype
) -> None:
    """Resizes a storage if it is too small for elements of a size, strides and offset."""
    need = room(size, stride, offset)
    ratio = dtype.itemsize / storage.base.dtype.itemsize
    if need * ratio > storage.base.numel:
        storage.resize_elements(int(need * ratio), unset_value(dtype) if ratio == 1 else 0)


def resize(t: Tensor, size: tuple[int, ...], stride: tuple[int, ...] | None = None) -> None:
    """Resizes a tensor, with strides or row-major from its offset; its storage grows if necessary."""
    stride = contiguous_strides(size) if stride is None else stride
    storage: UntypedStorage = t._storage_
    make_room(storage, size, stride, t._offset_, t.dtype)
    t._layout_ = layout_of(storage.base, size, stride, t._offset_, t.dtype)
    t._view_ = t._view_ or SHARED
