"""Declaring operations.

An operation is a pure function of funcgrad arrays, with the name of its backward node and what that node saves::

    @op("AddmmBackward0", saved="mat1 mat1.sym_sizes mat1.sym_strides mat2 mat2.sym_sizes mat2.sym_strides beta alpha")
    def addmm(input: Array, mat1: Array, mat2: Array, *, beta: Scalar = 1, alpha: Scalar = 1):
        return beta * input + alpha * (mat1 @ mat2)

That is all of it. The annotations say what the arguments are (``compat._core.operators.signature``): arrays and scalars
are inputs
of the compiled program, everything else is static. The backward is derived from the body, as a function of what is
declared saved and the incoming gradients only; what it turns out not to need is ``None`` in ``_saved_...``, as in
PyTorch. If it needs something that is not declared, an ``OpDeclarationError`` says so; then state the backward, in the
same kind of code::

    @op("SoftmaxBackward0", saved="result dim")
    def softmax(input: Array, dim: Dim):
        shifted = np.exp(input - np.max(input, axis=dim, keepdims=True))
        return shifted / np.sum(shifted, axis=dim, keepdims=True)

    @softmax.backward
    def softmax_backward(ct, result, dim):
        return (ct - np.sum(ct * result, axis=dim, keepdims=True)) * result

The parameters of a stated backward are, by name: ``ct`` (``ct0``, ``ct1``, ... for several results), operands,
``result`` (``result0``, ...), and static arguments. It returns the gradient, or a tuple with one per ``Array``
parameter. Where no gradient comes for one of several results, it is zero; ``ct0=None`` has it be None.

Options of ``op``:

``saved``
    names as PyTorch's attributes have them: operands (``self`` is the parameter ``input``), ``result``, ``resultN``,
    arguments, and metadata of operands (``self.sym_sizes``).
``names``
    where the function appears, e.g. ``"torch.softmax Tensor.softmax F.softmax"``; by default ``torch`` and ``Tensor``
    under its own name. ``""`` for a function that only others call.
``inplace``
    where the in-place variant appears; by default ``Tensor.NAME_`` for elementwise operations and nowhere for others.
``out``
    whether there is an ``out=`` variant; by default for what appears in ``torch``. ``"cast"``: one that takes a tensor
    of any dtype that the result can be cast to, as those with ``promote`` do. A function ``(result, out, operands)``
    that raises where one result may not be written into one tensor (``compat._core.operators.out.of_dtype``). An
    operation with a ``dtype`` computes in that of ``out``.
``promote``
    ``"common"``: operands may be numbers and are brought to their common dtype; ``"float"``: to a floating one at
    least; ``None``: operands come as they are.
``unrounded``
    names of operands that, where they are numbers or have no dimensions, promotion leaves in single precision though
    the others are in half; the body rounds the result (``compat._core.operators.opmath``).
``numbers``
    whether operands may be numbers; by default where ``promote`` is set.
``strides``
    ``"elementwise"``: results follow the operands' memory order; ``"contiguous"``: row-major; ``"like:NAME"``: keep the
    operand's; or a function ``(operands, types) -> strides per result`` over a dictionary of layouts.
``alone``
    raises PyTorch's own error where all operands are numbers; by default the first one is said to be no tensor.
``check``
    a function with the operation's parameters that raises PyTorch's errors; called before anything else, and only for
    combinations of layouts and static arguments not seen before (so it must not look at values).
``returns``
    names of several results, for a named tuple like ``torch.return_types.max``; ``saved`` and a stated backward may use
    them. ``results`` gives names for these two only: the function returns a plain tuple. Both, where the function
    has them in another order: what has no derivative comes last, since PyTorch's nodes do not count it.
``inspect``
    a function with the operation's parameters, called before every run, for errors that depend on values (an index out
    of bounds). It makes every call slower and waits for the values: only where PyTorch's own kernel looks.
``constant``
    which results have no derivative though they are floating.
``aside``
    which results are shown by the node as if they had none, though its own derivative goes through them.
``keeps``
    operands and results that PyTorch saves though gradients may do without them, with a question mark those that it
    saves where their own gradient is wanted; all others are saved only where they are needed.
``integers``
    operands that PyTorch takes as integers instead of as a tensor of them: nodes show them so.
``overlapping``
    what an in-place call does with a target whose elements share places: True if it may write it, since it writes the
    same everywhere, or a function with the operation's parameters; by default it is refused.
``apart``
    whether the in-place variant refuses inputs that share memory with its target, even all of it.
``older``
    the names of its keyword arguments that came among the tensors in PyTorch's older signatures.
``fits``
    numbers that PyTorch converts to the dtype it computes in, by name, each with the rule that says which that is
    (``compat._core.types.scalar_conversion``): one that does not fit is refused.
``converts``
    whether it brings operands to the dtype of the result, with PyTorch's warning where that leaves out imaginary parts;
    by default where it has a ``dtype``.
``undifferentiable``
    for an operation on floating tensors that PyTorch has no derivative for: its node complains when run.
``shows``
    more ``saved`` names: functions of the static arguments by name, and of ``layouts``, a dictionary.

``elementwise`` is ``op`` with ``promote="common"`` and elementwise strides, broadcasting and an in-place variant. A
view is declared with ``view`` by a function from ``Geometry`` (size, stride, offset) to ``Geometry``. What is written
in terms of other operations (``matmul``, ``linear``) is a plain function made public with
``compat._core.tensor.registry.function``; several operations under one name are one with ``overloads``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from compat._core.memory.strides import Layout, broadcast_size, overlaps_itself, preserved_strides
from compat._core.operators.call import Call
from compat._core.operators.call_errors import complaint, speaks
from compat._core.operators.codegen import ONE
from compat._core.operators.declared import CALLS, Declared, Late
from compat._core.operators.guards import Discarding, Inspected, Within, discards
from compat._core.operators.inplace import check_overlaps, check_recorded
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
from compat._core.operators.out import into_out
from compat._core.operators.plan import Kind, Plan, type_of_kind
from compat._core.operators.signature import Param, key_of
from compat._core.tensor import capture_checks
from compat._core.tensor.autograd_state import WITHIN
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor, from_array
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.errors import OVERLAPS_ITSELF, wrong_argument, wrong_combination
from compat._core.types.scalar_conversion import Rule, fitted
from compat._core.types.structseq import named_result
from funcgrad.core.caching import Cache
from funcgrad.core.ir import ArrayType, Program

# ---------------------------------------------------------------- operations

#: What takes numbers even where none of its operands is a tensor.
_OF_NUMBERS = frozenset(["add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"])


class Op(Declared):
    """A declared operation; calling it is calling ``function``. See the module for the options."""

    def __init__(self, body: Callable[..., Any], node: str | None, saved: str, options: dict[str, Any]):
        super().__init__(body, options.get("name"))
        self.promote: str | None = options.get("promote")
        self.numbers = options.get("numbers", self.promote is not None)
        self.promoted: str | None = options.get("promoted")
        self.unrounded = options.get("unrounded", "").split()
        self.strides: Any = options.get("strides", "contiguous")
        self.broadcasts: bool = options.get("broadcasts", self.strides == "elementwise")
        self.check: Callable[..., None] | None = options.get("check")
        self.alone: Callable[..., None] | None = options.get("alone")
        self.constant = frozenset(options.get("constant", ()))
        self.aside = frozenset(options.get("aside", ()))
        self.inspect: Callable[..., None] | None = options.get("inspect")
        self.overlapping: Any = options.get("overlapping", False)
        self.older = tuple(options.get("older", "").split())
        self.apart: bool = options.get("apart", False)
        self.returns: str | None = options.get("returns")
        self.results: list[str] = options.get("results", self.returns or "").split()
        self.shows: dict[str, Callable[..., Any]] = options.get("shows", {})
        self.keeps = frozenset(options.get("keeps", "").split())
        self.converts: bool = options.get("converts", any(p.name == "dtype" for p in self.params))
        self.fits: dict[str, Rule] = options.get("fits", {})
        self.integers = frozenset(options.get("integers", "").split())
        self.stated: Callable[..., Any] | None = None
        self.absent: frozenset[int] = frozenset()
        #: Which argument asks for a gradient of another kind, and the class of the nodes that give it.
        self.asks: tuple[str, type[OpNode]] | None = None
        self.node_name = node
        self.recorded = node is not None or options.get("undifferentiable", False)
        self.saved = tuple(saved.split())
        self.kernels: Cache[tuple, Kernel] = Cache(KERNELS)
        self.inplace_plans: Cache[tuple, Any] = Cache(CALLS)
        self.node = Underivable if options.get("undifferentiable") else self._node_class() if node is not None else None
        names = options.get("names")
        names = f"torch.{self.name} Tensor.{self.name}" if names is None else names
        out = options.get("out")
        self.casts = self.promote is not None or out == "cast"
        self.takes: Callable[..., None] | None = out if callable(out) else None
        out = any(n.startswith("torch.") for n in names.split()) if out is None else bool(out)
        self.function = self._entry(self.name, self.miss, self.plans, out, writes=False)
        self._publish(self.function, names)
        inplace = options.get("inplace")
        if inplace is None:
            inplace = f"Tensor.{self.name}_" if self.strides == "elementwise" and names else ""
        self.inplace = self._entry(f"{self.name}_", self.miss_inplace, self.inplace_plans, out=False, writes=True)
        self._publish(self.inplace, inplace)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def backward(self, stated: Callable[..., Any]) -> Callable[..., Any]:
        """States the backward instead of deriving it; a decorator."""
        self.stated = stated
        defaulted = [p.name for p in signature(stated).parameters.values() if p.default is None]
        self.absent = frozenset(int(n[2:]) for n in defaulted if n[:2] == "ct" and n[2:].isdigit())
        return stated

    def gradient_if(self, asked: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """States the gradient of the first operand where the argument ``asked`` is true; a decorator.

        It is given the node and the incoming gradient, and works on tensors.
        """

        def state(gradient: Callable[[OpNode, Tensor], Tensor]) -> Callable[..., Any]:
            assert self.node is not None
            self.asks = asked, with_first_gradient(self.node, gradient)
            return gradient

        return state

    # ---------------------------------------------------------------- calls not seen before

    def miss(self, args: list[Any], out: Any = None, named: Any = None) -> Any:
        """Runs a call that found no plan: cleans the arguments, makes the plan, keeps it."""
        args = self.clean(self.name, args, named)
        if out is not None:
            return into_out(self, args, out)
        return self._plan(args, self.plans, None).run(self.values(args))

    def miss_inplace(self, args: list[Any], out: Any = None, named: Any = None) -> Any:
        """The same for the in-place variant."""
        args = self.clean(f"{self.name}_", args, named)
        if not isinstance(args[0], Tensor):
            raise TypeError(
                f"{self.name}_(): argument '{self.params[0].name}' (position 1) must be Tensor, not "
                f"{type(args[0]).__name__}"
            )
        if mode.grad and self.node is not None and any(isinstance(a, Tensor) and a._rg for a in self.values(args)):
            if args[0]._storage.born < mode.since:
                capture_checks.refuse(args[0], self.name, dict(zip([p.name for p in self.params], args)))
            check_recorded(args[0])
        if callable(self.overlapping) and overlaps_itself(args[0].shape, args[0].stride()):
            return self.overlapping(*args)
        return self._plan(args, self.inplace_plans, 0).run(self.values(args))

    def _plan(self, args: list[Any], plans: Cache, target: int | None) -> Any:
        key = key_of(self.params, args, self.offsets, self.recorded)
        plan = plans.get(key) or plans.again(key)
        if plan is None:
            plan = plans[key] = self._make(args, target)
        return plan

    def _make(self, args: list[Any], target: int | None) -> Any:
        values = self.values(args)
        tensors = [v for v in values if isinstance(v, Tensor)]
        if not tensors and self.numbers and self.name not in _OF_NUMBERS:
            self._refuse_numbers(args)
        late = self.check if isinstance(self.check, Late) else None
        early = self.check if late is None else late.early
        if early is not None:
            early(*self._positional(args), **self._keywords(args))
        if target is not None and not self.overlapping and overlaps_itself(args[0].shape, args[0].stride()):
            raise RuntimeError(OVERLAPS_ITSELF)
        if target is not None and self.broadcasts:
            check_overlaps(args[0], values)
        if self.broadcasts:
            size = broadcast_size(*[tuple(t.shape) for t in tensors])
            if target is not None and size != tensors[0].shape:
                raise RuntimeError(
                    f"output with shape {list(tensors[0].shape)} doesn't match the broadcast shape {list(size)}"
                )
        if late is not None:
            late.check(*self._positional(args), **self._keywords(args))
        if self.inspect is not None and any(not t.numel() for t in tensors):
            # Where there is nothing, every index is wrong, and there may be no program to be made.
            self.inspect(*self._positional(args), **self._keywords(args))
        kinds, mask = self._kinds(args)
        statics = self.statics(args, tensors[0].dim() if tensors else 0)
        kernel = self._kernel(args, kinds, statics)
        if target is not None:
            self._check_target(args[0], kernel.program(tuple(type_of_kind(k) for k in kinds)))
        plan: Any = self._giving(kernel.plan(kinds, mask if mode.grad else None, target))
        self._check_fits(args, kernel.program(plan.types))
        if mode.grad and WITHIN in mask:
            plan = Within(plan, self._giving(kernel.plan(kinds, None, target)), self._operands(args))
        if self.converts and any(t.is_complex() and t.numel() for t in tensors) and discards(plan.outputs[0].dtype):
            plan = Discarding(plan)
        return plan if self.inspect is None else Inspected(plan, self, args)

    def _giving(self, plan: Plan) -> Plan:
        """A plan that gives its caller what the operation returns."""
        if plan.target is None and self.returns is None and len(plan.outputs) == 1:
            plan.give(ONE)
        elif plan.target is None:
            plan.give(tuple if self.returns is None else named_result(self.name, self.returns.split(), self.results))
        return plan

    def _refuse_numbers(self, args: list[Any]) -> None:
        """Complains that all operands are numbers, in the words of the operation's own if it has any."""
        if self.alone is not None:
            self.alone(*self._positional(args))
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
                kinds.append(v._layout if isinstance(v, Tensor) else None if default or v is None else type(v))
                mask.append(p.edge and isinstance(v, Tensor) and v._rg)
        return tuple(kinds), tuple(mask)

    def _operands(self, args: list[Any]) -> list[int]:
        """Which of the values are operands, be they given as numbers."""
        sizes = [(p.kind, len(a) if p.kind == "arrays" else 1) for p, a in zip(self.params, args) if p.dynamic]
        kinds = [kind for kind, n in sizes for _ in range(n)]
        return [i for i, kind in enumerate(kinds) if kind != "scalar"]

    def _check_target(self, t: Tensor, program: Program) -> None:
        layout = t._layout
        (result,) = program.output_types
        dtype = dtypes.from_numpy(result.dtype)
        if not dtypes.can_cast(dtype, layout.dtype):
            raise RuntimeError(
                f"result type {dtype.scalar_name} can't be cast to the desired output type {layout.dtype.scalar_name}"
            )
        if tuple(result.shape) != layout.size:
            wanted = list(result.shape)
            if not self.broadcasts:
                raise RuntimeError(
                    f"Bad in-place call: input tensor size {list(layout.size)} and output tensor size {wanted} "
                    "should match"
                )
            raise RuntimeError(f"output with shape {list(layout.size)} doesn't match the broadcast shape {wanted}")

    def _check_fits(self, args: list[Any], program: Program) -> None:
        """Whether those static arguments fit that have to; of others it is asked in every call."""
        for p, a in zip(self.params, args):
            if p.name in self.fits and not p.dynamic:
                fitted(self.fits[p.name](dtypes.from_numpy(program.output_types[0].dtype)), a)

    def _positional(self, args: Sequence[Any]) -> list[Any]:
        return [a for p, a in zip(self.params, args) if not p.keyword]

    def _keywords(self, args: Sequence[Any]) -> dict[str, Any]:
        return {p.name: a for p, a in zip(self.params, args) if p.keyword}

    # ---------------------------------------------------------------- kernels

    def _kernel(self, args: list[Any], kinds: tuple[Kind, ...], statics: dict[str, Any]) -> Kernel:
        counts = tuple(len(a) for p, a in zip(self.params, args) if p.kind == "arrays")
        numbers = tuple(None if isinstance(k, Layout) else k or type(None) for k in kinds)
        raw = tuple(a for p, a in zip(self.params, args) if not p.dynamic)
        key = (raw, tuple(map(type, raw)), tuple(statics.values()), counts, numbers)
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
            edges=call.edges,
            saveable=self._saveable(call),
            stated=call.stated if self.stated is not None else None,
            absent=self.absent,
            constant=self.constant,
            shows=raw,
            keeps=self.keeps,
            device=raw.get("device"),
            strict=self.promote is not None,
            fits=self.fits,
        )

    def _saveable(self, call: Call) -> frozenset[str]:
        names = set()
        for item in self.saved:
            if "." in item:
                continue
            name = self._parameter(item)
            names.add(name)
            names.update(n for n in call.inputs if n.startswith(f"{name}["))
        return frozenset(names)

    def _parameter(self, shown: str) -> str:
        """The parameter that PyTorch shows under a name."""
        own = {p.name for p in self.params}
        if shown in self.results:
            return f"result{self.results.index(shown)}"
        return "input" if shown == "self" and "self" not in own else shown

    def _strides(self, call: Call) -> Any:
        rule = self.strides
        if rule == "contiguous":
            return None
        if rule == "elementwise":
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
        assert self.node_name is not None
        made = make_node_class(self.node_name, {item.replace(".", "_"): self._shown(item) for item in self.saved})
        made.aside = self.aside
        return made

    def _shown(self, item: str) -> Callable[[OpNode], Any]:
        operand, _, what = item.partition(".")
        name = self._parameter(operand)
        param = next((p for p in self.params if p.name == name), None)
        if what:
            return lambda node: _metadata(node, node.plan.kernel.inputs.index(name), what)
        if param is None:
            if name in self.shows:
                return lambda node: uint64(self.shows[name](**node.plan.kernel.shows, layouts=_layouts_of(node)))
            hidden = [f"result{i}" for i in self.aside]
            return shown_tensor(lambda node: node.plan.derivative.place_of(name), history=name not in hidden)
        if name in self.integers:
            return partial(_integers, name)
        if param.kind == "array":
            return shown_tensor(lambda node: node.plan.derivative.place_of(name), partial(_shown_number, name))
        if param.kind == "arrays":
            return shown_tensors(lambda node: [n for n in node.plan.kernel.inputs if n.startswith(f"{name}[")])
        if param.kind == "scalar":
            return lambda node: _scalar(node, param)
        if isinstance(param.default, float):
            return lambda node: node.plan.kernel.shows[name]
        return lambda node: uint64(node.plan.kernel.shows[name])


def _metadata(node: OpNode, i: int, what: str) -> Any:
    if what == "sym_strides" and not node.plan.derivative.mask[i]:
        return ()  # PyTorch notes strides only of operands that get a gradient
    return metadata(what, node.plan.kinds[i])


def _layouts_of(node: OpNode) -> dict[str, Any]:
    return dict(zip(node.plan.kernel.inputs, node.plan.kinds))


def _shown_number(name: str, node: OpNode) -> Any:
    i = node.plan.kernel.inputs.index(name)
    if isinstance(node.plan.kinds[i], Layout) or node.plan.kinds[i] is None:
        return None
    value = node.numbers[i]
    # A number that meets tensors is as wide as Python's, whatever the default dtype.
    return from_array(np.asarray(value))


def _integers(name: str, node: OpNode) -> tuple[int, ...] | None:
    found = node.saved_tensor(node.plan.derivative.place_of(name))
    return None if found is None else tuple(found.tolist())


def _scalar(node: OpNode, param: Param) -> Any:
    i = node.plan.kernel.inputs.index(param.name)
    return param.default if node.plan.kinds[i] is None else node.numbers[i]


def op(node: str | None, *, saved: str = "", **options: Any) -> Callable[[Callable[..., Any]], Op]:
    """Declares an operation; see the module.

    Args:
        node: the name of its backward node; None if it has no derivative.
        saved: what the node shows as ``_saved_...``.
        options: as the module lists them.
    """
    return lambda body: Op(body, node, saved, options)


def elementwise(node: str | None, *, saved: str = "", **options: Any) -> Callable[[Callable[..., Any]], Op]:
    """Declares an operation on corresponding elements, with NumPy's broadcasting."""
    return op(node, saved=saved, **{"promote": "common", "strides": "elementwise", **options})


# ---------------------------------------------------------------- several operations under one name


def overloads(name: str, *candidates: Any, names: str | None = None) -> Callable[..., Any]:
    """One public function for several operations: the first whose parameters the arguments fit.

    Args:
        name: what users call it.
        candidates: functions, or pairs of a function and a predicate ``(args, kwargs) -> bool``; the last one needs
            none.
        names: where it appears; by default in ``torch`` and ``Tensor``.
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
                problem = complaint(where, args[skip:], kwargs)
                if problem is None:
                    raise
            raise problem

        chosen.__name__ = chosen.__qualname__ = where.rpartition(".")[2]
        chosen.__doc__ = getattr(tests[0][0], "function", tests[0][0]).__doc__
        return speaks(chosen)

    places = (f"torch.{name} Tensor.{name}" if names is None else names).split()
    made = [publish(calling(place), place) for place in places]
    return made[0]
