"""Replays a captured call on present values, without calling the function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from compat._compile.backward import Returned, record
from compat._compile.capture import Call, Constant, Gradient
from compat._core.autograd.node import NO_EDGE, Node
from compat._core.random.engine import Engine
from compat._core.random.generator import Generator
from compat._core.tensor.tensor import Tensor, autograd_of, from_buffer
from compat._core.transforms.grad_mode import next_sequence
from compat._core.types.errors import FREED
from compat.optim._hyperparameters import Hyperparameter, value_at
from compat.random import default_generator
from funcgrad import runtime, trees


class FinishedBackward(Node):
    """The node of results of a compiled function that included backward: its graph is already freed."""

    __slots__ = ()
    next_functions = _edges = (NO_EDGE,)

    def __init__(self) -> None:
        self._sequence = next_sequence()
        self._hooks = None

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        raise RuntimeError(FREED)


FinishedBackward.__name__ = FinishedBackward.__qualname__ = "CompiledFunctionBackward"
FinishedBackward.__module__ = "builtins"


class Guarded(ABC):
    """A captured call, with its guards."""

    def __init__(self, call: Call):
        self.call = call
        self._storages = {id(s.storage) for s in call.watch.tensors.values()}
        self._common = [s for s in call.sources if isinstance(s, list) and len(s) > 1]
        for check in call.checks:
            check.forget()
        self._early = [check for check in call.checks if not check.late]

    def holds(self, tensors: Sequence[Tensor]) -> bool:
        """Whether the guards hold, and no argument shares memory with guarded tensors."""
        if any(id(t._storage_) in self._storages for t in tensors) or not self.call.watch.holds():
            return False
        for storages in self._common:
            buffer = storages[0].buffer
            for storage in storages:
                if storage.buffer is not buffer:
                    return False
        return True

    @abstractmethod
    def __call__(self, tensors: Sequence[Tensor], again: Callable[[], Any]) -> Any:
        """Replays the call.

        Args:
            tensors: the arguments.
            again: calls the function.
        """


class Recorded(Guarded):
    """A captured call whose results are differentiated later: a replay records its two operations."""

    def __call__(self, tensors: Sequence[Tensor], again: Callable[[], Any]) -> Any:
        for check in self._early:
            check.before_run(tensors)
        return record(self.call, [_buffer_of(source, tensors) for source in self.call.sources], tensors, again)


def _buffer_of(source: Any, tensors: Sequence[Tensor]) -> Any:
    if source.__class__ is list:
        return source[0].buffer
    if source.__class__ is int:
        return tensors[source]._storage_.buffer
    return source.buffer if source.__class__ is Constant else runtime.drawn(source)


class Replay(Guarded):
    """A captured call that is replayed as one program."""

    def __init__(self, call: Call):
        super().__init__(call)
        results = {place: i for i, place in enumerate(call.window.outputs)}
        self.written = [(target, results[place], count) for target, place, count in call.written]
        self.gradients = [(g, None if g.result is None else results[g.result]) for g in call.gradients]
        self._results = results
        self._hyperparameters = [(i, n.path) for i, n in enumerate(call.numbers) if type(n) is Hyperparameter]
        self._numbers = [float(n) if type(n) is Hyperparameter else n for n in call.numbers]
        written = {id(target) for target, _, _ in call.written}
        free = [i for i, s in enumerate(call.sources) if isinstance(s, list) and all(id(x) in written for x in s)]
        self.lent = [(storage, i) for i in free for storage in call.sources[i]]
        self._late = [check for check in call.checks if check.late]
        self.run = runtime.Replay(call.window, free)
        self.engines = _engines([s for s in call.sources if callable(s)])

    def __call__(self, tensors: Sequence[Tensor], again: Callable[[], Any]) -> Any:
        call = self.call
        runtime.catch_up(recent=False)  # otherwise each step would wait for the previous one
        for check in self._early:
            check.before_run(tensors)
        step = _Step(self, tensors)
        try:
            step.do()
        except BaseException:
            # An interrupt, such as a signal handler, finds either all of the replay done, or nothing.
            step.settle()
            raise
        runtime.due([check.after_run(tensors, step.found, self._results) for check in self._late])
        if call.results.__class__ is Returned:
            return self._returned(call.results, step.found, tensors)
        return trees.map(lambda x: self._returned(x, step.found, tensors), call.results)

    def current_numbers(self) -> list[Any]:
        """The window's numbers, with the present settings of optimizers."""
        for i, path in self._hyperparameters:
            self._numbers[i] = value_at(path)
        return self._numbers

    def _input(self, source: Any, tensors: Sequence[Tensor]) -> Any:
        if source.__class__ is list:
            return runtime.ready(source[0].buffer)
        if source.__class__ is int:
            return runtime.ready(tensors[source]._storage_.buffer)
        return source.buffer if source.__class__ is Constant else runtime.value_of(runtime.drawn(source))

    def _set(self, gradient: Gradient, buffer: Any, tensors: Sequence[Tensor]) -> None:
        leaf = tensors[gradient.leaf] if isinstance(gradient.leaf, int) else gradient.leaf
        layout = gradient.layout
        autograd_of(leaf).grad = None if layout is None else from_buffer(buffer, layout)

    def _returned(self, value: Any, found: Sequence[Any], tensors: Sequence[Tensor]) -> Any:
        if not isinstance(value, Returned):
            return value
        if value.argument is not None:
            return tensors[value.argument]
        assert value.result is not None
        t = from_buffer(found[self._results[value.result]], value.layout)
        if value.requires_grad:
            t._rg_, t._node_ = True, FinishedBackward()
        return t


def replay_of(call: Call) -> Guarded:
    """The replay of a captured call."""
    return Replay(call) if call.backward is None else Recorded(call)


class _Step:
    """A single replay, which can be undone until its program has run, and completed from then on.

    Attributes:
        found: the results of the program.
    """

    __slots__ = ("replay", "tensors", "engines", "inputs", "box", "found", "written")

    def __init__(self, replay: Replay, tensors: Sequence[Tensor]):
        self.replay, self.tensors = replay, tensors
        self.engines = [(engine, engine.mark()) for engine in replay.engines]
        self.inputs: list[Any] = []
        self.box: list[Any] = []
        self.found: Sequence[Any] = ()
        storages = [(tensors[t]._storage_ if t.__class__ is int else t, i, n) for t, i, n in replay.written]
        self.written = [(storage, i, storage.version + n) for storage, i, n in storages]

    def do(self) -> None:
        """Runs the replay."""
        replay = self.replay
        inputs = self.inputs = [replay._input(source, self.tensors) for source in replay.call.sources]
        numbers = replay.current_numbers()
        # Written tensors release their buffers first, so that these can be donated.
        for storage, i in replay.lent:
            inputs[i] = storage.give_up(inputs[i])
        replay.run(inputs, numbers, self.box)
        self.apply()

    def apply(self) -> None:
        """Writes the program's results to their tensors; idempotent."""
        replay = self.replay
        found = self.found = replay.run.results(self.box)
        for storage, i, version in self.written:
            storage.buffer = found[i]
            storage.version = version
        for gradient, made in replay.gradients:
            replay._set(gradient, None if made is None else found[made], self.tensors)

    def settle(self) -> None:
        """Completes it if its program has run; else undoes it."""
        if self.box:
            self.apply()
            return
        for storage, i in self.replay.lent:
            if storage.buffer is None:
                storage.buffer = self.inputs[i]
        for engine, mark in self.engines:
            engine.back(mark)


def _engines(draws: Sequence[Any]) -> list[Engine]:
    """The distinct random engines that functions draw from: the default one, and those in arguments or closures."""
    found: dict[int, Engine] = {}
    if draws:
        found[id(default_generator.engine)] = default_generator.engine
    seen: set[int] = set()
    rest = list(draws)
    while rest:
        x = rest.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Engine):
            found[id(x)] = x
        elif isinstance(x, Generator):
            rest.append(x.engine)
        elif isinstance(x, MethodType):
            rest += [x.__self__, x.__func__]
        elif isinstance(x, partial):
            rest += [x.func, *x.args, *x.keywords.values()]
        elif isinstance(x, FunctionType):
            rest += [cell.cell_contents for cell in x.__closure__ or ()] + list(x.__defaults__ or ())
        elif isinstance(x, (tuple, list)):
            rest += x
    return list(found.values())
