"""``torch.utils._python_dispatch``: modes and types that intercept every operation on tensors, below autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from compat._core.dispatch.dispatch_mode import watched
from compat._core.dispatch.overrides import class_overrides_operators, state, unwatched
from compat._core.dispatch.torch_dispatch import show_backward
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing", "transform_subclass"]


class TorchDispatchMode:
    """Context in which every operation calls ``__torch_dispatch__``, which returns its result.

    Operations are those with a node, those without a derivative, and factories and random fillings; not ``detach``. In
    the backward pass the derivative of an operation is one operation, ``aten.mul_backward.default``.

    Example:
        >>> class Names(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     y = torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)).relu()
        aten.ones.default
        aten.ones.default
        aten.t.default
        aten.mm.default
        aten.relu.default
    """

    def __init__(self, _dispatch_key: Any = None):
        self._entered: list[ExitStack] = []

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        show_backward()
        stack = ExitStack()
        stack.enter_context(watched())
        self.__dict__.setdefault("_entered", []).append(stack)  # whose __init__ may not have been called
        # Internal modes are called last, whenever they are entered.
        state.modes.insert(0 if self.is_infra_mode() else len(state.modes), self)
        mode.watched += 1
        return self

    def __exit__(self, *exc: Any) -> None:
        mode.watched -= 1
        state.modes.pop(0 if self.is_infra_mode() else -1)
        self._entered.pop().close()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode is internal to the library."""
        return False


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode; None if there is none."""
    return state.modes[-1] if state.modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """All modes, the innermost last."""
    return list(state.modes)


@contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """Context in which no mode is active."""
    modes = list(state.modes)
    with unwatched():
        yield modes


# ---------------------------------------------------------------- wrapper subclasses


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a value is a tensor of a traceable wrapper subclass.

    That is a type with ``__torch_dispatch__``, ``__tensor_flatten__`` and ``__tensor_unflatten__``.
    """
    kind = t if isinstance(t, type) else type(t)
    parts = hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")
    return issubclass(kind, Tensor) and kind is not Tensor and class_overrides_operators(kind) and parts


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """A tensor of the same type with transformed components.

    Args:
        t: a tensor of a type with ``__tensor_flatten__``.
        callback: a function of the name of a component and the component that returns the new component.
        outer_size, outer_stride: size and strides of the new tensor; by default those of ``t``.
    """
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    return type(t).__tensor_unflatten__(parts, context, size, t.stride() if outer_stride is None else outer_stride)


def return_and_correct_aliasing(func: Any, args: Sequence[Any], kwargs: Any, out: Any) -> Any:
    """The result for ``__torch_dispatch__`` to return: the written argument of an in-place operation, or ``out``.

    Args:
        func, args, kwargs: the call.
        out: the result for the component tensors.
    """
    named = kwargs or {}
    if "out" in named:
        return named["out"]
    name = func.overloadpacket.__name__
    return args[0] if name.endswith("_") and not name.endswith("__") and args else out
