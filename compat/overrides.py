"""``torch.overrides``: for types and functions that take part in ``__torch_function__``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from compat.tensor import Tensor
from compat.torch_function import (
    BaseTorchFunctionMode,
    Overridable,
    TorchFunctionMode,
    _get_current_function_mode,
    _get_current_function_mode_stack,
    _modules,
    enable,
    enable_reentrant_dispatch,
    get_default_nowrap_functions,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)

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
    "resolve_name",
    "wrap_torch_function",
]


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions, and methods of ``Tensor``, that ask no types.

    Example:
        >>> import compat as torch
        >>> torch.is_tensor in get_ignored_functions(), torch.add in get_ignored_functions()
        (True, False)
    """
    enable()
    places = [module for _, module in _modules()]
    public = [f for place in places for name, f in vars(place).items() if not name.startswith("_")]
    asking = {f for functions in get_overridable_functions().values() for f in functions}
    return {
        f for f in (*public, *vars(Tensor).values()) if isinstance(f, FunctionType | Overridable) and f not in asking
    }


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that asks types, one with the same parameters that returns -1.

    Example:
        >>> import compat as torch
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


# Who imports this has types that are no tensors, and whose definition nobody notices.
enable()
