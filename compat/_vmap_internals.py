"""``torch._vmap_internals``: the ``vmap`` that precedes ``torch.func``'s.

It does not support randomness and takes and returns tensors, or tuples of them; tensors inside may require grad.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import TreeSpec
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import level_stack
from compat._core.types.errors import warn
from compat.func._vmap import Mapped


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """``func`` vectorized over a dimension; deprecated in favor of ``torch.vmap``.

    Args:
        func: a function of one batch element, which returns a tensor or a tuple of tensors.
        in_dims: the batch dimensions of the arguments, non-negative; None for an unbatched argument.
        out_dims: the batch dimensions of the results: an int, or a tuple of one per result.

    Raises:
        ValueError: if ``in_dims`` or ``out_dims`` do not match arguments or results, or sizes differ.

    Example:
        >>> from compat import _vmap_internals
        >>> _vmap_internals._vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
        tensor([2., 2., 2.])
    """
    warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """As ``vmap``, without a warning.

    Args:
        allow_none_pass_through: whether None may be among the results.
    """

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        name = _name_of(func)
        if not isinstance(out_dims, int) and not (isinstance(out_dims, tuple) and all(map(_is_int, out_dims))):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple of int representing "
                "where in the outputs the vmapped dimension should appear."
            )
        mapped = _LegacyMapped(func, in_dims, out_dims, "error", args, {})
        mapped.absent = allow_none_pass_through
        with level_stack.graphs():
            return mapped.run(mapped.leaves, mapped.size)

    return wrapped


def _is_int(d: Any) -> bool:
    return isinstance(d, int)


def _name_of(func: Any) -> str:
    return func.__name__ if hasattr(func, "__name__") else repr(func)


class _LegacyMapped(Mapped):
    """One call of a vectorized function.

    Attributes:
        absent: whether None may be among the results.
    """

    allows_negative_dims = False
    absent = False

    def named(self, func: Any) -> str:
        return _name_of(func)

    def result_dims_of(self, result: Any, tree: TreeSpec) -> list[int | None]:
        several = isinstance(result, tuple)
        if not several and not isinstance(result, Tensor):
            raise ValueError(
                f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type {type(result)} as the "
                "return."
            )
        parts = result if several else (result,)
        for i, part in enumerate(parts):
            if not isinstance(part, Tensor) and not (part is None and self.absent):
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type {type(part)} for return "
                    f"{i}."
                )
        dims = self.out_dims if isinstance(self.out_dims, tuple) else (self.out_dims,) * len(parts)
        if len(dims) != len(parts):
            raise ValueError(
                f"vmap({self.name}, ..., out_dims={self.out_dims}): `out_dims` must have one dim per output (got "
                f"{len(parts)} outputs) of {self.name}."
            )
        return [None if part is None else d for part, d in zip(parts, dims)]
