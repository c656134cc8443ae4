"""``Tensor``: a storage, a layout in it, and a place in the backward graph.

This module has the state of a tensor and its properties. Operations, ``backward``, indexing and printing are attached
by the modules that implement them, through ``compat._core.tensor.registry``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from compat._core.memory import strided_access
from compat._core.memory.exchange import swap
from compat._core.memory.meta import Unknown
from compat._core.memory.numpy_storage import rejoin
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Layout, contiguous_layout, is_channels_last, is_contiguous, is_dense, layout_of
from compat._core.memory.typed_storage import TypedStorage, warn_typed
from compat._core.tensor.autograd_state import DETACHED_DUAL, LOOSE, SHARED, WITHIN, Autograd, View
from compat._core.tensor.version_counter import VersionCounter
from compat._core.transforms import level_stack, vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.transforms.logical_strides import seen
from compat._core.types import dtype as dtypes
from compat._core.types.device import device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import (
    NO_GRAD_OF_NON_LEAF,
    OTHER_KIND,
    check_grad_fits,
    warn,
    wrap_dim,
    wrong_argument,
)
from compat._core.types.memory_format import channels_last, contiguous_format, preserve_format
from compat._core.types.memory_format import memory_format as MemoryFormat
from compat._core.types.size import Size
from funcgrad.core.errors import explained

_new = object.__new__
#: The slots of a tensor. Like all names that PyTorch's tensors lack, they begin and end with an underscore, so that
#: attributes of subclasses do not replace them.
STATE = ("_storage_", "_layout_", "_offset_", "_counter_", "_rg_", "_node_", "_nr_", "_view_", "_autograd_state_")


class _Later:
    """Functions of modules that import this one, which set them.

    Attributes:
        construct: ``torch.Tensor(*args, **named)``.
        subclassed: called with each defined subclass of ``Tensor``.
        regenerate: gives a view its new ``grad_fn`` after its base was written in place.
    """

    construct: Callable[[tuple, dict[str, Any]], Tensor]
    subclassed: Callable[[type], None] = staticmethod(lambda cls: None)
    regenerate: Callable[[Tensor], None]


later = _Later()


class Tensor:
    """A multi-dimensional array of one dtype that can record the operations on it for backward.

    Create one with ``torch.tensor``, ``torch.zeros`` and other factories.

    Example:
        >>> import compat as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    __slots__ = (
        "_storage_", "_layout_", "_offset_", "_counter_", "_rg_", "_node_", "_nr_", "_view_", "_autograd_state_",
        "__dict__", "__weakref__",
    )  # fmt: skip
    _storage_: UntypedStorage
    _layout_: Layout
    _offset_: int
    #: The version counter: the storage or a ``VersionCounter``; None for an inference tensor.
    _counter_: Any
    _rg_: bool
    _node_: Any
    _nr_: int
    _view_: View | None
    _autograd_state_: Autograd | None
    __array_priority__ = 1000
    #: The prefix of its ``repr``; by default the name of the subclass.
    _shown_as_ = "tensor"
    #: Whether its type overrides operators (``compat._core.dispatch.torch_dispatch``).
    _overrides_operators_ = False

    if TYPE_CHECKING:
        # Attached at import, from the declarations of operations.
        @property
        def dtype(self) -> Dtype: ...

        @property
        def device(self) -> device: ...

        def is_complex(self) -> bool: ...

        def __getattr__(self, name: str) -> Any: ...

        def __getitem__(self, index: Any) -> Any: ...

        def __add__(self, other: Any) -> Any: ...

        def __mul__(self, other: Any) -> Any: ...

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "_shown_as_" not in cls.__dict__:
            cls._shown_as_ = cls.__name__
        later.subclassed(cls)

    def __new__(cls, *args: Any, **named: Any) -> Any:
        # The legacy constructor, torch.Tensor(2, 3) or torch.Tensor([1.0]); compat itself uses `wrap`.
        made = later.construct(args, named)
        return made if cls is Tensor else made._of_class_(cls)

    # ---------------------------------------------------------------- properties

    @property
    def shape(self) -> Size:
        """The size."""
        return self._layout_.size

    def size(self, dim: int | None = None) -> Any:
        """The size, or the size of one dimension.

        Raises:
            IndexError: if the dimension is out of range.
        """
        if dim is None:
            return self._layout_.size
        return self._layout_.size[self._dimension_("size", dim)]

    def stride(self, dim: int | None = None) -> Any:
        """The strides, in elements, or the stride of one dimension."""
        stride = seen(self)[0] if self._layout_.base.traced else self._layout_.stride
        if dim is None:
            return stride
        return stride[self._dimension_("stride", dim)]

    def _dimension_(self, function: str, dim: Any) -> int:
        if not hasattr(dim, "__index__"):
            raise wrong_argument(function, "dim", 1, "int", dim)
        ndim = self._layout_.ndim
        if ndim == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        return wrap_dim(dim.__index__(), ndim)

    def dim(self) -> int:
        """The number of dimensions."""
        return self._layout_.ndim

    ndim = property(dim)
    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._layout_.numel

    nelement = numel

    def element_size(self) -> int:
        """The bytes of an element."""
        return self._layout_.dtype.itemsize

    itemsize = property(element_size)

    def is_conj(self) -> bool:
        """Whether its elements are conjugated when they are read (the conjugate bit)."""
        return self._layout_.conj

    def is_neg(self) -> bool:
        """Whether its elements are negated when they are read (the negative bit)."""
        return self._layout_.neg

    def is_inference(self) -> bool:
        """Whether it was made in ``inference_mode``."""
        return self._counter_ is None

    def is_contiguous(self, memory_format: MemoryFormat = contiguous_format) -> bool:
        """Whether its elements are in the memory order of ``memory_format``, without gaps."""
        layout, stride = self._layout_, self.stride()
        if memory_format is contiguous_format:
            return layout.contiguous if stride is layout.stride else is_contiguous(layout.size, stride)
        if memory_format is preserve_format:
            return is_dense(layout.size, stride)
        return is_channels_last(layout.size, stride, 4 if memory_format is channels_last else 5)

    # ---------------------------------------------------------------- its memory

    def storage_offset(self) -> int:
        """The offset of its first element in the storage, in elements."""
        rejoin(self)
        return seen(self)[1]

    def untyped_storage(self) -> UntypedStorage:
        """The storage, which it shares with its views."""
        vmap_checks.check_memory(self, storage=True)
        rejoin(self)
        return self._storage_

    def storage(self) -> TypedStorage:
        """The storage, as elements of the tensor's dtype."""
        warn_typed()
        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self._layout_.dtype)

    def data_ptr(self) -> int:
        """The address at which its bytes can be read until the next write; equal for tensors with the same first
        element in memory."""
        vmap_checks.check_memory(self)
        address = self._storage_.data_ptr()
        return address and self._layout_.numel and address + self._offset_ * self._layout_.dtype.itemsize

    @property
    def data(self) -> Tensor:
        """A detached tensor over the same storage, with a separate version counter; assignment replaces the storage."""
        return _alias(self, None if self._counter_ is None else VersionCounter(), level_stack.beneath)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @data.setter
    def data(self, new: Tensor) -> None:
        if not isinstance(new, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
        level_stack.check_set_data(self, new)
        if new.layout is not self.layout or new.is_meta != self.is_meta:
            raise RuntimeError(OTHER_KIND)
        if self._rg_ and new.dtype.category < dtypes.FLOATING:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if self._counter_ is self._storage_ and self._view_ is None:
            # A separate counter, so that the previous storage can be freed.
            self._counter_ = VersionCounter(self._storage_.version)
        moved = new._layout_.dtype is not self._layout_.dtype or new.device != self.device
        if self._autograd_state_ is not None and moved:
            self._autograd_state_.accumulator = None
        self._storage_, self._layout_, self._offset_ = new._storage_, new._layout_, new._offset_
        new._view_ = new._view_ or SHARED
        self._view_ = self._view_ or SHARED

    def detach(self) -> Tensor:
        """The same memory outside the graph."""
        return _alias(self, self._counter_)

    @property
    def _version(self) -> int:
        if self._counter_ is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._counter_.version

    @property
    def _base(self) -> Tensor | None:
        return None if self._view_ is None else self._view_.base

    def _is_view(self) -> bool:
        return self._view_ is not None and self._view_.base is not None

    # ---------------------------------------------------------------- the autograd graph

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded, so that backward computes its gradient."""
        if self._view_ is not None:
            refresh(self)
        return bool(self._rg_)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if value and self._layout_.dtype.category < dtypes.FLOATING:
            message = "only Tensors of floating point and complex dtype can require gradients"
            raise explained(RuntimeError(message), "integer-argument")
        if value and self._node_ is not None:
            message = "you can only change requires_grad flags of leaf variables."
            raise explained(RuntimeError(message), "leaf-flag")
        if self._rg_ and not value and level_stack.state.levels and self._storage_.base.traced:
            self._storage_ = level_stack.detached(self._storage_, forward=False)
        self._set_requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Sets ``requires_grad`` in place; returns the tensor.

        Raises:
            RuntimeError: for a result of an operation, or a dtype without derivatives.
            TypeError: for an argument that is not a bool.
        """
        if not isinstance(requires_grad, bool):
            raise wrong_argument("requires_grad_", "requires_grad", 1, "bool", requires_grad)
        if requires_grad and self._layout_.dtype.category < dtypes.FLOATING:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        level_stack.refuse("requires_grad_")
        self._set_requires_grad_(requires_grad)
        return self

    def _set_requires_grad_(self, value: bool) -> None:
        if self.grad_fn is not None and not value:
            message = (
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
            raise explained(RuntimeError(message), "leaf-flag")
        if value:
            self._check_may_require_grad_()
        if self._node_ is None:
            self._rg_ = WITHIN if value and self._counter_ is None else value
            if self._is_view():
                autograd_of(self).own = value

    def _check_may_require_grad_(self) -> None:
        if self._counter_ is None and not mode.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")

    @property
    def is_leaf(self) -> bool:
        """Whether it is not the result of a recorded operation."""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Any:
        """The node of the operation that computed it; None for a leaf."""
        if self._view_ is not None:
            sync(self)
            renew(self)
        return self._node_

    @property
    def output_nr(self) -> int:
        """Its index among the results of the operation of its ``grad_fn``."""
        return self._nr_

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward has accumulated, of the tensor's size."""
        meta = self._autograd_state_
        if meta is None or (meta.grad is None and self._node_ is not None and not meta.retains):
            if self._node_ is not None:
                warn(NO_GRAD_OF_NON_LEAF)
            return None
        return meta.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            _check_grad(self, value)
        autograd_of(self).grad = value

    @grad.deleter
    def grad(self) -> None:
        autograd_of(self).grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether it is a non-leaf that keeps its gradient (``retain_grad``)."""
        return self._autograd_state_ is not None and self._autograd_state_.retains

    # ---------------------------------------------------------------- as a Python object

    def __hash__(self) -> int:
        return id(self)

    @staticmethod
    def _make_subclass(kind: type, data: Tensor, require_grad: bool = False) -> Any:
        """A tensor of a class over another's storage, detached from its graph."""
        if require_grad:
            data._check_may_require_grad_()
        made: Any = _new(kind)
        storage = data._storage_
        if storage.base.traced and not isinstance(storage.buffer, Unknown):
            storage = level_stack.detached(storage)
        set_memory(made, storage, data._layout_, data._offset_)
        data._view_ = data._view_ or SHARED
        made._counter_ = data._counter_
        made._view_ = SHARED
        made._set_requires_grad_(bool(require_grad))
        return made

    def _of_class_(self, cls: type) -> Any:
        """The same storage and ``grad_fn``, as an instance of a subclass."""
        made: Any = _new(cls)
        for slot in STATE:
            setattr(made, slot, getattr(self, slot))
        return made


Tensor.__module__ = "torch"  # shown in its name

# ---------------------------------------------------------------- making tensors


def set_memory(t: Tensor, storage: UntypedStorage, layout: Layout, offset: int) -> None:
    t._storage_ = storage
    t._layout_ = layout
    t._offset_ = offset
    t._counter_ = storage if not mode.inference else None
    t._rg_ = False
    t._node_ = None
    t._nr_ = 0
    t._view_ = None
    t._autograd_state_ = None


def wrap(storage: UntypedStorage, layout: Layout, offset: int = 0) -> Tensor:
    """A tensor over a storage, a leaf."""
    t = _new(Tensor)
    set_memory(t, storage, layout, offset)
    return t


def from_buffer(buffer: Any, layout: Layout) -> Tensor:
    """A tensor over a new storage with a buffer."""
    return wrap(UntypedStorage(buffer, layout.base), layout)


def from_array(array: np.ndarray, dtype: Dtype | None = None) -> Tensor:
    """A contiguous tensor with a copy of a NumPy array."""
    layout = contiguous_layout(array.shape, dtype or dtypes.from_numpy(array.dtype))
    return from_buffer(strided_access.buffer_from_numpy(array), layout)


def _alias(t: Tensor, counter: Any, outside: Callable[[Any], Any] = level_stack.detached) -> Tensor:
    """A detached tensor over the same storage; a traced storage is detached by ``outside``."""
    storage = t._storage_
    if storage.base.traced and not isinstance(storage.buffer, Unknown):
        storage = outside(storage)
    made = wrap(storage, t._layout_, t._offset_)
    made._counter_ = counter
    shared = SHARED if level_stack.state.duals is None else DETACHED_DUAL
    made._view_ = shared if counter is not None or mode.inference else LOOSE
    if t._view_ is None:
        t._view_ = SHARED
    return made


def autograd_of(t: Tensor) -> Autograd:
    """The tensor's gradient and hooks; creates the object if necessary."""
    if t._autograd_state_ is None:
        swap(t, "_autograd_state_", None, Autograd())
        assert t._autograd_state_ is not None
    return t._autograd_state_


# ---------------------------------------------------------------- views after in-place operations


def sync(t: Tensor) -> None:
    """Updates a tensor that shares memory after in-place changes through other views."""
    # Called for operands of every operation; there is nearly always nothing to do.
    if t._layout_.base is not t._storage_.base:
        _lay_again(t)
    view = t._view_
    if view is None or view.base is None:
        return
    if not t._rg_:
        _follow(t, view.base)
    counter = t._counter_
    if t._rg_ and counter is not None and view.version != counter.version and level_stack.recorded():
        renew(t)


def refresh(t: Tensor) -> None:
    """``sync`` for callers that do not need the node."""
    if t._layout_.base is not t._storage_.base:
        _lay_again(t)
    view = t._view_
    if not t._rg_ and view is not None and view.base is not None:
        _follow(t, view.base)


def location(t: Tensor) -> tuple[Any, ...]:
    """The location of a tensor's values: under autograd, operations receive other objects than the function has."""
    if t._view_ is not None:
        sync(t)
    return id(t._storage_), t._offset_, t._layout_


def sync_written(t: Tensor) -> None:
    """``sync`` before a write: a view that was made before its base had a node counts as a leaf."""
    refresh(t)
    if t._node_ is not None:
        sync(t)


def renew(t: Tensor) -> None:
    """Gives a view a new ``grad_fn`` if its base, or another view of it, was written since the present one was set."""
    view = t._view_
    if view is None or view.base is None or not t._rg_ or t._counter_ is None or view.version == t._counter_.version:
        return
    later.regenerate(t)
    view.version = t._counter_.version


def _lay_again(t: Tensor) -> None:
    """Updates the layout to the storage's present base."""
    old = t._layout_
    t._layout_ = layout_of(t._storage_.base, old.size, old.stride, t._offset_, old.dtype, old.conj, old.neg)


def _follow(t: Tensor, base: Tensor) -> None:
    """Makes a view require grad if its base does."""
    t._rg_ = base.requires_grad and t._layout_.dtype.category >= dtypes.FLOATING


# ---------------------------------------------------------------- values


def array_of(t: Tensor) -> np.ndarray:
    """The values as a NumPy array, for any layout; a view of the buffer if possible."""
    if t._view_ is not None:
        refresh(t)
    buffer = t._storage_.buffer
    if t._layout_.base.traced:
        buffer = vmap_checks.concrete(buffer, "its values")
    return strided_access.to_numpy(buffer, t._layout_, t._offset_)


def _check_grad(t: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is t:
        raise RuntimeError("can't assign Variable as its own grad")
    dtypes = None if t._autograd_state_ is None else t._autograd_state_.grad_dtypes
    check_grad_fits(value, t, t.dtype if dtypes is None else dtypes[0] if dtypes else value.dtype)
