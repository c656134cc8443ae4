"""``UninitializedTensorMixin``, the base of parameters and buffers whose size is not known yet.

Their classes are in ``compat.nn._lazy_tensors``, which is imported on first use: once a class with
``__torch_function__`` exists, every call of an operator checks its arguments for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._operators.create.factories import empty

#: The operations that a tensor without a size supports, by name.
_ALLOWED = frozenset(
    ["__hash__", "size", "copy_", "is_complex", "is_floating_point", "half", "float", "double", "char", "short", "int"]
    + ["long", "cuda", "cpu", "to", "get_device", "_has_compatible_shallow_copy_type"]
)


class UninitializedTensorMixin:
    """A tensor without a size: it can be moved, cast and materialized.

    Attributes:
        cls_to_become: its class once materialized.
    """

    __module__ = "compat.nn.parameter"

    __slots__ = ()
    cls_to_become: type
    data: Any
    requires_grad: bool

    def materialize(self, shape: Sequence[int] | int, device: Any = None, dtype: Any = None) -> None:
        """Allocates uninitialized memory for a size.

        Args:
            device, dtype: by default those it was created with.
        """
        device = self.data.device if device is None else device
        size = tuple(shape) if isinstance(shape, Sequence) else (shape,)
        self.data = empty(size, device=device, dtype=self.data.dtype if dtype is None else dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        """Raises ``RuntimeError``: the tensor has no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        if type(func).__name__ == "method-wrapper" or getattr(func, "__name__", None) in _ALLOWED:
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no size yet."""
    return isinstance(param, UninitializedTensorMixin)
