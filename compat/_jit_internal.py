"""``torch._jit_internal``: marks of functions for TorchScript, and questions about annotations.

Functions run as Python whether they are marked or not; the marks can be read.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Final, Union, get_args, get_origin

from compat import jit as _jit
from compat.futures import Future
from compat.jit import _overload, _overload_method, export, ignore, is_scripting, unused
from compat.jit._modifiers import FunctionModifiers, mark

__all__ = [
    "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4", "BroadcastingList5",
    "BroadcastingList6", "BroadcastingListCls", "Final", "FunctionModifiers", "Future", "_copy_to_script_wrapper",
    "_isinstance", "_overload", "_overload_method", "boolean_dispatch", "copy_torchscript_modifier", "export",
    "get_torchscript_modifier", "ignore", "is_dict", "is_ignored_fn", "is_list", "is_optional", "is_scripting",
    "is_tuple", "is_union", "should_drop", "unused",
]  # fmt: skip


class BroadcastingListCls:
    """The type of annotations ``BroadcastingList2[int]``: a list of that length, or one number for all of it."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1

_isinstance = _jit.isinstance


def _copy_to_script_wrapper(fn: Any) -> Any:
    """Marks a method that is to be copied to the scripted module if it is not scripted itself."""
    return mark(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def get_torchscript_modifier(fn: Any) -> str | None:
    """The mark of a function; ``FunctionModifiers.DEFAULT`` if it has none, and None for what cannot be called.

    Example:
        >>> get_torchscript_modifier(torch.jit.unused(lambda x: x)) == FunctionModifiers.UNUSED
        True
    """
    if not callable(fn):
        return None
    return getattr(getattr(fn, "__func__", fn), "_torchscript_modifier", FunctionModifiers.DEFAULT)


def copy_torchscript_modifier(orig: Any, new: Any) -> None:
    """Gives a function the mark of another one."""
    modifier = get_torchscript_modifier(orig)
    if modifier is not None:
        mark(new, modifier)


def should_drop(fn: Any) -> bool:
    """Whether a function's calls become errors in TorchScript."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers._DROP)


def is_ignored_fn(fn: Any) -> bool:
    """Whether a function is not compiled to TorchScript."""
    return should_drop(fn) or get_torchscript_modifier(fn) == FunctionModifiers.IGNORE


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Callable[..., Any], if_false: Callable[..., Any],
    module_name: str | None, func_name: str | None,
) -> Callable[..., Any]:  # fmt: skip
    """A function that calls one of two others, as one of its arguments says.

    Args:
        arg_name, arg_index, default: the argument's name, its position, and its default value.
        if_true, if_false: the functions; one of them may have a docstring.
        module_name, func_name: the module and the name of the new function.

    Raises:
        RuntimeError: if both functions have a docstring.

    Example:
        >>> both = boolean_dispatch("low", 1, False, lambda x, low=False: -x, lambda x, low=False: x, None, "both")
        >>> both(2), both(2, True), both(2, low=True)
        (2, -2, -2)
    """
    if if_true.__doc__ is not None and if_false.__doc__ is not None:
        raise RuntimeError("only one function can have a docstring")

    def fn(*args: Any, **kwargs: Any) -> Any:
        given = args[arg_index] if arg_index < len(args) else default
        return (if_true if kwargs.get(arg_name, given) else if_false)(*args, **kwargs)

    fn.__doc__ = if_true.__doc__ = if_false.__doc__ = if_true.__doc__ or if_false.__doc__
    if module_name is not None:
        fn.__module__ = module_name
    if func_name is not None:
        fn.__name__ = func_name
    return fn


def is_tuple(ann: Any) -> bool:
    """Whether an annotation is of tuples with given elements."""
    return get_origin(ann) is tuple


def is_list(ann: Any) -> bool:
    """Whether an annotation is of lists with given elements."""
    return get_origin(ann) is list


def is_dict(ann: Any) -> bool:
    """Whether an annotation is of dictionaries with given keys and values."""
    return get_origin(ann) is dict


def is_union(ann: Any) -> bool:
    """Whether an annotation allows several types."""
    return isinstance(ann, types.UnionType) or get_origin(ann) is Union


def is_optional(ann: Any) -> bool:
    """Whether an annotation allows one type or None.

    Example:
        >>> is_optional(int | None), is_optional(int | str)
        (True, False)
    """
    given = get_args(ann)
    return is_union(ann) and len(given) == 2 and bool({None, type(None)} & set(given))
