"""Conversion of tensors to fake ones."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

from compat._core.dispatch.layout_tensor import LayoutTensor
from compat._core.dispatch.overrides import NoDispatch
from compat._core.memory.meta import unknown
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base, layout_of
from compat._core.tensor.tensor import Tensor, wrap
from compat._core.transforms.grad_mode import enable_grad, no_grad
from compat._core.types.device import META
from compat._subclasses._errors import UnsupportedFakeTensorException
from compat.nn.parameter import Parameter
from compat.utils._python_dispatch import is_traceable_wrapper_subclass, transform_subclass
from compat.utils.weak import WeakIdKeyDictionary


class FakeTensorConverter:
    """Makes fake tensors of tensors: one for each, over one storage for each storage.

    Args:
        copy_data: ignored; fake tensors have no data.
        export: ignored.
    """

    def __init__(self, *, copy_data: bool = False, export: bool = False):
        self.export = export
        self.tensor_memo: MutableMapping[Any, Any] = WeakIdKeyDictionary()
        self._storages: MutableMapping[Any, UntypedStorage] = WeakKeyDictionary()

    def from_real_tensor(self, fake_mode: Any, t: Tensor) -> Any:
        """The fake tensor of a tensor.

        Args:
            fake_mode: the mode that it belongs to.
            t: the tensor.

        Raises:
            AssertionError: for a fake tensor of another mode.
            UnsupportedFakeTensorException: for a sparse or nested tensor.
        """
        if getattr(t, "fake_mode", None) is not None:
            if t.fake_mode is not fake_mode:
                raise AssertionError(f"Mixing fake modes NYI x.fake_mode={t.fake_mode} vs self={fake_mode}")
            return t
        found = self.tensor_memo.get(t)
        if found is None:
            found = self.tensor_memo[t] = self._made(fake_mode, t)
        return found

    def _made(self, fake_mode: Any, t: Tensor) -> Any:
        if isinstance(t, LayoutTensor):
            raise UnsupportedFakeTensorException(f"there are no fake tensors of the layout {t.layout}")
        if is_traceable_wrapper_subclass(t):
            return transform_subclass(t, lambda name, part: self.from_real_tensor(fake_mode, part))
        with NoDispatch():
            storage, layout = self._storage(t), t._layout_
            here = layout_of(storage.base, layout.size, layout.stride, t._offset_)
            if t._is_view() and t._base is not None:
                base = self.from_real_tensor(fake_mode, t._base)
                with no_grad():
                    plain = base.as_strided(tuple(t.shape), t.stride(), t.storage_offset())
            else:
                plain = wrap(storage, here, t._offset_)
        made = fake_mode.made(plain, t.device)
        if isinstance(t, Parameter):
            made._is_param = True
        if t.requires_grad and t.is_leaf:
            made._rg_ = True
        elif t.requires_grad:
            with enable_grad():
                made = made.detach().requires_grad_().clone()
        if t.is_leaf and t.grad is not None:
            made.grad = self.from_real_tensor(fake_mode, t.grad)
        return made

    def _storage(self, t: Tensor) -> UntypedStorage:
        """The storage without values for a tensor's storage."""
        found = self._storages.get(t._storage_)
        if found is None:
            base = t._storage_.base
            kept = Base(base.shape, base.dtype, device=META)
            found = self._storages[t._storage_] = UntypedStorage(unknown(kept), kept)
        return found


__all__ = ["FakeTensorConverter"]
