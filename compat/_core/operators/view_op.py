"""Declaration of view operations: functions from the input's size, strides and offset to the result's.

A row is like an operator's (``compat._core.operators.op``), with a body of geometries instead of arrays::

    @view("t(Tensor(a) self) -> Tensor(a)", node="TBackward0", inplace_node="TBackward1", undone="always")
    def t(input):
        return _swapped(input, 0, input.ndim - 1)

The gradient of a view is written into zeros at the view's places; with the option ``undone`` it is itself a view of the
incoming gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal

from compat._core.autograd.rebase_history import check_recorded
from compat._core.memory.numpy_storage import rejoin
from compat._core.operators.declaration import Check, OpDeclarationError, check_body, check_names, declared
from compat._core.operators.entry_function import key_of
from compat._core.operators.inplace import become
from compat._core.operators.kernel import KERNELS, Kernel
from compat._core.operators.op_node import make_node_class, metadata, uint64
from compat._core.operators.operator_base import Entry, OperatorBase, addresses
from compat._core.operators.view import Geometry, ViewNode, ViewPlan, geometry_of
from compat._core.schema.overload import carry, overloads_of
from compat._core.schema.parameter import Param
from compat._core.tensor import capture_checks
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.transforms.logical_strides import placing_of, strided
from compat._core.types.errors import leading
from funcgrad.core.caching import Cache


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewDeclaration:
    """A row of a view.

    Attributes:
        schemas: the overloads that the body computes, in PyTorch's grammar.
        node: the name of the backward node.
        inplace_node: the name of the in-place variant's node; by default the same.
        saves: the ``_saved_...`` attributes of nodes: arguments, and metadata of the input (``self.sym_sizes``).
        names: the addresses of the function, and of its in-place variant, which ends with an underscore; by default
            ``torch`` and ``Tensor`` under its own name. ``""`` for an internal operator.
        static: dimensions that the body gets as given, rather than counted from the left.
        check: a function with the operator's parameters that raises PyTorch's errors; called first, and only if there
            is no plan for the layouts and arguments.
        inside: a check of a traced input, by its logical strides.
        undone: whether its gradient is a view of the incoming one: always, or unless both are the same; by default
            never.
        through_storage: whether it can reach the whole storage of its input, not only the input's elements.
    """

    schemas: tuple[str, ...]
    node: str
    inplace_node: str = ""
    saves: str = ""
    names: str | None = None
    static: str = ""
    check: Check | None = None
    inside: Callable[[Tensor], None] | None = None
    undone: Literal["always", "changed", ""] = ""
    through_storage: bool = False

    def __post_init__(self) -> None:
        if self.undone not in ("always", "changed", ""):
            raise OpDeclarationError(f"undone is 'always', 'changed' or '', not {self.undone!r}")


class ViewOp(OperatorBase):
    """A declared view.

    Args:
        name: its name in PyTorch's schemas.
        body: the function of geometries.
        params: its parameters.
        row: the declaration.
    """

    is_view = True

    def __init__(self, name: str, body: Callable[..., Any], params: tuple[Param, ...], row: ViewDeclaration):
        check_names(name, "saves", [s for s in row.saves.split() if "." not in s], [p.name for p in params[1:]])
        check_names(name, "saves", [s.partition(".")[0] for s in row.saves.split() if "." in s], ["self"])
        check_body(name, body, params)
        super().__init__(name, body, params, row.schemas)
        self.row = row
        self.through_storage, self.undone = row.through_storage, row.undone
        self.kernels: Cache[tuple, Kernel] = Cache(KERNELS)
        shown = {item.replace(".", "_"): self._shown(item) for item in row.saves.split()}
        self.node = make_node_class(row.node, shown, ViewNode)
        self.inplace_node = make_node_class(row.inplace_node or row.node, shown, ViewNode)
        #: Only its name is used: for the nodes of the backward's own backward.
        self.backward_base = make_node_class(row.node, {})
        self.function = Entry(self, self.name, self.miss, self.plans, out=False, writes=False).function
        if row.through_storage:
            self.function = _by_memory(self.function)
        if row.inside is not None:
            self.function = _checked_inside(self.function, row.inside)
        functions, inplace = addresses(name, row.names)
        self._publish(self.function, functions)
        if inplace:
            publish(self._method(), *inplace)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def inplace(self, t: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Makes the tensor its own view; returns it."""
        if t._storage_.born < mode.since:
            capture_checks.refuse(t, self.name, {})
        if mode.grad and t.requires_grad:
            check_recorded(t)
        made = self.function(t, *args, **kwargs)
        if made._node_ is not None:
            made._node_.__class__ = self.inplace_node
        return become(t, made)

    def _method(self) -> Callable[..., Tensor]:
        def method(self_: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            return self.inplace(self_, *args, **kwargs)

        method.__name__ = method.__qualname__ = f"{self.name}_"
        method.__doc__ = f"``{self.name}`` of the tensor itself; returns it."
        carry(method, overloads_of(self.function))
        return method

    @leading
    def miss(self, args: list[Any], out: Any = None, named: Any = None) -> Any:
        """Runs a call without a plan."""
        args = self.clean(self.name, args, named)
        t = args[0]
        key = key_of(self.params, args, True)
        plan = self.plans.get(key) or self.plans.again(key)
        if plan is None:
            if self.row.check is not None:
                self.row.check(*[a for p, a in zip(self.params, args) if not p.keyword])
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
        return lambda node: uint64(node.plan.shows[operand])


def _by_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """``as_strided``, with the first argument moved to the whole storage, and logical strides converted."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tensor):
            rejoin(args[0])
            if args[0]._layout_.base.traced and (placing_of(args[0]) or vmap_checks.maps(args[0]._storage_.buffer)):
                return inside(*args, **kwargs)
        return function(*args, **kwargs)

    def inside(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
        return function(input, size, *strided(input, tuple(size), tuple(stride), storage_offset))

    return call


def _checked_inside(function: Callable[..., Any], check: Callable[[Tensor], None]) -> Callable[..., Any]:
    """A function with a check of its first argument if that is traced."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        if args and args[0]._layout_.base.traced:
            check(args[0])
        return made

    return call


def view(
    *schemas: str,
    node: str,
    inplace_node: str = "",
    saves: str = "",
    names: str | None = None,
    static: str = "",
    check: Check | None = None,
    inside: Callable[[Tensor], None] | None = None,
    undone: Literal["always", "changed", ""] = "",
    through_storage: bool = False,
) -> Callable[[Callable[..., Any]], ViewOp]:
    """Declares a view; the options are the fields of ``ViewDeclaration``.

    The body is a function of a ``Geometry`` and static arguments that returns a ``Geometry``, or a list of them.

    Args:
        schemas: the overloads that the body computes, in PyTorch's grammar; the body has the parameters of the widest.
    """
    row = ViewDeclaration(
        schemas=schemas, node=node, inplace_node=inplace_node, saves=saves, names=names, static=static, check=check,
        inside=inside, undone=undone, through_storage=through_storage,
    )  # fmt: skip
    parsed, params = declared(schemas, static=static.split())
    return lambda body: ViewOp(parsed[0].name.removeprefix("aten::"), body, params, row)
