"""Declaring view operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from compat._core.memory.numpy_storage import rejoin
from compat._core.operators.declared import Declared
from compat._core.operators.inplace import become, check_recorded
from compat._core.operators.kernel import KERNELS, Kernel
from compat._core.operators.op_node import make_node_class, metadata, uint64
from compat._core.operators.signature import key_of
from compat._core.operators.view import Geometry, ViewNode, ViewPlan, geometry_of
from compat._core.tensor import capture_checks
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.transforms.logical_strides import placing_of, strided
from funcgrad.core.caching import Cache


class ViewOp(Declared):
    """A declared view operation."""

    offsets = True

    def __init__(self, body: Callable[..., Any], node: str, saved: str, options: dict[str, Any]):
        super().__init__(body, options.get("name"))
        self.check: Callable[..., None] | None = options.get("check")
        self.through_storage: bool = options.get("through_storage", False)
        #: When its gradient is a view of the incoming one: "always", "changed" for unless it is the same, "" for never.
        self.undone: str = options.get("undone", "")
        self.shows: dict[str, Callable[..., Any]] = options.get("shows", {})
        self.kernels: Cache[tuple, Kernel] = Cache(KERNELS)
        self.saved = saved
        shown = {item.replace(".", "_"): self._shown(item) for item in saved.split()}
        self.node = make_node_class(node, shown, ViewNode)
        self.inplace_node = make_node_class(options.get("inplace_node", node), shown, ViewNode)
        #: Only its name is used: for the nodes of the backward's own backward.
        self.backward_base = make_node_class(node, {})
        names = options.get("names")
        self.function = self._entry(self.name, self.miss, self.plans, out=False, writes=False)
        if self.through_storage:
            self.function = _by_memory(self.function)
        if "inside" in options:
            self.function = _checked_inside(self.function, options["inside"])
        self._publish(self.function, f"torch.{self.name} Tensor.{self.name}" if names is None else names)
        inplace = options.get("inplace", "")
        if inplace:
            publish(self._method(), *inplace.split())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def inplace(self, t: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Makes the tensor its own view; returns it."""
        if t._storage.born < mode.since:
            capture_checks.refuse(t, self.name, {})
        if mode.grad and t.requires_grad:
            check_recorded(t)
        made = self.function(t, *args, **kwargs)
        if made._node is not None:
            made._node.__class__ = self.inplace_node
        return become(t, made)

    def _method(self) -> Callable[..., Tensor]:
        def method(self_: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            return self.inplace(self_, *args, **kwargs)

        method.__name__ = method.__qualname__ = f"{self.name}_"
        method.__doc__ = f"``{self.name}`` of the tensor itself; returns it."
        return method

    def miss(self, args: list[Any], out: Any = None, named: Any = None) -> Any:
        """Runs a call that found no plan."""
        args = self.clean(self.name, args, named)
        t = args[0]
        key = key_of(self.params, args, True)
        plan = self.plans.get(key) or self.plans.again(key)
        if plan is None:
            if self.check is not None:
                self.check(*[a for p, a in zip(self.params, args) if not p.keyword])
            statics = self.statics(args, t.dim())
            positional = [
                v
                for p in self.params[1:]
                if not p.keyword
                for v in (statics[p.name] if p.starred else (statics[p.name],))
            ]
            keywords = {p.name: statics[p.name] for p in self.params if p.keyword}
            function = lambda g: self.body(g, *positional, **keywords)
            found = function(geometry_of(t))
            several = not isinstance(found, Geometry)
            raw = {p.name: a for p, a in zip(self.params, args) if not p.dynamic}
            plan = ViewPlan(self, t, found if several else [found], several, raw, function)
            self.plans[key] = plan
        return plan.run((t,))

    def _shown(self, item: str) -> Callable[[Any], Any]:
        operand, _, what = item.partition(".")
        if what:
            return lambda node: metadata(what, node.plan.input)
        if operand in self.shows:
            return lambda node: uint64(self.shows[operand](**node.plan.shows, layout=node.plan.input))
        return lambda node: uint64(node.plan.shows[operand])


def _by_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """``as_strided``, of which the first argument is seen as lying in all of its memory."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tensor):
            rejoin(args[0])
            if args[0]._layout.base.traced and (placing_of(args[0]) or vmap_checks.maps(args[0]._storage.buffer)):
                return inside(*args, **kwargs)
        return function(*args, **kwargs)

    def inside(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
        return function(input, size, *strided(input, tuple(size), tuple(stride), storage_offset))

    return call


def _checked_inside(function: Callable[..., Any], check: Callable[[Tensor], None]) -> Callable[..., Any]:
    """A function of which the first argument is looked at where it is traced."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        if args and args[0]._layout.base.traced:
            check(args[0])
        return made

    return call


def view(node: str, *, saved: str = "", **options: Any) -> Callable[[Callable[..., Any]], ViewOp]:
    """Declares a view operation: a function of a ``Geometry`` and static arguments that returns one, or a list of them.

    Args:
        node: the name of its backward node.
        saved: what the node shows as ``_saved_...``.
        options: ``names``, ``check``, ``shows`` as for ``op``; ``inplace``, the variant that makes a tensor its own
            view, and ``inplace_node``, its node; ``undone``, when PyTorch undoes it by a view: ``"always"``, or where
            that makes a difference (``"changed"``); ``inside``, a check of what is traced by the strides users see.
    """
    return lambda body: ViewOp(body, node, saved, options)
