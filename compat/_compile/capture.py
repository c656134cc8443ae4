"""Capture: runs a function once, recording all of its operations, and analyses its effects.

A call is described by its operations, the sources of their inputs, and its effects: tensors written, gradients set,
tensors returned. If there are no others (no result is referenced elsewhere, nothing else changed, no value was read),
the call can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any

from compat._compile.backward import Backward, NotReplayable, Returned, Trial, live_results, split
from compat._compile.guards import TensorState, Watch
from compat._core.memory.strides import Layout
from compat._core.operators.value_checks import Inspection, inspections
from compat._core.tensor.tensor import Tensor, wrap
from compat.optim._hyperparameters import Hyperparameter, tracked_hyperparameters
from compat.storage import UntypedStorage
from funcgrad import runtime, trees


def single(x: Any) -> bool:
    """Whether it is a leaf among arguments or results, for funcgrad, which treats tensors as pytrees."""
    return isinstance(x, Tensor)


class ValueNeeded(NotReplayable):
    """The call needs the value of a tensor."""


@dataclass
class Gradient:
    """A leaf tensor, or its argument number, whose ``grad`` became another tensor or None."""

    leaf: Tensor | int
    layout: Layout | None
    result: int | None


@dataclass
class Constant:
    """A constant input."""

    buffer: Any


@dataclass
class Check:
    """A check of values, to be repeated at each replay.

    Attributes:
        inspection: the function that checks values.
        places: the source of each tensor it reads: an argument number or a storage, or the index of a result
            (``late``); None for a constant.
        late: whether any source is a result.
        passed: the buffers that it has found valid last. Buffers are immutable, so they need no other check.
    """

    inspection: Inspection
    places: list[tuple[Any, int | None]]
    passed: list[Any] = field(default_factory=list, init=False)

    def forget(self) -> None:
        """Releases the objects that were checked during capture."""
        for t, place in zip(self.inspection.seen, self.places):
            if place != (None, None):
                t._storage_.buffer = None

    @property
    def late(self) -> bool:
        return any(result is not None for _, result in self.places)

    def before_run(self, tensors: Sequence[Tensor]) -> None:
        """Checks the values of a replayed call, none of which is a result.

        Args:
            tensors: the arguments of the call.

        Raises:
            Exception: what the inspection raises for invalid values.
        """
        buffers = self._buffers(tensors, (), {})
        if len(buffers) != len(self.passed) or not all(map(is_, buffers, self.passed)):
            self._on(buffers)()
            self.passed = buffers

    def after_run(
        self, tensors: Sequence[Tensor], results: Sequence[Any], numbers: dict[int, int]
    ) -> Callable[[], None]:
        """The check of the values of a replayed call, to be called once they are computed.

        Args:
            tensors: the arguments of the call.
            results: the results of the window.
            numbers: the index of each operation result among these.
        """
        return self._on(self._buffers(tensors, results, numbers))

    def _buffers(self, tensors: Sequence[Tensor], results: Sequence[Any], numbers: dict[int, int]) -> list[Any]:
        buffers = []
        for t, (source, result) in zip(self.inspection.seen, self.places):
            if result is not None:
                buffers.append(results[numbers[result]])
            elif source is not None:
                buffers.append((tensors[source]._storage_ if source.__class__ is int else source).buffer)
            else:
                buffers.append(t._storage_.buffer)
        return buffers

    def _on(self, buffers: Sequence[Any]) -> Callable[[], None]:
        seen = self.inspection.seen
        return self.inspection.on(
            [wrap(UntypedStorage(b, t._storage_.base), t._layout_, t._offset_) for t, b in zip(seen, buffers)]
        )


@dataclass
class Call:
    """The effects of a captured call.

    Attributes:
        window: the window of its operations.
        sources: the source of each input of the window: an argument number, the storages that share it, a function that
            draws it, or a ``Constant``.
        numbers: the window's numbers, some of them ``Hyperparameter``.
        written: storages, or argument numbers, with the index of the result that is the new buffer, and the number of
            writes.
        gradients: leaves whose gradient was replaced.
        results: the return value, with a ``Returned`` for each tensor.
        watch: the guards.
        checks: the checks of values: of arguments before each run, of results after it.
        backward: the backward pass of results whose graph is still needed.
    """

    window: Any
    sources: list[Any]
    numbers: list[Any]
    written: list[tuple[Any, int, int]]
    gradients: list[Gradient]
    results: Any
    watch: Watch
    checks: list[Check] = field(default_factory=list)
    backward: Backward | None = None


_INTERRUPTED = "another thread needed values of its operations meanwhile"


class Capturing:
    """Captures one call of a function.

    Args:
        function: the function to call.
        args, kwargs: its arguments.
        tensors: the tensors among them.
        others: the other leaves.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple, kwargs: dict, tensors: Sequence[Tensor], others: Sequence[Any]
    ):
        self.function, self.args, self.kwargs, self.tensors = function, args, kwargs, tensors
        self.watch = Watch()
        for root in (function, *others):
            self.watch.visit(root)
        self.arguments = [TensorState(t) for t in tensors]
        self.capture = runtime.Capture()
        self.result: Any = None
        #: The results whose graph is still needed.
        self.live: list[Tensor] = []

    def run(self) -> Call:
        """Calls the function; sets ``result``, even if this raises.

        Raises:
            NotReplayable: if the call cannot be replayed; it is completed nevertheless.
        """
        if self.watch.trouble is not None:
            self.result = self.function(*self.args, **self.kwargs)
            raise NotReplayable(self.watch.trouble)
        runtime.flush()
        states = [*self.arguments, *self.watch.tensors.values()]
        for state in states:
            # For many tensors the first ones do not identify the call.
            while not state.storage.replace(read := state.storage.buffer, runtime.own(read)):
                pass
        before = [(s, s.storage.buffer) for s in states]
        found: tuple[Call, runtime.Recording] | None = None
        tracked = tracked_hyperparameters(self.watch.optimizers)
        with tracked as settings, inspections() as checks, self.capture.holding():
            try:
                self.result = self.function(*self.args, **self.kwargs)
                if self.capture.stopped is None:
                    found = self._study(before, checks)
                    if self.live:
                        self._study_backward(*found, before, checks)
            except runtime.Interrupted:
                raise NotReplayable(_INTERRUPTED) from None
            finally:
                for inspection in checks:  # of this call; those of later calls are run by the replay
                    runtime.later(inspection.now())
        if found is None or self.capture.stopped is not None:
            raise ValueNeeded(f"the value of a tensor was needed at {self.capture.stopped}")
        call, recording = found
        self._finish(call, recording)
        if not self.watch.holds():
            raise NotReplayable("it changes what it depends on: an attribute, a counter, a list")
        self._settings(settings, call)
        return call

    # ---------------------------------------------------------------- effects

    def _study(
        self, before: list[tuple[TensorState, Any]], checks: Sequence[Inspection]
    ) -> tuple[Call, runtime.Recording]:
        """The effects of the call, by input and result indices, before the operations run."""
        recording = self.capture.recording()
        places = {id(d): i for i, d in enumerate(recording.pending)}
        self.live = live_results(self.result, self.tensors)
        call = Call(None, [], list(recording.numbers), [], [], None, self.watch)
        call.sources = [self._source(b, before) for b in recording.inputs]
        numbers = {id(s): i for i, s in enumerate(self.arguments)}
        for state, buffer in before:
            self._effects(state, buffer, numbers.get(id(state)), places, call)
        call.results = trees.map(lambda x: self._returned(x, places), self.result, is_leaf=single)
        call.checks = [Check(c, [self._place(t._storage_.buffer, before, places) for t in c.seen]) for c in checks]
        call.checks = [c for c in call.checks if any(place != (None, None) for place in c.places)]
        return call, recording

    def _effects(
        self, state: TensorState, before: Any, argument: int | None, places: dict[int, int], call: Call
    ) -> None:
        t, storage = state.tensor, state.storage
        if t._storage_ is not storage or t._layout_ is not state.layout:
            raise NotReplayable("a tensor was given other memory or another shape")
        if storage.buffer is not before:
            place = places.get(id(storage.buffer))
            if place is None:
                raise NotReplayable("a tensor was filled with what was there before")
            target = storage if argument is None else argument
            if all(target is not known for known, _, _ in call.written):
                call.written.append((target, place, storage.version - state.version))
        self._gradient(state, t if argument is None else argument, places, call)

    def _source(self, buffer: Any, before: list[tuple[TensorState, Any]]) -> Any:
        """The source of an input."""
        found = {id(s.storage): s.storage for s, b in before if runtime.computed(b) is buffer}
        if found:
            arguments = {id(s.storage): i for i, s in enumerate(self.arguments)}
            mine = [arguments[i] for i in found if i in arguments]
            if mine and (len(found) > 1 or len(arguments) < len(self.arguments)):
                raise NotReplayable("arguments share memory, with each other or with what the function refers to")
            return mine[0] if mine else list(found.values())
        for drawn, draw in self.capture.draws:
            if runtime.computed(drawn) is buffer:
                return draw
        if any(runtime.computed(made) is buffer for made in self.capture.host):
            raise NotReplayable("it makes a tensor of Python's values, which may be others the next time")
        if not runtime.is_constant(buffer) and all(made is not buffer for made in self.capture.tables):
            raise NotReplayable("it uses a tensor that it was not seen to refer to")
        return Constant(buffer)

    def _gradient(self, state: TensorState, leaf: Tensor | int, places: dict[int, int], call: Call) -> None:
        t = state.tensor
        now = t._autograd_state_.grad if t._autograd_state_ is not None else None
        if state.grad is not None:
            state.strict = any(isinstance(s, list) and state.grad._storage_ in s for s in call.sources)
        if now is state.grad:
            return
        if now is None:
            call.gradients.append(Gradient(leaf, None, None))
        elif id(now._storage_.buffer) in places and now._node_ is None and not now._offset_:
            call.gradients.append(Gradient(leaf, now._layout_, places[id(now._storage_.buffer)]))
        else:
            raise NotReplayable("a gradient is a tensor from elsewhere")

    def _returned(self, value: Any, places: dict[int, int]) -> Any:
        if not isinstance(value, Tensor):
            return value
        argument = next((i for i, t in enumerate(self.tensors) if t is value), None)
        result = places.get(id(value._storage_.buffer))
        if argument is None and (result is None or type(value) is not Tensor or self._shared(value)):
            raise NotReplayable("it returns a tensor that was there before, or a view")
        node = value.grad_fn if argument is None else None
        output = next((i for i, t in enumerate(self.live) if t is value), None)
        return Returned(value._layout_, value._offset_, result, argument, node is not None, output)

    def _shared(self, value: Tensor) -> bool:
        """Whether it is a view, of something else than memory that only this result whose graph is needed has."""
        if not value._is_view():
            return False
        others = [t for t in trees.leaves(self.result, is_leaf=single) if isinstance(t, Tensor) and t is not value]
        known = [state.tensor for state in (*self.arguments, *self.watch.tensors.values())]
        alone = all(t._storage_ is not value._storage_ for t in (*others, *known))
        return not alone or not any(t is value for t in self.live)

    def _study_backward(
        self, call: Call, forward: runtime.Recording, before: list[tuple[TensorState, Any]], checks: list[Inspection]
    ) -> None:
        """The backward pass of the results whose graph is still needed, recorded and discarded."""
        if call.gradients or any(type(n) is Hyperparameter for n in call.numbers):
            raise NotReplayable("it runs a backward pass or an optimizer, and returns a tensor whose graph is needed")
        if any(check.late for check in call.checks):
            raise NotReplayable("it checks values of results that it returns with their graph")
        drawn, looked = len(self.capture.draws), len(checks)
        trial = Trial(self.live, [*self.arguments, *self.watch.tensors.values()])
        try:
            trial.run()
            if self.capture.stopped is not None or len(self.capture.draws) > drawn or len(checks) > looked:
                raise NotReplayable("its backward pass needs values or random numbers")
            whole = self.capture.recording()
            call.backward = split(
                call, forward, whole, trial, self.arguments, lambda buffer: self._source(buffer, before)
            )
        finally:
            del checks[looked:]
            if self.capture.stopped is None:
                self.capture.discard(len(forward.codes))

    def _finish(self, call: Call, recording: runtime.Recording) -> None:
        """Runs the operations."""
        needed = {place for _, place, _ in call.written} | {g.result for g in call.gradients if g.result is not None}
        needed |= {result for check in call.checks for _, result in check.places if result is not None}
        needed |= {r.result for r in trees.leaves(call.results) if isinstance(r, Returned) and r.result is not None}
        try:
            window = self.capture.run(recording)
        except runtime.Interrupted:
            raise NotReplayable(_INTERRUPTED) from None
        if call.backward is None and set(window.outputs) != needed:  # a graph holds others
            raise NotReplayable("a result is kept somewhere that the function does not return")
        call.window = window

    def _settings(self, settings: list[Hyperparameter], call: Call) -> None:
        """Adds guards for each optimizer's settings: only the sign, for numbers that are inputs."""
        inputs = {id(n) for n in call.numbers}
        free = {n.path[1] for n in settings if not n.used and id(n) in inputs}
        for number in settings:
            if number.used or id(number) not in inputs:
                free.discard(number.path[1])
        for optimizer in self.watch.optimizers:
            for group in optimizer.param_groups:
                for key in optimizer.defaults:
                    if key not in free:
                        self.watch.note_setting(group, key, group[key])
        for number in settings:
            if number.path[1] in free:
                self.watch.note_sign(number.path, number.value)

    def _place(
        self, buffer: Any, before: list[tuple[TensorState, Any]], places: dict[int, int]
    ) -> tuple[Any, int | None]:
        """The source of a buffer that is checked: see ``Check``."""
        result = places.get(id(buffer))
        if result is not None:
            return None, result
        state = next((s for s, b in before if b is buffer or runtime.computed(b) is buffer), None)
        number = next((i for i, s in enumerate(self.arguments) if s is state), None)
        return (None if state is None else state.storage) if number is None else number, None
