"""Tensors whose functions stand in a table, by name: nested and masked ones.

They consist of dense tensors, and their graph is that of these: a function of such tensors is one of their values,
with the nodes of that. A function without an entry raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from compat._core.dispatch.layout_tensor import LayoutTensor
from compat._core.tensor.overridable_names import without_prefix
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import DisableTorchFunctionSubclass

Function = Callable[..., Any]


class TableTensor(LayoutTensor):
    """The base of tensors whose functions stand in a table.

    Attributes:
        functions: by function name; called with the function and its arguments.
    """

    functions: ClassVar[dict[str, Function]] = {}

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls.functions = {}

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The result of a function, by the table of the class."""
        kwargs = kwargs or {}
        name = without_prefix(func.__name__)
        found = cls.functions.get(name)
        if found is not None:
            return found(func, *args, **kwargs)
        if name in _ABOUT:
            with DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        base = name[:-1]
        if name.endswith("_") and not name.startswith("_") and base in cls.functions:
            return _in_place(cls, base, func, *args, **kwargs)
        raise cls.unsupported(name)

    @classmethod
    def unsupported(cls, name: str) -> Exception:
        """The error of a function without an entry."""
        raise NotImplementedError

    # The graph is that of the parts.

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for it."""
        return self._first().requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def grad_fn(self) -> Any:
        """The node of its values."""
        return self._first().grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether its values are a leaf."""
        return self._first().is_leaf

    def _first(self) -> Tensor:
        """The tensor whose graph stands for that of all."""
        raise NotImplementedError


class OfValues:
    """A tensor whose graph is that of one dense tensor, its ``elements``."""

    __slots__ = ()

    elements: Tensor

    def _first(self) -> Tensor:
        return self.elements

    def _like(self, elements: Tensor) -> Any:
        """A tensor of the same form, with other values."""
        raise NotImplementedError

    @property
    def grad(self) -> Any:
        """The gradient, in the form of this tensor."""
        found = self.elements.grad
        return None if found is None else self._like(found)

    @grad.setter
    def grad(self, new: Any) -> None:
        self.elements.grad = new.elements if isinstance(new, OfValues) else new

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Sets whether gradients are computed for it."""
        self.elements.requires_grad_(requires_grad)
        return self

    def backward(self, gradient: Any = None, **named: Any) -> None:
        """Computes gradients of leaves."""
        self.elements.backward(gradient.elements if isinstance(gradient, OfValues) else gradient, **named)

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Calls a hook with the gradient in the form of this tensor when it is computed."""

        def call(grad: Tensor) -> Any:
            found = hook(self._like(grad))
            return found.elements if isinstance(found, OfValues) else found

        return self.elements.register_hook(call)

    def retain_grad(self) -> None:
        """Keeps the gradient of a non-leaf."""
        self.elements.retain_grad()

    def detach(self) -> Any:
        """The same outside the graph."""
        return self._like(self.elements.detach())

    data = property(detach, doc="The same outside the graph.")


#: Functions that only query a tensor.
_ABOUT = frozenset(
    ["__get__", "is_floating_point", "is_complex", "element_size", "is_conj", "is_neg", "is_signed", "save"]
    + ["numpy", "tolist"]
)


def functions_of(*classes: type[TableTensor]) -> Any:
    """A decorator factory: ``by_name("sum")`` makes a function the entry of functions in tables of some classes."""

    def by_name(*names: str) -> Any:
        def note(function: Function) -> Function:
            for cls in classes:
                cls.functions.update(dict.fromkeys(names, function))
            return function

        return note

    return by_name


def _in_place(cls: type[TableTensor], base: str, func: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that writes into a tensor, by the one that does not."""
    torch = names_of("torch")
    plain = torch.get(base) or getattr(Tensor, base)
    if target.requires_grad and target.is_leaf and torch["is_grad_enabled"]():
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    target._take(cls.functions[base](plain, target, *args, **kwargs))
    return target


__all__ = ["Function", "OfValues", "TableTensor", "functions_of"]
