"""Gradients of parameters for each sample of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_map
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat.nn.modules.module import Module
from compat.nn.utils.stateless import call as functional_call

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """A function that calls a module, and whose backward pass stores the gradient of each sample.

    The backward pass sets ``grad_sample`` of the parameters that require gradients, with the batch as first dimension,
    instead of ``grad``. ``vmap`` batches calls with one sample, so samples must not depend on each other.

    Args:
        module: the module.
        batch_size: the size of the batch; by default that of the tensors among the arguments.
        loss_reduction: "sum", or "mean" for a loss that is a mean over the batch: gradients are then multiplied by
            the batch's size.
        batch_first: whether the batch is the first dimension of arguments and results, not the second.

    Raises:
        RuntimeError: for an invalid argument, if the size of the batch is ambiguous, or if ``grad_sample`` of a
            parameter is not None.

    Example:
        >>> from compat.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> layer = torch.nn.Linear(4, 3)
        >>> call_for_per_sample_grads(layer)(torch.ones(5, 4)).sum().backward()
        >>> layer.weight.grad_sample.shape, layer.weight.grad
        (torch.Size([5, 3, 4]), None)
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for name, parameter in module.named_parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                f"the parameter {name} has a grad_sample: gradients would be added to it. Set it to None before "
                "another call of call_for_per_sample_grads"
            )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def forward(*args: Any, **kwargs: Any) -> Any:
        size = _batch_size(args, kwargs, dim) if batch_size is None else batch_size
        factor = size if loss_reduction == "mean" else 1
        expanded = {name: _expanded(p, size, factor) for name, p in module.named_parameters() if p.requires_grad}
        in_dims = _dims((args, kwargs), size, dim)

        def sample(parameters: dict[str, Tensor], arguments: Any) -> Any:
            args, kwargs = tree_map(lambda x, d: x if d is None else x.unsqueeze(dim), arguments, in_dims)
            return functional_call(module, parameters, args, kwargs, tie_weights=True, strict=False)

        vmap = names_of("torch")["vmap"]
        batched = vmap(sample, in_dims=(0, in_dims), out_dims=dim, randomness="different")(expanded, (args, kwargs))
        return tree_map(lambda out: out.flatten(dim, dim + 1), batched)

    return forward


def _batch_size(args: Any, kwargs: Any, dim: int) -> int:
    """The size of dimension ``dim`` of the tensors among the arguments."""
    sizes = [leaf.shape[dim] for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so the batch size "
            "cannot be computed from the inputs. Please specify it explicitly"
        )
    if len(set(sizes)) > 1:
        raise RuntimeError(
            f"When computing batch size, found at least one input with batch size {sizes[0]} and one with batch size "
            f"{next(s for s in sizes if s != sizes[0])}. Please specify it explicitly using the batch size kwarg in "
            "call_for_per_sample_grads"
        )
    return sizes[0]


def _dims(tree: Any, size: int, dim: int) -> Any:
    """The batch dimension of each leaf of the arguments; None for values without one, which all samples share."""

    def of(leaf: Any) -> int | None:
        batched = isinstance(leaf, Tensor) and leaf.dim() > dim and leaf.shape[dim] == size
        return dim if batched else None

    return tree_map(of, tree)


def _expanded(parameter: Tensor, size: int, factor: int) -> Tensor:
    """A parameter expanded over the samples; a hook adds its gradient to ``parameter.grad_sample``."""
    copies = parameter.detach().expand(size, *parameter.shape).requires_grad_()

    def store(gradient: Tensor) -> Tensor:
        scaled = gradient * factor if factor != 1 else gradient
        previous = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = scaled if previous is None else previous + scaled  # type: ignore[attr-defined]
        return gradient

    copies.register_hook(store)
    return copies
