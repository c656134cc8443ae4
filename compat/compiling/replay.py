"""Doing again what a captured call did, on what is there now, without calling the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat.autograd.node import NO_EDGE, Node
from compat.compiling.capture import Call, Constant, Gradient, Returned
from compat.errors import FREED
from compat.grad_mode import next_sequence
from compat.optim.given import Given, at
from compat.tensor import Tensor, autograd_of, from_buffer
from funcgrad import runtime, trees


class CompiledFunctionBackward(Node):
    """The node of what a compiled function returned after it went backward itself: there is nothing left to do."""

    __slots__ = ()
    next_functions = _edges = (NO_EDGE,)

    def __init__(self) -> None:
        self._sequence = next_sequence()
        self._hooks = None

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        raise RuntimeError(FREED)


CompiledFunctionBackward.__module__ = "builtins"


class Replay:
    """A captured call, to be done again."""

    def __init__(self, call: Call):
        self.call = call
        results = {place: i for i, place in enumerate(call.window.outputs)}
        self._written = [(target, results[place], count) for target, place, count in call.written]
        self._gradients = [(g, None if g.result is None else results[g.result]) for g in call.gradients]
        self._results = results
        self._storages = {id(s.storage) for s in call.watch.tensors.values()}
        self._common = [s for s in call.sources if isinstance(s, list) and len(s) > 1]
        self._givens = [(i, n.path) for i, n in enumerate(call.numbers) if type(n) is Given]
        self._numbers = [float(n) if type(n) is Given else n for n in call.numbers]
        written = {id(target) for target, _, _ in call.written}
        free = [i for i, s in enumerate(call.sources) if isinstance(s, list) and all(id(x) in written for x in s)]
        self._lent = [(storage, i) for i in free for storage in call.sources[i]]
        for check in call.checks:
            check.forget()
        self._early = [check for check in call.checks if not check.late]
        self._late = [check for check in call.checks if check.late]
        self._run = runtime.Replay(call.window, free)

    def holds(self, tensors: Sequence[Tensor]) -> bool:
        """Whether what the call depends on is as it was, and the arguments are tensors of their own."""
        if any(id(t._storage) in self._storages for t in tensors) or not self.call.watch.holds():
            return False
        for storages in self._common:
            buffer = storages[0].buffer
            for storage in storages:
                if storage.buffer is not buffer:
                    return False
        return True

    def __call__(self, tensors: Sequence[Tensor]) -> Any:
        """Does it again.

        Args:
            tensors: the arguments.
        """
        call = self.call
        runtime.catch_up()
        for check in self._early:
            check.on(tensors, (), {})()
        inputs = [self._input(source, tensors) for source in call.sources]
        for i, path in self._givens:
            self._numbers[i] = at(path)
        found = self._done(inputs)
        runtime.due([check.on(tensors, found, self._results) for check in self._late])
        for target, place, count in self._written:
            storage = tensors[target]._storage if target.__class__ is int else target
            storage.buffer = found[place]
            storage.version += count
        for gradient, made in self._gradients:
            self._set(gradient, None if made is None else found[made], tensors)
        return trees.map(lambda x: self._returned(x, found, tensors), call.results)

    def _input(self, source: Any, tensors: Sequence[Tensor]) -> Any:
        if source.__class__ is list:
            return runtime.ready(source[0].buffer)
        if source.__class__ is int:
            return runtime.ready(tensors[source]._storage.buffer)
        return source.buffer if source.__class__ is Constant else runtime.value_of(runtime.drawn(source))

    def _done(self, inputs: list[Any]) -> Sequence[Any]:
        """The window's outputs. What is written lets go of its buffers first, so that they can be taken over."""
        for storage, _ in self._lent:
            storage.buffer = None
        try:
            return self._run(inputs, self._numbers)
        except BaseException:
            for storage, i in self._lent:
                storage.buffer = inputs[i]
            raise

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
            t._rg, t._node = True, CompiledFunctionBackward()
        return t
