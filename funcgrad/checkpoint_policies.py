"""Policies for ``checkpoint``: which intermediate values are kept for the way back; all others are computed again.

A policy is a function of a primitive, the types of its operands and its parameters, ``(primitive, *types, **params)``,
which says whether the results of such an operation are kept. These are the usual ones; any other function will do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.primitive import Primitive

__all__ = [
    "dots_saveable", "dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable",
    "save_any_names_but_these", "save_anything_except_these_names", "save_from_both_policies",
    "save_only_these_names",
]  # fmt: skip

Policy = Callable[..., bool]

#: Operations that multiply matrices, or slide windows of them.
_PRODUCTS = frozenset(("dot", "conv"))


def everything_saveable(primitive: Primitive, *types: Any, **params: Any) -> bool:
    """Keeps all values, as if there were no ``checkpoint``."""
    return True


def nothing_saveable(primitive: Primitive, *types: Any, **params: Any) -> bool:
    """Keeps nothing but the arguments."""
    return False


def dots_saveable(primitive: Primitive, *types: Any, **params: Any) -> bool:
    """Keeps the results of products of matrices and of convolutions, which cost most to compute again."""
    return primitive.name in _PRODUCTS


def dots_with_no_batch_dims_saveable(primitive: Primitive, *types: Any, **params: Any) -> bool:
    """Keeps the results of products that have no batch axes: of activations with weights, not of attention."""
    return primitive.name == "dot" and params["batch"] == ((), ())


def save_only_these_names(*names: str) -> Policy:
    """Keeps what ``checkpoint_name`` has given one of these names.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> policy = save_only_these_names("hidden")
        >>> f = fg.checkpoint(lambda x: fnp.sin(fg.checkpoint_name(fnp.exp(x), "hidden")), policy=policy)
        >>> print(fg.grad(f)(0.0))
        0.5403023
    """
    return lambda primitive, *types, **params: primitive.name == "name" and params["name"] in names


def save_any_names_but_these(*names: str) -> Policy:
    """Keeps what ``checkpoint_name`` has given a name, unless it is one of these."""
    return lambda primitive, *types, **params: primitive.name == "name" and params["name"] not in names


def save_anything_except_these_names(*names: str) -> Policy:
    """Keeps everything but what ``checkpoint_name`` has given one of these names."""
    return lambda primitive, *types, **params: not (primitive.name == "name" and params["name"] in names)


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Keeps what either of two policies keeps."""
    return lambda primitive, *types, **params: first(primitive, *types, **params) or second(primitive, *types, **params)
