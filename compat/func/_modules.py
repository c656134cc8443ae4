"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._operators.shape.cat_stack import stack
from compat.nn.modules.batchnorm import _BatchNorm
from compat.nn.utils.stateless import call


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with its parameters and buffers replaced.

    Buffers that the module reassigns while it runs are replaced in the given dictionary.

    Args:
        parameter_and_buffer_dicts: a dictionary of tensors by dotted name, or a sequence of such dictionaries.
        args, kwargs: the arguments of the module.
        tie_weights: whether a value given for one of several names of a tensor applies to all of them.
        strict: whether all parameters and buffers must be given.

    Raises:
        ValueError: for the same name in two dictionaries, or different values for one tensor under several names.
        RuntimeError: with ``strict``, if names are missing or unknown.

    Example:
        >>> linear = torch.nn.Linear(2, 1)
        >>> weights = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
        >>> torch.func.functional_call(linear, weights, torch.ones(2))
        tensor([2.])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        given = _merged(parameter_and_buffer_dicts)
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def _merged(dicts: Sequence[Any]) -> dict[str, Any]:
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one class, each stacked along a new first dimension.

    Args:
        models: the modules, all in training or all in evaluation mode.

    Returns:
        Two dictionaries, by dotted name; the parameters are leaves that require grad if the modules' do.

    Raises:
        RuntimeError: for no models, different classes or modes, and different ``requires_grad``.

    Example:
        >>> params, buffers = torch.func.stack_module_state([torch.nn.Linear(2, 3) for _ in range(4)])
        >>> params["weight"].shape
        torch.Size([4, 3, 2])
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return _stacked(parameters), _stacked(buffers)


def _stacked(tables: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: _stacked_leaf([table[name] for table in tables], name) for name in tables[0]}


def _stacked_leaf(tensors: list[Tensor], name: str) -> Tensor:
    required = {t.requires_grad for t in tensors}
    if len(required) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = stack(tensors)
    return result.detach().requires_grad_() if required == {True} else result


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Removes the running statistics of all batch norms in a module; returns the module.

    ``vmap`` does not support the in-place updates of running statistics that are not batched.

    Example:
        >>> norm = torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2))
        >>> norm.running_mean is None, norm.track_running_stats
        (True, False)
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
