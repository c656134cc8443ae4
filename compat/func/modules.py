"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat.ops.joining import stack
from compat.tensor import Tensor


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers than its own.

    Buffers that the module replaces while it runs are replaced in the dictionary that was given.

    Args:
        parameter_and_buffer_dicts: tensors by dotted name, in one dictionary or a sequence of them.
        args, kwargs: what the module is called with.
        tie_weights: whether what is given for one of several names of the same tensor goes for all of them.
        strict: whether all its parameters and buffers must be given.

    Raises:
        ValueError: for the same name in two dictionaries, or different values for one tensor under several names.
        RuntimeError: where names are missing or unknown, and ``strict``.

    Example:
        >>> import compat as torch
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
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with reparametrized(module, given, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def _merged(dicts: Sequence[Any]) -> dict[str, Any]:
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


@contextmanager
def reparametrized(
    module: Any, tensors: dict[str, Any], *, tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Runs the body while a module has other parameters and buffers, given by dotted name."""
    own = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    given = _untied(own, tensors) if tie_weights else tensors
    if strict and given.keys() != own.keys():
        raise RuntimeError(_mismatch(module, own, given))
    places = [(name, *_place(module, name), value) for name, value in given.items()]
    before = [(table, key, table.get(key, _ABSENT)) for _, table, key, _ in places]
    try:
        for _, table, key, value in places:
            table[key] = value
        yield
    finally:
        for name, table, key, _ in places:
            if name in tensors and key in table:
                tensors[name] = table[key]
        for table, key, value in before:
            if value is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = value


_ABSENT = object()


def _untied(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What is given, for all names of the tensors that it is given for."""
    names: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for same in names.values():
        values = {id(given[n]): given[n] for n in same if n in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(same)}, which are tied. Consider using "
                "tie_weights=False"
            )
        for value in values.values():
            result.update(dict.fromkeys(same, value))
    return result


def _mismatch(module: Any, own: dict[str, Any], given: dict[str, Any]) -> str:
    unknown = [n for n in given if n not in own]
    missing = [n for n in own if n not in given]
    lines = [
        f"{what} key(s): {', '.join(map(repr, names))}."
        for what, names in (("Unexpected", unknown), ("Missing", missing))
        if names
    ]
    return f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(lines)


def _place(module: Any, name: str) -> tuple[dict, str]:
    """The dictionary of the submodule that has a parameter or buffer, or that would, and its key there."""
    *path, last = name.split(".")
    for part in path:
        if not hasattr(module, part):
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        module = getattr(module, part)
    for table in (module._parameters, module._buffers):
        if last in table:
            return table, last
    return module.__dict__, last


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one class, each stacked along a new first dimension.

    Args:
        models: all in training, or all in evaluation.

    Returns:
        Two dictionaries, by dotted name; the parameters are leaves that require grad if the modules' do.

    Raises:
        RuntimeError: for no models, for different classes or modes, and where one requires grad and another does not.

    Example:
        >>> import compat as torch
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
    """Has every batch norm in a module work without running statistics, in place; returns the module.

    Running statistics are written in place, which examples of a ``vmap`` that share them cannot do.

    Example:
        >>> import compat as torch
        >>> norm = torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2))
        >>> norm.running_mean is None, norm.track_running_stats
        (True, False)
    """
    from compat.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
