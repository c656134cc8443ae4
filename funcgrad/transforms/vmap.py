"""``vmap``: vectorizing a function over an axis."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax

from funcgrad.arguments.flatten import Flat, check_function, is_float0, kind, no_tangent, settled
from funcgrad.core import trees
from funcgrad.core.errors import explained
from funcgrad.core.tracing import is_array, type_of
from funcgrad.interpreters.batching import at_axis, batch_flat


def vmap(
    f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None, axis_size: int | None = None
) -> Callable[..., Any]:
    """``f`` vectorized over an axis of its arguments.

    Args:
        f: a function of one batch element; takes and returns pytrees of arrays.
        in_axes: the batch axis of each argument: an int or None (the argument is shared) for all, or a sequence with
            one entry per positional argument, each an int, None, or a pytree prefix of the argument.
        out_axes: the batch axis of each result: an int, or a pytree prefix of the result; None for an unbatched result.
        axis_name: the name of the axis for collectives such as ``psum`` in ``f``; any hashable value.
        axis_size: the batch size; required if no argument is batched, otherwise it must match theirs.

    Returns:
        A function of batched arguments. Keyword arguments are batched along their first axis.

    Raises:
        ValueError: if nothing is batched, sizes differ, or an axis is out of range.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.vmap(fnp.dot, in_axes=(0, None))(fnp.ones((3, 2)), fnp.ones(2)))
        [2. 2. 2.]
    """

    check_function("vmap", f)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = trees.flatten((args, kwargs))
        axes = _in_axes(in_axes, args, kwargs)
        size = _batch_size(leaves, axes, args, kwargs, axis_size)
        dims = [None if a is None else a % len(_shape(x)) for x, a in zip(leaves, axes, strict=True)]
        for i, (x, dim) in enumerate(zip(leaves, dims, strict=True)):
            if dim is not None and is_float0(x):
                leaves[i], dims[i] = no_tangent((*x.shape[:dim], *x.shape[dim + 1 :])), None
        flat = Flat(lambda a, k: f(*a, **k), tree, "vmap")
        outs, found = batch_flat(flat, size, leaves, dims, axis_name)
        wanted = _prefix("out_axes", out_axes, trees.unflatten(flat.out_tree, outs))
        placed = [_place(o, d, axis, size) for o, d, axis in zip(outs, found, wanted, strict=True)]
        return trees.unflatten(flat.out_tree, settled(placed))

    return wrapped


def _shape(x: Any) -> tuple[int, ...]:
    return x.shape if is_float0(x) else type_of(x).shape


def _place(out: Any, dim: int | None, axis: int | None, size: int) -> Any:
    if axis is None:
        if dim is not None:
            raise ValueError("vmap: out_axes is None for a result that depends on the batched arguments; wanted an int")
        return out
    ndim = len(_shape(out)) + (dim is None)
    if not -ndim <= axis < ndim:
        raise ValueError(f"vmap: out_axes={axis} is out of range for a result of {ndim} axes")
    if is_float0(out):
        return no_tangent((*out.shape[: axis % ndim], size, *out.shape[axis % ndim :]))
    return at_axis(out, dim, axis % ndim, size)


def _in_axes(in_axes: Any, args: tuple, kwargs: dict) -> list[int | None]:
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        message = (
            f"vmap: in_axes {in_axes} has {len(in_axes)} entries, but the call has {len(args)} positional arguments"
        )
        raise explained(ValueError(message), "vmap-axes")
    return _prefix("in_axes", in_axes, args) + [0] * len(trees.leaves(kwargs))


def _prefix(name: str, prefix: Any, value: Any) -> list[int | None]:
    """One axis per leaf of ``value``, from a pytree prefix of it."""
    if prefix is None or isinstance(prefix, int):
        return [prefix] * len(trees.leaves(value))
    axes: list[int | None] = []

    def add(axis: Any, subtree: Any) -> None:
        if not (axis is None or isinstance(axis, int)):
            raise TypeError(f"vmap: {name} must hold ints and None, got {kind(axis)}")
        axes.extend([axis] * len(trees.leaves(subtree)))

    try:
        jax.tree_util.tree_map(add, prefix, value, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(f"vmap: {name} {prefix} is not a prefix of {trees.structure(value)}: {error}") from None
    return axes


def _names(args: tuple, kwargs: dict) -> list[str]:
    """The names of the leaves of the arguments: ``argument 0['weight']``."""
    paths = [path for path, _ in trees.tree_flatten_with_path((args, kwargs))[0]]
    return [f"argument {path[1].idx if path[0].idx == 0 else path[1].key}{trees.keystr(path[2:])}" for path in paths]


def _batch_size(leaves: Sequence[Any], axes: Sequence[int | None], args: tuple, kwargs: dict, given: int | None) -> int:
    def named(i: int) -> str:
        return f"{_names(args, kwargs)[i]} of type {'float0' if is_float0(leaves[i]) else type_of(leaves[i])}"

    # The first leaf of each size.
    sizes: dict[int, int | None] = {} if given is None else {operator.index(given): None}
    for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        if not is_array(leaf):
            raise TypeError(f"vmap: {_names(args, kwargs)[i]} is {kind(leaf)}, wanted an array, or None in in_axes")
        shape = _shape(leaf)
        if not -len(shape) <= axis < len(shape):
            message = f"vmap: in_axes has {axis} for {named(i)}, which has {len(shape)} axes"
            raise explained(ValueError(message), "vmap-axes")
        sizes.setdefault(shape[axis], i)
    if not sizes:
        raise ValueError(
            "vmap: nothing to batch: in_axes is None for every argument, or there are no arrays; give axis_size"
        )
    if len(sizes) > 1:
        words = [
            f"axis_size is {n}" if i is None else f"{named(i)} has {n} along axis {axes[i]}" for n, i in sizes.items()
        ]
        raise explained(ValueError(f"vmap: the batch sizes differ: {'; '.join(words)}"), "vmap-axes")
    return next(iter(sizes))
