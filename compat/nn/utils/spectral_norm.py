"""Spectral normalization by a hook before each call; prefer ``parametrizations.spectral_norm``."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.transforms.grad_mode import no_grad
from compat.nn import functional as F
from compat.nn._uninitialized import is_lazy
from compat.nn.parameter import Parameter
from compat.nn.utils.parametrizations import output_dim

__all__ = [
    "SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "remove_spectral_norm",
    "spectral_norm",
]  # fmt: skip


class SpectralNorm:
    """The hook that divides a weight by its largest singular value.

    Args:
        name: the name of the weight.
        n_power_iterations: the number of iterations per forward pass in training.
        dim: the dimension of the rows of the matrix.
        eps: the lower bound of norms in divisions.

    Raises:
        ValueError: if ``n_power_iterations`` is not positive.
    """

    #: Version 1 stores ``v`` besides ``u``.
    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """The weight as a matrix whose rows are its slices along ``dim``."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.reshape(weight.shape[0], -1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """The weight divided by its largest singular value.

        Args:
            do_power_iteration: whether to update the singular vectors first, in place.
        """
        weight, u, v = [getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v")]
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v = F.normalize(matrix.t().mv(u), dim=0, eps=self.eps, out=v)
                    u = F.normalize(matrix.mv(v), dim=0, eps=self.eps, out=u)
                # Copies, as the next call changes these in place.
                u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _right_vector(self, matrix: Any, u: Any, sigma: Any) -> Any:
        """The right singular vector ``v`` for the left one ``u`` and a singular value."""
        v = names_of("linalg")["multi_dot"]([matrix.t().mm(matrix).pinverse(), matrix.t(), u.unsqueeze(1)]).squeeze(1)
        return v.mul_(sigma / u.dot(matrix.mv(v)))

    @staticmethod
    def apply(module: Any, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Registers the hook, and the tensors from which it computes the weight.

        Raises:
            RuntimeError: if the weight has such a hook already.
            ValueError: if the weight is None or has no size yet.
        """
        if any(isinstance(hook, SpectralNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            sizes = made.reshape_weight_to_matrix(weight).shape
            u, v = [F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in sizes]
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        # Not as a parameter, since it is not trained; the hook replaces it.
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made


class SpectralNormLoadStateDictPreHook:
    """Completes state dicts saved before ``v`` was stored."""

    def __init__(self, fn: SpectralNorm):
        self.fn = fn

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list, *_: Any
    ) -> None:
        version = local_metadata.get("spectral_norm", {}).get(f"{self.fn.name}.version")
        if version is not None and version >= 1:
            return
        key = prefix + self.fn.name
        complete = all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v"))
        if version is None and complete and key not in state_dict:
            return
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if missing:
            if strict:
                missing_keys += missing
            return
        with no_grad():
            original = state_dict[f"{key}_orig"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = self.fn.reshape_weight_to_matrix(original)
            state_dict[f"{key}_v"] = self.fn._right_vector(matrix, state_dict[f"{key}_u"], sigma)


class SpectralNormStateDictHook:
    """Saves the version in the state dict."""

    def __init__(self, fn: SpectralNorm):
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a weight by its largest singular value, estimated by power iteration in training.

    Source: T. Miyato et al., "Spectral normalization for generative adversarial networks", ICLR 2018.

    Args:
        name: the name of the parameter.
        n_power_iterations: the number of iterations per forward pass in training.
        eps: the lower bound of norms in divisions.
        dim: the dimension of the rows of the matrix; by default the output dimension.

    Returns:
        The module.

    Raises:
        RuntimeError, ValueError: if the weight is normalized already, or None.

    Example:
        >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(20, 40))
        >>> layer.weight_u.shape
        torch.Size([40])
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module, dim), eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Removes ``spectral_norm``; returns the module.

    Raises:
        ValueError: if the weight is not normalized.

    Example:
        >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2))
        >>> sorted(name for name, _ in torch.nn.utils.remove_spectral_norm(layer).named_parameters())
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for hooks, kind in (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    ):
        for key, hook in hooks.items():
            found = getattr(hook, "hook", hook)
            if isinstance(found, kind) and found.fn.name == name:
                del hooks[key]
                break
    return module
