"""Operators: each is one row, a PyTorch schema with a pure function of funcgrad's arrays below it.

    @aten(
        "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        node="AddmmBackward0",
        saves="mat1 mat1.sym_sizes mat1.sym_strides mat2 mat2.sym_sizes mat2.sym_strides beta alpha",
    )
    def addmm(input, mat1, mat2, *, beta, alpha):
        return beta * input + alpha * (mat1 @ mat2)

The schema determines the kinds of the arguments (``compat._core.schema.parameter``): tensors and numbers are inputs of
the compiled program, all others are static. Several schemas are overloads that one body computes. Typed options, the
fields of ``compat._core.operators.declaration.Declaration``, specify the rest; one that contradicts the schema or
another option raises ``OpDeclarationError`` at import.

The backward is derived from the body, as a function of the incoming gradients and the values that ``saves`` names. A
saved value that it does not need is ``None`` in ``_saved_...``, as in PyTorch; if it needs another value, an
``OpDeclarationError`` names it. Then give an explicit backward formula, in the same kind of code::

    @aten(
        "_softmax(Tensor self, int dim) -> Tensor", node="SoftmaxBackward0", saves="result dim",
        names="torch.softmax Tensor.softmax",
    )
    def softmax(input, dim):
        shifted = np.exp(input - np.max(input, axis=dim, keepdims=True))
        return shifted / np.sum(shifted, axis=dim, keepdims=True)

    @softmax.backward
    def softmax_backward(ct, result, dim):
        return (ct - np.sum(ct * result, axis=dim, keepdims=True)) * result

The parameters of an explicit backward formula are, by name: the cotangent ``ct`` (``ct0``, ``ct1``, ... for several
results), operands, ``result`` (``result0``, ...), and static arguments. It returns the gradient, or a tuple with one
for each operand. A missing cotangent of one of several results is zero, or None with the default ``ct0=None``.

``pointwise`` is ``aten`` with type promotion, broadcasting, the operands' memory order and an in-place variant. A view
is a row of ``compat._core.operators.view_op.view``. An operator composed of others (``matmul``, ``linear``) is a
function with schemas above it, too (``compat._core.operators.composite``); ``overloads`` combines several operators
under one name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature, unwrap
from typing import Any, Literal

import numpy as np

from compat._core.autograd.rebase_history import check_recorded
from compat._core.memory.strides import Layout, broadcast_size, overlaps_itself, preserved_strides
from compat._core.operators.call import Call
from compat._core.operators.call_errors import call_error, has_call_errors
from compat._core.operators.codegen import ONE
from compat._core.operators.declaration import (
    Arguments,
    Check,
    Declaration,
    Dtypes,
    Gradients,
    Late,
    OpDeclarationError,
    Overlap,
    check_body,
    check_names,
    check_row,
    declared,
)
from compat._core.operators.entry_function import key_of
from compat._core.operators.guards import Discarding, Inspected, Within, discards
from compat._core.operators.inplace import check_overlaps
from compat._core.operators.kernel import KERNELS, Kernel
from compat._core.operators.op_node import (
    OpNode,
    Underivable,
    make_node_class,
    metadata,
    shown_tensor,
    shown_tensors,
    uint64,
    with_first_gradient,
)
from compat._core.operators.operator_base import CALLS, Entry, OperatorBase, addresses
from compat._core.operators.out import into_out
from compat._core.operators.plan import Kind, Plan, type_of_kind
from compat._core.schema.autocast_rules import RULES
from compat._core.schema.overload import OF_NUMBERS, carry, together
from compat._core.schema.parameter import Param
from compat._core.tensor import capture_checks
from compat._core.tensor.autograd_state import WITHIN
from compat._core.tensor.float8 import check_taken
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor, from_array
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.dtype import FLOAT8
from compat._core.types.errors import OVERLAPS_ITSELF, leading, wrong_argument, wrong_combination
from compat._core.types.scalar_conversion import fitted
from compat._core.types.structseq import named_result
from compat._core.types.type_promotion import check_cast
from funcgrad.core.caching import Cache
from funcgrad.core.ir import ArrayType, Program

# ---------------------------------------------------------------- operators

#: Gradients and results by number, as backward formulas name them.
_NUMBERED = re.compile(r"(ct|result)\d+")


class Op(OperatorBase):
    """A declared operator; a call of it is a call of ``function``.

    Args:
        name: its name in PyTorch's schemas.
        body: the function of arrays.
        params: its parameters.
        row: the declaration.
        results: the names of several results, for ``saves`` and the backward formula.
        named: the field names of several results, for users.
    """

    def __init__(
        self,
        name: str,
        body: Callable[..., Any],
        params: tuple[Param, ...],
        row: Declaration,
        results: Sequence[str] = (),
        named: Sequence[str] = (),
    ):
        functions, inplace = addresses(name, row.names, inplace=row.layout == "pointwise")
        check_row(name, row, params, results, inplace)
        check_body(name, body, params)
        super().__init__(name, body, params, row.schemas)
        self.row = row
        self.numbers = any(p.number for p in params) if row.dtypes.numbers is None else row.dtypes.numbers
        self.broadcasts = isinstance(row.layout, str) and row.layout.startswith("pointwise")
        self.layout = row.layout.removeprefix("pointwise, ") if isinstance(row.layout, str) else row.layout
        self.older = tuple(row.arguments.deprecated.split())
        self.without_out = row.arguments.without_out
        self.results, self.named = list(results), list(named)
        #: An explicit backward formula, and the names of its parameters.
        self.stated: Callable[..., Any] | None = None
        self.stated_names: tuple[str, ...] = ()
        self.absent: frozenset[int] = frozenset()
        #: The argument that selects the gradient of ``gradient_if``, and the node class with that gradient.
        self.asks: tuple[str, type[OpNode]] | None = None
        undefined = row.gradients.undefined
        self.recorded = row.node is not None or undefined
        self.saved = tuple(s.rstrip("!?") for s in row.saves.split())
        self.kernels: Cache[tuple, Kernel] = Cache(KERNELS)
        self.inplace_plans: Cache[tuple, Any] = Cache(CALLS)
        self.node = Underivable if undefined else self._node_class() if row.node is not None else None
        self.autocast = name in RULES
        self.casts = row.dtypes.promote is not None or row.out == "cast"
        self.takes: Callable[..., None] | None = row.out if callable(row.out) else None
        out = any(n.startswith("torch.") for n in functions) if row.out is None else bool(row.out)
        self.function = Entry(self, self.name, self.miss, self.plans, out, writes=False).function
        self._publish(self.function, functions)
        self.inplace = Entry(self, f"{name}_", self.miss_inplace, self.inplace_plans, out=False, writes=True).function
        self._publish(self.inplace, inplace)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def backward(self, stated: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator of an explicit backward formula, which replaces the derived backward."""
        if self.node is None:
            raise OpDeclarationError(f"{self.name}: there is a backward formula, but the row has no node")
        known = [*self.names, *self.results, "ct", "result"]
        parameters = _parameters(stated)
        names = [n for n in parameters if not _NUMBERED.fullmatch(n)]
        check_names(self.name, "the explicit backward", names, known)
        self.stated, self.stated_names = stated, tuple(parameters)
        defaulted = [n for n, default in parameters.items() if default is None]
        self.absent = frozenset(int(n[2:]) for n in defaulted if n[:2] == "ct" and n[2:].isdigit())
        return stated

    def gradient_if(self, asked: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator of a gradient of the first operand for calls where the argument ``asked`` is true.

        It is a function of the node and the incoming gradient, and works on tensors.
        """

        def state(gradient: Callable[[OpNode, Tensor], Tensor]) -> Callable[..., Any]:
            if self.node is None:
                raise OpDeclarationError(f"{self.name}: there is a gradient formula, but the row has no node")
            check_names(self.name, "gradient_if", [asked], self.names)
            self.asks = asked, with_first_gradient(self.node, gradient)
            return gradient

        return state

    def variant(self, **changes: Any) -> Op:
        """A row with the same schemas and body and other options, such as another node for the in-place variant."""
        return Op(self.name, self.body, self.params, replace(self.row, **changes), self.results, self.named)

    # ---------------------------------------------------------------- calls without a plan

    @leading
    def miss(self, args: list[Any], out: Any = None, named: Any = None) -> Any:
        """Runs a call without a plan: converts the arguments, makes the plan and caches it."""
        args = self.clean(self.name, args, named)
        if out is not None:
            return into_out(self, args, out)
        return self._plan(args, self.plans, None).run(self.values(args))

    @leading
    def miss_inplace(self, args: list[Any], out: Any = None, named: Any = None) -> Any:
        """The same for the in-place variant."""
        args = self.clean(f"{self.name}_", args, named)
        if not isinstance(args[0], Tensor):
            raise TypeError(
                f"{self.name}_(): argument '{self.params[0].name}' (position 1) must be Tensor, not "
                f"{type(args[0]).__name__}"
            )
        if mode.grad and self.node is not None and any(isinstance(a, Tensor) and a._rg_ for a in self.values(args)):
            if args[0]._storage_.born < mode.since:
                capture_checks.refuse(args[0], self.name, dict(zip(self.names, args)))
            check_recorded(args[0])
        if callable(self.row.overlap.itself) and overlaps_itself(args[0].shape, args[0].stride()):
            return self.row.overlap.itself(*args)
        return self._plan(args, self.inplace_plans, 0).run(self.values(args))

    def _plan(self, args: list[Any], plans: Cache, target: int | None) -> Any:
        key = key_of(self.params, args, self.is_view, self.recorded, self.autocast)
        plan = plans.get(key) or plans.again(key)
        if plan is None:
            plan = plans[key] = self._make(args, target)
        return plan

    def _make(self, args: list[Any], target: int | None) -> Any:
        values = self.values(args)
        tensors = [v for v in values if isinstance(v, Tensor)]
        if not tensors and self.numbers and self.name not in OF_NUMBERS:
            self._refuse_numbers(args)
        late = self.row.check if isinstance(self.row.check, Late) else None
        early = self.row.check if late is None else late.early
        if early is not None:
            self._call(early, args)
        if any(t._layout_.dtype in FLOAT8 for t in tensors):
            check_taken(self.name, tensors)
        if target is not None and not self.row.overlap.itself and overlaps_itself(args[0].shape, args[0].stride()):
            raise RuntimeError(OVERLAPS_ITSELF)
        if target is not None and self.broadcasts:
            check_overlaps(args[0], values)
        if self.broadcasts:
            size = broadcast_size(*[tuple(t._layout_.size) for t in tensors])
            if target is not None and size != tensors[0].shape:
                raise RuntimeError(
                    f"output with shape {list(tensors[0].shape)} doesn't match the broadcast shape {list(size)}"
                )
        if late is not None:
            self._call(late.check, args)
        if self.row.values is not None and any(not t.numel() for t in tensors):
            # Every index into an empty dimension is an error, and there may be no program.
            self._call(self.row.values, args)
        kinds, mask = self._kinds(args)
        statics = self.statics(args, tensors[0]._layout_.ndim if tensors else 0)
        kernel = self._kernel(args, kinds, statics)
        if target is not None:
            self._check_target(args[0], kernel.program(tuple(type_of_kind(k) for k in kinds)))
        plan: Any = self._giving(kernel.plan(kinds, mask if mode.grad else None, target))
        if self.row.dtypes.fits:
            self._check_fits(args, kernel.program(plan.types))
        if mode.grad and WITHIN in mask:
            plan = Within(plan, self._giving(kernel.plan(kinds, None, target)), self._operands(args))
        if self._converts() and any(t.is_complex() and t.numel() for t in tensors) and discards(plan.outputs[0].dtype):
            plan = Discarding(plan)
        return plan if self.row.values is None else Inspected(plan, self, args)

    def _giving(self, plan: Plan) -> Plan:
        """The plan, with a ``finish`` that converts its list of results to the operation's return value."""
        named = self.named if len(self.named) == len(plan.outputs) else []  # further results are internal
        if plan.target is None and not named and len(plan.outputs) == 1:
            plan.give(ONE)
        elif plan.target is None:
            plan.give(named_result(self.name, named, self.results) if named else tuple)
        return plan

    def _refuse_numbers(self, args: list[Any]) -> None:
        """Raises the error for operands that are all numbers, the operation's own if it has one."""
        if self.row.arguments.alone is not None:
            self.row.arguments.alone(*[a for p, a in zip(self.params, args) if not p.keyword])
        for i, (p, a) in enumerate(zip(self.params, args)):
            if p.kind == "array" and a is not None:
                raise wrong_argument(self.name, p.name, i + 1, "Tensor", a)

    def _kinds(self, args: list[Any]) -> tuple[tuple[Kind, ...], tuple[bool, ...]]:
        kinds: list[Kind] = []
        mask = []
        for p, a in zip(self.params, args):
            if not p.dynamic:
                continue
            for v in a if p.kind == "arrays" else (a,):
                default = p.kind == "scalar" and not p.required and v is p.default
                kinds.append(v._layout_ if isinstance(v, Tensor) else None if default or v is None else type(v))
                mask.append(p.edge and isinstance(v, Tensor) and v._rg_)
        return tuple(kinds), tuple(mask)

    def _operands(self, args: list[Any]) -> list[int]:
        """The indices of the values that are operands, including operands given as numbers."""
        sizes = [(p.kind, len(a) if p.kind == "arrays" else 1) for p, a in zip(self.params, args) if p.dynamic]
        kinds = [kind for kind, n in sizes for _ in range(n)]
        return [i for i, kind in enumerate(kinds) if kind != "scalar"]

    def _check_target(self, t: Tensor, program: Program) -> None:
        layout = t._layout_
        (result,) = program.output_types
        check_cast(dtypes.from_numpy(result.dtype), layout.dtype)
        if tuple(result.shape) != layout.size:
            wanted = list(result.shape)
            if not self.broadcasts:
                raise RuntimeError(
                    f"Bad in-place call: input tensor size {list(layout.size)} and output tensor size {wanted} "
                    "should match"
                )
            raise RuntimeError(f"output with shape {list(layout.size)} doesn't match the broadcast shape {wanted}")

    def _check_fits(self, args: list[Any], program: Program) -> None:
        """Checks that a dtype can represent static arguments; numbers of the program are checked in every call."""
        for p, a in zip(self.params, args):
            if p.name in self.row.dtypes.fits and not p.dynamic:
                fitted(self.row.dtypes.fits[p.name](dtypes.from_numpy(program.output_types[0].dtype)), a)

    def _call(self, function: Callable[..., Any], args: Sequence[Any]) -> None:
        """Calls a check with the arguments, keyword-only ones by name."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for p, a in zip(self.params, args):
            if p.keyword:
                keywords[p.name] = a
            else:
                positional.append(a)
        function(*positional, **keywords)

    # ---------------------------------------------------------------- kernels

    def _kernel(self, args: list[Any], kinds: tuple[Kind, ...], statics: dict[str, Any]) -> Kernel:
        raw: list[Any] = []
        counts: list[int] = []
        for p, a in zip(self.params, args):
            if not p.dynamic:
                raw += (a, type(a))
            elif p.kind == "arrays":
                counts.append(len(a))
        numbers = tuple([None if isinstance(k, Layout) else k or type(None) for k in kinds])
        key = (tuple(raw), tuple(statics.values()), tuple(counts), numbers)
        kernel = self.kernels.get(key) or self.kernels.again(key)
        if kernel is None:
            kernel = self.kernels[key] = self._make_kernel(args, numbers, statics)
        return kernel

    def _make_kernel(self, args: list[Any], numbers: tuple, statics: dict[str, Any]) -> Kernel:
        call = Call(self, args, numbers, statics)
        raw = {p.name: a for p, a in zip(self.params, args) if not p.dynamic}
        return Kernel(
            self.name,
            call.body,
            call.inputs,
            node=self.asks[1] if self.asks is not None and raw[self.asks[0]] else self.node,
            strides=self._strides(call),
            with_edges=call.edges,
            saveable=self._saveable(call),
            stated=call.stated if self.stated is not None else None,
            absent=self.absent,
            constant=frozenset(self.row.gradients.constant),
            shows=raw,
            keeps=self._keeps(),
            shown=["self" if n == "input" and "self" in self.saved else n.partition("[")[0] for n in call.inputs],
            device=raw.get("device"),
            strict=self.row.dtypes.promote is not None,
            fits=self.row.dtypes.fits,
        )

    def _converts(self) -> bool:
        """Whether it converts operands to the dtype of the result."""
        stated = self.row.dtypes.converts
        return "dtype" in self.names if stated is None else stated

    def _keeps(self) -> frozenset[str]:
        """The names saved even if no gradient needs them; with a question mark, if the operand itself has a
        gradient."""
        if "!" not in self.row.saves and "?" not in self.row.saves:
            return frozenset()
        kept = [s for s in self.row.saves.split() if s[-1] in "!?"]
        named = [(self._parameter(s[:-1]), s[-1].replace("!", "")) for s in kept]
        return frozenset(f"{'result0' if name == 'result' else name}{mark}" for name, mark in named)

    def _saveable(self, call: Call) -> frozenset[str]:
        names = set()
        for item in self.saved:
            if "." in item:
                continue
            name = self._parameter(item)
            names.add(name)
            if name not in call.inputs:
                names.update([n for n in call.inputs if n.startswith(f"{name}[")])
        return frozenset(names)

    def _parameter(self, shown: str) -> str:
        """The parameter of a PyTorch name."""
        if shown in self.results:
            return f"result{self.results.index(shown)}"
        return "input" if shown == "self" and "self" not in self.names else shown

    def _strides(self, call: Call) -> Any:
        rule = self.layout
        if rule == "contiguous":
            return None
        if rule == "pointwise":
            return call.elementwise_strides
        if isinstance(rule, str):
            name = rule.removeprefix("like:")

            def like(kinds: Sequence[Kind], types: Sequence[ArrayType]) -> list[Any]:
                layout = call.layouts(kinds)[name]
                return [
                    preserved_strides(tuple(layout.size), layout.stride) if t.shape == layout.size else None
                    for t in types
                ]

            return like
        return lambda kinds, types: rule(call.layouts(kinds) | call.statics, types)

    # ---------------------------------------------------------------- the node

    def _node_class(self) -> type[OpNode]:
        assert self.row.node is not None
        made = make_node_class(self.row.node, {item.replace(".", "_"): self._shown(item) for item in self.saved})
        made.aside = frozenset(self.row.gradients.detached)
        return made

    def _shown(self, item: str) -> Callable[[OpNode], Any]:
        operand, _, what = item.partition(".")
        name = self._parameter(operand)
        param = next((p for p in self.params if p.name == name), None)
        if what:
            return lambda node: _metadata(node, node.plan.kernel.inputs.index(name), what)
        if param is None:
            if name in self.row.arguments.shows:
                return lambda node: uint64(
                    self.row.arguments.shows[name](**node.plan.kernel.shows, layouts=_layouts_of(node))
                )
            hidden = [f"result{i}" for i in self.row.gradients.detached]
            return shown_tensor(lambda node: node.plan.derivative.place_of(name), history=name not in hidden)
        if name in self.row.arguments.integers.split():
            return partial(_integers, name)
        if param.kind == "array":
            return shown_tensor(lambda node: node.plan.derivative.place_of(name), partial(_shown_number, name))
        if param.kind == "arrays":
            return shown_tensors(lambda node: [n for n in node.plan.kernel.inputs if n.startswith(f"{name}[")])
        if param.kind == "scalar":
            return lambda node: _scalar(node, param)
        if isinstance(param.default, float) or param.plain == "Number":
            return lambda node: node.plan.kernel.shows[name]
        return lambda node: uint64(node.plan.kernel.shows[name])


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a backward formula with their defaults; ``...`` for none."""
    function = unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None:
        return {p.name: ... if p.default is p.empty else p.default for p in signature(function).parameters.values()}
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = getattr(function, "__defaults__", None) or ()
    found = dict.fromkeys(names, ...) | dict(zip(names[code.co_argcount - len(defaults) : code.co_argcount], defaults))
    return found | (getattr(function, "__kwdefaults__", None) or {})


def _metadata(node: OpNode, i: int, what: str) -> Any:
    if what == "sym_strides" and not node.plan.derivative.mask[i]:
        return ()  # PyTorch saves strides only for operands with a gradient
    return metadata(what, node.plan.kinds[i])


def _layouts_of(node: OpNode) -> dict[str, Any]:
    return dict(zip(node.plan.kernel.inputs, node.plan.kinds))


def _shown_number(name: str, node: OpNode) -> Any:
    i = node.plan.kernel.inputs.index(name)
    if isinstance(node.plan.kinds[i], Layout) or node.plan.kinds[i] is None:
        return None
    value = node.numbers[i]
    # A number among tensors is float64 or int64, whatever the default dtype.
    return from_array(np.asarray(value))


def _integers(name: str, node: OpNode) -> tuple[int, ...] | None:
    found = node.saved_tensor(node.plan.derivative.place_of(name))
    return None if found is None else tuple(found.tolist())


def _scalar(node: OpNode, param: Param) -> Any:
    i = node.plan.kernel.inputs.index(param.name)
    return param.default if node.plan.kinds[i] is None else node.numbers[i]


_AS_THEY_COME, _ARGUMENTS, _GRADIENTS, _OVERLAP = Dtypes(), Arguments(), Gradients(), Overlap()


def aten(
    *schemas: str,
    node: str | None = None,
    saves: str = "",
    names: str | None = None,
    dtypes: Dtypes | Literal["common", "float"] = _AS_THEY_COME,
    layout: str | Callable[..., Any] = "contiguous",
    check: Check | None = None,
    values: Check | None = None,
    out: bool | Literal["cast"] | Callable[..., None] | None = None,
    arguments: Arguments = _ARGUMENTS,
    gradients: Gradients = _GRADIENTS,
    overlap: Overlap = _OVERLAP,
) -> Callable[[Callable[..., Any]], Op]:
    """Declares an operator; the options are the fields of ``Declaration``.

    Args:
        schemas: the overloads that the body computes, in PyTorch's grammar; the body has the parameters of the widest.
        dtypes: a string is the field ``promote`` of ``Dtypes``.
    """
    row = Declaration(
        schemas=schemas, node=node, saves=saves, names=names, layout=layout, check=check, values=values, out=out,
        dtypes=Dtypes(promote=dtypes) if isinstance(dtypes, str) else dtypes,
        arguments=arguments, gradients=gradients, overlap=overlap,
    )  # fmt: skip
    parsed, params = declared(
        schemas,
        static=arguments.static.split(),
        traced=arguments.traced.split(),
        without_edge=gradients.without.split(),
    )
    named = [a.name for a in parsed[-1].returns if a.name]

    def declare(body: Callable[..., Any]) -> Op:
        return Op(parsed[0].name.removeprefix("aten::"), body, params, row, arguments.results.split() or named, named)

    return declare


def pointwise(*schemas: str, **options: Any) -> Callable[[Callable[..., Any]], Op]:
    """Declares an elementwise operator, with broadcasting and type promotion."""
    return aten(*schemas, **{"dtypes": "common", "layout": "pointwise", **options})


# ---------------------------------------------------------------- several operators under one name


def overloads(name: str, *candidates: Any, names: str | None = None) -> Callable[..., Any]:
    """One public function for several operators: the first whose parameters accept the arguments.

    Args:
        name: its public name.
        candidates: functions, or pairs of a function and a predicate ``(args, kwargs) -> bool``; the last one needs no
            predicate.
        names: its addresses; by default in ``torch`` and ``Tensor``.
    """
    tests = [c if isinstance(c, tuple) else (c, None) for c in candidates]

    def calling(where: str) -> Callable[..., Any]:
        skip = where.startswith("Tensor.")

        def chosen(*args: Any, **kwargs: Any) -> Any:
            try:
                for function, test in tests:
                    if test is None or test(args, kwargs):
                        return function(*args, **kwargs)
                raise wrong_combination(name, args[skip:], kwargs)
            except Exception:
                problem = call_error(where, args[skip:], kwargs)
                if problem is None:
                    raise
            raise problem

        owner, _, chosen.__name__ = where.rpartition(".")
        # pickled by these
        chosen.__qualname__ = where if skip else chosen.__name__
        chosen.__module__ = "compat" if skip or owner == "torch" else f"compat.{owner}"
        chosen.__doc__ = getattr(tests[0][0], "function", tests[0][0]).__doc__
        carry(chosen, together((function for function, _ in tests), bool(skip)))
        return has_call_errors(chosen)

    places = (f"torch.{name} Tensor.{name}" if names is None else names).split()
    made = [publish(calling(place), place) for place in places]
    return made[0]
