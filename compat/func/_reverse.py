"""Reverse mode: ``vjp``, ``grad``, ``grad_and_value``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_unflatten, treespec_pprint
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import array, tensor_of
from compat._core.transforms import level_stack
from compat._core.types.errors import size_text
from compat.func._arguments import Argnums, check_differentiable, of_selected, select_arguments
from compat.func._grad_nodes import hooked
from compat.func._pytree_functions import Flat, paired, tensors_outside
from funcgrad.core.dtypes import is_inexact
from funcgrad.core.errors import explained
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.primitives.elementwise import conjugated
from funcgrad.primitives.shape import zeros


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``func`` and a function from cotangents of the value to a tuple of cotangents of ``primals``.

    Args:
        func: a function of tensors, or pytrees of tensors, that returns such.
        has_aux: whether ``func`` returns a pair, of which only the first part is differentiated.

    Returns:
        ``(value, pullback)``, or ``(value, pullback, aux)``.

    Raises:
        RuntimeError: if ``func`` returns leaves that are not differentiable tensors; from the pullback, if structure
            or shapes of the cotangents are not those of the value.

    Example:
        >>> y, pullback = torch.func.vjp(torch.sin, torch.zeros(2))
        >>> pullback(torch.ones(2))
        (tensor([1., 1.]),)
    """
    value, pull, aux = _vjp(func, primals, has_aux, _VJP)

    def pullback(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        return pull(cotangents)

    return (value, pullback, tensors_outside(aux)) if has_aux else (value, pullback)


_VJP = "vjp(f, *primals)"


def _vjp(func: Callable[..., Any], primals: tuple, has_aux: bool, name: str) -> tuple[Any, Callable[..., Any], Any]:
    """The value, the pullback, and the auxiliary part."""
    check_differentiable(primals)
    leaves, tree = tree_flatten(primals)
    # The pullback can be recorded even if the function is called under no_grad.
    values = [level_stack.held(array(x, anyway=name is _VJP)) for x in leaves]
    flat = Flat(func, leaves, tree, "grad", name, has_aux)
    outs, pull = vjp_flat(flat, values)
    flat.write_back()
    types, out_types = [type_of(v) for v in values], [type_of(o) for o in outs]
    result = flat.wrap(outs)
    for x, t in zip(tree_flatten(result)[0], out_types):
        if not is_inexact(t.dtype) and name is _VJP:
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{x.dtype}"
            )

    def pullback(cotangents: Any) -> Any:
        cts, structure = tree_flatten(cotangents)
        if structure != flat.out_tree:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {treespec_pprint(structure)}, primal output: {treespec_pprint(flat.out_tree)}"
            )
        grads = pull([_seed(i, ct, t) for i, (ct, t) in enumerate(zip(cts, out_types))])
        full = [zeros(t) if g is None else level_stack.held(conjugated(g)) for g, t in zip(grads, types)]
        return tree_unflatten([hooked(tensor_of(g), x) for g, x in zip(full, flat.given)], tree)

    return result, pullback, flat.aux


def _seed(i: int, cotangent: Any, expected: Any) -> Any:
    """The array of the ``i``-th cotangent, for a result of the expected type; None means 1."""
    if cotangent is None:
        if expected.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        cotangent = tensor_of(zeros(expected)) + 1
    if not isinstance(cotangent, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(cotangent).__name__}")
    x = array(cotangent)
    actual = type_of(x)
    if actual.shape != expected.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of torch.Size({size_text(actual.shape)}) and output[{i}] "
            f"has a shape of torch.Size({size_text(expected.shape)})."
        )
    if actual.dtype != expected.dtype:
        x = array(cotangent.to(tensor_of(zeros(expected)).dtype))
    return conjugated(x)


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of ``func`` and its value.

    Args:
        func: a function that returns a 0-d tensor.
        argnums: the arguments to differentiate with respect to.
        has_aux: whether ``func`` returns a pair, of which only the first part is differentiated.

    Returns:
        A function of the same arguments that returns ``(gradient, value)``, or ``(gradient, (value, aux))``.

    Example:
        >>> torch.func.grad_and_value(lambda x: (x**3).sum())(torch.tensor([2.0]))
        (tensor([12.]), tensor(8.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _grad_and_value(func, argnums, has_aux, args, kwargs)

    return wrapper


_NAME = "grad_and_value(f)(*args)"


def _grad_and_value(func: Any, argnums: Argnums, has_aux: bool, args: tuple, kwargs: dict[str, Any]) -> Any:
    selected = select_arguments(args, argnums)
    of_some = of_selected(func, args, argnums, kwargs)

    def scalar(x: Any) -> Any:
        result = of_some(x)
        out = result
        if has_aux:
            out, _ = paired(result, f"{_NAME}: output of function f should be a tuple: (output, aux)")
        if not isinstance(out, Tensor):
            raise RuntimeError(f"{_NAME}: Expected f(*args) to return a Tensor, got {type(out)}")
        if out.dim():
            message = (
                f"{_NAME}: Expected f(*args) to return a scalar Tensor, got tensor with {out.dim()} dims. Maybe you "
                "wanted to use the vjp or jacrev APIs instead?"
            )
            raise explained(RuntimeError(message), "scalar-output")
        if out.is_complex():
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")
        return result

    value, pull, aux = _vjp(scalar, (selected,), has_aux, _NAME)
    (grads,) = pull(value.detach().new_ones(()))
    return grads, ((value, tensors_outside(aux)) if has_aux else value)


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of ``func``, which returns a 0-d tensor.

    Args:
        argnums: the arguments to differentiate with respect to.
        has_aux: whether ``func`` returns a pair, of which only the first part is differentiated; the result is a pair
            too.

    Example:
        >>> torch.func.grad(lambda x: (x**3).sum())(torch.tensor([2.0]))
        tensor([12.])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper
