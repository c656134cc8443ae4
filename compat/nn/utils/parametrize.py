"""Tensors of modules that are computed from others: ``register_parametrization``.

A parametrized tensor is a property of a class derived for the module, which computes it from the trained tensors.
"""

from __future__ import annotations

import copyreg
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat.nn.modules.container import ModuleDict, ModuleList
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip


class _Cache:
    """Values of parametrized tensors, by module and name, inside ``cached``."""

    def __init__(self) -> None:
        self.depth = 0
        self.values: dict[tuple[int, str], Any] = {}


_cache = _Cache()


def __getattr__(name: str) -> Any:
    if name == "_cache_enabled":  # PyTorch's number of contexts of ``cached``
        return _cache.depth
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


@contextmanager
def cached() -> Iterator[None]:
    """Context in which each parametrized tensor is computed once, at the first access.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> with cached():
        ...     layer.weight is layer.weight
        True
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values = {}


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


# ---------------------------------------------------------------- ParametrizationList


class ParametrizationList(ModuleList):
    """The modules that compute a parametrized tensor, in order, and the original tensors.

    Args:
        modules: the first takes the original tensors, each of the others the result of the previous one.
        original: the tensor before it was parametrized.
        unsafe: whether dtype and shape may change.

    Attributes:
        original: the trained tensor; ``original0``, ``original1``, ... where the first module takes several tensors.

    Raises:
        ValueError: without modules, and if a result is not a tensor or has another dtype or shape.
    """

    is_tensor: bool

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        self._register_originals_(original, self._inverted_(original))
        if not unsafe:
            found = self()
            _check_tensor(found)
            for what, before, after in (("dtype", dtype, found.dtype), ("shape", shape, found.shape)):
                if before != after:
                    raise ValueError(
                        f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag "
                        f"is enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}"
                    )

    def _inverted_(self, original: Any) -> Any:
        """The ``right_inverse`` of the modules that define it, applied to ``original``."""
        value = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        value = module.right_inverse(value)
        return value

    def _register_originals_(self, original: Any, found: Any) -> None:
        """Registers the original tensors, which are trained."""
        self.is_tensor = isinstance(found, Tensor)
        if isinstance(found, Tensor):
            for what in ("dtype", "device"):
                before, after = getattr(original, what), getattr(found, what)
                if before != after:
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                        f"original.{what}: {before}\nright_inverse(original).{what}: {after}"
                    )
            self.ntensors = 1
            with no_grad():
                original.set_(found)
            _register(self, "original", original)
            return
        if not isinstance(found, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(found).__name__}"
            )
        self.ntensors = len(found)
        for i, tensor in enumerate(found):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                    f"{i} of the sequence with type {type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", tensor)

    def right_inverse(self, value: Any) -> None:
        """Sets the original tensors so that the modules compute ``value``.

        Raises:
            RuntimeError: if a module has no ``right_inverse``.
            ValueError: for a result of ``right_inverse`` that is incompatible with the original tensors.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                self._set_one_(value)
            else:
                self._set_several_(value)

    def _set_one_(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                f"{self.original.dtype}"
            )
        self.original.set_(value)

    def _set_several_(self, values: Any) -> None:
        wanted = "'right_inverse' must return a sequence of tensors"
        if not isinstance(values, Sequence):
            raise ValueError(f"{wanted}. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueError(f"{wanted} of length {self.ntensors}. Got a sequence of length {len(values)}.")
        for i, (original, value) in enumerate(zip(self._originals_(), values)):
            if not isinstance(value, Tensor):
                raise ValueError(f"{wanted} or reference-type opaques. Got element {i} of type {type(value).__name__}.")
            if original.dtype != value.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {value.dtype} while `original{i}` has dtype "
                    f"{original.dtype}"
                )
            original.set_(value)

    def _originals_(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Any:
        first, *others = self
        value = first(*self._originals_())
        for module in others:
            value = module(value)
        return value


def _check_tensor(value: Any) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")


# ---------------------------------------------------------------- the class of a parametrized module


def _refuse_pickling(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _copy(self: Any, memo: dict) -> Any:
    """``deepcopy`` of a module that cannot be pickled: the same class, with copies of its attributes."""
    found = memo.get(id(self))
    if found is not None:
        return found
    made = memo[id(self)] = object.__new__(type(self))
    made.__dict__ = deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
        if hasattr(self, slot):
            setattr(made, slot, deepcopy(getattr(self, slot), memo))
    return made


def _derive_class(module: Any) -> None:
    """Changes the class of a module to a new subclass, for the properties."""
    kind: Any = type(module)
    names: dict[str, Any] = {"__getstate__": _refuse_pickling}
    if not hasattr(kind, "__deepcopy__"):
        names["__deepcopy__"] = _copy
    module.__class__ = types.new_class(f"Parametrized{kind.__name__}", (kind,), {}, lambda space: space.update(names))


def _property(name: str) -> property:
    """The property of the class for a parametrized tensor."""

    def get(self: Any) -> Any:
        compute = self.parametrizations[name]
        if not _cache.depth:
            return compute()
        key = (id(self), name)
        if key not in _cache.values:
            _cache.values[key] = compute()
        return _cache.values[key]

    def set(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


# ---------------------------------------------------------------- registering


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Replaces a parameter or buffer of a module by the result of ``parametrization``, applied to an original tensor.

    A further parametrization is applied after the existing ones.

    Args:
        parametrization: a module that computes the tensor from the original one. If it defines ``right_inverse``,
            which computes the original tensor from a value, the tensor keeps its value and can be assigned to.
        unsafe: whether dtype and shape may change.

    Returns:
        The module, whose class becomes a new subclass.

    Raises:
        ValueError: if the tensor does not exist, or a result is incompatible.

    Example:
        >>> class Symmetric(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_compatible(tensor_name, getattr(module, tensor_name), parametrization)
        present = module.parametrizations[tensor_name]
        present.append(parametrization)
        present.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _derive_class(module)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = made
    return module


def _check_compatible(name: str, value: Any, parametrization: Any) -> None:
    """Raises an error for a further parametrization that, or whose ``right_inverse``, changes dtype or shape."""
    result = parametrization(value)
    _check_tensor(result)
    for what in ("dtype", "shape"):
        before, after = getattr(value, what), getattr(result, what)
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\nmodule.{name}.{what}: {before}\nparametrization(module.{name}).{what}: {after}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what in ("dtype", "shape"):
        before, after = getattr(value, what), getattr(inverse, what)
        if before != after:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {before}\nreturned {what}: {after}"
            )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrized tensors; with ``tensor_name``, whether that one is."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Converts a parametrized tensor back to a plain parameter or buffer.

    Args:
        leave_parametrized: whether it gets the computed value rather than that of the original tensor.

    Returns:
        The module, with its previous class if no other tensor of it is parametrized.

    Raises:
        ValueError: if the tensor is not parametrized, or has several original tensors, with
            ``leave_parametrized=False``.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held = module.parametrizations[tensor_name]
    if held.is_tensor:
        tensor = held.original
        if leave_parametrized:
            with no_grad():
                tensor.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        tensor = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, tensor)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class of a module without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Transfers parametrizations and original tensors from one module to another; returns the latter.

    Args:
        tensor_name: the name of the tensor; by default all parametrized tensors.
    """
    if not is_parametrized(from_module):
        return to_module
    names: Iterable[str] = from_module.parametrizations if tensor_name is None else [tensor_name]
    for name in names:
        held = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in held:
            register_parametrization(to_module, name, parametrization)
        given = to_module.parametrizations[name]
        for original in ["original"] if held.is_tensor else [f"original{i}" for i in range(held.ntensors)]:
            setattr(given, original, getattr(held, original))
    return to_module
