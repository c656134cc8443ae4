"""``torch._dynamo.decorators``: marks of functions and tensors for the compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from compat._compile.breaks import graph_break
from compat._dynamo import config
from compat.compiler import allow_in_graph, assume_constant_result, disable, set_stance

__all__ = [
    "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "dont_skip_tracing", "forbid_in_graph",
    "graph_break", "mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic",
    "nonstrict_trace", "patch_dynamo_config", "run", "set_stance", "skip_frame", "step_unsupported",
    "substitute_in_graph",
]  # fmt: skip


class _DimRange(NamedTuple):
    """The range of a size."""

    dim: int
    min: int | None
    max: int | None


Dims = int | list[Any] | tuple[Any, ...]


def mark_dynamic(
    t: Any, index: Dims, *, hint_override: int | None = None, min: int | None = None, max: int | None = None,
    specialize_on: list[Any] | None = None,
) -> None:  # fmt: skip
    """Marks sizes of a tensor as dynamic, in PyTorch's attributes of it: each size is compiled separately here.

    Args:
        t: the tensor.
        index: the number of a dimension, or several.
        min, max: the range of the size.
        hint_override, specialize_on: ignored.

    Raises:
        AssertionError: for another ``index``.

    Example:
        >>> x = torch.ones(2, 3)
        >>> torch._dynamo.mark_dynamic(x, 0)
        >>> x._dynamo_dynamic_indices
        {0}
    """
    for dim in _dims(index):
        _noted(t, "_dynamo_dynamic_indices").add(dim)
        _noted(t, "_dynamo_dynamic_range").add(_DimRange(dim, min, max))


def maybe_mark_dynamic(t: Any, index: Dims) -> None:
    """Marks sizes of a tensor as dynamic where possible; see ``mark_dynamic``."""
    _noted(t, "_dynamo_weak_dynamic_indices").update(_dims(index))


def mark_static(t: Any, index: Dims | None = None) -> None:
    """Marks sizes of a tensor, by default all, as static, which they always are here.

    Raises:
        AssertionError: for another ``index``.
    """
    if isinstance(t, type):
        return
    _noted(t, "_dynamo_static_indices").update(range(t.dim()) if index is None else _dims(index))


def mark_unbacked(t: Any, index: Dims, *args: Any, **kwargs: Any) -> None:
    """Marks sizes of a tensor that no condition may depend on; see ``mark_dynamic``."""
    _noted(t, "_dynamo_unbacked_indices").update(_dims(index))


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Marks a tensor whose memory stays where it is; without effect, as XLA decides on memory.

    Raises:
        TypeError: for something else than a tensor.
    """
    if not hasattr(t, "data_ptr"):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t).__name__}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"


def _dims(index: Any) -> Sequence[int]:
    if isinstance(index, int):
        return (index,)
    if not isinstance(index, list | tuple):
        raise AssertionError(f"Expected index to be int, list, or tuple, got {type(index)}")
    return index


def _noted(t: Any, name: str) -> set[Any]:
    """The set in an attribute."""
    found: set[Any] = t.__dict__.setdefault(name, set())
    return found


def disallow_in_graph(fn: Any) -> Any:
    """Returns a function, or a list of them, unchanged: what it runs is captured.

    Raises:
        AssertionError: for something that is not callable.
    """
    for one in fn if isinstance(fn, list | tuple) else [fn]:
        if not callable(one):
            raise AssertionError("disallow_in_graph expects a callable")
    return fn


def forbid_in_graph(fn: Any) -> Any:
    """Marks a function whose call in a compiled function is an error; returns it.

    Raises:
        AssertionError: for something that is not callable.
    """
    for one in fn if isinstance(fn, list | tuple) else [fn]:
        if not callable(one):
            raise AssertionError("forbid_in_graph applies only to callables")
        one._dynamo_forbidden = True
    return fn


def nonstrict_trace(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function unchanged: functions are captured by calling them."""
    return traceable_fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """A decorator of a Python version of a function, which is not needed here: it returns its argument."""
    return lambda traceable_fn: traceable_fn


def dont_skip_tracing(fn: Any = None) -> Any:
    """Returns a function unchanged, or a decorator that does."""
    return dont_skip_tracing if fn is None else fn


def run(fn: Any = None) -> Any:
    """Returns a function unchanged: it runs what was compiled."""
    return run if fn is None else fn


def skip_frame(msg: str = "") -> None:
    """Marks a function that is not to be compiled: a graph ends here, as in ``graph_break``."""
    graph_break(msg)


step_unsupported = skip_frame


class _Patched(AbstractContextManager[None]):
    """Settings for the time of a ``with`` block, or of a function."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make

    def __enter__(self) -> None:
        self._entered = self._make()
        self._entered.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._entered.__exit__(*exc)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with self._make():
                return fn(*args, **kwargs)

        return patched


def patch_dynamo_config(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Any:
    """Sets settings of ``torch._dynamo.config`` for the time of a ``with`` block, or of a decorated function.

    Raises:
        AttributeError: for a setting that there is not.
    """
    settings: Any = config  # its class changes when it is imported
    return _Patched(lambda: settings.patch(arg1, arg2, **kwargs))
