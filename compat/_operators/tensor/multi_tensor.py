"""Multi-tensor updates: one program that writes all of an optimizer's parameters and state.

A ``Job`` applies one pure function, its ``rule``, to each of several rows of tensors (a parameter, its gradient, its
state). All jobs of a call are one program, compiled for the tensors' layouts; learning rates and other numbers are its
inputs. Tensors that share a storage are written one after the other. Identical 0-d buffers are one input, so a step
count that all parameters share is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from compat._core.autograd.rebase_history import check_recorded
from compat._core.dispatch.dispatcher import job_overrides
from compat._core.memory import strided_access
from compat._core.memory.exchange import exchange_all
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Layout
from compat._core.operators.inplace import check_memory, put, regenerate_layout
from compat._core.operators.kernel import KERNELS, Kernel
from compat._core.operators.op_node import make_node_class
from compat._core.operators.plan import run_traced, type_of_kind
from compat._core.tensor.tensor import Tensor, sync
from compat._core.tensor.version_counter import bump_version, record_line
from compat._core.transforms.grad_mode import mode
from funcgrad import runtime
from funcgrad.core.caching import Cache, Group
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.passes import common_subexpressions, dead_code
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.elementwise import cast

Row = Sequence[Tensor]
#: ``rule(settings, numbers, row)`` returns the new values of the first tensors of a row, from the values of all. The
#: numbers are zero-dimensional float64 arrays.
Rule = Callable[[Any, Sequence[Any], Sequence[Any]], Sequence[Any]]


class Job(NamedTuple):
    """A rule, and the rows to which it is applied.

    Attributes:
        rule: the pure function; the same object for the same computation.
        settings: the rule's static settings, hashable.
        numbers: numbers and tensors that all rows share.
        rows: rows of tensors, the arguments of the rule.
        written: the number of tensors, at the beginning of each row, that are written.
    """

    rule: Rule
    settings: Any
    numbers: Sequence[Any]
    rows: Sequence[Row]
    written: int


class _Program(NamedTuple):
    """A compiled call.

    Attributes:
        run: runs it, from buffers and numbers to buffers.
        results: for each written tensor the number of the result that is its storage's new buffer.
        traced: whether it is replayed into a surrounding trace instead of executed.
    """

    run: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
    results: tuple[int, ...]
    traced: bool


_programs: Cache[tuple, _Program] = Cache(Group("steps of optimizers", 1024))


def write_together(jobs: Sequence[Job]) -> None:
    """Runs jobs by one program, and writes its results.

    Raises:
        RuntimeError: if a tensor cannot be written in place.
    """
    for override in job_overrides:
        jobs = override(jobs, write_together)
    while True:
        key, buffers, numbers, written = _gathered(jobs)
        if not written:
            return
        for t in written:
            if t._counter_ is None:
                check_memory(t, ())
            if mode.grad:
                check_recorded(t)
        found = _programs.get(key) or _programs.again(key)
        if found is None:
            found = _programs[key] = _compile(jobs)
        results = found.run(buffers, numbers)
        if found.traced:
            for t, place in zip(written, found.results):
                put(t, results[place], True)
                regenerate_layout(t)
            return
        if _replaced(written, buffers, [results[place] for place in found.results]):
            break
    if mode.anomaly:
        for t in written:
            if t._counter_ is not None:
                record_line(t._counter_)


_storage, _counter, _buffer = attrgetter("_storage_"), attrgetter("_counter_"), attrgetter("buffer")


def _replaced(written: Sequence[Tensor], read: Sequence[Any], new: list[Any]) -> bool:
    """Writes new buffers, unless another thread has replaced one of those that were read; returns whether it did."""
    storages, counters = list(map(_storage, written)), list(map(_counter, written))
    before = list(map(_buffer, storages))
    if not set(map(id, read)).issuperset(map(id, before)):
        return False
    done = exchange_all(storages, before, new, counters, [], [])
    if done is None:  # some are of other classes, and are replaced one by one
        plain = [s.__class__ is UntypedStorage for s in storages]
        own = [list(compress(x, plain)) for x in (storages, before, new, counters)]
        done = exchange_all(own[0], own[1], own[2], own[3], [], [])
        for i, t in enumerate(written):
            if done and not plain[i]:
                storages[i].replace(before[i], new[i], t._layout_, t._offset_)
                bump_version(t)
    return bool(done)


def _gathered(jobs: Sequence[Job]) -> tuple[tuple, list[Any], list[Any], list[Tensor]]:
    """The key of a call's program, its buffers and numbers, and the tensors to write.

    The buffers are those of the storages, without duplicates; the numbers are the given ones, and the offsets of
    tensors that need one.
    """
    key: list[Any] = []
    buffers: list[Any] = []
    numbers: list[Any] = []
    written: list[Tensor] = []
    seen: dict[Any, int] = {}
    for rule, settings, given, rows, count in jobs:
        key += (rule, settings, count, len(rows))
        for i, n in enumerate(given):
            if isinstance(n, Tensor):
                _gather((n,), i, key, buffers, numbers, seen)
            else:
                key.append(_kind(n))
                numbers.append(n)
        for row in rows:
            _gather(row, 0, key, buffers, numbers, seen)
            written += row[:count]
    owners = [id(t._storage_) for t in written]
    if len(set(owners)) < len(owners):  # several tensors of one storage are written one after the other
        key += [owners.index(one) for one in owners]
    return tuple(key), buffers, numbers, written


def _gather(
    tensors: Row, column: int, key: list[Any], buffers: list[Any], numbers: list[Any], seen: dict[Any, int]
) -> None:
    """Collects the tensors of a row, the first of them in ``column``."""
    # Runs for every parameter and its state at every step.
    for t in tensors:
        if t._view_ is not None:
            sync(t)
        layout, storage = t._layout_, t._storage_
        one = id(storage) if layout.base.shape else (id(storage.buffer), column)
        if one in seen:
            key += (layout, seen[one])
        else:
            seen[one] = len(buffers)
            buffers.append(storage.buffer)
            key.append(layout)
        if not layout.whole:
            numbers.append(t._offset_)
        column += 1


def _kind(number: Any) -> type:
    """The Python type of a number."""
    return float if isinstance(number, float) else type(number)


def _identity(layout: Layout, storage: Any, column: int) -> Any:
    """The identity of a tensor's program input: its storage, or, for a 0-d tensor, its buffer and its column.

    Other new buffers may be identical by chance, which must not change the program.
    """
    return id(storage) if layout.base.shape else (id(storage.buffer), column)


class _Operand(NamedTuple):
    """The program inputs of an operand: a number, or a tensor's buffer and, if its layout needs one, its offset.

    Attributes:
        layout: the tensor's layout; None for a number.
        buffer, number: indices among the buffers and among the numbers.
    """

    layout: Layout | None
    buffer: int | None
    number: int | None


class _Operands:
    """The inputs of a new program, collected in the order of ``_gathered``.

    Attributes:
        buffers, numbers: the types of the inputs.
        jobs: per job, the operands that are its numbers, and those of its rows.
        targets: the buffers of written storages, without duplicates.
        target_of: for each written tensor the index of its target.
        traced: whether a buffer is traced.
    """

    def __init__(self, jobs: Sequence[Job]):
        self.buffers: list[Any] = []
        self.numbers: list[Any] = []
        self.targets: list[int] = []
        self.target_of: list[int] = []
        self.traced = False
        seen: dict[Any, int] = {}
        owners: dict[int, int] = {}
        self.jobs = []
        for job in jobs:
            numbers = [self._operand(n, i, seen) for i, n in enumerate(job.numbers)]
            rows = [[self._operand(t, i, seen) for i, t in enumerate(row)] for row in job.rows]
            self.jobs.append((numbers, rows))
            for tensors, row in zip(job.rows, rows):
                for t, operand in zip(tensors[: job.written], row):
                    assert operand.buffer is not None
                    target = owners.setdefault(id(t._storage_), len(owners))
                    self.targets += [operand.buffer] if target == len(self.targets) else []
                    self.target_of.append(target)

    def _number(self, kind: type) -> int:
        self.numbers.append(type_of_kind(kind))
        return len(self.numbers) - 1

    def _operand(self, value: Any, column: int, seen: dict) -> _Operand:
        if not isinstance(value, Tensor):
            return _Operand(None, None, self._number(_kind(value)))
        layout, one = value._layout_, _identity(value._layout_, value._storage_, column)
        base = layout.base
        self.traced = self.traced or base.traced
        place = seen.get(one)
        if place is None:
            assert base.dtype.numpy is not None
            place = seen[one] = len(self.buffers)
            self.buffers.append(ArrayType(base.shape, base.dtype.numpy))
        return _Operand(layout, place, None if layout.whole else self._number(int))


def _compile(jobs: Sequence[Job]) -> _Program:
    operands = _Operands(jobs)

    def run(*arguments: Any) -> list[Any]:
        buffers, numbers = arguments[: len(operands.buffers)], arguments[len(operands.buffers) :]
        current = [buffers[place] for place in operands.targets]
        tensors = iter(operands.target_of)
        for job, (given, rows) in zip(jobs, operands.jobs):
            shared = [_wide(_read(buffers, numbers, operand)) for operand in given]
            for row in rows:
                new = job.rule(job.settings, shared, [_read(buffers, numbers, operand) for operand in row])
                for (layout, _, offset), value in zip(row[: job.written], new):
                    assert layout is not None
                    target, place = next(tensors), 0 if offset is None else numbers[offset]
                    current[target] = strided_access.write(current[target], layout, place, _as(value, layout))
        return current

    name = "_".join(dict.fromkeys(getattr(job.rule, "__name__", "rule").strip("_") for job in jobs))
    staged = dead_code(common_subexpressions(stage(run, [*operands.buffers, *operands.numbers], name=name)))
    distinct = list(dict.fromkeys(staged.outputs))
    results = tuple(distinct.index(staged.outputs[target]) for target in operands.target_of)
    program = Program(staged.inputs, staged.constants, staged.equations, distinct, staged.name)
    if operands.traced:
        return _Program(partial(run_traced, program), results, True)
    return _Program(partial(runtime.record_all, runtime.executable(program, len(operands.numbers))), results, False)


def _read(buffers: Sequence[Any], numbers: Sequence[Any], operand: _Operand) -> Any:
    layout, place, number = operand
    if layout is None:
        assert number is not None
        return numbers[number]
    assert place is not None
    return strided_access.read(buffers[place], layout, 0 if number is None else numbers[number])


def _wide(number: Any) -> Any:
    """A number as float64, which represents it exactly."""
    return cast(number, dtype=np.dtype(np.float64))


def _as(value: Any, layout: Layout) -> Any:
    dtype = layout.dtype.numpy
    return value if type_of(value).dtype == dtype else cast(value, dtype=np.dtype(dtype))


# ---------------------------------------------------------------- recorded for backward

_kernels: Cache[tuple, Kernel] = Cache(KERNELS)


def write_recorded(jobs: Sequence[Job]) -> None:
    """Runs jobs row by row as recorded operations, so that the update is differentiable.

    Their nodes save copies of the rows, since the rows themselves are written in place at each step.
    """
    for job in jobs:
        count = len(job.numbers)
        key = (job.rule, job.settings, count, len(job.rows[0]) if job.rows else 0)
        kernel = _kernels.get(key) or _kernels.again(key)
        if kernel is None and job.rows:
            kernel = _kernels[key] = _recorded(job)
        for row in job.rows:
            assert kernel is not None
            copies = [t.clone() for t in row]
            for t, new in zip(row, kernel.call([*job.numbers, *copies])):
                if t.dtype is not new.dtype:
                    new = new.to(t.dtype)
                t.copy_(new)


def _recorded(job: Job) -> Kernel:
    count = len(job.numbers)
    rule, settings = job.rule, job.settings
    names = [f"number{i}" for i in range(count)] + [f"tensor{i}" for i in range(len(job.rows[0]))]
    name = getattr(rule, "__name__", "rule").strip("_")
    node = make_node_class(f"{name.title()}Backward0", {})
    body = lambda *arrays: rule(settings, [_wide(number) for number in arrays[:count]], arrays[count:])
    return Kernel(name, body, names, node=node)
