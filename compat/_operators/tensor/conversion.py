"""Conversion of tensors to NumPy arrays, Python numbers and text; copying and pickling."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from compat._core.memory import guarded_storage, strided_access
from compat._core.memory.meta import Unknown, on_meta
from compat._core.memory.numpy_storage import lent
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base, layout_of
from compat._core.tensor.autograd_state import SHARED, WITHIN
from compat._core.tensor.registry import function
from compat._core.tensor.subclass_state import set_state, state_of
from compat._core.tensor.tensor import Tensor, array_of, refresh, set_memory, wrap
from compat._core.tensor.version_counter import VersionCounter
from compat._core.transforms import level_stack, vmap_checks
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types import dtype as dtypes
from compat._core.types.device import CPU
from compat._core.types.errors import Once
from compat._operators.tensor.format import contents_text, tensor_text
from funcgrad import runtime
from funcgrad.core.callers import formatting
from funcgrad.core.errors import explained, is_library
from funcgrad.core.tracing import Tracer


def _check_constant(buffer: Any, conversion: str) -> None:
    """Checks that the calling program may convert traced values to constants; it always may, to format a number."""
    frame = sys._getframe(1)
    while is_library(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    if not (conversion == "float()" and formatting(frame)):
        vmap_checks.check_constant(buffer, conversion, frame)


def _number(t: Tensor, function: str = "item()", constant: str = "") -> Any:
    """The only element of a tensor.

    Args:
        function: the function that reads the element, for error messages.
        constant: the function that makes a constant of a traced element; empty if none does.
    """
    if t._view_ is not None:
        refresh(t)
    if t._layout_.base.traced:
        read = strided_access.read(runtime.ready(t._storage_.buffer), t._layout_, t._offset_)
        if constant:
            _check_constant(read, constant)
        return np.asarray(vmap_checks.concrete(read, function)).item()
    value = strided_access.number(t._storage_.buffer, t._layout_, t._offset_)
    return float(value) if t._layout_.dtype is dtypes.bfloat16 else value


@function("Tensor.numpy")
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The values as a NumPy array that shares the tensor's memory.

    Args:
        force: whether to detach, and resolve conjugation and negation, instead of raising an error.

    Raises:
        RuntimeError: if it requires grad, or is a conjugate or negative view.
        TypeError: for ``bfloat16``, which NumPy does not have.

    Example:
        >>> import compat as torch
        >>> x = torch.zeros(2)
        >>> x.numpy()[0] = 3
        >>> x
        tensor([3., 0.])
    """
    if self._view_ is not None:
        refresh(self)
    layout = self._layout_
    _check_elements(self, ".numpy() is not supported for tensor subclasses.")
    if not force:
        if layout.base.device is not CPU:
            raise TypeError(
                f"can't convert {layout.base.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
                "to host memory first."
            )
        if mode.grad and (
            self.requires_grad
            # Reading the buffer compares it with the memory that earlier arrays share.
            or (layout.base.traced and any(f.kind == "grad" for f in vmap_checks.followers(self._storage_.buffer)))
        ):
            message = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            raise explained(RuntimeError(message), "numpy-of-graph")
        for bit, name, fix in ((layout.conj, "conjugate", "conj"), (layout.neg, "negative", "neg")):
            if bit:
                raise RuntimeError(
                    f"Can't call numpy() on Tensor that has {name} bit set. Use tensor.resolve_{fix}().numpy() instead."
                )
    if layout.dtype is dtypes.bfloat16 or layout.dtype in dtypes.FLOAT8:
        raise TypeError(f"Got unsupported ScalarType {layout.dtype.scalar_name}")
    vmap_checks.check_memory(self)
    if layout.base.traced and not force:
        _check_constant(self._storage_.buffer, "numpy()")
    if layout.base.traced or layout.conj or layout.neg or layout.base.device is not CPU:
        return np.array(array_of(self))
    return lent(self._storage_, layout, self._offset_)


@function("Tensor.__array__")
def to_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """The array for ``numpy.asarray``: over the tensor's memory unless another dtype or a copy is requested.

    Args:
        dtype: the array's dtype.
        copy: True for a copy, False to raise an error instead of copying.

    Raises:
        ValueError: for another dtype with ``copy=False``.
    """
    array = self.numpy()
    if copy is False:
        return np.array(array, dtype, copy=False)
    return np.array(array, dtype) if copy else array.astype(dtype or array.dtype, copy=False)


def _check_elements(t: Tensor, message: str) -> None:
    """Raises an error for a tensor that consists of others, such as a wrapper, and has no elements of its own."""
    if t._overrides_operators_ and t._layout_.base.traced:
        raise RuntimeError(message)


@function("Tensor.item")
def item(self: Tensor) -> Any:
    """The value of a tensor of one element, as a Python number.

    Raises:
        RuntimeError: for another number of elements.

    Example:
        >>> import compat as torch
        >>> torch.tensor([2.5]).item()
        2.5
    """
    if self._layout_.numel != 1:
        message = f"a Tensor with {self._layout_.numel} elements cannot be converted to Scalar"
        raise explained(RuntimeError(message), "one-value")
    return _number(self, constant="item()")


@function("Tensor.tolist")
def tolist(self: Tensor) -> Any:
    """The values in nested lists.

    Example:
        >>> import compat as torch
        >>> torch.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
    """
    _check_elements(self, f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")
    if self._layout_.base.traced:
        _check_constant(self._storage_.buffer, "tolist()")
    array = array_of(self)
    short = self._layout_.dtype is dtypes.bfloat16 or self._layout_.dtype in dtypes.FLOAT8
    return (array.astype(np.float32) if short else array).tolist()


@function("Tensor.__bool__", "Tensor.__nonzero__")
def to_bool(self: Tensor) -> bool:
    """Whether the only element is not zero.

    Raises:
        RuntimeError: for another number of elements.
    """
    if self._layout_.numel != 1:
        count = "no values" if self._layout_.numel == 0 else "more than one value"
        raise explained(RuntimeError(f"Boolean value of Tensor with {count} is ambiguous"), "one-value")
    return bool(_number(self, "bool()"))


_C_NAMES: dict[Any, str] = {int: "int64_t", float: "double"}


_IN_GRAPH = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)


def _scalar(self: Tensor, convert: Callable[[Any], Any]) -> Any:
    if convert is not int and self._rg_ and mode.grad:
        Once.warn(_IN_GRAPH)
    if self._layout_.numel != 1:
        raise explained(ValueError("only one element tensors can be converted to Python scalars"), "one-value")
    number = _number(self, constant="" if convert is int else f"{convert.__name__}()")
    if isinstance(number, complex) and convert is not complex:
        if number.imag:
            raise RuntimeError(f"value cannot be converted to type {_C_NAMES[convert]} without overflow")
        number = number.real
    return convert(number)


@function("Tensor.__int__", "Tensor.__long__")
def to_int(self: Tensor) -> int:
    """The only element as an ``int``."""
    return _scalar(self, int)


@function("Tensor.__float__")
def to_float(self: Tensor) -> float:
    """The only element as a ``float``."""
    return _scalar(self, float)


@function("Tensor.__complex__")
def to_complex(self: Tensor) -> complex:
    """The only element as a ``complex``."""
    return _scalar(self, complex)


@function("Tensor.__index__")
def to_index(self: Tensor) -> int:
    """The only element as an index.

    Raises:
        TypeError: for another number of elements, and elements that are not integers.
    """
    if self._layout_.numel != 1 or self._layout_.dtype.category > dtypes.INTEGER:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(_number(self))


@function("Tensor.__len__")
def length(self: Tensor) -> int:
    """The size of the first dimension.

    Raises:
        TypeError: for a 0-d tensor.
    """
    if self._layout_.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._layout_.size[0]


@function("Tensor.__repr__")
def text(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The tensor as text, as PyTorch prints it.

    Args:
        tensor_contents: replaces the text of the elements.

    Example:
        >>> import compat as torch
        >>> torch.ones(2, requires_grad=True).__repr__(tensor_contents="...")
        'tensor(..., requires_grad=True)'
    """
    tensor = _tensor_text(self, tensor_contents)
    return f"Parameter({tensor})" if getattr(self, "_is_param", False) else tensor


def _tensor_text(self: Tensor, contents: str | None) -> str:
    try:
        node = self.grad_fn
        grad_fn = None if node is None else type(node).__name__
    except RuntimeError:  # a view whose history cannot be regenerated
        grad_fn = "Invalid"
    if contents is not None or (on_meta(self) and isinstance(self._storage_.buffer, Unknown)):
        return contents_text(self, "..." if contents is None else contents, grad_fn)
    if self._layout_.base.traced:
        from compat._operators.tensor.transform_format import traced_text

        return traced_text(self)
    with no_grad(), guarded_storage.shown():
        array = array_of(self)
    return tensor_text(
        array,
        self._layout_.dtype,
        device=None if self.device is CPU else self.device,
        requires_grad=self._rg_,
        grad_fn=grad_fn,
        prefix=f"{type(self)._shown_as_}(",
    )


@function("Tensor.__format__")
def formatted(self: Tensor, spec: str) -> str:
    """A 0-d tensor formatted as its number; for other tensors only the empty format is valid."""
    if self._layout_.ndim == 0 and type(self) is Tensor and not on_meta(self):
        return format(_number(self), spec)
    if spec:
        raise TypeError("unsupported format string passed to Tensor.__format__")
    return str(self)


# ---------------------------------------------------------------- copies


_NOT_COPIED = (
    "The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass types that "
    "implement new_empty() and for which that function returns another instance of the same subclass. You should "
    "either properly implement new_empty() for your subclass or override __deepcopy__() if it is intended behavior for "
    "new_empty() to return an instance of a different type."
)


@function("Tensor.__deepcopy__")
def deep_copy(self: Tensor, memo: dict) -> Tensor:
    """A copy with a new storage; copies of tensors that share a storage share its copy.

    Raises:
        RuntimeError: for the result of an operation, a gradient of another size, and a subclass whose ``new_empty``
            returns another type.
    """
    found = memo.get(id(self))
    if found is not None:
        return found
    if self.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    if type(self) is not Tensor and type(self.new_empty([])) is not type(self):
        raise RuntimeError(_NOT_COPIED)
    copied = object.__new__(type(self))
    memo[id(self)] = copied
    if self._layout_.conj or self._layout_.neg:
        computed = self.detach().resolve_conj().resolve_neg()
        set_memory(copied, computed._storage_, computed._layout_, computed._offset_)
        copied.requires_grad_(self._rg_)
    else:
        storage, layout = _primal_memory(self)
        set_memory(copied, storage.__deepcopy__(memo), layout, self._offset_)
        copied._view_ = self._view_ and SHARED
        _make_leaf(copied, self.requires_grad)
    if self._autograd_state_ is not None and self._autograd_state_.grad is not None:
        copied.grad = self._autograd_state_.grad.__deepcopy__(memo)
    for name, value in state_of(self).items():
        set_state(copied, {name: copy.deepcopy(value, memo)})
    return copied


def _primal_memory(t: Tensor) -> tuple[Any, Any]:
    """The storage and the layout of a tensor to copy or pickle; for a dual tensor, those of its primal."""
    if level_stack.state.duals is None or not t._storage_.base.traced:
        return t._storage_, t._layout_
    buffer, base, layout = level_stack.detached(t._storage_).buffer, t._storage_.base, t._layout_
    storage = UntypedStorage(buffer, Base(base.shape, base.dtype, isinstance(buffer, Tracer)))
    place = (layout.size, layout.stride, t._offset_, layout.dtype, layout.conj, layout.neg)
    return storage, layout_of(storage.base, *place)


def _make_leaf(t: Tensor, requires_grad: bool) -> None:
    """Makes a tensor whose memory was set after its creation a leaf with its own version counter."""
    if not mode.inference:
        t._counter_ = VersionCounter(1)
    t._rg_ = WITHIN if requires_grad and t._counter_ is None else requires_grad


@function("Tensor.__copy__")
def shallow_copy(self: Tensor) -> Tensor:
    """A leaf that shares the memory and the attributes of the tensor."""
    copied = object.__new__(type(self))
    self._view_ = self._view_ or SHARED
    dual = level_stack.state.duals is not None and self._storage_.base.traced
    set_memory(copied, level_stack.detached(self._storage_) if dual else self._storage_, self._layout_, self._offset_)
    copied._view_ = SHARED
    _make_leaf(copied, self.requires_grad)
    set_state(copied, state_of(self))
    return copied


@function("Tensor.__reduce_ex__")
def reduced(self: Tensor, protocol: Any) -> tuple:
    """The reduction of a tensor for pickling: its storage, layout, and whether it requires grad."""
    requires_grad = self.requires_grad
    layout = self._layout_
    if layout.base.traced and not on_meta(self):
        vmap_checks.concrete(self._storage_.buffer, "its values")
    place = (layout.dtype, tuple(layout.size), layout.stride, self._offset_, layout.conj, layout.neg)
    cls = None if type(self) is Tensor else type(self)
    return rebuild, (cls, _primal_memory(self)[0], place, requires_grad, state_of(self))


def rebuild(cls: type | None, storage: Any, place: tuple, requires_grad: bool, attributes: dict) -> Any:
    """The tensor that ``Tensor.__reduce_ex__`` describes, for unpickling."""
    dtype, size, stride, offset, conj, neg = place
    made = wrap(storage, layout_of(storage.base, size, stride, offset, dtype, conj, neg), offset)
    if cls is not None:
        made = made._of_class_(cls)
    _make_leaf(made, requires_grad)
    set_state(made, attributes)
    return made
