"""The keys of PyTorch's dispatcher by name, sets of them, and which of them are left out in this thread.

Which kernel runs here follows from the arguments and the modes (``compat.library``), not from numbered keys; the names
are for packages that register kernels by them, such as those for autocast, and for those that leave a layer out.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_BACKENDS = (
    "CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "VE", "Lazy", "MTIA", "MAIA", "PrivateUse1",
    "PrivateUse2", "PrivateUse3", "Meta",
)  # fmt: skip
_LAYERS = (
    "Undefined", "Fake", "Vulkan", "Metal", "Quantized", "CustomRNGKeyId", "MkldnnCPU", "Sparse", "SparseCsr",
    "NestedTensor", "BackendSelect", "Python", "FuncTorchDynamicLayerBackMode", "Functionalize", "Named", "Conjugate",
    "Negative", "ZeroTensor", "ADInplaceOrView", "AutogradOther", "AutogradFunctionality", "AutogradNestedTensor",
    "Tracer", "AutocastCPU", "AutocastMTIA", "AutocastMAIA", "AutocastXPU", "AutocastIPU", "AutocastHPU",
    "AutocastXLA", "AutocastMPS", "AutocastCUDA", "AutocastPrivateUse1", "FuncTorchBatched", "BatchedNestedTensor",
    "FuncTorchVmapMode", "Batched", "VmapMode", "FuncTorchGradWrapper", "DeferredInit", "PythonTLSSnapshot",
    "FuncTorchDynamicLayerFrontMode", "TESTING_ONLY_GenericWrapper", "TESTING_ONLY_GenericMode", "PreDispatch",
    "PythonDispatcher", "Autograd", "CompositeImplicitAutograd", "CompositeImplicitAutogradNestedTensor",
    "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional",
)  # fmt: skip
_KEYS = [*_LAYERS, *_BACKENDS, *[f"{layer}{b}" for layer in ("Autograd", "Sparse", "Quantized") for b in _BACKENDS]]

DispatchKey = enum.Enum("DispatchKey", {name: n for n, name in enumerate(_KEYS)}, module="torch._C")  # type: ignore[misc]
DispatchKey.__doc__ = "A key of PyTorch's dispatcher."


class DispatchKeySet:
    """A set of keys.

    Args:
        keys: one, several, or another set.

    Example:
        >>> both = DispatchKeySet(DispatchKey.CPU) | DispatchKeySet(DispatchKey.Meta)
        >>> both.has(DispatchKey.Meta), (both - DispatchKeySet(DispatchKey.Meta)).has(DispatchKey.Meta)
        (True, False)
    """

    __module__ = "torch._C"

    def __init__(self, keys: Any = ()):
        given: Iterable[Any] = (keys,) if isinstance(keys, DispatchKey) else keys
        self._keys = frozenset(given)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def has(self, key: Any) -> bool:
        """Whether a key is in it."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with a key more."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(self._keys - {key})

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(k.name for k in self._keys))})"


class _Excluded(threading.local):
    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()


_excluded = _Excluded()


#: By key, a function to whether its layer is enabled; a layer registers itself when it is imported.
layers: dict[str, Callable[[], bool]] = {}


def is_on(name: str) -> bool:
    """Whether a key's layer is on in this thread, and not left out."""
    return name not in _excluded.names and name in layers and layers[name]()


class ExcludeDispatchKeyGuard:
    """A block in which keys are left out: kernels that are registered for them do not run.

    Args:
        keys: a ``DispatchKeySet``.
    """

    __module__, __qualname__ = "torch._C", "_ExcludeDispatchKeyGuard"

    def __init__(self, keys: DispatchKeySet):
        self._names = frozenset(k.name for k in keys)
        self._before: frozenset[str] = frozenset()

    def __enter__(self) -> None:
        self._before = _excluded.names
        _excluded.names = self._before | self._names

    def __exit__(self, *exc: Any) -> None:
        _excluded.names = self._before


__all__ = ["DispatchKey", "DispatchKeySet", "ExcludeDispatchKeyGuard", "is_on", "layers"]
