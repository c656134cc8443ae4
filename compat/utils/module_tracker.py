"""``torch.utils.module_tracker``: the modules whose forward or backward is running."""

from __future__ import annotations

import weakref
from typing import Any

from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.tensor import Tensor
from compat.nn.modules._hooks import register_module_forward_hook, register_module_forward_pre_hook
from compat.nn.modules.module import Module

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Tracks, within a ``with`` block, the modules whose forward or backward is running.

    Attributes:
        parents: the dotted names of these modules, beginning with the outermost module's class, and ``"Global"``.

    Example:
        >>> class Ask(torch.nn.Module):
        ...     def forward(self, x):
        ...         print(sorted(tracker.parents))
        >>> with ModuleTracker() as tracker:
        ...     torch.nn.Sequential(Ask())(torch.ones(1))
        ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._called: list[str] = []
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return not self._called and len(self.parents) > 1

    def _name(self, module: Module) -> str:
        """A module's dotted name in the outermost module."""
        if not self._called or module not in self._names:
            root = type(module).__name__
            for path, inner in module.named_modules():
                self._names[inner] = f"{root}.{path}" if path else root
        return self._names[module]

    def _before(self, module: Module, inputs: Any) -> None:
        if not self._called:
            self.parents = {"Global"}
        name = self._name(module)
        self._called.append(name)
        self.parents.add(name)
        for t in _with_gradients(inputs):
            self._handles.append(t.register_hook(lambda grad: self.parents.discard(name)))

    def _after(self, module: Module, inputs: Any, outputs: Any) -> None:
        name = self._called.pop()
        self.parents.discard(name)
        for t in _with_gradients(outputs):
            self._handles.append(t.register_hook(lambda grad: self.parents.add(name)))

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after),
        ]
        return self

    def __exit__(self, *args: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles, self._called, self.parents = [], [], {"Global"}


def _with_gradients(values: Any) -> list[Tensor]:
    return [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]
