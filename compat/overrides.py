"""``torch.overrides``: support for types and functions with ``__torch_function__``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from compat._core.tensor.registry import load_all, names_of, places
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import (
    DisableTorchFunction,
    Overridable,
    OverridableProperty,
    TorchFunctionMode,
    _modules,
    enable,
    get_default_nowrap_functions,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    local,
    resolve_name,
)
from compat._core.transforms.grad_mode import mode

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "_get_current_function_mode",
    "_get_current_function_mode_stack",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that overrides nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode; None if there is none."""
    return local.modes[-1] if local.modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """All modes, the innermost last."""
    return list(local.modes)


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Enables ``__torch_function__`` of types again, and restores the grad mode of the intercepted call."""
    before, local.subclasses = local.subclasses, True
    grad, mode.grad = mode.grad, mode.above
    try:
        yield
    finally:
        local.subclasses, mode.grad = before, grad


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is one of ``Tensor``'s."""
    return func.__name__ == "__get__" or any(v is func for v in vars(Tensor).values())


def _takes_some(f: Any) -> bool:
    """Whether a function dispatches to types at all: ``torch.tensor`` dispatches only to modes."""
    return type(f) is Overridable and f._types and bool(inspect.signature(f._function).parameters)


def _all_modules() -> list[ModuleType]:
    """The modules whose functions can be overridden, with all their public names."""
    enable()
    load_all()
    for place in places():
        with suppress(ModuleNotFoundError):  # the methods of tensors have an address, too
            module = import_module("compat" if place == "torch" else f"compat.{place}")
            for name in names_of(place).names():
                getattr(module, name, None)
    return [module for _, module in _modules()]


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that dispatch to types, by namespace."""
    found: dict[Any, list[Any]] = {m: [f for f in vars(m).values() if _takes_some(f)] for m in _all_modules()}
    methods = [f for f in Tensor.__dict__.values() if type(f) is Overridable]
    found[Tensor] = methods + [p.__get__ for p in Tensor.__dict__.values() if isinstance(p, OverridableProperty)]
    return found


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions, and methods of ``Tensor``, that do not dispatch to types.

    Example:
        >>> torch.is_tensor in get_ignored_functions(), torch.add in get_ignored_functions()
        (True, False)
    """
    public = [f for module in _all_modules() for name, f in vars(module).items() if not name.startswith("_")]
    asking = {f for functions in get_overridable_functions().values() for f in functions}
    return {
        f for f in (*public, *vars(Tensor).values()) if isinstance(f, (FunctionType, Overridable)) and f not in asking
    }


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that dispatches to types, one with the same parameters that returns -1.

    Example:
        >>> stand_in = get_testing_overrides()[torch.relu]
        >>> stand_in(torch.ones(2)), len(inspect.signature(stand_in).parameters)
        (-1, 1)
    """
    return {f: _stand_in(f) for functions in get_overridable_functions().values() for f in functions}


def _stand_in(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the parameters of another that returns -1."""
    own: Any = f._function if isinstance(f, Overridable) else lambda self: -1
    try:
        signature = inspect.signature(own)
    except (TypeError, ValueError):
        signature = inspect.signature(lambda *args, **kwargs: -1)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]

    def stand_in(*args: Any, **kwargs: Any) -> int:
        signature.bind(*args, **kwargs)
        return -1

    stand_in.__signature__ = signature.replace(parameters=plain, return_annotation=signature.empty)  # type: ignore[attr-defined]
    return stand_in


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function dispatch to ``__torch_function__``.

    Args:
        dispatcher: maps the function's arguments to those whose types are dispatched to.
    """

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return wrap


#: Methods that call other functions of tensors in PyTorch, as all of ``torch.nn.functional`` does.
_CALLERS = frozenset(
    ["__copy__", "__deepcopy__", "__format__", "__reduce_ex__", "__repr__", "backward", "register_hook"]
)


def _calls_others(func: Overridable) -> bool:
    return func.__name__ in _CALLERS or (resolve_name(func) or "").startswith("torch.nn.functional.")


def redispatch_function(func: Callable[..., Any], types: Sequence[type], args: Any, kwargs: Any) -> Any:
    """Calls a function without dispatching this call; nested calls are dispatched again.

    Args:
        func, types, args, kwargs: the arguments of ``__torch_function__``.

    Example:
        >>> class Named:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return redispatch_function(func, types, args, kwargs)
        >>> def outer(x):
        ...     return handle_torch_function(outer, (x,), x) if has_torch_function_unary(x) else inner(x)
        >>> def inner(x):
        ...     return handle_torch_function(inner, (x,), x) if has_torch_function_unary(x) else 1
        >>> outer(Named())
        outer
        inner
        1
    """
    if type(func) is Overridable and _calls_others(func):
        return func._function(*args, **(kwargs or {}))
    if type(func) is Overridable or isinstance(getattr(func, "__self__", None), OverridableProperty):
        with DisableTorchFunction():
            return func(*args, **(kwargs or {}))
    local.passing = True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        local.passing = False


# Importing this detects the definition of types that are not tensors.
enable()
