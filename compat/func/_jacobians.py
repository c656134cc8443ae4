"""Jacobians and Hessians, vectorized over rows or columns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_leaves, tree_map, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._operators.shape.cat_stack import cat
from compat.autograd.functional import basis
from compat.func._arguments import Argnums, check_real, of_selected, select_arguments
from compat.func._forward import jvp
from compat.func._reverse import vjp
from compat.func._vmap import vmap


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``func``, computed by rows in reverse mode.

    Args:
        argnums: the arguments to differentiate with respect to.
        has_aux: whether ``func`` returns a pair, of which only the first part is differentiated; the result is then a
            pair too.
        chunk_size: the maximum number of rows that are computed together.

    Raises:
        ValueError: for a ``chunk_size`` that is not positive.

    Example:
        >>> torch.func.jacrev(lambda x: x * x)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        check_real("jacrev", args, "inputs")
        selected = select_arguments(args, argnums)
        out, pullback, *aux = vjp(of_selected(func, args, argnums, kwargs), selected, has_aux=has_aux)
        check_real("jacrev", out, "outputs")
        leaves, tree = tree_flatten(out)
        inputs, input_tree = tree_flatten(selected)
        units = basis(leaves)
        pull = lambda *cts: tree_leaves(pullback(tree_unflatten(cts, tree)))
        if len(units[0]):
            columns = _rows(pull, units, chunk_size)
        else:
            columns = [x.detach().new_zeros(0, *x.shape) for x in inputs]
        # Columns are indexed by input, then by output: transpose.
        parts = [c.split([x.numel() for x in leaves], 0) for c in columns]
        rows = [
            tree_unflatten([part[k].reshape((*x.shape, *c.shape[1:])) for part, c in zip(parts, columns)], input_tree)
            for k, x in enumerate(leaves)
        ]
        result = tree_unflatten(rows, tree)
        return (result, aux[0]) if has_aux else result

    return wrapper


def _rows(pull: Callable[..., Any], units: Sequence[Tensor], chunk_size: int | None) -> list[Tensor]:
    """The results of ``pull`` for each unit vector, by ``vmap`` or sequentially."""
    if chunk_size != 1:
        return vmap(pull, chunk_size=chunk_size)(*units)
    found = [pull(*[u[i] for u in units]) for i in range(len(units[0]))]
    return [cat([row.unsqueeze(0) for row in column]) for column in zip(*found)]


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``func``, computed by columns in forward mode.

    Args:
        argnums: the arguments to differentiate with respect to.
        has_aux: whether ``func`` returns a pair, of which only the first part is differentiated; the result is then a
            pair too.
        randomness: the treatment of random numbers in ``func``, as for ``vmap``.

    Example:
        >>> torch.func.jacfwd(lambda x: x * x)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        check_real("jacfwd", args, "inputs")
        selected = select_arguments(args, argnums)
        of_some = of_selected(func, args, argnums, kwargs)
        leaves, tree = tree_flatten(selected)
        units = basis(leaves)
        aux: Any = None

        def push(*tangents: Tensor) -> Any:
            nonlocal aux
            value, derivative, *more = jvp(of_some, (selected,), (tree_unflatten(tangents, tree),), has_aux=has_aux)
            check_real("jacfwd", value, "outputs")
            return (derivative, more[0]) if has_aux else derivative

        derivatives = vmap(push, out_dims=(0, None) if has_aux else 0, randomness=randomness)(*units)
        if has_aux:
            derivatives, aux = derivatives
        counts = [x.numel() for x in leaves]

        def columns(j: Tensor) -> Any:
            parts = j.movedim(0, -1).split(counts, -1)
            return tree_unflatten([p.reshape((*j.shape[1:], *x.shape)) for p, x in zip(parts, leaves)], tree)

        result = tree_map(columns, derivatives)
        return (result, aux) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of ``func``: forward over reverse.

    Example:
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
