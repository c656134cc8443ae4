"""The largest and smallest elements: ``max``, ``min``, ``amax``, ``amin``, ``argmax``, ``argmin``, ``aminmax``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.operators.call_errors import call_error, has_call_errors
from compat._core.operators.op import Op, aten
from compat._core.operators.out import of_dtype
from compat._core.schema.overload import Overload, carry, together
from compat._core.tensor.registry import names_of, publish
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks, wrap_dim, wrap_dims
from compat._operators.arguments import no_complex_derivative
from compat._operators.reduction.sum_mean_var import axes_of, kept_shape, no_dim, reduce, restore
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.indexing import take_along
from funcgrad.primitives.shape import iota, reshape

# ---------------------------------------------------------------- checks


def _check_elements(name: str, input: Tensor, dim: Any, error: type[Exception] = RuntimeError, hint: str = "") -> None:
    """Checks that there are elements to reduce.

    Raises:
        IndexError: for an empty dimension.
        error: for an empty tensor, if no dimension is given.
    """
    if input.numel():
        return
    if dim is None or dim == ():
        raise error(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.{hint}")
    for d in wrap_dims(dim if isinstance(dim, tuple) else (dim,), input.dim()):
        if input.dim() and not input.shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


_HINT = " Specify the reduction dim with the 'dim' argument."


def _check_real(kernel: str, input: Tensor) -> None:
    if input.dtype.is_complex:
        raise lacks(kernel, input.dtype)


# ---------------------------------------------------------------- amax, amin


def extreme(primitive: Callable[..., Any], x: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The extreme elements over axes; a new array even for a 0-d array, since nodes save both operand and result."""
    if type_of(x).dtype.kind == "c":
        return reduce(r.reduce_sum, x, axes, keepdim)  # the checks allow complex tensors only without elements
    if not type_of(x).shape:
        x, axes, keepdim = reshape(x, shape=(1,)), (0,), False
    return reduce(primitive, x, axes, keepdim)


def extreme_gradient(ct: Any, input: Any, result: Any, axes: tuple[int, ...], with_nan: bool = False) -> Any:
    """The gradient of extremes, divided evenly among the elements that equal them."""
    extreme = restore(result, input, axes)
    ties = np.equal(input, extreme)
    if with_nan:
        ties = np.logical_or(ties, np.logical_and(np.not_equal(input, input), np.not_equal(extreme, extreme)))
    ones = np.astype(ties, type_of(input).dtype)
    share = np.divide(restore(ct, input, axes), reduce(r.reduce_sum, ones, axes, True))
    return np.where(ties, share, np.astype(0, type_of(share).dtype)) if with_nan else np.multiply(ones, share)


_same_as_input = of_dtype(
    "Expected the dtype for input and out to match, but got {result} for input's dtype and {out} for out's dtype."
)


def _declare_extreme(name: str, node: str, primitive: Callable[..., Any], what: str) -> None:
    def check(input: Tensor, dim: Any = (), keepdim: bool = False) -> None:
        _check_elements(name, input, dim, hint=_HINT)
        if input.numel():
            _check_real(f"{what}_values_cpu", input)
        no_complex_derivative(name, input)

    def body(input, dim, keepdim):
        return extreme(primitive, input, axes_of(input, dim), keepdim)

    largest = "largest" if what == "max" else "smallest"
    body.__doc__ = (
        f"The {largest} elements over dimensions, by default over all; elements that tie share the gradient.\n\nArgs:\n"
        "    dim: a dimension, or several.\n    keepdim: whether to keep the reduced dimensions with size 1.\n"
        "    out: a tensor to write the result into.\n\nRaises:\n    IndexError: for a dimension that does not exist, "
        "or is empty.\n"
        f"\nExample:\n    >>> import compat as torch\n    >>> torch.{name}(torch.tensor([[1.0, 5.0], [7.0, 3.0]]), 1)\n"
        f"    tensor({'[5., 7.]' if what == 'max' else '[1., 3.]'})\n"
    )
    declared = aten(
        f"{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        node=node, saves="self! result! dim keepdim", check=check, out=_same_as_input,
    )(body)  # fmt: skip

    @declared.backward
    def backward(ct: Any, input: Any, result: Any, dim: Any) -> Any:
        return extreme_gradient(ct, input, result, axes_of(input, dim))


_declare_extreme("amax", "AmaxBackward0", r.reduce_max, "max")
_declare_extreme("amin", "AminBackward0", r.reduce_min, "min")


# ---------------------------------------------------------------- argmax, argmin


def _position(primitive: Callable[..., Any], x: Any, dim: int | None, keepdim: bool) -> Any:
    """The index of the first extreme element along a dimension, by default of the flattened array."""
    shape = type_of(x).shape
    if not shape:
        return np.zeros((), fdtypes.int64)
    if dim is None:
        found = primitive(reshape(x, shape=(type_of(x).size,)), axis=0, dtype=fdtypes.int64)
        return reshape(found, shape=(1,) * len(shape)) if keepdim else found
    found = primitive(_comparable(x), axis=dim, dtype=fdtypes.int64)
    return reshape(found, shape=kept_shape(shape, (dim,))) if keepdim else found


def _comparable(x: Any) -> Any:
    return np.astype(x, fdtypes.uint8) if type_of(x).dtype == fdtypes.bool_ else x


def _declare_position(name: str, primitive: Callable[..., Any], extreme: str) -> None:
    def check(input: Tensor, dim: Any = None, keepdim: bool = False) -> None:
        for category, kind in ((dtypes.BOOL, "bool"), (dtypes.COMPLEX, "complex")):
            if input.dtype.category == category:
                raise RuntimeError(f"{name}(): does not support {kind} input")
        _check_elements(name, input, dim, IndexError)

    def body(input, dim, keepdim):
        return _position(primitive, input, dim, keepdim)

    body.__doc__ = (
        f"The index of the first {extreme} element, int64; NaN counts as the {extreme}.\n\nArgs:\n"
        "    dim: a dimension, or None for an index into the flattened input.\n"
        "    keepdim: whether to keep the reduced dimension with size 1.\n"
        "    out: a tensor to write the result into.\n\nRaises:\n    IndexError: for a dimension that does not exist, "
        "or is empty.\n\n"
        f"Example:\n    >>> import compat as torch\n    >>> torch.{name}(torch.tensor([2.0, 7.0, 1.0]))\n"
        f"    tensor({1 if extreme == 'largest' else 2})\n"
    )
    aten(f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", check=check)(body)


_declare_position("argmax", r.argmax, "largest")
_declare_position("argmin", r.argmin, "smallest")


# ---------------------------------------------------------------- max, min


def select_backward(ct0: Any, result1: Any, input: Any, dim: int, keepdim: bool) -> Any:
    """The backward formula of operations whose results are one element along a dimension, and its index."""
    shape = type_of(input).shape
    if not shape:
        return ct0
    if not keepdim:
        kept = kept_shape(shape, (dim,))
        ct0, result1 = reshape(ct0, shape=kept), reshape(result1, shape=kept)
    is_selected = np.equal(iota(shape=shape, axis=dim, dtype=fdtypes.int64), result1)
    return np.where(is_selected, ct0, e.number(0, ct0))


def _declare_full(name: str, node: str, primitive: Callable[..., Any]) -> Op:
    def check(input: Tensor) -> None:
        _check_elements(name, input, None, hint=_HINT)
        _check_real(f"{name}_all", input)

    def body(input):
        return extreme(primitive, input, axes_of(input, None), False)

    declared = aten(f"{name}(Tensor self) -> Tensor", node=node, saves="self result!", names="", check=check, out=True)(
        body
    )

    @declared.backward
    def backward(ct: Any, input: Any, result: Any) -> Any:
        return extreme_gradient(ct, input, result, axes_of(input, None), with_nan=True)

    return declared


def _declare_along(name: str, node: str, position: Callable[..., Any]) -> Op:
    def check(input: Tensor, dim: Any, keepdim: bool = False) -> None:
        if input.dim():
            _check_elements(name, input, wrap_dim(dim, input.dim()))
        if input.dtype.is_complex:
            raise RuntimeError(f"{name}(): does not support complex input")

    def body(input, dim, keepdim):
        if not type_of(input).shape:
            return input, np.zeros((), fdtypes.int64)
        indices = _position(position, input, dim, True)
        values = take_along(input, indices, axis=dim, mode="promise", unique=True)
        if not keepdim:
            shape = tuple(n for d, n in enumerate(type_of(input).shape) if d != dim)
            values, indices = reshape(values, shape=shape), reshape(indices, shape=shape)
        return values, indices

    declared = aten(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        node=node, saves="indices! self.sym_sizes dim keepdim", names="", check=check, out=True,
    )(body)  # fmt: skip

    declared.backward(select_backward)
    return declared


def _publish(name: str, full: Op, along: Op, pairwise: str) -> None:
    def function_of(address: str) -> Callable[..., Any]:
        is_method = address.startswith("Tensor.")

        def public(*args: Any, **kwargs: Any) -> Any:
            try:
                if no_dim(args, kwargs) and "other" not in kwargs:
                    return full.function(*args, **kwargs)
                if "other" in kwargs or (len(args) > 1 and isinstance(args[1], Tensor)):
                    return names_of("torch")[pairwise](*args, **kwargs)
                return along.function(*args, **kwargs)
            except Exception:
                error = call_error(address, args[is_method:], kwargs)
                if error is None:
                    raise
            raise error

        public.__name__ = public.__qualname__ = name
        other = Overload(f"{name}.other(Tensor self, Tensor other) -> Tensor", out=not is_method)
        overloads = together((full.function, along.function), is_method)
        carry(public, (overloads[0], other, overloads[1]))
        return has_call_errors(public)

    document = (
        f"The {pairwise} of all elements, of the elements along a dimension, or of two tensors elementwise.\n\nArgs:\n"
        "    input: a real tensor.\n    dim: a dimension: the result is a pair ``values, indices``; of equal elements, "
        "the first one's.\n"
        "    keepdim: whether to keep that dimension with size 1.\n    other: a tensor, instead of ``dim``: the result "
        f"is ``torch.{pairwise}(input, other)``.\n"
        "    out: a tensor, or a pair of them, to write the result into.\n\nRaises:\n"
        "    IndexError: for a dimension that does not exist, or is empty.\n    RuntimeError: for a tensor without "
        "elements.\n\n"
        f"Example:\n    >>> import compat as torch\n    >>> torch.{name}(torch.tensor([[1.0, 5.0], [7.0, 3.0]]), "
        "1).indices\n"
        f"    tensor({[1, 0] if name == 'max' else [0, 1]})\n"
    )
    for address in (f"torch.{name}", f"Tensor.{name}"):
        publish(function_of(address), address).__doc__ = document


_publish(
    "max",
    _declare_full("max", "MaxBackward1", r.reduce_max),
    _declare_along("max", "MaxBackward0", r.argmax),
    "maximum",
)
_publish(
    "min",
    _declare_full("min", "MinBackward1", r.reduce_min),
    _declare_along("min", "MinBackward0", r.argmin),
    "minimum",
)


# ---------------------------------------------------------------- aminmax


def _check_aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> None:
    if dim is None:
        if not input.numel():
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
    elif input.dim() and not input.shape[wrap_dim(dim, input.dim())]:
        along = wrap_dim(dim, input.dim())
        raise IndexError(f"aminmax: Expected reduction dim {along} to have non-zero size.")
    if input.dtype.is_complex:
        raise lacks("aminmax_cpu", input.dtype)


@aten(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    node="AminmaxBackward0", saves="dim keepdim max! min! self!", check=_check_aminmax,
)  # fmt: skip
def aminmax(input, *, dim, keepdim):
    """The smallest and the largest element, of all or along a dimension.

    Args:
        dim: the dimension.
        keepdim: whether to keep it with size 1.
        out: a pair of tensors to write the results into.

    Raises:
        RuntimeError: for a tensor without elements.
        IndexError: for a dimension that is out of range or empty.

    Example:
        >>> torch.aminmax(torch.tensor([2, 1, 3])).max
        tensor(3)
    """
    axes = axes_of(input, dim)
    return extreme(r.reduce_min, input, axes, keepdim), extreme(r.reduce_max, input, axes, keepdim)


@aminmax.backward
def aminmax_backward(ct0: Any, ct1: Any, input: Any, result0: Any, result1: Any, dim: int | None) -> Any:
    axes = axes_of(input, dim)
    return e.add(extreme_gradient(ct0, input, result0, axes), extreme_gradient(ct1, input, result1, axes))
