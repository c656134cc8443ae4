"""Debugging values of running programs: under ``jit``, inside loops, and while differentiated or batched.

Python's ``print`` runs when a function is traced, when there are no values. These functions run when the program runs.
Under ``vmap`` they run for each batch element, under ``grad`` in the forward pass, and again when ``checkpoint``
recomputes. Under ``jit`` their order is unspecified.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from funcgrad.core import traceback, trees
from funcgrad.core.errors import ConcretizationError
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import Tracer, bind, is_array, state, typed
from funcgrad.interpreters.evaluate import set_performer
from funcgrad.numpy.indexing.getitem import getitem
from funcgrad.primitives.shape import moved

__all__ = ["callback", "full_tracebacks", "print"]


class _Call:
    """A Python function and its arguments that are not arrays.

    Attributes:
        function: the function, called with NumPy arrays.
        leaves: all arguments; each array is replaced by its index.
        tree: the pytree structure of the arguments.
    """

    __slots__ = ("function", "leaves", "tree")

    def __init__(self, function: Callable[..., Any], leaves: Sequence[Any], tree: Any):
        self.function = function
        self.leaves = leaves
        self.tree = tree

    def __call__(self, *arrays: Any) -> None:
        given = iter(arrays)
        args, kwargs = trees.unflatten(self.tree, [np.asarray(next(given)) if is_array(x) else x for x in self.leaves])
        self.function(*args, **kwargs)


def _lower(*xs: Any, call: _Call) -> list[Any]:
    jax.debug.callback(call, *xs)
    return []


def _batch(size: int, operands: Sequence[Any], dims: Sequence[int | None], *, call: _Call) -> tuple[list, list]:
    for i in range(size):
        one = [x if d is None else getitem(moved(x, d, 0), i) for x, d in zip(operands, dims, strict=True)]
        _perform(debug_p, one, {"call": call})
    return [], []


debug_p = Primitive(
    "debug", infer=lambda *types, call: [], lower=_lower, batch=_batch, multiple=True, differentiable=False, effect=True
)


def _value(x: Any) -> Any:
    """The value beneath a derivative's tracer; abstract and batched tracers are unchanged."""
    while isinstance(x, Tracer):
        try:
            x = x.underlying()
        except ConcretizationError:
            return x
    return x


def _perform(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Makes the call: immediately if all values are concrete, else as an equation of the staged program."""
    values = [_value(x) for x in operands]
    if state.floor is not None or any(isinstance(x, (Tracer, jax.core.Tracer)) for x in values):
        bind(primitive, values, params)
    else:
        params["call"](*values)
    return []


set_performer(_perform)


def callback(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Calls a Python function when the program runs.

    Args:
        function: the function to call; its result is ignored.
        args, kwargs: pytrees; arrays and numbers are passed as NumPy arrays, other leaves unchanged.

    Returns:
        None.

    Raises:
        Exception: an exception of the function, immediately for concrete values; under ``jit`` wrapped in a
            ``JaxRuntimeError``.

    Example:
        >>> import funcgrad as fg
        >>> seen = []
        >>> @fg.jit
        ... def f(x):
        ...     callback(lambda x: seen.append(float(x)), x)
        ...     return x * 2
        >>> results = f(1.0).item(), f(2.0).item()
        >>> seen
        [1.0, 2.0]
    """
    leaves, tree = trees.flatten((args, kwargs))
    call = _Call(function, [0 if is_array(x) else x for x in leaves], tree)
    _perform(debug_p, [typed(x) for x in leaves if is_array(x)], {"call": call})


def print(fmt: str, *args: Any, **kwargs: Any) -> None:
    """Prints values when the program runs.

    Args:
        fmt: as for ``str.format``.
        args, kwargs: the values to format: arrays and numbers as NumPy arrays, others unchanged.

    Returns:
        None.

    Raises:
        IndexError: if ``fmt`` needs more arguments; under ``jit`` a ``JaxRuntimeError``, as for the others.
        KeyError: if it needs a missing name.
        ValueError: if a format is invalid for a value.

    Example:
        >>> import funcgrad as fg
        >>> @fg.jit
        ... def f(x):
        ...     print("x is {} and y {y}", x, y=x + 1)
        ...     return x * 2
        >>> f(1.0).item()
        x is 1.0 and y 2.0
        2.0
    """
    callback(lambda *args, **kwargs: builtins.print(fmt.format(*args, **kwargs)), *args, **kwargs)


def full_tracebacks(full: bool = True) -> None:
    """Makes tracebacks show the frames inside funcgrad and compat, or hide them again.

    They are hidden only where an error is displayed: debuggers see all frames. ``FUNCGRAD_TRACEBACK=full`` in the
    environment sets this at the start.

    Args:
        full: whether all frames are shown.

    Raises:
        TypeError: if ``full`` is not a bool.

    Example:
        >>> full_tracebacks()
        >>> full_tracebacks(False)
    """
    if not isinstance(full, bool):
        raise TypeError(f"full_tracebacks: full must be True or False, got {full!r}")
    traceback.settings.full = full
