"""Functions of Python's inside compiled programs, for their results: ``pure_callback``.

``funcgrad.debug.callback`` is for what they do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from funcgrad import interop
from funcgrad.core import trees

__all__ = ["pure_callback"]


def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, vmap_method: str | None = None, **kwargs: Any
) -> Any:
    """The result of a Python function, which is called whenever the program runs.

    It may be called once, several times or not at all, so it should do nothing but compute. It has no derivative; for
    one, make the caller a ``custom_jvp`` or ``custom_vjp`` function, or see ``funcgrad.extend``.

    Args:
        callback: gets JAX's arrays; returns a pytree of arrays.
        result_shape_dtypes: a pytree like its result, of what has a ``shape`` and a ``dtype``: ``ArrayType``, say.
        args, kwargs: pytrees of arrays.
        vmap_method: what ``vmap`` does: ``"sequential"`` calls for each batch element, ``"expand_dims"`` and
            ``"broadcast_all"`` call once, with all batch elements along a first axis, of size 1 where nothing is
            batched, or repeated there. None refuses.

    Returns:
        A pytree of arrays of those shapes and dtypes.

    Raises:
        ValueError: where it is differentiated.
        NotImplementedError: where it is batched, and no method is given.
        RuntimeError: where the function raises, or returns other shapes.

    Example:
        >>> import numpy as np, funcgrad as fg
        >>> @fg.jit
        ... def f(x):
        ...     return pure_callback(np.arctan, fg.ArrayType(x.shape, x.dtype), x, vmap_method="expand_dims") * 2
        >>> print(f(np.zeros(2, np.float32)))
        [0. 0.]
    """
    types = trees.map(lambda t: jax.ShapeDtypeStruct(t.shape, t.dtype), result_shape_dtypes)

    def call(*args: Any, **kwargs: Any) -> Any:
        return jax.pure_callback(callback, types, *args, vmap_method=vmap_method, **kwargs)

    return interop.from_jax(call)(*args, **kwargs)
