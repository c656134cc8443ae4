"""Kernels: pure functions of arrays and numbers, with a derived backward.

A kernel is an operation with fixed static arguments. Its backward is another kernel, so that it can be differentiated
in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from operator import and_
from typing import Any

import numpy as np

from compat._core.dispatch.dispatcher import kernel_overrides
from compat._core.operators.declaration import OpDeclarationError
from compat._core.operators.op_node import Underivable, derived_node_class
from compat._core.operators.plan import Kind, Plan
from compat._core.tensor.tensor import Tensor, sync
from compat._core.transforms.grad_mode import mode
from compat._core.types.scalar_conversion import Rule
from funcgrad.core.caching import Cache, Group
from funcgrad.core.dtypes import is_inexact
from funcgrad.core.ir import ArrayType, Equation, Program, Var
from funcgrad.core.passes import common_subexpressions, dead_code, part, used_inputs
from funcgrad.core.tracing import located, type_of
from funcgrad.interpreters.conjugate import conjugated_late
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.interpreters.staging import Staging, folding, stage
from funcgrad.primitives.elementwise import cast, conjugated
from funcgrad.primitives.shape import zeros

#: The caches of kernels by static arguments, and of their plans, programs and derivatives.
KERNELS = Group("kernels", 4096)
_MADE = Group("plans", 16384)


_DIFFERENTIATED = (
    "AdaptiveAvgPool2D0 AdaptiveAvgPool3D0 AdaptiveMaxPool2D0 AdaptiveMaxPool3D0 AvgPool2D0 AvgPool3D0 Convolution0 "
    "FractionalMaxPool2D0 FractionalMaxPool3D0 GridSampler2D0 GridSampler3D0 Hardshrink0 Hardsigmoid0 Hardtanh0 "
    "Hardtanh1 LeakyRelu0 LeakyRelu1 MaxPool2DWithIndices0 MaxPool3DWithIndices0 MultiMarginLoss0 "
    "MultilabelMarginLoss0 NativeBatchNorm0 NativeLayerNorm0 NllLoss0 NllLoss2D0 PreluKernel0 ReflectionPad1D0 "
    "ReflectionPad2D0 ReflectionPad3D0 Relu0 ReplicationPad1D0 ReplicationPad2D0 ReplicationPad3D0 RreluWithNoise0 "
    "Softshrink0 Threshold0 Threshold1"
)
#: Nodes whose gradient PyTorch computes by one operation with a derivative formula: the gradient requires grad if a
#: saved #: tensor does, even if that only selects the elements with a gradient.
OF_ITS_OWN = frozenset(f"{name[:-1]}Backward{name[-1]}" for name in _DIFFERENTIATED.split())

#: Nodes whose gradients of operands on which no result depends are None, in PyTorch: the double backward of a
#: convolution computes no gradient of the input if that of the weight is not needed.
UNDEFINED = frozenset(f"{name}BackwardBackward0" for name in ("Convolution", "GridSampler2D", "GridSampler3D"))


@dataclass(eq=False, slots=True)
class Kernel:
    """A pure function of arrays and numbers.

    Args:
        name: its name in messages.
        body: a function of one value per input (None for an absent one) that returns a list of arrays.
        inputs: the names of the inputs.
        node: the class of its nodes; None if it has no derivative.
        strides: the strides of the results: ``(kinds, types) -> strides per result``, None for row-major.
        with_edges: the inputs for which a node has an edge; None for all.
        saveable: names of the inputs and results (``result0``, ...) that backward may use; None for any input.
        stated: an explicit backward formula: ``(inputs, results, cotangents) -> gradient per input``.
        absent: the numbers of the results whose missing cotangent is None in the backward formula.
        constant: the numbers of the results without a derivative.
        shows: static arguments by name, for nodes.
        keeps: names of inputs and results that nodes save even if backward does not need them.
        shown: the names of the inputs in nodes' attributes. Nodes save inputs in the alphabetical order of these, as in
            PyTorch, where hooks see it; without them, in the order of the inputs.
        device: the device of the results; None for that of the operands.
        strict: whether all operands must be on one device.
        formula: whether it is a gradient that PyTorch computes by several operations. Then a result does not require
            grad because of operands that it depends on only by comparisons.
        fits: numbers by name whose overflow is checked, with the rule from the first result's dtype.
    """

    name: str
    body: Callable[..., Sequence[Any]]
    inputs: Sequence[str]
    _: KW_ONLY
    node: Any = None
    strides: Callable[[Sequence[Kind], Sequence[ArrayType]], Sequence[Any]] | None = None
    with_edges: InitVar[Sequence[int] | None] = None
    saveable: frozenset[str] | None = None
    stated: Callable[..., Sequence[Any]] | None = None
    absent: frozenset[int] = frozenset()
    constant: frozenset[int] = frozenset()
    shows: dict[str, Any] = field(default_factory=dict)
    keeps: frozenset[str] = frozenset()
    shown: Sequence[str] = ()
    device: Any = None
    strict: bool = False
    formula: bool = False
    fits: Mapping[str, Rule] = field(default_factory=dict)
    edges: tuple[int, ...] = field(init=False)
    #: Whether it has a derivative at all.
    derivable: bool = field(init=False)
    #: Its plans, programs, derivatives and backward kernels.
    made: Cache[tuple, Any] = field(init=False)

    def __post_init__(self, with_edges: Sequence[int] | None) -> None:
        self.derivable = self.node is not Underivable
        self.edges = tuple(range(len(self.inputs)) if with_edges is None else with_edges)
        self.made = Cache(_MADE)

    def call(self, values: Sequence[Any]) -> Sequence[Tensor]:
        """Runs it on tensors and numbers."""
        for override in kernel_overrides:
            found = override(self, values)
            if found is not None:
                return found
        kinds: list[Kind] = []
        for v in values:
            if isinstance(v, Tensor):
                if v._view_ is not None:
                    sync(v)
                kinds.append(v._layout_)
            else:
                kinds.append(type(v))
        mask = tuple([isinstance(v, Tensor) and v._rg_ for v in values]) if mode.grad else None
        return self.plan(tuple(kinds), mask).run(values)

    def plan(self, kinds: tuple[Kind, ...], mask: tuple[bool, ...] | None, target: int | None = None) -> Plan:
        """The plan for inputs of given kinds.

        Args:
            mask: the inputs that require grad; None if nothing is recorded.
            target: the input into which the result is written; None for a new tensor.
        """
        key = ("plan", kinds, mask, target, mode.inference)
        found = self.made.get(key) or self.made.again(key)
        if found is None:
            with located(), folding():
                found = self.made[key] = Plan(self, kinds, mask or (False,) * len(kinds), target)
        return found

    def program(self, types: tuple[ArrayType | None, ...]) -> Program:
        """Its program for arrays of ``types``; absent inputs (None) have no variable."""
        found = self.known_program(types)
        if found is None:
            present = [t for t in types if t is not None]
            absent = len(present) < len(types)

            def run(*arrays: Any) -> Sequence[Any]:
                given = iter(arrays)
                return self.body(*[None if t is None else next(given) for t in types])

            with np.errstate(all="ignore"):  # static arguments may be infinite in the dtype
                found = self.made["program", types] = stage(
                    run if absent else self.body, present, name=self.name, description=f"the operation {self.name}"
                )
        return found

    def known_program(self, types: tuple[ArrayType | None, ...]) -> Program | None:
        """The cached program for arrays of ``types``, if there is one."""
        found: Program | None = self.made.get(("program", types))
        return self.made.again(("program", types)) if found is None else found

    def keep_program(self, types: tuple[ArrayType | None, ...], staged: Program, results: int, first: int) -> Program:
        """Caches the program for ``types``: the first equations and results of a program staged with the gradients."""
        inputs = staged.inputs[: len(types) - types.count(None)]
        found = self.made["program", types] = part(staged, inputs, staged.outputs[:results], self.name, first)
        return found

    def derivative(self, types: tuple[ArrayType | None, ...], mask: tuple[bool, ...]) -> Derivative:
        """The backward for inputs of ``types``, with gradients of the inputs in ``mask``."""
        key = ("derivative", types, mask)
        found: Derivative | None = self.made.get(key) or self.made.again(key)
        if found is None:
            found = self.made[key] = Derivative(self, types, mask)
        return found


@dataclass(eq=False, slots=True)
class Backward:
    """A derivative, specialized for incoming gradients of some of the results.

    Attributes:
        kernel: computes the gradients; None if each is an incoming one.
        grads, saved, numbers: its inputs: indices of incoming gradients, saved tensors and numbers.
        places: per edge the number of the result that is the gradient; ``~i`` for the incoming gradient ``i`` itself;
            None for no gradient.
    """

    kernel: Kernel | None
    grads: tuple
    saved: tuple
    numbers: tuple
    places: tuple


class Derivative:
    """The backward of a kernel on inputs of given types.

    Attributes:
        results: the number of the kernel's results.
        kept: the inputs that are saved even if backward does not need them.
        saved_inputs, saved_results: the tensors that a node saves, in this order: inputs and results.
    """

    def __init__(self, kernel: Kernel, types: tuple[ArrayType | None, ...], mask: tuple[bool, ...]):
        self.kernel = kernel
        self.types = types
        self.mask = mask
        #: The result of ``_stage`` with the gradients of all results, until it has been used twice.
        self._whole: tuple[Program, list[int]] | None = None
        #: The kernel's program on these types; None while it is staged together with the gradients.
        self.forward = kernel.known_program(types)
        if self.forward is None and kernel.derivable and not kernel.formula:
            self._whole = self._stage(None)
        else:
            self.forward = kernel.program(types)
            self._results_are(self.forward.output_types)
        used = self._used() if any(self.differentiable) and kernel.derivable else [False] * (len(types) + self.results)
        n = len(types)
        self.kept = [False] * n
        if kernel.keeps:
            self.kept = [
                t is not None and (name in kernel.keeps or (m and f"{name}?" in kernel.keeps))
                for name, t, m in zip(kernel.inputs, types, mask)
            ]
        numeric = [t is not None and t.weak for t in types]
        saved = [i for i in range(n) if (used[i] or self.kept[i]) and not numeric[i]]
        self.saved_inputs = tuple(sorted(saved, key=kernel.shown.__getitem__) if kernel.shown else saved)
        self.saved_results = tuple([i for i in range(self.results) if used[n + i] or f"result{i}" in kernel.keeps])
        #: Whether backward needs operands that are numbers, which PyTorch saves as tensors.
        self.keeps_numbers = any(numeric) and any(used[i] and numeric[i] for i in kernel.edges)
        self._check(used)

    def _results_are(self, types: list[ArrayType]) -> None:
        """Sets the types of the results, and which of them have a derivative."""
        self.out_types, self.results = types, len(types)
        self.differentiable = tuple([t.inexact and i not in self.kernel.constant for i, t in enumerate(types)])
        if self.kernel.formula:
            assert self.forward is not None
            depend = _dependent(self.forward, [m for m, t in zip(self.mask, self.types) if t is not None])
            self.differentiable = tuple(map(and_, self.differentiable, depend))

    def place_of(self, name: str) -> int | None:
        """The index of an input or a result (``result0``) among the saved tensors; None if it is not saved."""
        if name.startswith("result") and name not in self.kernel.inputs:
            number = int(name.removeprefix("result") or 0)
            return len(self.saved_inputs) + self.saved_results.index(number) if number in self.saved_results else None
        i = self.kernel.inputs.index(name)
        return self.saved_inputs.index(i) if i in self.saved_inputs else None

    def backward(self, present: tuple[bool, ...], strides: Sequence[Any] | None = None) -> Backward:
        """The backward for incoming gradients of some results.

        Args:
            present: for each result, whether it has a gradient.
            strides: the strides of the gradient of each input; None for row-major.
        """
        made, key = self.kernel.made, ("backward", self.types, self.mask, present, strides)
        found: Backward | None = made.get(key) or made.again(key)
        if found is None:
            found = made[key] = self._make(present, strides)
        return found

    def shown(self) -> Program:
        """The program of the gradients, from those of all results, the saved tensors, and numbers."""
        present = self.differentiable
        found = self.backward(present)
        if found.kernel is None:
            incoming = [t.strong() for t in self.out_types]
            name = f"{self.kernel.name}_backward"
            return stage(lambda *cts: [cts[~p] for p in found.places if p is not None], incoming, name=name)
        inputs = [self.types[i] for i in self.saved_inputs]
        kept = [*inputs, *[self.out_types[i] for i in self.saved_results]]
        types = [self.out_types[i].strong() for i in found.grads] + [kept[i] for i in found.saved]
        return found.kernel.program((*types, *[self.types[i] for i in found.numbers]))

    # ---------------------------------------------------------------- making it

    def _check(self, used: Sequence[bool]) -> None:
        saveable = self.kernel.saveable
        if saveable is None:
            return
        for i, name in enumerate(self.kernel.inputs):
            if used[i] and name not in saveable:
                raise OpDeclarationError(
                    f"{self.kernel.name}: its backward needs {name!r}, which is not among what it declares to save "
                    f"({', '.join(sorted(saveable)) or 'nothing'}); declare it, or state a backward that does without"
                )

    def _program(self, present: tuple[bool, ...]) -> tuple[Program, list[int]]:
        """The program from (inputs, results, incoming gradients) to gradients, and the input of each gradient."""
        if present != self.differentiable:
            return self._stage(present)
        found, self._whole = self._whole, None
        return found or self._stage(present)

    def _stage(self, present: tuple[bool, ...] | None) -> tuple[Program, list[int]]:
        """Stages the results and the gradients together.

        Args:
            present: the results with gradients; None for all differentiable ones, if the program of the results is not
                known yet and is staged here, too.
        """
        inputs = [t for t in self.types if t is not None]
        staging = Staging(f"the operation {self.kernel.name}")
        owners: list[int] = []
        computed = 0  # the number of equations that compute the results

        def run(*arrays: Any) -> list[Any]:
            given = iter(arrays)
            primals = [None if t is None else next(given) for t in self.types]
            results, pullback = (self._stated if self.kernel.stated else self._derived)(primals)
            nonlocal computed
            computed = len(staging.equations)
            if present is None:
                self._results_are([type_of(r) for r in results])
            received = [
                staging.added(t.strong()) if p else None
                for t, p in zip(self.out_types, self.differentiable if present is None else present)
            ]
            grads = pullback(received) if any(self.differentiable) else []
            owners.extend([i for i, g in enumerate(grads) if g is not None])
            return [*results, *[grads[i] for i in owners]]

        staged = stage(run, inputs, name=f"{self.kernel.name}_backward", by=staging)
        if present is None:
            self.forward = self.kernel.keep_program(self.types, staged, self.results, computed)
        staged = conjugated_late(staged, staged.inputs[len(inputs) :])
        return _cut(staged, len(inputs), self.results, self._saveable_results()), owners

    def _saveable_results(self) -> list[bool]:
        saveable = self.kernel.saveable
        if saveable is None or saveable.issubset(self.kernel.inputs):
            return [False] * self.results
        return [f"result{i}" in saveable or (i == 0 and "result" in saveable) for i in range(self.results)]

    def _run(self, arrays: list[Any]) -> list[Any]:
        """The results."""
        if self.forward is None:
            return list(self.kernel.body(*arrays))
        return evaluate(self.forward, [a for a in arrays if a is not None])

    def _derived(self, primals: list[Any]) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
        """The results, and the pullback that funcgrad derives."""
        wanted = [i for i, m in enumerate(self.mask) if m]

        def f(*arrays: Any) -> Sequence[Any]:
            merged = list(primals)
            for i, a in zip(wanted, arrays):
                merged[i] = a
            return self._run(merged)

        results, pullback = vjp_flat(f, [primals[i] for i in wanted])

        def pull(received: list[Any]) -> list[Any]:
            # PyTorch's gradients of complex values are the conjugates of the cotangents of the linear map.
            found = pullback([None if ct is None else conjugated(ct) for ct in received])
            grads: list[Any] = [None] * len(primals)
            complete = all(ct is not None for ct, d in zip(received, self.differentiable) if d)
            for i, g in zip(wanted, found):
                if g is not None:
                    grads[i] = conjugated(g)
                elif complete and getattr(self.kernel.node, "__name__", "") not in UNDEFINED:
                    # The gradient of an operand on which no result depends is zero.
                    grads[i] = zeros(type_of(primals[i]))
            return grads

        return results, pull

    def _stated(self, primals: list[Any]) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
        """The results, and the pullback of the explicit formula."""
        results, stated = self._run(primals), self.kernel.stated
        assert stated is not None

        def pull(received: list[Any]) -> list[Any]:
            full = [
                zeros(t.strong()) if ct is None and d and i not in self.kernel.absent else ct
                for i, (ct, t, d) in enumerate(zip(received, self.out_types, self.differentiable))
            ]
            return [g if m else None for g, m in zip(stated(primals, results, full), self.mask)]

        return results, pull

    def _used(self) -> list[bool]:
        """For each input and result, whether backward needs it, given the gradients of all results."""
        self._whole = self._program(self.differentiable)
        flags = used_inputs(self._whole[0])
        for i, t in enumerate(self.types):
            if t is None:
                flags.insert(i, False)
        return flags[: len(self.types) + self.results]

    def _make(self, present: tuple[bool, ...], strides: Sequence[Any] | None) -> Backward:
        program, owners = self._program(present)
        incoming = [i for i, p in enumerate(present) if p]
        head = len(program.inputs) - len(incoming)
        given = {v: ~i for v, i in zip(program.inputs[head:], incoming)}
        place: dict[int, int] = {}
        kept: list[Any] = []
        wanted: list[Any] = []
        for owner, atom in zip(owners, program.outputs):
            if isinstance(atom, Var) and atom in given:
                place[owner] = given[atom]
            else:
                place[owner] = len(kept)
                kept.append(atom)
                wanted.append(None if strides is None else strides[owner])
        places = tuple(place.get(i) for i in self.kernel.edges)
        if not kept:
            return Backward(None, (), (), (), places)
        small = common_subexpressions(
            dead_code(Program(program.inputs, program.constants, program.equations, kept, program.name))
        )
        return self._backward_kernel(small, incoming, places, wanted)

    def _backward_kernel(self, program: Program, incoming: list[int], places: tuple, strides: list[Any]) -> Backward:
        """The kernel of the computed gradients; its inputs are those that it uses, and those that are always saved."""
        flags = used_inputs(program)
        present_inputs = [i for i, t in enumerate(self.types) if t is not None]
        n, r = len(present_inputs), self.results
        names, variables, tensors, numbers = [], [], [], []
        numeric: list[tuple[str, Var, int]] = []
        for k, i in enumerate(incoming):
            if flags[n + r + k]:
                names.append(f"grad{i}" if r > 1 else "grad")
                variables.append(program.inputs[n + r + k])
        grads = tuple(i for k, i in enumerate(incoming) if flags[n + r + k])
        for k, i in enumerate(present_inputs):
            if not flags[k] and not self.kept[i]:
                continue
            if i in self.saved_inputs:
                names.append(self.kernel.inputs[i])
                variables.append(program.inputs[k])
                tensors.append(self.saved_inputs.index(i))
            else:
                numeric.append((self.kernel.inputs[i], program.inputs[k], i))
        for i in range(r):
            if flags[n + i]:
                names.append(f"result{i}" if r > 1 else "result")
                variables.append(program.inputs[n + i])
                tensors.append(len(self.saved_inputs) + self.saved_results.index(i))
        for name, variable, i in numeric:
            names.append(name)
            variables.append(variable)
            numbers.append(i)
        closed = Program(variables, program.constants, program.equations, program.outputs, program.name)
        kernel = Kernel(
            program.name,
            lambda *arrays: evaluate(closed, [_in_dtype_of(v, a) for v, a in zip(closed.inputs, arrays)]),
            names,
            node=derived_node_class(self.kernel.node, tuple(names)),
            formula=getattr(self.kernel.node, "__name__", "") not in OF_ITS_OWN,
            strides=(lambda kinds, types: strides) if any(strides) else None,
        )
        kernel.made["program", tuple([v.type for v in variables])] = closed
        return Backward(kernel, grads, tuple(tensors), tuple(numbers), places)


def _dependent(program: Program, wanted: Sequence[bool]) -> list[bool]:
    """For each output, whether it depends on a wanted input through floating-point values only."""
    reached = {v for v, w in zip(program.inputs, wanted) if w and is_inexact(v.type.dtype)}
    for equation in program.equations:
        if not reached.isdisjoint(equation.inputs):
            reached.update(v for v in equation.outputs if is_inexact(v.type.dtype))
    return [v in reached for v in program.outputs]


def _in_dtype_of(variable: Var, x: Any) -> Any:
    """``x`` in the dtype of a program's variable; the gradient of a tensor written in place has that tensor's dtype."""
    wanted = variable.type.dtype
    return x if type_of(x).dtype == wanted else cast(x, dtype=wanted)


def _cut(program: Program, inputs: int, results: int, cuttable: Sequence[bool]) -> Program:
    """The program with its first ``results`` outputs turned into inputs, after the first ``inputs``, if ``cuttable``.

    The others get an unused variable.
    """
    head = set(program.inputs)
    cut: set[Var] = set()
    stand: list[Var] = []
    for atom, allowed in zip(program.outputs[:results], cuttable):
        if allowed and isinstance(atom, Var) and atom not in head and atom not in cut:
            cut.add(atom)
            stand.append(atom)
        else:
            stand.append(Var(atom.type))
    equations = [] if cut else program.equations
    for equation in program.equations if cut else ():
        if cut.isdisjoint(equation.outputs):
            equations.append(equation)
        elif not cut.issuperset(equation.outputs):
            fresh = [Var(v.type) if v in cut else v for v in equation.outputs]
            equations.append(Equation(equation.primitive, equation.inputs, fresh, equation.params, equation.source))
    variables = [*program.inputs[:inputs], *stand, *program.inputs[inputs:]]
    constants = [(v, value) for v, value in program.constants if v not in cut]
    return dead_code(Program(variables, constants, equations, program.outputs[results:], program.name))
