"""Looking at values while a program runs: under ``jit``, inside loops, and while it is differentiated or batched.

Python's ``print`` runs when a function is traced, and then there are no values. What is here runs whenever the program
does, with the values of then. Under ``vmap`` it runs for each batch element, under ``grad`` on the way forward, and
again where ``checkpoint`` computes anew. Under ``jit`` the order of several is not fixed.
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
    """A function of Python's and those of its arguments that are no arrays.

    Attributes:
        function: the function to call with NumPy arrays.
        leaves: all arguments; in place of an array, a number.
        tree: how they belong together.
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
    """The value that a derivative's tracer wraps; tracers without a value and batched ones stay."""
    while isinstance(x, Tracer):
        try:
            x = x.underlying()
        except ConcretizationError:
            return x
    return x


def _perform(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Makes the call: at once where all values are known, and else by the program that is being written."""
    values = [_value(x) for x in operands]
    if state.floor is not None or any(isinstance(x, Tracer | jax.core.Tracer) for x in values):
        bind(primitive, values, params)
    else:
        params["call"](*values)
    return []


set_performer(_perform)


def callback(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Calls a function of Python's whenever the program gets there.

    Args:
        function: the function to call; its result is ignored.
        args, kwargs: pytrees; their arrays and numbers reach the function as NumPy's arrays, all else as it is.

    Returns:
        None.

    Raises:
        Exception: whatever the function raises, at once where values are known; under ``jit`` as a ``JaxRuntimeError``
            that shows it.

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
    """Prints values whenever the program gets there.

    Args:
        fmt: as for ``str.format``.
        args, kwargs: the values to format: arrays and numbers as NumPy's arrays, all else as it is.

    Returns:
        None.

    Raises:
        IndexError: if ``fmt`` asks for more than is given; under ``jit`` a ``JaxRuntimeError``, as for the others.
        KeyError: if it asks for a name that is not given.
        ValueError: if a value does not have such a format.

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
    """Has tracebacks show the frames inside funcgrad and compat as well, or leave them out again.

    They are left out only where an error is displayed: debuggers see all frames. ``FUNCGRAD_TRACEBACK=full`` in the
    environment does the same from the start.

    Args:
        full: whether all frames are shown.

    Raises:
        TypeError: if ``full`` is no bool.

    Example:
        >>> full_tracebacks()
        >>> full_tracebacks(False)
    """
    if not isinstance(full, bool):
        raise TypeError(f"full_tracebacks: full must be True or False, got {full!r}")
    traceback.settings.full = full
