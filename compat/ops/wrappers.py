"""Tensors that are a type alone and stand for something else: ``Tensor._make_wrapper_subclass``."""

from __future__ import annotations

from typing import Any

from compat import dtypes
from compat.device import available
from compat.errors import size_text
from compat.layout import Base, contiguous_strides, layout_of
from compat.meta import unknown
from compat.ops.dispatching import has_say
from compat.registry import publish
from compat.storage import UntypedStorage
from compat.tensor import Tensor, set_memory


def _make_wrapper_subclass(
    cls: type,
    size: Any,
    strides: Any = None,
    storage_offset: Any = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    **more: Any,
) -> Any:
    """A tensor of a class, of which nothing is there but size, strides and dtype.

    What operations do to it says the class, in ``__torch_dispatch__``, usually by doing them to tensors that it keeps.

    Args:
        cls: the class, a subclass of ``Tensor``.
        size: the size.
        strides: row-major ones if left out.
        dtype: the default dtype if left out.
        requires_grad: whether gradients are to be computed for it.

    Raises:
        TypeError: for a class without ``__torch_dispatch__``.

    Example:
        >>> import compat as torch
        >>> class Logged(torch.Tensor):
        ...     @staticmethod
        ...     def __new__(cls, inner):
        ...         made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        ...         made.inner = inner
        ...         return made
        ...     @classmethod
        ...     def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         args = [a.inner if isinstance(a, cls) else a for a in args]
        ...         return cls(func(*args, **(kwargs or {})))
        >>> x = Logged(torch.ones(2, 3)).requires_grad_()
        >>> y = (x * 2).sum()
        aten.mul.Tensor
        aten.sum.default
        >>> y.grad_fn
        <SumBackward0 object at ...>
    """
    if not isinstance(cls, type) or not issubclass(cls, Tensor) or not has_say(cls):
        raise TypeError(f"{getattr(cls, '__name__', cls)} must define __torch_dispatch__")
    size = tuple(int(n) for n in size)
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {size_text(size)}")
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    stride = contiguous_strides(size) if strides is None else tuple(int(n) for n in strides)
    offset = int(storage_offset or 0)
    needed = 0 if 0 in size else 1 + offset + sum((n - 1) * s for n, s in zip(size, stride))
    dense = stride == contiguous_strides(size) and not offset
    base = Base(size if dense else (needed,), kind, True, available("cpu" if device is None else device))
    made: Any = object.__new__(cls)
    set_memory(made, UntypedStorage(unknown(base), base), layout_of(base, size, stride, offset), offset)
    made._rg = bool(requires_grad)
    return made


publish(staticmethod(_make_wrapper_subclass), "Tensor._make_wrapper_subclass")
