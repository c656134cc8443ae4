"""Functional calls: running a module with replaced parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import warn
from compat.nn.parameter import Parameter

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The deprecated form of ``torch.func.functional_call``."""
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def call(
    module: Any, tensors: dict[str, Any], args: Any, kwargs: dict[str, Any] | None, *, tie_weights: bool, strict: bool
) -> Any:
    """Calls a module with replaced parameters and buffers."""
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with reparametrized(module, tensors, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def reparametrized(
    module: Any, tensors: dict[str, Any], *, tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Context in which parameters and buffers of a module, given by dotted name, are replaced."""
    given = tensors
    if tie_weights or strict:  # otherwise names are not listed, as a module may contain itself
        own = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
        given = _untied(own, tensors) if tie_weights else tensors
        if strict and given.keys() != own.keys():
            raise RuntimeError(_mismatch(module, own, given))
    targets = [(name, *_target(module, name, value), value) for name, value in given.items()]
    before = [(table, key, table.get(key, _ABSENT)) for _, table, key, _ in targets]
    try:
        for _, table, key, value in targets:
            table[key] = value
        yield
    finally:
        for name, table, key, _ in targets:
            if name in tensors and key in table:
                tensors[name] = table[key]
        for table, key, value in before:
            if value is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = value


_reparametrize_module = reparametrized


_ABSENT = object()


def _untied(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The given values under all names of the tied tensors that they replace."""
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
    unknown = sorted(given.keys() - own.keys())
    missing = sorted(own.keys() - given.keys())
    lines = [
        f"{what} key(s): {', '.join(map(repr, names))}."
        for what, names in (("Unexpected", unknown), ("Missing", missing))
        if names
    ]
    return f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(lines)


def _target(module: Any, name: str, value: Any) -> tuple[dict, str]:
    """The dictionary of the submodule to which a parameter or buffer belongs, and its key there."""
    *path, last = name.split(".")
    for part in path:
        if not hasattr(module, part):
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        module = getattr(module, part)
    if not isinstance(value, Tensor | None):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    for table in (module._parameters, module._buffers):
        if last in table:
            return table, last
    present = getattr(module, last, None)
    if not isinstance(present, Tensor | None):
        raise TypeError(f"attribute `{last}`: {present} is not an instance of torch.Tensor")
    return module._parameters if isinstance(value, Parameter) else module.__dict__, last
