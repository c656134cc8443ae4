"""Selection of the arguments to differentiate with respect to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.capture_checks import give
from compat._core.tensor.tensor import Tensor
from funcgrad.core.errors import explained

Argnums = int | tuple[int, ...]


def select_arguments(args: tuple, argnums: Argnums) -> Any:
    """The arguments selected by ``argnums``: one, or a tuple of them.

    Raises:
        RuntimeError: for invalid, out-of-range or repeated numbers.
    """
    indices = _indices(args, argnums)
    if isinstance(argnums, tuple):
        return tuple(args[i] for i in indices)
    return args[indices[0]]


def of_selected(func: Callable[..., Any], args: tuple, argnums: Argnums, kwargs: dict[str, Any]) -> Callable[..., Any]:
    """``func`` as a function of the selected arguments alone, in the form of ``select_arguments``."""
    indices = _indices(args, argnums)

    def of_some(selected: Any) -> Any:
        give((args, kwargs))
        full = list(args)
        for i, x in zip(indices, selected if isinstance(argnums, tuple) else (selected,)):
            full[i] = x
        return func(*full, **kwargs)

    return of_some


def _indices(args: tuple, argnums: Any) -> list[int]:
    if not isinstance(argnums, (int, tuple)):
        error = RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
        raise explained(error, "transform-call", "torch.func.grad(f) is a function; write grad(f)(x).")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    indices = []
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        indices.append(n % len(args))
    if not indices:
        raise RuntimeError("argnums must be non-empty")
    if len(set(indices)) != len(indices):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(indices)}")
    return indices


def check_differentiable(tree: Any) -> None:
    """Checks that a pytree has only differentiable tensors.

    Raises:
        ValueError: if a leaf is not a tensor.
        RuntimeError: if a tensor is integer or bool.
    """
    for x in tree_leaves(tree):
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if not (x.is_floating_point() or x.is_complex()):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")


def check_real(name: str, tree: Any, what: str) -> None:
    """Checks that a pytree has no complex tensors.

    Raises:
        RuntimeError: otherwise.
    """
    for i, x in enumerate(tree_leaves(tree)):
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )
