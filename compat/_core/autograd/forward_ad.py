"""Forward mode: dual tensors, which have a primal and a tangent; the implementation of ``torch.autograd.forward_ad``.

A forward-mode level is an interpreter of funcgrad's forward mode, active from its entry to its exit. The buffers of
operations' results are tracers of it, so every operation propagates tangents. A dual tensor made by ``make_dual``
shares the memory of its primal and its tangent: a write to it writes both, and writes to them change it.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, NamedTuple

from compat._core.autograd.node import overrides_operators
from compat._core.memory import strided_access
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base, Layout, dense_layout, preserved_strides
from compat._core.tensor.autograd_state import DETACHED_DUAL
from compat._core.tensor.registry import function, publish
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import array, elements, tensor_of
from compat._core.tensor.version_counter import bump_version
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import _Guard
from compat._core.transforms.grad_mode import mode as _mode
from compat._core.types.errors import size_text
from funcgrad.core.tracing import Tracer, type_of
from funcgrad.interpreters.forward import Forward, ForwardTracer
from funcgrad.primitives.shape import zeros

__all__ = [
    "UnpackedDualTensor", "current_level", "make_dual", "set_fwd_grad_enabled", "unpack_dual",
]  # fmt: skip


class Duals(Forward):
    """The interpreter of a forward-mode level. After the exit its tracers stand for their primals.

    Attributes:
        open: whether the level is active.
    """

    __slots__ = ("open", "running")
    gives_numbers = True  # as in PyTorch

    def __init__(self) -> None:
        super().__init__()
        self.open = True
        self.running = contextlib.ExitStack()

    def process(self, primitive: Any, operands: Any, params: dict[str, Any]) -> Any:
        if not self.open:
            operands = [primal_of(x, self) for x in operands]
            return primitive(*operands, **params)
        return super().process(primitive, operands, params)


def current_level() -> int:
    """The forward-mode level of this thread: 0, the only one, or -1 outside it."""
    return -1 if level_stack.state.duals is None else 0


def primal_of(x: Any, interpreter: Duals) -> Any:
    """The primal of a value at a forward-mode level."""
    return x.primal if isinstance(x, ForwardTracer) and x.interpreter is interpreter else x


class DualStorage(level_stack.IndirectStorage):
    """The storage of a dual tensor, over the memory of its primal and its tangent.

    Attributes:
        primal, tangent: the tensors.
        duals: the level.
        layout: the layout of both in the traced buffer that operations get.
        dual: a weak reference to the dual tensor itself, rather than a view of it; None if there is none.
    """

    __slots__ = ("primal", "tangent", "duals", "layout", "dual")

    def __init__(self, primal: Tensor, tangent: Tensor, duals: Duals):
        self.primal = primal
        self.tangent = tangent
        self.duals = duals
        self.dual: weakref.ref[Tensor] | None = None
        size = tuple(primal.shape)
        self.layout: Layout = dense_layout(size, preserved_strides(size, primal.stride()), primal.dtype, traced=True)
        self.base = self.layout.base
        self.version, self.born = 0, primal._storage_.born

    def read(self) -> Any:
        primal = strided_access.write(None, self.layout, 0, _elements(self.primal))
        if not self.duals.open:
            return primal
        return ForwardTracer(self.duals, primal, strided_access.write(None, self.layout, 0, _elements(self.tangent)))

    def write(self, buffer: Any) -> None:
        """Writes new elements into both tensors."""
        mine = isinstance(buffer, ForwardTracer) and buffer.interpreter is self.duals
        primal = buffer.primal if mine else buffer
        tangent = buffer.tangent if mine and buffer.tangent is not None else zeros(type_of(primal))
        _assign(self.primal, strided_access.read(primal, self.layout))
        if self.duals.open:
            _assign(self.tangent, strided_access.read(tangent, self.layout))

    def shows_all(self, t: Tensor) -> bool:
        """Whether a tensor over this storage has the layout of the dual tensor itself."""
        mine, own = self.layout, t._layout_
        same = (own.size, own.stride, own.dtype) == (mine.size, mine.stride, mine.dtype)
        return same and not t._offset_ and (own.conj, own.neg) == (mine.conj, mine.neg)

    def data_ptr(self) -> int:
        """The address of the primal's memory."""
        return self.primal._storage_.data_ptr()


class DetachedDual(level_stack.DetachedStorage):
    """A storage that shares another's memory but has a separate tangent: for a tensor that was detached inside a level
    and then written.

    Attributes:
        tangent: the tangent of the whole buffer; None before a value with a tangent is written.
        duals: the level.
    """

    __slots__ = ("tangent", "duals")

    def __init__(self, under: UntypedStorage, duals: Duals):
        super().__init__(under, False)  # ``buffer`` adds this storage's tangent
        self.tangent: Any = None
        self.duals = duals

    def read(self) -> Any:
        primal = super().read()
        return (
            ForwardTracer(self.duals, primal, self.tangent) if self.duals.open and self.tangent is not None else primal
        )

    def write(self, buffer: Any) -> None:
        """Writes new elements into the memory, and stores their tangent."""
        if isinstance(buffer, ForwardTracer) and buffer.interpreter is self.duals:
            self.tangent, buffer = buffer.tangent, buffer.primal
        elif self.tangent is not None:
            self.tangent = zeros(type_of(buffer))
        super().write(buffer)


def separate(t: Tensor) -> None:
    """Gives a tensor that was detached inside a level, or a view of one, a separate tangent."""
    duals = level_stack.state.duals
    root = t if t._view_ is None or t._view_.base is None else t._view_.base
    if duals is not None and root._view_ is DETACHED_DUAL:
        if not isinstance(root._storage_, DetachedDual):
            root._storage_ = DetachedDual(root._storage_, duals)
        t._storage_ = root._storage_


def _elements(t: Tensor) -> Any:
    """A tensor's elements, with its graph unless its class overrides operators."""
    return elements(t) if overrides_operators(t) else array(t)


def _assign(t: Tensor, elements: Any) -> None:
    """Writes elements into a tensor's memory without recording."""
    elements = array(tensor_of(elements).detach())
    storage = t._storage_
    storage.write(strided_access.write(storage.buffer, t._layout_, t._offset_, elements))
    traced = isinstance(elements, Tracer)
    if traced and not storage.base.traced:
        storage.base = Base(storage.base.shape, storage.base.dtype, True)
    bump_version(t)


# ---------------------------------------------------------------- tensors


def check_tangent(primal: Tensor, tangent: Tensor) -> None:
    """Checks that a tensor can be the tangent of another.

    Raises:
        ValueError: if one of them has an integer or boolean dtype.
        RuntimeError: if their sizes differ.
    """
    for what, t in (("primal", primal), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {t.dtype}")
    if primal.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {size_text(primal.shape)} while the given forward gradient is of size "
            f"{size_text(tangent.shape)}."
        )


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of ``tensor`` with the tangent ``tangent``.

    Args:
        level: the forward-mode level, 0.

    Raises:
        RuntimeError: outside a level, for different sizes, and for tensors that have a tangent already.
        ValueError: for tensors with an integer or boolean dtype.
    """
    if level is None:
        level = current_level()
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    duals = level_stack.state.duals
    check_tangent(tensor, tangent)
    if level != 0 or duals is None:
        raise RuntimeError("Invalid level given to _make_dual")
    if not _mode.forward:
        return tensor.view_as(tensor)
    if _tangent(tensor, duals) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if _tangent(tangent, duals) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
        )
    storage = DualStorage(tensor, tangent if _alike(tensor, tangent) else tangent.to(tensor.dtype, copy=True), duals)
    made = tensor.view_as(tensor)
    made._storage_, made._layout_, made._offset_ = storage, storage.layout, 0
    storage.dual = weakref.ref(made)
    return made


def _alike(tensor: Tensor, tangent: Tensor) -> bool:
    """Whether two tensors have the same strides and offset in storages of the same size, so that their views do,
    too."""
    one, other = tensor._layout_, tangent._layout_
    moving = [(a, b) for a, b, n in zip(one.stride, other.stride, one.size) if n > 1]
    return (
        (one.dtype, one.conj, one.neg, one.base.numel) == (other.dtype, other.conj, other.neg, other.base.numel)
        and all(a == b for a, b in moving)
        and (tensor._offset_ == tangent._offset_ or not one.numel)
    )


class UnpackedDualTensor(NamedTuple):
    """The result of ``unpack_dual``.

    Attributes:
        primal: the primal.
        tangent: the tangent; None if there is none.
    """

    primal: Any
    tangent: Any


UnpackedDualTensor.__module__ = "compat.autograd.forward_ad"


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a tensor; the tangent is None if it has none.

    Args:
        level: the forward-mode level, 0.
    """
    if level is None:
        level = current_level()
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    duals = level_stack.state.duals
    if level != 0 or duals is None:
        raise RuntimeError("Invalid level given to _fw_primal")
    storage = tensor._storage_
    if isinstance(storage, DualStorage) and storage.duals is duals and not _mode.inference:
        if storage.shows_all(tensor):
            return UnpackedDualTensor(_primal(tensor, storage), storage.tangent)
    tangent = _tangent(tensor, duals)
    if tangent is None:
        return UnpackedDualTensor(tensor.view_as(tensor), None)
    x: Any = strided_access.read(storage.buffer, tensor._layout_, tensor._offset_)
    seen = _part(tensor, storage) if isinstance(storage, DualStorage) and storage.duals is duals else None
    return UnpackedDualTensor(tensor_of(x.primal), tensor_of(tangent) if seen is None else seen)


def _part(t: Tensor, storage: DualStorage) -> Tensor | None:
    """The view of a dual tensor's tangent for a view of the dual; None if the layouts differ."""
    mine, own, whole = t._layout_, storage.tangent._layout_, storage.layout
    if own.stride != whole.stride or (mine.dtype, mine.conj, mine.neg) != (own.dtype, own.conj, own.neg):
        return None
    made: Tensor = storage.tangent.as_strided(mine.size, mine.stride, t._offset_ + storage.tangent._offset_)
    return made


def _primal(t: Tensor, storage: DualStorage) -> Tensor:
    """The primal of a dual tensor, in the dual's graph."""
    if t.requires_grad and _mode.grad and not storage.primal.requires_grad:  # a custom function's result
        with set_fwd_grad_enabled(False):
            made: Tensor = t.clone()
        return made
    return storage.primal.view_as(storage.primal)


def is_dual(t: Tensor) -> bool:
    """Whether a tensor has a tangent."""
    duals = level_stack.state.duals
    return duals is not None and _tangent(t, duals) is not None


def _tangent(t: Tensor, duals: Duals) -> Any:
    """A tensor's tangent as an array; None if it has none."""
    if not _mode.forward or not t._storage_.base.traced:
        return None
    x = strided_access.read(t._storage_.buffer, t._layout_, t._offset_)
    return x.tangent if isinstance(x, ForwardTracer) and x.interpreter is duals else None


# ---------------------------------------------------------------- enabling and disabling


def is_fwd_grad_enabled() -> bool:
    """Whether operations propagate tangents in this thread."""
    return _mode.forward


_is_fwd_grad_enabled = is_fwd_grad_enabled
publish(is_fwd_grad_enabled, "C._is_fwd_grad_enabled")


class set_fwd_grad_enabled(_Guard):
    """Context that sets whether operations propagate tangents; also a decorator.

    Example:
        >>> import compat as torch
        >>> from compat.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
        ...     with set_fwd_grad_enabled(False):
        ...         y = x * x
        ...     forward_ad.unpack_dual(y).tangent is None
        True
    """

    def __init__(self, mode: bool):
        self.mode = mode
        self.before = _mode.forward

    def again(self) -> _Guard:
        return set_fwd_grad_enabled(self.mode)

    def __enter__(self) -> None:
        self.before = _mode.forward
        _mode.forward = bool(self.mode)

    def __exit__(self, *exc: object) -> None:
        _mode.forward = self.before


_set_fwd_grad_enabled = set_fwd_grad_enabled


@function("C._set_fwd_grad_enabled")
def turn_fwd_grad(enabled: bool) -> None:
    """Sets whether operations propagate tangents in this thread."""
    _mode.forward = bool(enabled)
