"""Tensors whose layout is not strided: composed of several strided tensors, with rules for operations.

``LayoutTensor`` is the base class of sparse and nested tensors. It has no memory of its own but ``parts``, detached
tensors. No plan is made for its layout, so every call with such a tensor goes through the layers of the dispatcher, and
the layer "layout" looks up a rule in the table of its class. An operation without a rule raises PyTorch's error.

The first such tensor adds the layer, so programs without them pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self

from compat._core.autograd.callback_node import without_recording
from compat._core.autograd.rebase_history import check_recorded
from compat._core.dispatch.dispatch_mode import overload_called
from compat._core.dispatch.dispatched_duals import NoMemory
from compat._core.dispatch.dispatcher import LIKE, Call, Function, add_layer, kernel_overrides
from compat._core.dispatch.overrides import OverriddenLayout, overridden_layout
from compat._core.memory.meta import unknown
from compat._core.memory.strides import Base, Layout, layout_of
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.registry import load_all
from compat._core.tensor.tensor import Tensor, set_memory
from compat._core.tensor.torch_function import disabled
from compat._core.tensor.version_counter import bump_version
from compat._core.transforms.grad_mode import mode
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import refusal
from compat._core.types.memory_format import LAYOUTS

_plain: Any = Tensor
_slot: Any = Tensor.__dict__["_layout_"]
Rule = Callable[..., Any]
#: The classes by name.
kinds: dict[str, type[LayoutTensor]] = {}


class LayoutTensor(Tensor):
    """The base class of tensors whose layout is not strided.

    Attributes:
        parts: the names of the attributes that are its value; tensors among them are detached.
        rank: in a call with tensors of several classes, the rules of the class with the highest rank are used.
        kind: the name of the class in pickles.
        rules: rules by the name of the operation; called with the given arguments by name.
        load: imports the modules of the rules; called before the first tensor of the class is made.
    """

    parts: ClassVar[tuple[str, ...]] = ()
    rank: ClassVar[int] = 0
    kind: ClassVar[str]
    rules: ClassVar[dict[str, Rule]] = {}
    load: ClassVar[Callable[[], None] | None] = None

    __torch_function__ = disabled
    _shown_as_ = "tensor"
    _overrides_operators_ = True

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls.rules, cls._shown_as_, cls._overrides_operators_ = {}, "tensor", True
        cls.kind = cls.__name__
        kinds[cls.kind] = cls

    @property
    def _layout_(self) -> Layout:
        return overridden_layout(_slot.__get__(self))

    @_layout_.setter
    def _layout_(self, layout: Layout) -> None:
        _slot.__set__(self, layout.plain if isinstance(layout, OverriddenLayout) else layout)

    @classmethod
    def of_parts(cls, size: Sequence[int], dtype: Dtype, device: Device, **parts: Any) -> Self:
        """A leaf with given parts."""
        enable(cls)
        size = tuple(int(n) for n in size)
        base = Base(size, dtype, True, device)
        made: Any = object.__new__(cls)
        set_memory(made, NoMemory(unknown(base), base), layout_of(base, size, (0,) * len(size), 0), 0)
        for name in cls.parts:
            setattr(made, name, parts[name])
        return made

    def of_values(self, values: dict[str, Any]) -> Self:
        """A leaf of the same class, size and dtype with other parts."""
        return type(self).of_parts(self._layout_.size, self.dtype, self.device, **values)

    @property
    def value(self) -> dict[str, Any]:
        """The parts by name."""
        return {name: getattr(self, name) for name in self.parts}

    @classmethod
    def refused(cls, call: Call) -> Exception:
        """The error of an operation without a rule."""
        return refusal(operation(call))

    @classmethod
    def like(cls, name: str, input: Tensor, dtype: Dtype | None) -> Tensor:
        """The result of ``torch.zeros_like`` and the others for a tensor of this class.

        Args:
            name: the function's.
            dtype: the result's, if one was given.
        """
        raise refusal(f"aten::{name}")

    @classmethod
    def of_size(cls, name: str, input: Tensor, size: Sequence[int], dtype: Dtype | None) -> Tensor:
        """The result of ``Tensor.new_zeros`` and ``Tensor.new_empty`` of a tensor of this class.

        Args:
            name: the method's.
            size: the result's.
            dtype: the result's, if one was given.
        """
        raise refusal(f"aten::{name}")

    @classmethod
    def construct(cls, dtype: Dtype, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        """The result of ``Tensor.new`` of a tensor of this class.

        Args:
            dtype: the tensor's.
            args, named: the method's arguments.
        """
        rule = cls.rules.get("construct")
        if rule is None:
            raise refusal("aten::new")
        made: Tensor = rule(dtype, args, named)
        return made

    # ---------------------------------------------------------------- its values

    def item(self) -> Any:
        """The value of a tensor with one element, as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        with without_recording():
            return self.to_dense().item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def detach(self) -> Self:
        """A detached tensor with the same parts."""
        made = self.of_values(self.value)
        made._counter_ = self._counter_
        return made

    def _set_data(self, new: Tensor) -> None:
        _plain.data.fset(self, new)
        assert type(new) is type(self)
        self._take(new)

    data = property(detach, _set_data, doc="A detached tensor with the same parts.")

    def _take(self, new: LayoutTensor) -> None:
        for name, part in new.value.items():
            setattr(self, name, part)

    def _text(self) -> str:
        raise NotImplementedError

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        shown = self._text()
        return f"Parameter containing:\n{shown}" if getattr(self, "_is_param", False) else shown

    def __deepcopy__(self, memo: dict) -> Self:
        if not self.is_leaf:
            _plain.__deepcopy__(self, memo)  # raises
        if id(self) not in memo:
            made = self.of_values({n: p.clone() if isinstance(p, Tensor) else p for n, p in self.value.items()})
            memo[id(self)] = made.requires_grad_(self.requires_grad) if self.requires_grad else made
        found: Self = memo[id(self)]
        return found

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuilt, (self.kind, tuple(self._layout_.size), self.dtype, self.value, self.requires_grad)


def _rebuilt(kind: str, size: Sequence[int], dtype: Dtype, value: dict, requires: bool) -> Tensor:
    """Rebuilds a tensor of another layout; used by unpickling."""
    load_all()
    cls = kinds[kind]
    first = next(p for p in value.values() if isinstance(p, Tensor))
    made = cls.of_parts(size, dtype, first.device, **value)
    return made.requires_grad_() if requires else made


# ---------------------------------------------------------------- rules


def rules_of(*classes: type[LayoutTensor]) -> Any:
    """A decorator factory: ``rule("mul", "multiply")`` registers a function as the rule of operations for some
    classes."""

    def rule(*names: str) -> Any:
        def note(function: Rule) -> Rule:
            for cls in classes:
                cls.rules.update(dict.fromkeys(names, function))
            return function

        return note

    return rule


def operation(call: Call) -> str:
    """The name of a call's operation in PyTorch's errors: ``aten::sum.dim_IntList``."""
    return str(overload_called(call)).replace(".", "::", 1).removesuffix(".default")


def class_among(values: Any) -> type[LayoutTensor] | None:
    """The class whose rules a call with some values uses; None if all tensors among them are strided."""
    found: type[LayoutTensor] | None = None
    for cls in _classes(values):
        if found is None or cls.rank > found.rank:
            found = cls
    return found


#: Types of arguments that neither are tensors of another layout nor contain one.
_WITHOUT = frozenset([Tensor, int, float, bool, str, type(None), Dtype])


def _classes(values: Any) -> Iterator[type[LayoutTensor]]:
    """The classes of the tensors of another layout in a pytree. Runs for every call once there is such a tensor, so
    Python's own containers are not flattened."""
    kind = type(values)
    for v in values.values() if kind is dict else values if kind is list or kind is tuple else (values,):
        kind = type(v)
        if kind in _WITHOUT:
            continue
        if isinstance(v, LayoutTensor):
            yield kind
        elif kind is list or kind is tuple or kind is dict:
            yield from _classes(v)
        elif not isinstance(v, Tensor):
            yield from [type(t) for t in tree_leaves(v) if isinstance(t, LayoutTensor)]


def _by_rule(call: Call, below: Callable[[], Any]) -> Any:
    """The layer: runs a call by the operation's rule."""
    cls = class_among(call.values)
    assert cls is not None
    if isinstance(call.operator, Function):
        return _like(call, below)
    operator, out = call.operator, call.out
    given = operator.by_name(call.args, call.named)
    found = cls.rules.get(operator.name)
    if found is None:
        raise cls.refused(call)
    if out is not None:
        return written(out, found(**given))
    if not call.inplace:
        return found(**given)
    if mode.grad:
        check_recorded(call.args[0])
    return written(call.args[0], found(**given))


def written(target: Tensor, new: Tensor) -> Tensor:
    """Replaces the parts and the ``grad_fn`` of a tensor by those of a new one, in place; returns the tensor."""
    if not isinstance(target, LayoutTensor):
        return target.copy_(new)
    assert isinstance(new, type(target))
    target._take(new)
    target._storage_, target._layout_ = new._storage_, new._layout_
    bump_version(target)
    target._rg_, target._node_, target._nr_ = target._rg_ or new._rg_, new._node_, new._nr_
    return target


def _derivative(kernel: Any, values: Sequence[Any]) -> Sequence[Tensor] | None:
    """A kernel on gradients of other layouts, which are converted to strided ones."""
    if class_among(values) is None:
        return None
    return kernel.call([v.to_dense() if isinstance(v, LayoutTensor) else v for v in values])


def _like(call: Call, below: Callable[[], Any]) -> Any:
    """Runs a factory with a tensor argument, which may have another layout."""
    named = call.named or {}
    input = call.args[0] if call.args else named.get("input")
    name = call.operator.name
    if not isinstance(input, LayoutTensor) or named.get("layout") is LAYOUTS["strided"]:
        return below()
    if name in ("new_zeros", "new_empty"):
        given = named["size"] if "size" in named else call.args[1:]
        size = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
        return type(input).of_size(name, input, size, named.get("dtype"))
    if name not in LIKE:
        return below()
    return type(input).like(name, input, named.get("dtype"))


#: The classes of which there has been a tensor.
enabled: set[type[LayoutTensor]] = set()


def enable(cls: type[LayoutTensor]) -> None:
    """Loads the rules of a class, and adds the layer, before the first tensor of the class is made."""
    if cls in enabled:
        return
    if not enabled:
        load_all()
        add_layer("layout", lambda call: class_among(call.values) is not None, _by_rule)
        kernel_overrides.append(_derivative)
    enabled.add(cls)
    if cls.load is not None:
        cls.load()


__all__ = ["LayoutTensor", "class_among", "enable", "enabled", "operation", "rules_of", "written"]
