"""Jacobians and Hessians: a pushforward or a pullback vectorized over a basis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.arguments.flatten import (
    Argnums,
    Flat,
    check_function,
    check_inexact,
    is_float0,
    no_tangent,
    partial_of,
    positions_of,
    zero_tangent,
)
from funcgrad.core import dtypes, trees
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.forward import jvp_flat
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.primitives.shape import cut, reshape, zeros
from funcgrad.transforms.vmap import vmap


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """For each leaf, a stack of rows of the identity matrix over all leaves."""
    total = sum(type_of(x).size for x in leaves)
    parts, offset = [], 0
    for leaf in leaves:
        type = type_of(leaf)
        rows = np.eye(total, type.size, -offset, dtype=type.dtype)
        parts.append(rows.reshape(total, *type.shape))
        offset += type.size
    return parts


def jacfwd(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian by forward mode, one column at a time: for few inputs and many outputs.

    Args:
        f: takes pytrees of floating arrays, and returns one.
        argnums: which positional arguments to differentiate by.
        has_aux: ``f`` returns ``(result, aux)``, and so does the returned function.
        holomorphic: the arguments are complex, and ``f`` is holomorphic.

    Returns:
        A function of the same arguments. Each leaf of the result has, for each leaf of the argument, a block of shape
        ``output.shape + input.shape``.

    Raises:
        TypeError: if an argument is not floating.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.jacfwd(lambda x: x * x)(fnp.array([1.0, 2.0])))
        [[2. 0.]
         [0. 4.]]
    """

    check_function("jacfwd", f)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of("jacfwd", argnums, len(args))
        chosen = [args[p] for p in positions]
        check_inexact("jacfwd", [f"argument {p}" for p in positions], chosen, holomorphic)
        leaves, tree = trees.flatten(chosen)
        flat = Flat(partial_of(f, positions, args, kwargs), tree, "jacfwd", has_aux)

        def push(*tangents: Any) -> tuple[list[Any], list[Any]]:
            every, found = jvp_flat(flat, leaves, tangents)
            outs, _ = flat.split(every)
            _check_outputs("jacfwd", outs, holomorphic)
            columns = [zero_tangent(o) if t is None else t for o, t in zip(outs, found, strict=False)]
            return columns, every if has_aux else []

        columns, every = vmap(push, out_axes=(-1, 0))(*_basis(leaves))
        jacobian = [_split_axis(c, -1, leaves, tree, argnums) for c in columns]
        result = trees.unflatten(flat.out_tree, jacobian)
        # A custom rule may return results batched together with tangents: all batch elements are equal.
        return (result, flat.split([_first(x) for x in every])[1]) if has_aux else result

    return wrapped


def jacrev(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode, one row at a time: for many inputs and few outputs.

    Args:
        f, argnums, has_aux, holomorphic: as for ``jacfwd``.
        allow_int: whether arguments may be integers or booleans: their blocks are zeros of dtype ``float0``.

    Returns:
        A function of the same arguments; blocks as in ``jacfwd``.

    Raises:
        TypeError: if an argument is not floating.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.jacrev(lambda x: fnp.sum(x * x))(fnp.array([1.0, 2.0])))
        [2. 4.]
    """

    check_function("jacrev", f)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        positions = positions_of("jacrev", argnums, len(args))
        chosen = [args[p] for p in positions]
        check_inexact("jacrev", [f"argument {p}" for p in positions], chosen, holomorphic, allow_int)
        leaves, tree = trees.flatten(chosen)
        types = [type_of(x) for x in leaves]
        flat = Flat(partial_of(f, positions, args, kwargs), tree, "jacrev", has_aux)
        every, pull = vjp_flat(flat, leaves)
        outs, aux = flat.split(every)
        _check_outputs("jacrev", outs, holomorphic)
        unused = [None] * (len(every) - len(outs))

        def rows(*cts: Any) -> list[Any]:
            found = pull([*cts, *unused])
            return [zeros(t.strong()) if ct is None else ct for t, ct in zip(types, found, strict=True) if t.inexact]

        moving = iter(vmap(rows)(*_basis(outs)))
        total = sum(type_of(o).size for o in outs)
        blocks = [next(moving) if t.inexact else no_tangent((total, *t.shape)) for t in types]
        jacobian, offset = [], 0
        for out in outs:
            type = type_of(out)
            mine = [_rows(b, offset, type) for b in blocks]
            tree_of = trees.unflatten(tree, mine)
            jacobian.append(tree_of[0] if isinstance(argnums, int) else tuple(tree_of))
            offset += type.size
        result = trees.unflatten(flat.out_tree, jacobian)
        return (result, aux) if has_aux else result

    return wrapped


def _check_outputs(transform: str, outs: Sequence[Any], holomorphic: bool) -> None:
    for out in outs:
        dtype = type_of(out).dtype
        if not dtypes.is_inexact(dtype):
            raise TypeError(f"{transform}: the function returned dtype {dtype}, of which there is no derivative")
        if dtypes.is_complex(dtype) and transform == "jacrev" and not holomorphic:
            raise TypeError(
                f"{transform}: the function returned dtype {dtype}; if it is holomorphic, say holomorphic=True"
            )


def _cut(x: Any, axis: int, start: int, count: int) -> Any:
    return x if type_of(x).shape[axis] == count else cut(x, axis, start, start + count)


def _first(x: Any) -> Any:
    return reshape(_cut(x, 0, 0, 1), shape=type_of(x).shape[1:])


def _rows(block: Any, offset: int, out: ArrayType) -> Any:
    if is_float0(block):
        return no_tangent((*out.shape, *block.shape[1:]))
    piece = _cut(block, 0, offset, out.size)
    return reshape(piece, shape=(*out.shape, *type_of(block).shape[1:]))


def _split_axis(columns: Any, axis: int, leaves: Sequence[Any], tree: Any, argnums: Argnums) -> Any:
    axis %= type_of(columns).ndim
    parts, offset = [], 0
    for leaf in leaves:
        type = type_of(leaf)
        piece = _cut(columns, axis, offset, type.size)
        parts.append(reshape(piece, shape=(*type_of(columns).shape[:axis], *type.shape)))
        offset += type.size
    found = trees.unflatten(tree, parts)
    return found[0] if isinstance(argnums, int) else tuple(found)


def hessian(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The matrix of second derivatives: forward mode over reverse mode.

    Args:
        f, argnums, has_aux, holomorphic: as for ``jacfwd``.

    Returns:
        A function of the same arguments; blocks of shape ``output.shape + input.shape + input.shape``, of the dtype of
        the input; with ``has_aux``, a pair of these and ``aux``.

    Raises:
        TypeError: from the returned function, if an argument or the result is not floating, or is complex without
            ``holomorphic``, or real with it.
        ValueError: from the returned function, if ``argnums`` names a missing argument, or one twice.

    Example:
        >>> import funcgrad as fg, funcgrad.numpy as fnp
        >>> print(fg.hessian(lambda x: fnp.sum(x**3))(fnp.array([1.0, 2.0])))
        [[ 6.  0.]
         [ 0. 12.]]
    """
    return jacfwd(jacrev(f, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)
