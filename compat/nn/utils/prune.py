"""Pruning: masks that set elements of parameters to zero.

A pruned parameter ``weight`` is kept as the parameter ``weight_orig`` and the buffer ``weight_mask``; a hook before
each call computes ``weight`` from them.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.types.memory_format import contiguous_format
from compat._operators.create.factories import ones_like, zeros_like
from compat.nn.utils.convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """The base of pruning methods: hooks that compute masks and apply them.

    A class defines ``compute_mask`` and ``PRUNING_TYPE``, which determines the part of a pruned parameter that further
    pruning applies to: ``"unstructured"`` the remaining elements, ``"structured"`` the remaining slices along the
    method's ``dim``, ``"global"`` all elements.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask: ones for elements to keep.

        Args:
            t: the importance of each element.
            default_mask: the previous mask.
        """

    def apply_mask(self, module: Any) -> Any:
        """The parameter times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = getattr(module, f"{self._tensor_name}_mask"), getattr(module, f"{self._tensor_name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prunes a parameter; elements pruned before stay pruned.

        Args:
            args, kwargs: arguments of the method's constructor.
            importance_scores: a tensor of the parameter's shape, used instead of the parameter.

        Returns:
            The hook: this method, or a ``PruningContainer`` of it and the previous ones.
        """
        method = _combined(cls(*args, **kwargs), module, name)
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {scores.shape} vs "
                f"{original.shape}"
            )
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
            default = ones_like(original)
        else:
            default = getattr(module, f"{name}_mask").detach().clone()
        try:
            module.register_buffer(f"{name}_mask", method.compute_mask(scores, default_mask=default))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, getattr(module, f"{name}_orig"))
                del module._parameters[f"{name}_orig"]
            raise
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """The tensor times the mask that the method computes for it."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {scores.shape} vs {t.shape}"
            )
        return t * self.compute_mask(scores, default_mask=ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Any) -> None:
        """Makes pruning permanent."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _combined(method: Any, module: Any, name: str) -> Any:
    """The new method, or a container of it and the parameter's previous method, whose hook is removed."""
    method._tensor_name = name
    hooks = module._forward_pre_hooks
    found = [k for k, hook in hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
    if len(found) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    if not found:
        return method
    before = hooks.pop(found[0])
    container = before if isinstance(before, PruningContainer) else PruningContainer(before)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several methods, each of which prunes elements that the previous ones kept.

    Args:
        args: the methods, all of the same parameter.
    """

    def __init__(self, *args: Any):
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method.

        Raises:
            TypeError: if ``method`` is not a pruning method.
            ValueError: if it prunes another parameter.
        """
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        mask = mask.clone() if mask is default_mask else mask  # the caller's mask must not change
        remaining = _remaining(method, t, default_mask)
        mask[remaining] = method.compute_mask(t[remaining], default_mask=default_mask[remaining]).to(dtype=mask.dtype)
        return mask


def _remaining(method: Any, t: Any, mask: Any) -> Any:
    """The index of the elements that a method may prune in a partly pruned tensor."""
    index: list[Any] = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return tuple(index)
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim + t.dim() if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    index[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return tuple(index)


# ---------------------------------------------------------------- methods


class Identity(BasePruningMethod):
    """Adds mask and hook without pruning."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        return super().apply(module, name)


class _ByAmount(BasePruningMethod):
    """Prunes a given number or fraction of the elements."""

    def __init__(self, amount: Any):
        if not isinstance(amount, numbers.Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        is_count = isinstance(amount, numbers.Integral)
        value: Any = amount
        if (is_count and value < 0) or (not is_count and not 0.0 <= float(amount) <= 1.0):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount: Any = amount

    def _count(self, total: int) -> Any:
        """The number of elements to prune of ``total``."""
        if not isinstance(self.amount, numbers.Integral):
            return round(self.amount * total)
        count: int = int(self.amount)
        if count > total:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={total}")
        return self.amount


class _Unstructured(_ByAmount):
    """Prunes single elements."""

    PRUNING_TYPE = "unstructured"

    def _pruned_indices(self, t: Any, count: int) -> Any:
        """The indices of the elements to prune in the flattened tensor."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = self._count(t.nelement())
        mask = default_mask.clone(memory_format=contiguous_format)
        if count != 0:
            mask.view(-1)[self._pruned_indices(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random.

    Args:
        amount: the number or fraction of elements.
    """

    def _pruned_indices(self, t: Any, count: int) -> Any:
        return names_of("torch")["rand_like"](t).view(-1).topk(count).indices

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements closest to zero.

    Args:
        amount: the number or fraction of elements.
    """

    def _pruned_indices(self, t: Any, count: int) -> Any:
        return t.abs().view(-1).topk(count, largest=False).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, importance_scores: Any = None
    ) -> Any:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_ByAmount):
    """Prunes slices along a dimension."""

    PRUNING_TYPE = "structured"
    dim: int

    def _kept(self, t: Any, count: int) -> Any:
        """The index along ``dim`` of the slices to keep."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = self._count(t.shape[self.dim])
        kept = self._kept(t, count)
        if count == 0:
            return default_mask
        index: list[Any] = [slice(None)] * t.dim()
        index[self.dim] = kept
        mask = zeros_like(t)
        mask[tuple(index)] = 1
        mask *= default_mask.to(dtype=mask.dtype)
        return mask


class RandomStructured(_Structured):
    """Prunes slices at random.

    Args:
        amount: the number or fraction of slices.
        dim: the dimension of the slices.
    """

    def __init__(self, amount: Any, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def _kept(self, t: Any, count: int) -> Any:
        if count == 0:
            return None
        drawn = names_of("torch")["rand"](t.shape[self.dim])
        return drawn > drawn.kthvalue(k=count).values

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices of least norm.

    Args:
        amount: the number or fraction of slices.
        n: the order of the norm, as for ``torch.norm``.
        dim: the dimension of the slices.
    """

    def __init__(self, amount: Any, n: Any, dim: int = -1):
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def _kept(self, t: Any, count: int) -> Any:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = names_of("torch")["norm"](t, p=self.n, dim=others)
        return norms.topk(t.shape[self.dim] - count, largest=True).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Args:
        mask: ones for elements to keep.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any):
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


# ---------------------------------------------------------------- functions


def identity(module: Any, name: str) -> Any:
    """Adds mask and hook to a parameter without pruning; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prunes elements of a parameter at random; returns the module.

    Args:
        amount: the number or fraction of elements.

    Example:
        >>> layer = random_unstructured(torch.nn.Linear(2, 3), "weight", amount=1)
        >>> int((layer.weight_mask == 0).sum())
        1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prunes the elements of a parameter that are closest to zero; returns the module.

    Args:
        amount: the number or fraction of elements.
        importance_scores: a tensor of the parameter's shape, used instead of the parameter.

    Example:
        >>> layer = l1_unstructured(torch.nn.Linear(2, 3), "weight", amount=0.5)
        >>> sorted(layer.state_dict())
        ['bias', 'weight_mask', 'weight_orig']
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prunes slices of a parameter along ``dim`` at random; returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prunes the slices of a parameter along ``dim`` of least ``n``-norm; returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prunes elements of several parameters, ranked together.

    Args:
        parameters: pairs of a module and a parameter's name.
        pruning_method: an unstructured method; ``kwargs`` are its arguments.
        importance_scores: a dictionary of tensors to rank by, with such pairs as keys.

    Raises:
        TypeError: for other methods, and for arguments of other types.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = importance_scores if importance_scores is not None else {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    values = parameters_to_vector([scores.get((m, name), getattr(m, name)) for m, name in pairs])
    masks = [getattr(m, f"{name}_mask", ones_like(getattr(m, name))) for m, name in pairs]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    mask = PruningContainer(method).compute_mask(values, parameters_to_vector(masks))
    start = 0
    for module, name in pairs:
        parameter = getattr(module, name)
        end = start + parameter.numel()
        custom_from_mask(module, name, mask=mask[start:end].view_as(parameter))
        start = end


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prunes a parameter by a mask, ones for elements to keep; returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Makes the pruning of a parameter permanent; returns the module.

    Raises:
        ValueError: if it is not pruned.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a module, or a submodule, has a pruned parameter."""
    return any(
        isinstance(hook, BasePruningMethod) for inner in module.modules() for hook in inner._forward_pre_hooks.values()
    )
