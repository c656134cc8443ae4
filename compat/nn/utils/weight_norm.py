"""Weight normalization by a hook before each call; prefer ``parametrizations.weight_norm``."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.types.errors import warn
from compat.nn._uninitialized import is_lazy
from compat.nn.parameter import Parameter

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook that computes a weight from its norms and directions.

    Args:
        name: the name of the weight.
        dim: the dimension of the slices that have norms; None for a single norm.
    """

    def __init__(self, name: str, dim: int | None):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """The weight, from its norms and directions."""
        length, direction = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return names_of("torch")["_weight_norm"](direction, length, self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Registers the hook, and the tensors from which it computes the weight.

        Raises:
            RuntimeError: if the weight has such a hook already.
            ValueError: if the weight has no size yet.
        """
        warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
        )
        if any(isinstance(hook, WeightNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        lengths = names_of("torch")["norm_except_dim"](weight, 2, made.dim)
        module.register_parameter(f"{name}_g", Parameter(lengths.data))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        for suffix in ("_g", "_v"):
            del module._parameters[self.name + suffix]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Trains the norms of a weight's slices, ``name_g``, separately from their directions, ``name_v``.

    Source: T. Salimans and D. P. Kingma, "Weight normalization", NeurIPS 2016.

    Args:
        name: the name of the parameter.
        dim: the dimension of the slices that have norms; None for a single norm.

    Returns:
        The module.

    Raises:
        RuntimeError: if the weight is normalized already.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(20, 40))
        >>> layer.weight_g.shape, layer.weight_v.shape
        (torch.Size([40, 1]), torch.Size([40, 20]))
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Removes ``weight_norm``; returns the module.

    Raises:
        ValueError: if the weight is not normalized.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
