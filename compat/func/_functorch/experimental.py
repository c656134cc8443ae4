"""``functorch.experimental``: experimental transforms under their deprecated names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import broadcast_to_and_flatten, tree_flatten
from compat.func._forward import jvp
from compat.func._functionalize import functionalize
from compat.func._jacobians import hessian, jacfwd
from compat.func._modules import replace_all_batch_norm_modules_
from compat.func._vmap import vmap

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """``vmap`` over chunks of the batch, one after the other.

    Args:
        in_dims, out_dims, randomness: as for ``vmap``.
        chunks: the number of chunks.

    Example:
        >>> chunk_vmap(torch.sum, chunks=2)(torch.ones(3, 2))
        tensor([2., 2., 2.])
    """

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        if chunks == 1:
            return vmap(func, in_dims, out_dims, randomness)(*args, **kwargs)
        leaves, tree = tree_flatten(args)
        dims = broadcast_to_and_flatten(in_dims, tree) or ()
        size = next((x.shape[d] for x, d in zip(leaves, dims) if d is not None), 1)
        part = max(1, -(-size // chunks))
        return vmap(func, in_dims, out_dims, randomness, chunk_size=part)(*args, **kwargs)

    return call
