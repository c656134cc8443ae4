"""In-place changes of a tensor's graph, size and storage: ``detach_``, ``resize_``, ``set_``, ``share_memory_``."""

from __future__ import annotations

import weakref
from math import prod
from typing import Any

from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.forward_ad import is_dual
from compat._core.autograd.node import Node
from compat._core.autograd.rebase_history import check_recorded, rebase
from compat._core.memory.meta import Unknown
from compat._core.memory.numpy_storage import rejoin
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Layout, check_reach, contiguous_strides, layout_of
from compat._core.memory.typed_storage import TypedStorage
from compat._core.operators.composite import composite
from compat._core.operators.inplace import check_memory
from compat._core.operators.out import make_room, resize
from compat._core.tensor import capture_checks
from compat._core.tensor.autograd_state import SHARED
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor, autograd_of, sync
from compat._core.tensor.version_counter import VersionCounter, bump_version
from compat._core.transforms.grad_mode import mode, next_sequence
from compat._core.types.errors import cpp_name, size_text
from compat._core.types.memory_format import channels_last, channels_last_3d, contiguous_format, preserve_format
from compat._operators.arguments import missing, size_argument, tensor_argument
from compat._operators.create.copy_to_fill import format_strides
from compat._operators.create.factories import empty
from funcgrad import stop_gradient

# ---------------------------------------------------------------- detaching


@composite("detach_(Tensor(a!) self) -> Tensor(a!)", names="Tensor.detach_ torch.detach_", errors="own")
def detach_(self: Tensor) -> Tensor:
    """Detaches the tensor from the graph; returns it.

    Raises:
        RuntimeError: for a view, whose base would still be in the graph.
    """
    if mode.inference:
        return self  # there is no graph in inference mode
    if self._is_view():
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
            "detach_() cannot be called on these gradients. To fix this error, please refer to the "
            "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    if self._node_ is not None:
        # A node that saved the tensor needs its former node in backward, to check its hooks.
        self._node_.hooks()
        autograd_of(self).left = weakref.ref(self._node_)
    self._rg_, self._node_, self._nr_ = False, None, 0
    if self._storage_.base.traced and not isinstance(self._storage_.buffer, Unknown):
        self._storage_.buffer = stop_gradient(self._storage_.buffer)
    return self


@composite("detach(Tensor(a) self) -> Tensor(a)", names="torch.detach")
def detach(input: Tensor) -> Tensor:
    """A tensor over the same memory, detached from the graph."""
    return input.detach()


# ---------------------------------------------------------------- size and storage


@composite(
    "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    names="Tensor.resize_",
)
def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """Resizes the tensor, row-major; its storage grows if necessary. Returns the tensor.

    Raises:
        RuntimeError: if it requires grad or has a tangent, for a negative size, and for sizes that overflow.

    Example:
        >>> torch.arange(4).resize_(2, 1)
        tensor([[0],
                [1]])
    """
    if self._storage_.born < mode.since:
        capture_checks.refuse(self, "resize", {})
    if self.requires_grad and not mode.inference:
        raise RuntimeError("cannot resize variables that require grad")
    if is_dual(self):
        raise RuntimeError("cannot resize variables that has a forward grad")
    if not sizes and size is None:
        raise missing("resize_", "size")
    size = size_argument("resize_", "size", 1, sizes or (size,))
    if any(n < 0 for n in size):
        raise RuntimeError("numel: integer multiplication overflow")
    if prod(size) >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    if prod(size) * self.dtype.itemsize >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={size_text(size)}")
    if prod(max(n, 1) for n in size[1:]) >= 2**63:
        raise RuntimeError("Stride calculation overflowed")
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    stride = None if memory_format is None else format_strides(size, self.stride(), memory_format)
    check_memory(self, ())
    if self._view_ is not None:
        sync(self)
    if size != self.shape:
        resize(self, size)
        bump_version(self)
    if stride is not None:
        self._layout_ = layout_of(self._storage_.base, size, stride, self._offset_, self.dtype)
        self._view_ = self._view_ or SHARED
    return self


@composite(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    names="Tensor.resize_as_ torch.resize_as_",
)
def resize_as_(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """``resize_`` to the size of another tensor, and to its memory format with ``preserve_format``."""
    if memory_format is preserve_format:
        formats = (contiguous_format, channels_last, channels_last_3d)
        memory_format = next((f for f in formats if the_template.is_contiguous(memory_format=f)), contiguous_format)
    size = tensor_argument("resize_as_", "the_template", 1, the_template).shape
    return resize_(self, tuple(size), memory_format=memory_format)


@composite("sum_to_size(Tensor self, SymInt[] size) -> Tensor", names="Tensor.sum_to_size")
def sum_to_size(self: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """The sum over the dimensions along which a tensor of ``size`` would be broadcast to this one.

    Raises:
        RuntimeError: if ``size`` does not broadcast to the size of this tensor.

    Example:
        >>> torch.ones(2, 3).sum_to_size(1, 3)
        tensor([[2., 2., 2.]])
    """
    if not sizes and size is None:
        raise missing("sum_to_size", "size")
    new = size_argument("sum_to_size", "size", 1, sizes or (size,))
    shift = self.dim() - len(new)
    if shift < 0 or any(n not in (1, m) for n, m in zip(new, self.shape[shift:])):
        raise RuntimeError(f"size {{{size_text(new)}}} is not expandable to size {{{size_text(self.shape)}}}.")
    if not new:
        return self.sum()
    dims = [*range(shift), *[d for d in range(shift, self.dim()) if new[d - shift] == 1 and self.shape[d] != 1]]
    summed = self.sum(dims, keepdim=True) if dims else self
    return summed.view(new) if shift else summed


@composite(
    "set_(Tensor(a!) self) -> Tensor(a!)",
    "set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)",
    "set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt storage_offset, SymInt[] size, "
    "SymInt[] stride=[]) -> Tensor(a!)",
    "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
    "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, "
    "SymInt[] stride=[]) -> Tensor(a!)",
    names="Tensor.set_", errors="before",
)  # fmt: skip
def set_(self: Tensor, source: Any = None, storage_offset: Any = None, size: Any = None, stride: Any = None) -> Tensor:
    """Sets the tensor's storage to that of a tensor, a storage, or an empty one. Returns the tensor.

    The storage grows if the tensor gets a different size or strides.

    Raises:
        RuntimeError: for another dtype, a negative offset or stride, and a tensor that exceeds a storage of fixed size.
        TypeError: for an offset without a size, and an invalid source.
    """
    if self._storage_.born < mode.since:
        capture_checks.refuse(self, "set", {"input": self, "source": source})
    node = _history_of_set(self, source) if mode.grad else None
    check_memory(self, ())
    if source is None:
        source = empty(0, dtype=self.dtype)
    if isinstance(source, Tensor) and size is None:
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {cpp_name(source.dtype)} to a tensor of type {cpp_name(self.dtype)}"
            )
        storage, layout, offset = source._storage_, source._layout_, source._offset_
        source._view_ = source._view_ or SHARED
    else:
        storage, layout, offset = _layout_in(self, source, storage_offset or 0, size, stride)
    former = self._counter_
    if self._view_ is None and former is not None:
        self._counter_ = VersionCounter(self._version)  # the former counter would keep the former storage alive
        former.version += 1  # for nodes that have saved the tensor
    self._storage_, self._layout_, self._offset_ = storage, layout, offset
    self._view_ = self._view_ or SHARED
    bump_version(self)
    if self._autograd_state_ is not None:
        self._autograd_state_.accumulator = None  # it belongs to the former storage
    if node is not None:
        rebase(self, node)
    return self


def _layout_in(self: Tensor, source: Any, offset: int, size: Any, stride: Any) -> tuple[UntypedStorage, Layout, int]:
    """The storage of ``source``, and the layout and offset of a tensor in it; grows it for another size or strides."""
    if isinstance(source, TypedStorage) and source.dtype is not self.dtype:
        raise RuntimeError(
            f"Expected a Storage of type {cpp_name(self.dtype)} or an UntypedStorage, but got type "
            f"{source.dtype.scalar_name} for argument 1 'storage'"
        )
    storage = source
    if not isinstance(source, UntypedStorage):
        storage = source.untyped() if isinstance(source, TypedStorage) else source._storage_
    ratio = self.dtype.itemsize // storage.base.dtype.itemsize or 1
    size = (storage.base.numel // ratio,) if size is None else tuple(size)
    stride = () if stride is None else tuple(stride)
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if any(n < 0 for n in (*size, *stride)):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={size_text(size)} and strides={size_text(stride)}"
        )
    if size == self.shape and (not stride or stride == self.stride()):
        check_reach(size, stride, offset, self.dtype.itemsize, storage.nbytes())
    stride = stride or contiguous_strides(size)
    make_room(storage, size, stride, offset, self.dtype)
    if isinstance(source, Tensor):
        source._view_ = source._view_ or SHARED
    return storage, layout_of(storage.base, size, stride, offset, self.dtype), offset


class _NotImplemented(Node):
    """The node of a tensor whose storage was set, which is not differentiable."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::NotImplemented"

    def apply(self, grads: Any) -> Any:
        raise RuntimeError("derivative for set_ is not implemented")


_NotImplemented.__name__ = _NotImplemented.__qualname__ = "NotImplemented"
_NotImplemented.__module__ = "builtins"


def _history_of_set(t: Tensor, source: Any) -> Node | None:
    """The node of a tensor after its storage was set, if either was in the graph."""
    involved = [t, source] if isinstance(source, Tensor) else [t]
    if not any(v.requires_grad for v in involved):
        return None
    check_recorded(t)
    node = _NotImplemented()
    node._sequence, node._hooks = next_sequence(), None
    node.next_functions = tuple(edge_of(v) for v in involved)
    return node


@function("Tensor.share_memory_")
def share_memory_(self: Tensor) -> Tensor:
    """Moves its storage, which views share, to shared memory for other processes; returns the tensor.

    Raises:
        RuntimeError: on the meta device.

    Example:
        >>> x = torch.zeros(2, 3)
        >>> row = x[0]
        >>> x.share_memory_().is_shared(), row.is_shared()
        (True, True)
    """
    rejoin(self)
    self._storage_.share_memory_()
    return self


@composite("pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)", names="Tensor.pin_memory", errors="before")
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: memory is never pinned."""
    return self


@composite("is_pinned(Tensor self, Device? device=None) -> bool", names="Tensor.is_pinned", errors="before")
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Always False."""
    return False


@composite(names="Tensor.is_shared")
def is_shared(self: Tensor) -> bool:
    """Whether it is in shared memory: after ``share_memory_``, or received from another process."""
    return self._storage_.is_shared()


@function("Tensor.__reversed__")
def reverse(self: Tensor) -> Tensor:
    """The elements reversed along the first dimension."""
    return self.flip(0) if self.dim() else self
