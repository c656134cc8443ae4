"""``pure_callback``: Python functions inside compiled programs, for their results.

For side effects see ``funcgrad.debug.callback``.
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
    """The result of a Python function, which is called when the program runs.

    It may be called any number of times, so it must be pure. It is not differentiable; wrap the caller in
    ``custom_jvp`` or ``custom_vjp``, or see ``funcgrad.extend``.

    Args:
        callback: receives JAX arrays; returns a pytree of arrays.
        result_shape_dtypes: a pytree like its result, of objects with a ``shape`` and a ``dtype``, such as
            ``ArrayType``.
        args, kwargs: pytrees of arrays.
        vmap_method: ``"sequential"`` calls it for each batch element, ``"expand_dims"`` and ``"broadcast_all"`` once,
            with the batch as a leading axis, which has size 1 in unbatched arguments, or is broadcast. None raises.

    Returns:
        A pytree of arrays of those shapes and dtypes.

    Raises:
        ValueError: if it is differentiated.
        NotImplementedError: if it is batched without a ``vmap_method``.
        RuntimeError: if the function raises, or returns other shapes.

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
