"""``freeze``: a module whose parameters and buffers are constants."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from compat.jit._classes import ScriptModule
from compat.jit._saving import given_methods
from compat.nn.modules.module import Module

__all__ = ["freeze", "optimize_for_inference"]


def freeze(mod: Any, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True) -> Any:
    """A copy of a module in evaluation mode whose parameters and buffers are constants.

    The copy has no parameters, its ``state_dict`` is empty, and its results need no gradients.

    Args:
        mod: a module that was scripted or traced.
        preserved_attrs: ignored, as the copy keeps all attributes and methods.

    Raises:
        RuntimeError: for a module that is not scripted, or in training mode.

    Example:
        >>> frozen = torch.jit.freeze(torch.jit.script(torch.nn.Linear(2, 1).eval()))
        >>> list(frozen.parameters()), frozen(torch.ones(1, 2)).requires_grad
        ([], False)
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    made: Any = copy.deepcopy(mod)
    for module in made.modules():
        _freeze_own(module)
    return given_methods(made)


def _freeze_own(module: Module) -> None:
    """Makes a module's own parameters and buffers plain attributes."""
    for held in (module._parameters, module._buffers):
        for name, t in list(held.items()):
            del held[name]
            module.__dict__[name] = None if t is None else t.requires_grad_(False)


def optimize_for_inference(mod: Any, other_methods: Sequence[str] | None = None) -> Any:
    """A frozen copy of a scripted module, which is set to evaluation mode; PyTorch optimizes it further.

    Args:
        mod: a module that was scripted, traced or frozen.
        other_methods: ignored, as the copy keeps all methods.
    """
    return freeze(mod.eval(), other_methods)
