"""Guards of a compiled function: the values it can reach, and checks that they are unchanged.

A ``Watch`` traverses what a function can reach without being passed it (closures, the globals it names, the object of a
bound method), into modules, optimizers, containers and attributes of objects. It records tensors, whose contents may
change, and the present values of everything else. They are compared before each replay, in one loop over flat lists.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compat._core.memory.storage import UntypedStorage
from compat._core.tensor.autograd_state import Autograd
from compat._core.tensor.tensor import Tensor, sync
from compat.nn.modules.module import Module
from compat.optim._hyperparameters import Hyperparameter, sign_of, value_at
from compat.optim.optimizer import Optimizer
from funcgrad.native.twins import twin

#: Containers with more elements are not guarded: networks do not keep their parts in such long lists.
_LONG = 1000
_SIMPLE = (bool, int, float, complex, str, bytes, type(None))
_OPAQUE = (type, types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType, types.GeneratorType)
_ABSENT = object()
_LIBRARIES = ("compat", "funcgrad", "jax", "numpy", "torch", *sys.stdlib_module_names)


class TensorState:
    """A tensor and its guarded properties.

    Attributes:
        tensor, storage, layout, offset: the tensor, its storage, and its layout there.
        requires_grad: whether it requires grad.
        grad: its gradient before the call.
        strict: whether the gradient must be the identical tensor, because its contents are an input.
        version: the version of its storage before the call.
    """

    __slots__ = ("tensor", "storage", "layout", "offset", "requires_grad", "grad", "strict", "version")

    def __init__(self, t: Tensor):
        if t._view_ is not None:
            sync(t)
        self.tensor = t
        self.storage = t._storage_
        self.layout = t._layout_
        self.offset = t._offset_
        self.requires_grad = t._rg_
        self.grad = t._autograd_state_.grad if t._autograd_state_ is not None else None
        self.strict = False
        self.version = t._storage_.version

    def holds(self) -> bool:
        """Whether the properties are unchanged."""
        t = self.tensor
        if t._storage_ is not self.storage or t._rg_ is not self.requires_grad:
            return False
        grad = t._autograd_state_.grad if t._autograd_state_ is not None else None
        if grad is not self.grad and (self.strict or grad is None or self.grad is None):
            return False
        return t._layout_ is self.layout and t._offset_ == self.offset


_native = twin(
    Path(__file__).with_suffix(".c"),
    Tensor=Tensor, UntypedStorage=UntypedStorage, TensorState=TensorState, Autograd=Autograd, get={}.get,
)  # fmt: skip


class Watch:
    """The values reachable from some roots.

    Attributes:
        tensors: the distinct tensors.
        optimizers: the optimizers found.
        trouble: why calls cannot be replayed, if something found forbids it.
    """

    def __init__(self) -> None:
        self.tensors: dict[int, TensorState] = {}
        self.optimizers: list[Optimizer] = []
        self.trouble: str | None = None
        self._simple: list[tuple[Callable[[Any], Any], Any, Any]] = []
        self._same: list[tuple[Callable[[Any], Any], Any, Any]] = []
        self._lengths: list[tuple[Any, int]] = []
        self._seen: dict[int, Any] = {}

    def holds(self) -> bool:
        """Whether everything but the contents of tensors is unchanged."""
        if _native is not None:
            found: bool = _native.holds(self._same, self._simple, self._lengths, list(self.tensors.values()))
            return found
        return self.holds_in_python()

    def holds_in_python(self) -> bool:
        """``holds`` without its C twin."""
        for get, key, expected in self._same:
            if get(key) is not expected:
                return False
        for get, key, expected in self._simple:
            found = get(key)
            if found is not expected and (found.__class__ is not expected.__class__ or found != expected):
                return False
        for container, length in self._lengths:
            if len(container) != length:
                return False
        return all(map(TensorState.holds, self.tensors.values()))

    # ---------------------------------------------------------------- traversal

    def visit(self, value: Any) -> None:
        """Adds the values reachable from a value."""
        if isinstance(value, _SIMPLE + _OPAQUE) or id(value) in self._seen:
            return
        self._seen[id(value)] = value  # kept alive, so that the id is not reused
        if isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, Module):
            self._module(value)
        elif isinstance(value, Optimizer):
            self._optimizer(value)
        elif isinstance(value, (list, tuple)):
            self._sequence(value)
        elif isinstance(value, Mapping):
            self._mapping(value)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.visit(part)
        elif isinstance(value, types.MethodType):
            self.visit(value.__self__)
            self.visit(value.__func__)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        else:
            self._object(value)

    def _note(self, get: Callable[[Any], Any], key: Any, value: Any) -> None:
        """Records a value found under a key."""
        if isinstance(value, Hyperparameter):
            value = value.value
        if isinstance(value, _SIMPLE):
            self._simple.append((get, key, value))
        else:
            self._same.append((get, key, value))
            self.visit(value)

    def _tensor(self, t: Tensor) -> None:
        state = self.tensors[id(t)] = TensorState(t)
        if t._autograd_state_ is not None and (t._autograd_state_.hooks or t._autograd_state_.post_accumulate):
            self.trouble = "a tensor has hooks"
        if state.grad is not None:
            self.visit(state.grad)

    def _sequence(self, value: Any) -> None:
        if isinstance(value, list):
            self._lengths.append((value, len(value)))
        if len(value) <= _LONG:
            for i, element in enumerate(value):
                self._note(value.__getitem__, i, element)

    def _mapping(self, value: Mapping) -> None:
        self._lengths.append((value, len(value)))
        if len(value) <= _LONG:
            for key, element in list(value.items()):
                self._note(value.get, key, element)  # the length distinguishes None from a missing element

    def _module(self, module: Module) -> None:
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            if module.__dict__.get(name):
                self.trouble = f"{type(module).__name__} has hooks"
        self._mapping(module.__dict__)

    def note_setting(self, group: dict[str, Any], key: str, value: Any) -> None:
        """Records a setting of a parameter group, by value."""
        self._note(group.get, key, value)

    def note_sign(self, path: Sequence[Any], value: Any) -> None:
        """Records a number of a parameter group of which only the sign matters."""
        self._simple.append((_sign_at, path, sign_of(value)))

    def _optimizer(self, optimizer: Optimizer) -> None:
        self.optimizers.append(optimizer)
        self._lengths.append((optimizer.__dict__, len(optimizer.__dict__)))
        for name, value in optimizer.__dict__.items():
            if name.endswith("_hooks") and value:
                self.trouble = f"{type(optimizer).__name__} has hooks"
            elif isinstance(value, _SIMPLE):
                self._note(optimizer.__dict__.get, name, value)
        self._lengths.append((optimizer.param_groups, len(optimizer.param_groups)))
        for group in optimizer.param_groups:
            for key, value in group.items():
                if key not in optimizer.defaults:
                    self._note(group.get, key, value)
        self._mapping(optimizer.state)

    def _function(self, function: types.FunctionType) -> None:
        if (function.__module__ or "").partition(".")[0] in _LIBRARIES:
            return
        for cell in function.__closure__ or ():
            self._note(functools.partial(_contents, cell), None, _contents(cell, None))
        self._note(functools.partial(getattr, function), "__defaults__", function.__defaults__)
        self._note(functools.partial(getattr, function), "__kwdefaults__", function.__kwdefaults__)
        scope = function.__globals__  # may not belong to a module, for functions defined by ``exec``
        for name in _names(function.__code__):
            if name in scope:
                self._note(scope.get, name, scope[name])

    def _object(self, value: Any) -> None:
        if (type(value).__module__ or "").partition(".")[0] in _LIBRARIES:
            return
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            self._mapping(attributes)


def _sign_at(path: Sequence[Any]) -> Any:
    return sign_of(value_at(path))


def _contents(cell: types.CellType, _: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that a code object and nested ones may use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
