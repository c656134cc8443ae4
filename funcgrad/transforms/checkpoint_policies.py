"""Policies for ``checkpoint``: which intermediate values are stored for the backward pass; all others are recomputed.

A policy is a function of a primitive, its operand types and its parameters, ``(primitive, *types, **params)``, that
returns whether the results are stored. These are the usual ones; any other function works too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import kind
from funcgrad.core.primitive import Primitive

__all__ = [
    "dots_saveable", "dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable",
    "save_any_names_but_these", "save_anything_except_these_names", "save_from_both_policies",
    "save_only_these_names",
]  # fmt: skip

Policy = Callable[..., bool]


def _name(primitive: Any) -> str:
    if not isinstance(primitive, Primitive):
        raise TypeError(f"a policy is called with a primitive, got {kind(primitive)}")
    return primitive.name


def _names(policy: str, names: tuple[Any, ...]) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{policy}: names must be strings, one by one, got {kind(name)}")
    return frozenset(names)


#: Matrix products and convolutions.
_PRODUCTS = frozenset(("dot", "dot_in_single", "conv"))


def everything_saveable(primitive: Primitive, *types: Any, **params: Any) -> bool:
    """Stores all values, as if there were no ``checkpoint``.

    Args:
        primitive: the operation.
        types: the operand types.
        params: its parameters.

    Returns:
        True.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> f = fg.checkpoint(lambda x: fnp.sin(fnp.exp(x)), policy=everything_saveable)
        >>> print(fg.grad(f)(0.0))
        0.5403023
    """
    return True


def nothing_saveable(primitive: Primitive, *types: Any, **params: Any) -> bool:
    """Stores only the arguments.

    Args:
        primitive: the operation.
        types: the operand types.
        params: its parameters.

    Returns:
        False.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> f = fg.checkpoint(lambda x: fnp.sin(fnp.exp(x)), policy=nothing_saveable)
        >>> print(fg.grad(f)(0.0))
        0.5403023
    """
    return False


def dots_saveable(primitive: Primitive, *types: Any, **params: Any) -> bool:
    """Stores the results of matrix products and convolutions, which are the most expensive to recompute.

    Args:
        primitive: the operation.
        types: the operand types.
        params: its parameters.

    Returns:
        Whether it is such a product.

    Raises:
        TypeError: for an argument that is not a primitive.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> f = fg.checkpoint(lambda x: fnp.sum(fnp.eye(2) @ x), policy=dots_saveable)
        >>> print(fg.grad(f)(fnp.ones(2)))
        [1. 1.]
    """
    return _name(primitive) in _PRODUCTS


def dots_with_no_batch_dims_saveable(primitive: Primitive, *types: Any, **params: Any) -> bool:
    """Stores the results of products without batch axes: of activations with weights, not of attention.

    Args:
        primitive: the operation.
        types: the operand types.
        params: its parameters.

    Returns:
        Whether it is such a product.

    Raises:
        TypeError: for an argument that is not a primitive.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> f = fg.checkpoint(lambda x: fnp.sum(fnp.eye(2) @ x), policy=dots_with_no_batch_dims_saveable)
        >>> print(fg.grad(f)(fnp.ones(2)))
        [1. 1.]
    """
    return _name(primitive) in ("dot", "dot_in_single") and params["batch"] == ((), ())


def save_only_these_names(*names: str) -> Policy:
    """Stores values to which ``checkpoint_name`` gave one of these names.

    Args:
        names: names given to ``checkpoint_name``.

    Returns:
        A policy.

    Raises:
        TypeError: for a name that is not a string, such as a list of them.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> policy = save_only_these_names("hidden")
        >>> f = fg.checkpoint(lambda x: fnp.sin(fg.checkpoint_name(fnp.exp(x), "hidden")), policy=policy)
        >>> print(fg.grad(f)(0.0))
        0.5403023
    """
    kept = _names("save_only_these_names", names)
    return lambda primitive, *types, **params: _name(primitive) == "name" and params["name"] in kept


def save_any_names_but_these(*names: str) -> Policy:
    """Stores values to which ``checkpoint_name`` gave a name, unless it is one of these.

    Args:
        names: names given to ``checkpoint_name``.

    Returns:
        A policy.

    Raises:
        TypeError: for a name that is not a string, such as a list of them.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> policy = save_any_names_but_these("other")
        >>> f = fg.checkpoint(lambda x: fnp.sin(fg.checkpoint_name(fnp.exp(x), "hidden")), policy=policy)
        >>> print(fg.grad(f)(0.0))
        0.5403023
    """
    others = _names("save_any_names_but_these", names)
    return lambda primitive, *types, **params: _name(primitive) == "name" and params["name"] not in others


def save_anything_except_these_names(*names: str) -> Policy:
    """Stores all values except those to which ``checkpoint_name`` gave one of these names.

    Args:
        names: names given to ``checkpoint_name``.

    Returns:
        A policy.

    Raises:
        TypeError: for a name that is not a string, such as a list of them.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> policy = save_anything_except_these_names("hidden")
        >>> f = fg.checkpoint(lambda x: fnp.sin(fg.checkpoint_name(fnp.exp(x), "hidden")), policy=policy)
        >>> print(fg.grad(f)(0.0))
        0.5403023
    """
    others = _names("save_anything_except_these_names", names)
    return lambda primitive, *types, **params: not (_name(primitive) == "name" and params["name"] in others)


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Stores the values that either of two policies stores.

    Args:
        first, second: policies.

    Returns:
        A policy.

    Raises:
        TypeError: where one of them is not a function.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> policy = save_from_both_policies(dots_saveable, save_only_these_names("hidden"))
        >>> f = fg.checkpoint(lambda x: fnp.sin(fg.checkpoint_name(fnp.exp(x), "hidden")), policy=policy)
        >>> print(fg.grad(f)(0.0))
        0.5403023
    """
    policies = [validate.function("save_from_both_policies", policy, "each policy") for policy in (first, second)]
    return lambda primitive, *types, **params: any(policy(primitive, *types, **params) for policy in policies)
