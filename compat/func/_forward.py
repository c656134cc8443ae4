"""Forward mode: ``jvp`` and ``linearize``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.autograd.forward_ad import check_tangent
from compat._core.pytree.trees import tree_flatten, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import array, tensor_of
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode
from compat._core.types.dtype import FLOATING
from compat.func._pytree_functions import Flat, tensors_outside
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.forward import jvp_flat
from funcgrad.interpreters.transpose import linearize_flat
from funcgrad.primitives.shape import zeros

_NAME = "jvp(f, primals, tangents)"


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of ``func`` and its derivative in the direction of ``tangents``.

    Args:
        primals, tangents: tuples with a tensor (or a pytree of tensors) for each argument of ``func``.
        strict: whether to raise an error if the value does not depend on ``primals``, instead of returning zeros.
        has_aux: whether ``func`` returns a pair, of which only the first part is differentiated.

    Returns:
        ``(value, derivative)``, or ``(value, derivative, aux)``.

    Raises:
        RuntimeError: if primals and tangents are not tuples of tensors of the same structure and sizes, or ``func``
            returns leaves that are not tensors.

    Example:
        >>> torch.func.jvp(lambda x: x * x, (torch.tensor(3.0),), (torch.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_NAME}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    leaves, tree = tree_flatten(primals)
    directions, same = tree_flatten(tangents)
    if tree != same:
        raise RuntimeError(
            f"{_NAME}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {tree} and tangents with structure "
            f"{same}"
        )
    _check_tensors("primals", leaves)
    _check_tensors("tangents", directions)
    for x, d in zip(leaves, directions):
        check_tangent(x, d)
    values, seeds = [array(x) for x in leaves], [array(d.to(x.dtype)) for d, x in zip(directions, leaves)]
    if not mode.forward:
        values, seeds = [level_stack.held(x) for x in values], [level_stack.held(d) for d in seeds]
    flat = Flat(func, leaves, tree, "jvp", _NAME, has_aux)
    outs, out_tangents = jvp_flat(flat, values, seeds)
    flat.write_back()
    if strict and any(t is None for t in out_tangents):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    derivative = [zeros(type_of(o)) if t is None else t for o, t in zip(outs, out_tangents)]
    result = flat.wrap([level_stack.held(o) for o in outs]), flat.wrap([level_stack.held(t) for t in derivative])
    return (*result, tensors_outside(flat.aux)) if has_aux else result


def _check_tensors(what: str, leaves: Sequence[Any]) -> None:
    if not leaves:
        raise RuntimeError(f"{_NAME}: Expected {what} to contain at least one Tensor.")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{_NAME}: Expected {what} to only contain Tensors, got {type(leaf)}")


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of ``func`` and the linear function from tangents of ``primals`` to those of the value.

    ``func`` runs once; the linear function repeats only operations on tangents.

    Raises:
        ValueError: for primals that are not differentiable.
        RuntimeError: from the linear function, if tangents differ from the primals in structure, shape or dtype.

    Example:
        >>> y, push = torch.func.linearize(torch.sin, torch.zeros(2))
        >>> push(torch.ones(2))
        tensor([1., 1.])
    """
    leaves, tree = tree_flatten(primals)
    for x in leaves:
        if isinstance(x, Tensor) and x.dtype.category < FLOATING:
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")
    values = [array(x) for x in leaves]
    flat = Flat(func, leaves, tree, "jvp", "linearize(f, *primals)")
    outs, program = linearize_flat(flat, values, [True] * len(values))
    result = flat.wrap(outs)
    types = [type_of(o) for o in outs]

    def push(*tangents: Any) -> Any:
        seeds, structure = tree_flatten(tangents)
        if structure != tree:
            raise RuntimeError(f"Expected the tangents {structure} to have the same argspec as the primals {tree}")
        for i, (x, t) in enumerate(zip(leaves, seeds)):
            for what, actual, expected in (("shape", t.shape, x.shape), ("dtype", t.dtype, x.dtype)):
                if actual != expected:
                    raise RuntimeError(
                        f"tangent:{i} with {what} {actual} in flattened pytree doesn't match the {what} {expected} of "
                        "the corresponding primal."
                    )
        out_tangents = evaluate(program, [array(t) for t in seeds])
        # The tangent of a result that is independent of the primals is a scalar zero.
        full = [x if type_of(x).shape == t.shape else zeros(t) for x, t in zip(out_tangents, types)]
        return tree_unflatten([tensor_of(x) for x in full], flat.out_tree)

    return result, push
