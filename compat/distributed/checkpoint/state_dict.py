"""State dicts of modules and optimizers by parameter name, independent of the sharding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.distributed.tensor._api import buffer_of, placed, where
from compat.nn.modules.module import Module
from compat.nn.parallel.distributed import DistributedDataParallel

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip


@dataclass
class StateDictOptions:
    """Options of state dicts.

    Attributes:
        full_state_dict: whether tensors are gathered on one device instead of sharded.
        cpu_offload: ignored.
        ignore_frozen_params: whether to omit parameters that do not require grad.
        strict: whether a module's state must be complete.
        broadcast_from_rank0: ignored: the state must be given in each process.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    strict: bool = True
    broadcast_from_rank0: bool = False


def _bare(model: Module) -> Module:
    return model.module if isinstance(model, DistributedDataParallel) else model


def _whole(value: Any, options: StateDictOptions | None) -> Any:
    if options is not None and options.full_state_dict and isinstance(value, Tensor) and where(value) is not None:
        return value.detach().full_tensor()
    return value


def get_model_state_dict(model: Module, *, submodules: Any = None, options: StateDictOptions | None = None) -> dict:
    """A module's parameters and buffers by name.

    Example:
        >>> list(get_model_state_dict(torch.nn.Linear(2, 1)))
        ['weight', 'bias']
    """
    bare = _bare(model)
    frozen = {n for n, p in bare.named_parameters() if not p.requires_grad}
    leave = frozen if options is not None and options.ignore_frozen_params else set()
    return {name: _whole(value, options) for name, value in bare.state_dict().items() if name not in leave}


def set_model_state_dict(
    model: Module, model_state_dict: Mapping[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads a module's state; parameters keep their sharding."""
    bare = _bare(model)
    mine = bare.state_dict()
    given = {name: _as_mine(value, mine.get(name)) for name, value in model_state_dict.items()}
    return bare.load_state_dict(given, strict=options is None or options.strict)


def _as_mine(value: Any, mine: Any) -> Any:
    """A tensor of one device, sharded like its target."""
    if isinstance(value, Tensor) and isinstance(mine, Tensor) and where(mine) is not None and where(value) is None:
        return placed(value, buffer_of(mine).sharding)
    return value


def _optimizers(optimizers: Any) -> Sequence[Any]:
    return list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]


def _init_optim_state(optimizer: Any) -> None:
    """Initializes an optimizer's state by a step with zero gradients and learning rate."""
    if optimizer.state:
        return
    params = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if any(p.grad is not None for p in params):
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    for p in params:
        p.grad = p.detach() * 0
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * 0
    optimizer.step()
    optimizer.zero_grad()
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate
    for state in optimizer.state.values():
        if isinstance(state.get("step"), Tensor):
            state["step"].zero_()


def get_optimizer_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict:
    """The state of optimizers by parameter name; before the first step it is initialized to zeros."""
    names = {id(p): name for name, p in _bare(model).named_parameters()}
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _optimizers(optimizers):
        _init_optim_state(optimizer)
        for p, values in optimizer.state.items():
            state[names[id(p)]] = {k: _whole(v, options) for k, v in values.items()}
        groups += [{**group, "params": [names[id(p)] for p in group["params"]]} for group in optimizer.param_groups]
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: Mapping[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Loads optimizers' state; tensors are sharded like their parameters.

    Raises:
        KeyError: for an unknown parameter.
    """
    params = dict(_bare(model).named_parameters())
    groups = iter(optim_state_dict["param_groups"])
    for optimizer in _optimizers(optimizers):
        for group in optimizer.param_groups:
            given = next(groups)
            group.update({k: v for k, v in given.items() if k != "params"})
            for name in given["params"]:
                if name in optim_state_dict["state"]:
                    p = params[name]
                    kept = {k: _sharded(v, p) for k, v in optim_state_dict["state"][name].items()}
                    optimizer.state[p] = kept


def _sharded(value: Any, param: Tensor) -> Any:
    same = isinstance(value, Tensor) and value.shape == param.shape
    return _as_mine(value, param) if same else value


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[dict, dict]:
    """The state of a module, and the state of its optimizers."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: Module, optimizers: Any, *, model_state_dict: Mapping[str, Any], optim_state_dict: Mapping[str, Any],
    options: StateDictOptions | None = None,
) -> Any:  # fmt: skip
    """Loads the state of a module and its optimizers."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
