"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import chain
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._operators.shape.cat_stack import stack
from compat.func._modules import functional_call
from compat.nn.modules.module import Module


class FunctionalModuleWithBuffers(Module):
    """A stateless module: called with its parameters, its buffers, and the module's arguments.

    Attributes:
        stateless_model: the module, on the meta device.
        param_names, buffer_names: the first name of each parameter and buffer.
        names_map: all names of each parameter and buffer, by the first.
    """

    def __init__(
        self,
        stateless_model: Module,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
        names_map: dict[str, list[str]],
    ):
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names
        self.names_map = names_map

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's result with these values."""
        values = zip((*self.param_names, *self.buffer_names), (*params, *buffers))
        given = {name: value for first, value in values for name in self.names_map[first]}
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A stateless module without buffers: called with its parameters and the module's arguments."""

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's result with these parameters."""
        return super().forward(params, (), *args, **kwargs)


def _names(model: Module) -> dict[str, list[str]]:
    """All names of each parameter and buffer, by the first."""
    found: dict[int, list[str]] = {}
    both = (model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False))
    for name, value in chain(*both):
        found.setdefault(id(value), []).append(name)
    return {names[0]: names for names in found.values()}


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A module as a function, with copies of its parameters and its buffers.

    Args:
        disable_autograd_tracking: whether to set ``requires_grad`` of the parameters to False.

    Example:
        >>> f, params, buffers = make_functional_with_buffers(torch.nn.BatchNorm1d(2))
        >>> f(params, buffers, torch.ones(3, 2))
        tensor([[0., 0.],
                [0., 0.],
                [0., 0.]], grad_fn=<NativeBatchNormBackward0>)
    """
    values = copy.deepcopy(model)
    params, buffers = dict(values.named_parameters()), dict(values.named_buffers())
    if disable_autograd_tracking:
        for p in params.values():
            p.requires_grad_(False)
    stateless = copy.deepcopy(model).to("meta")
    function = FunctionalModuleWithBuffers(stateless, tuple(params), tuple(buffers), _names(model))
    return function, tuple(params.values()), tuple(buffers.values())


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """A module without buffers as a function, with copies of its parameters.

    Args:
        disable_autograd_tracking: whether to set ``requires_grad`` of the parameters to False.

    Raises:
        RuntimeError: for a module with buffers.

    Example:
        >>> f, params = make_functional(torch.nn.Linear(2, 3))
        >>> f([torch.zeros(3, 2), torch.ones(3)], torch.ones(2))
        tensor([1., 1., 1.])
    """
    if next(model.buffers(), None) is not None:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    function, params, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return FunctionalModule(function.stateless_model, function.param_names, (), function.names_map), params


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Modules of one class as one function, with their parameters and their buffers stacked, for ``vmap``.

    Raises:
        RuntimeError: for no modules, and for modules of different classes or modes.

    Example:
        >>> f, params, buffers = combine_state_for_ensemble([torch.nn.Linear(2, 3) for _ in range(4)])
        >>> torch.vmap(f, (0, 0, None))(params, buffers, torch.ones(5, 2)).shape
        torch.Size([4, 5, 3])
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, params, buffers = zip(*map(make_functional_with_buffers, models))
    stacked = tuple(stack(list(same)).detach() for same in zip(*params))
    return functions[0], stacked, tuple(stack(list(same)).detach() for same in zip(*buffers))
