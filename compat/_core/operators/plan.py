"""Plans: kernels compiled for tensors of given layouts.

A plan's program reads strided inputs from buffers (``compat._core.memory.strided_access``), computes, and writes the
results in PyTorch's memory order. A run passes the tensors' buffers to it, and makes the resulting tensors and a node,
if a gradient is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from compat._core.autograd.func_anomaly import watched
from compat._core.autograd.saved_variable import save, save_result
from compat._core.memory import strided_access
from compat._core.memory.meta import common_device, in_transform, results_of
from compat._core.memory.strides import Layout, contiguous_layout, dense_layout
from compat._core.operators.codegen import BUFFER, BUFFER_AND_OFFSET, NUMBER, node_maker, runner
from compat._core.operators.inplace import run_into
from compat._core.operators.transform_formulas import goes_backward, stated_program, with_tangents
from compat._core.tensor.constructors import new_tensor
from compat._core.tensor.tensor import Tensor, from_buffer
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.device import CPU, META, device, jax_device
from compat._core.types.scalar_conversion import bounds
from funcgrad import runtime
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.elementwise import cast

#: The kind of a kernel's input: the layout of a tensor, the Python type of a number, or None.
Kind = Any

#: The types of numbers. They are weak: arrays determine the result's dtype. Types of tensors are not.
_NUMBER_TYPES = {
    bool: ArrayType((), np.dtype(np.bool_), weak=True),
    int: ArrayType((), np.dtype(np.int64), weak=True),
    float: ArrayType((), np.dtype(np.float64), weak=True),
    complex: ArrayType((), np.dtype(np.complex128), weak=True),
    dtypes.Wide: ArrayType((), np.dtype(np.uint64), weak=True),
}
_OFFSET = ArrayType((), np.dtype(np.int64))


def type_of_kind(kind: Kind) -> ArrayType | None:
    """The type of a kernel's input: a tensor's elements, a number, or None."""
    if isinstance(kind, Layout):
        assert kind.dtype.numpy is not None and not kind.overridden, f"{kind} of {kind.dtype} has no plan"
        return ArrayType(tuple(kind.size), kind.dtype.numpy)
    return _NUMBER_TYPES.get(kind)


def number_buffer(value: Any) -> Any:
    """A number as a buffer."""
    return runtime.scalar(value, _NUMBER_TYPES[type(value)].dtype)


def numbers_last(program: Program, numeric: Sequence[bool]) -> Program:
    """The program with its inputs reordered: buffers before numbers."""
    order = sorted(range(len(numeric)), key=numeric.__getitem__)
    if order == list(range(len(order))):
        return program
    inputs = [program.inputs[i] for i in order]
    return Program(inputs, program.constants, program.equations, program.outputs, program.name)


def run_traced(
    program: Program,
    buffers: Sequence[Any],
    numbers: Sequence[Any],
    kernel: Any = None,
    stated: Callable[[], Program] | None = None,
) -> Sequence[Any]:
    """Replays a program, buffers before numbers, into the surrounding trace.

    Args:
        kernel: the kernel of the program; None if it has no derivative.
        stated: makes the program with the explicit backward formula, if there is one.
    """
    operands = [*map(runtime.ready, buffers)]
    if stated is not None and any(map(goes_backward, operands)):
        program = stated()
    if mode.anomaly and kernel is not None:
        operands = watched(operands, kernel.node)
    results: Sequence[Any] = evaluate(program, [*operands, *map(number_buffer, numbers)])
    if kernel is not None:
        results = with_tangents(kernel, operands, results)
    return [level_stack.held(x) for x in results]


def run_typed(program: Program, buffers: Sequence[Any], numbers: Sequence[Any]) -> Sequence[Any]:
    """Runs a program on the meta device: computes the types of its results."""
    if not any(map(in_transform, buffers)):
        return results_of(program)
    for entered in level_stack.state.levels:
        level_stack.through(entered.interpreter)
    return run_traced(program, buffers, numbers)


def run_moved(
    program: Program, count: int, where: device, buffers: Sequence[Any], numbers: Sequence[Any]
) -> Sequence[Any]:
    """Runs a program with ``count`` numbers and moves its results to another device than the operands'."""
    found: Sequence[Any] = runtime.record_all(runtime.executable(program, count), buffers, numbers)
    return [runtime.moved(x, jax_device(where)) for x in found]


# ---------------------------------------------------------------- the program


def _forward(plan: Plan, logical: Program) -> Program:
    """The program from buffers to buffers, around the kernel's program on arrays."""
    kinds, outputs, target = plan.kinds, plan.outputs, plan.target
    types: list[ArrayType] = []
    for kind in kinds:
        if isinstance(kind, Layout):
            base = kind.base
            assert base.dtype.numpy is not None
            types.append(ArrayType(base.shape, base.dtype.numpy))
            if not kind.whole:
                types.append(_OFFSET)
        elif kind in _NUMBER_TYPES:
            types.append(_NUMBER_TYPES[kind])

    def run(*arguments: Any) -> list[Any]:
        given = iter(arguments)
        arrays, place = [], None
        for i, kind in enumerate(kinds):
            if isinstance(kind, Layout):
                buffer = next(given)
                offset = 0 if kind.whole else next(given)
                if i == target:
                    place = (buffer, offset)
                arrays.append(strided_access.read(buffer, kind, offset))
            elif kind in _NUMBER_TYPES:
                arrays.append(next(given))
        results = evaluate(logical, arrays)
        if target is None:
            return [strided_access.write(None, layout, 0, result) for layout, result in zip(outputs, results)]
        return [_overwrite(place, outputs[0], results[0])]

    return stage(run, types, name=logical.name, description=f"the operation {logical.name}")


def _overwrite(place: Any, layout: Layout, result: Any) -> Any:
    assert layout.dtype.numpy is not None
    if type_of(result).dtype != layout.dtype.numpy:
        result = cast(result, dtype=layout.dtype.numpy)
    return strided_access.write(place[0], layout, place[1], result)


Run = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


def _runner(
    program: Program, numbers: int, traced: bool, device: Any, kernel: Any, stated: Any
) -> tuple[Run, runtime.Executable | None]:
    """A function that runs a program on buffers and numbers; and the executable with which it is recorded, or None if
    it runs at once, as inside a trace."""
    if device is META:
        return partial(run_typed, program), None
    beside = traced and len(program.inputs) > len(program.outputs)
    if not program.equations and not beside and all(atom in program.inputs for atom in program.outputs):
        # A copy: buffers are immutable, so the operands' buffers are the results.
        places = [program.inputs.index(atom) for atom in program.outputs]  # type: ignore[arg-type]
        if traced:
            return lambda buffers, _: [level_stack.held(buffers[i]) for i in places], None
        return lambda buffers, _: [buffers[i] for i in places], None
    if traced:
        return partial(run_traced, program, kernel=kernel, stated=stated), None
    code = runtime.executable(program, numbers)
    return partial(runtime.record_all, code), code


def _plain(kind: Kind) -> bool:
    """Whether a tensor of this layout consists of its whole buffer in row-major order."""
    return (
        isinstance(kind, Layout)
        and kind.contiguous
        and kind.access[0] == "whole"
        and kind.base.shape == kind.size
        and (kind.dtype is kind.base.dtype and not kind.conj and not kind.neg)
    )


# ---------------------------------------------------------------- plans


class Plan:
    """A kernel for inputs of given kinds.

    Attributes:
        outputs: the layouts of the results.
        device: the device of the results.
        source: the device of the operands, or of the tensor that is written.
        foreign: whether an operand of an in-place operation is on another device.
        written: the index of the buffer that an in-place operation replaces.
        program: the program from buffers and numbers, in this order, to buffers.
        forward: runs the program.
        code: the executable with which it is recorded; None if it runs at once.
        places: the inputs that the program takes, and whether each is a buffer, a buffer with an offset, or a number.
        node: the class of its nodes; None if no gradient is wanted.
        derivative: its backward, if it has nodes.
        edges: per edge of a node the input; None for no edge.
        saves, results: the inputs and the results that a node saves.
        numeric: for each input, whether it is a number.
        bounds: the bounds of numbers that are checked, by input.
        differentiable: for each result, whether it has a derivative.
        make_tensor: makes a result from a buffer and a layout.
        finish: converts the list of results to the return value of ``run``.
        run: takes tensors and numbers, one per input; with a target it returns that tensor.
    """

    __slots__ = (
        "kernel", "kinds", "target", "outputs", "program", "forward", "code", "traced", "node", "derivative", "run",
        "places", "edges", "saves", "results", "numeric", "differentiable", "finish", "types", "grad_strides", "device",
        "source", "foreign", "written", "make_tensor", "bounds", "_make_node",
    )  # fmt: skip

    def __init__(self, kernel: Any, kinds: tuple[Kind, ...], mask: tuple[bool, ...], target: int | None):
        self.kernel = kernel
        self.kinds = kinds
        self.target = target
        self.types = types = tuple([type_of_kind(k) for k in kinds])
        wanted = tuple([m and t is not None and t.inexact for m, t in zip(mask, types)])
        derivative = None
        if kernel.node is not None and any(wanted):
            with np.errstate(all="ignore"):
                derivative = kernel.derivative(types, wanted)
        logical = kernel.program(types) if derivative is None else derivative.forward
        self.source = common_device(kinds, kernel.strict) or CPU if target is None else kinds[target].base.device
        # A fake tensor, whose memory is on the device meta, may be moved to the device that its copy claims.
        self.device = META if self.source is META else kernel.device or self.source
        self.traced = self.device is META
        bare, others = target is None, False
        for k in kinds:
            if isinstance(k, Layout):
                self.traced = self.traced or k.base.traced
                bare = bare and _plain(k)
                others = others or k.base.device is not self.source
        self.foreign = target is not None and not self.traced and others
        self.outputs = self._layouts(logical.output_types if derivative is None else derivative.out_types)
        bare = bare and all(map(_plain, self.outputs))
        numeric = self._numbers()

        def of_buffers(logical: Program) -> Program:
            program = logical if bare else _forward(self, logical)
            return numbers_last(program, numeric) if any(numeric) else program

        self.program = of_buffers(logical)
        stated = None
        if self.traced and kernel.stated is not None:
            stated = cache(lambda: of_buffers(stated_program(kernel, types)))
        own = None if kernel.node is None else kernel
        self.forward, self.code = _runner(self.program, sum(numeric), self.traced, self.device, own, stated)
        if self.device is not self.source and not self.traced:
            self.forward, self.code = partial(run_moved, self.program, sum(numeric), self.device), None
        self.make_tensor = from_buffer if mode.inference else new_tensor
        self._prepare(types, mask, derivative)
        self.bounds: dict[int, Any] = {}
        if any(numeric):
            self._bound(logical)
        self.finish: Callable[[list[Tensor]], Any] = list
        self.run: Callable[[Sequence[Any]], Any] = self._first

    def _numbers(self) -> list[bool]:
        """For each argument of the program, whether it is a number: a given one, or a tensor's offset."""
        found: list[bool] = []
        for kind in self.kinds:
            if isinstance(kind, Layout):
                found += [False] if kind.whole else [False, True]
            elif kind in _NUMBER_TYPES:
                found.append(True)
        return found

    def _layouts(self, types: Sequence[ArrayType]) -> tuple[Layout, ...]:
        if self.target is not None:
            return (self.kinds[self.target],)
        rule = self.kernel.strides
        strides = rule(self.kinds, types) if rule is not None else [None] * len(types)
        layouts = []
        for t, stride in zip(types, strides):
            dtype = dtypes.from_numpy(t.dtype)
            if stride is None:
                layouts.append(contiguous_layout(t.shape, dtype, self.traced, self.device))
            else:
                layouts.append(dense_layout(t.shape, stride, dtype, self.traced, self.device))
        return tuple(layouts)

    def _prepare(self, types: tuple, mask: tuple[bool, ...], derivative: Any) -> None:
        """Sets the attributes for running, and for nodes."""
        kernel = self.kernel
        self.node, self.derivative = None, None
        self._make_node: Callable[[Sequence[Any]], Any] | None = None
        if derivative is not None and any(derivative.differentiable):
            self.node, self.derivative = kernel.node, derivative
            self.edges = tuple([i if mask[i] else None for i in kernel.edges if mask[i] or kernel.derivable])
            self.saves = derivative.saved_inputs
            self.results = derivative.saved_results
            self.differentiable = derivative.differentiable
            # Gradients have the operands' memory order, so that accumulation needs no copy.
            strides = tuple(
                [k.stride if isinstance(k, Layout) and k.dense and not k.contiguous else None for k in self.kinds]
            )
            self.grad_strides = strides if any(strides) else None
            self.numeric = tuple([t is not None and t.weak for t in types])
        self.places = [
            (i, NUMBER if not isinstance(k, Layout) else BUFFER if k.whole else BUFFER_AND_OFFSET)
            for i, k in enumerate(self.kinds)
            if isinstance(k, Layout) or k in _NUMBER_TYPES
        ]
        self.written = sum([what != NUMBER for i, what in self.places if i < (self.target or 0)])

    def _bound(self, logical: Program) -> None:
        """Sets the bounds of the numbers that must be checked."""
        fits = self.kernel.fits
        for i, what in self.places:
            if what == NUMBER:
                rule = fits.get(self.kernel.inputs[i]) if fits else None
                d = None if rule is None else rule(dtypes.from_numpy(logical.output_types[0].dtype))
                found = bounds(self.kinds[i], d)
                if found is not None:
                    self.bounds[i] = found

    def give(self, finish: Callable[[list[Tensor]], Any]) -> None:
        """Sets the conversion of the list of results to the return value of ``run``."""
        self.finish, self.run = finish, self._first

    # ---------------------------------------------------------------- running

    def _first(self, values: Sequence[Any]) -> Any:
        """Sets ``run`` at the first run, since many plans never run."""
        if self.target is not None:
            self.run = partial(run_into, self)
        elif self.code is not None:
            self.run = runner(self)
        else:
            self.run = self._at_once
        return self.run(values)

    def _at_once(self, values: Sequence[Any]) -> Any:
        """Runs a program that is not recorded but runs at once."""
        buffers = self.forward(*self.arguments(values))
        tensors = [from_buffer(b, layout) for b, layout in zip(buffers, self.outputs)]
        if self.node is not None and level_stack.in_sight(buffers):
            node = self.make_node(values)
            for nr, (t, differentiable) in enumerate(zip(tensors, self.differentiable)):
                if differentiable:
                    t._rg_, t._node_, t._nr_ = True, node, nr
            self.keep_results(node, tensors)
        return self.finish(tensors)

    def make_node(self, values: Sequence[Any]) -> Any:
        """A node for a call with these inputs, before its results are saved."""
        if self._make_node is None:
            self._make_node = node_maker(self)
        return self._make_node(values)

    def arguments(self, values: Sequence[Any]) -> tuple[list[Any], Sequence[Any]]:
        """The arguments of the program, from tensors and numbers: buffers, and numbers."""
        buffers: list[Any] = []
        numbers: list[Any] = []
        for i, what in self.places:
            value = values[i]
            if what == NUMBER:
                bound = self.bounds.get(i)
                numbers.append(value if bound is None else bound(value))
            else:
                buffers.append(level_stack.buffer(value) if self.traced else value._storage_.buffer)
                if self.foreign and value.device is not self.source:
                    buffers[-1] = runtime.moved(buffers[-1], jax_device(self.source))
                if what == BUFFER_AND_OFFSET:
                    numbers.append(value._offset_)
        return buffers, numbers

    def keeps(self, i: int) -> bool:
        """Whether a node saves the input ``i``."""
        return i in self.saves

    def keep_results(self, node: Any, tensors: Sequence[Tensor]) -> None:
        """Saves the results that backward needs."""
        passes = self.differentiable
        node.saved += tuple([save_result(tensors[i], i) if passes[i] else save(tensors[i]) for i in self.results])
