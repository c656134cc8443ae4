"""``Node``: one operation in a graph."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compat._core.dispatch.overloads import OpOverload
from compat.overrides import resolve_name

if TYPE_CHECKING:
    from compat.fx.graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Any:
    """``fn`` applied to each part of an argument: inside tuples, lists, dictionaries and slices."""
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return {k: map_aggregate(x, fn) for k, x in a.items()}
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Any:
    """``fn`` applied to each node in an argument; other values stay.

    Example:
        >>> graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
        >>> torch.fx.node.map_arg(graph.output_node().args, lambda n: n.name)
        ('add',)
    """
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def target_name(target: Target) -> str:
    """A target as printed: ``torch.cat``, ``operator.add``, ``layers.0``."""
    if isinstance(target, str):
        return target
    if isinstance(target, OpOverload):
        return f"torch.ops.{target}"
    if getattr(builtins, getattr(target, "__name__", ""), None) is target:
        return f"builtins.{target.__name__}"
    if getattr(operator, getattr(target, "__name__", ""), None) is target:
        return f"operator.{target.__name__}"
    known: str | None = resolve_name(target)
    if known is not None:
        return known
    module = getattr(target, "__module__", None) or ""
    if module.split(".")[0] == "compat":  # as after compat.install()
        module = f"torch{module.removeprefix('compat')}"
    name: str = getattr(target, "__qualname__", "") or getattr(target, "__name__", repr(target))
    return f"{module}.{name}" if module else name


class Node:
    """One operation in a graph.

    Attributes:
        op: its kind: ``placeholder``, ``get_attr``, ``call_function``, ``call_method``, ``call_module``, ``output``.
        name: the unique name of its value.
        target: its target: a function, or the name of an argument, attribute, method or module.
        args, kwargs: its arguments; nodes stand for their values.
        users: the nodes that use its value, as keys, in order.
        meta: metadata of passes.
    """

    def __init__(self, graph: Graph, name: str, op: str, target: Target, args: tuple, kwargs: dict, type: Any = None):
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = {}
        self._before = self._after = self
        self._erased = False
        self._take(args, kwargs)

    def _take(self, args: tuple, kwargs: dict) -> None:
        for old in self._inputs:
            old.users.pop(self, None)
        self._args, self._kwargs, self._inputs = args, kwargs, {}
        map_arg((args, kwargs), self._inputs.setdefault)
        for new in self._inputs:
            new.users.setdefault(self)

    @property
    def args(self) -> tuple:
        """The positional arguments; may be set."""
        return self._args

    @args.setter
    def args(self, args: tuple) -> None:
        self._take(tuple(args), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments; may be set."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._take(self._args, dict(kwargs))

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes whose values it uses, each once."""
        return list(self._inputs)

    @property
    def _input_nodes(self) -> dict[Node, None]:
        """The same as keys of a dictionary; torchvision reads them."""
        return dict.fromkeys(self._inputs)

    @property
    def next(self) -> Node:
        """The following node."""
        return self._after

    @property
    def prev(self) -> Node:
        """The preceding node."""
        return self._before

    def prepend(self, x: Node) -> None:
        """Moves a node of the same graph to right before this one."""
        if x is self:
            return
        x._leave()
        x._before, x._after = self._before, self
        self._before._after = x
        self._before = x

    def append(self, x: Node) -> None:
        """Moves a node of the same graph to right after this one."""
        if x is not self:
            self._after.prepend(x)

    def _leave(self) -> None:
        self._before._after, self._after._before = self._after, self._before

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Sets a positional argument."""
        self.args = (*self.args[:idx], arg, *self.args[idx + 1 :])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Sets a keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Inserts a positional argument."""
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replaces an input node by another one."""

        def other(n: Node) -> Node:
            return new_input if n is old_input else n

        self._take(map_arg(self._args, other), map_arg(self._kwargs, other))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Replaces it by another node in all its users.

        Args:
            delete_user_cb: a predicate of the users to replace in; by default all.
            propagate_meta: whether the other node gets this one's ``meta``.

        Returns:
            The users that were replaced in.
        """
        if propagate_meta:
            replace_with.meta = {**self.meta, **replace_with.meta}
        chosen = [user for user in self.users if delete_user_cb(user)]
        for user in chosen:
            user.replace_input_with(self, replace_with)
        return chosen

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node has side effects, so that it cannot be removed though unused."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            return self.target in SIDE_EFFECTS or (name.endswith("_") and not name.endswith("__"))
        if self.op == "call_module":
            return bool(getattr(self.graph._module(self.target), "is_impure", False))
        return self.op == "call_method" and str(self.target).endswith("_")

    def format_node(self) -> str | None:
        """Its line in the text of a graph; None for a parameter, which the first line shows."""
        kind = f"%{self.name} : [num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{kind}[target={self.target}]{default}"
        if self.op == "output":
            return f"return {self.args[0]}"
        if self.op == "get_attr":
            return f"{kind}[target={self.target}]"
        shown = ", ".join(map(_shown, self.args))
        args = f"({shown},)" if len(self.args) == 1 else f"({shown})"
        kwargs = ", ".join(f"{k}: {_shown(v)}" for k, v in self.kwargs.items())
        return f"{kind}[target={target_name(self.target)}](args = {args}, kwargs = {{{kwargs}}})"

    def __repr__(self) -> str:
        return self.name


#: Functions whose calls are kept even if unused.
SIDE_EFFECTS: set[Any] = {operator.setitem, setattr, print}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function as having side effects, so that unused calls are kept; returns the function."""
    SIDE_EFFECTS.add(fn)
    return fn


def _shown(x: Any) -> str:
    """An argument in the text of a graph."""
    if isinstance(x, Node):
        return f"%{x.name}"
    if isinstance(x, tuple):
        return f"({', '.join(map(_shown, x))}{',' if len(x) == 1 else ''})"
    if isinstance(x, list):
        return f"[{', '.join(map(_shown, x))}]"
    if isinstance(x, dict):
        return f"{{{', '.join(f'{k}: {_shown(v)}' for k, v in x.items())}}}"
    return str(x)
