"""``torch.compile``: functions, modules and whole training steps without their Python.

The first call runs as ever, deferred. Then a call is captured (``capture``): everything it does is recorded before
any of it runs. If what it did can be told completely (``capture.NotReplayable`` says why not), later calls are replayed
(``replay``): one compiled program, as long as everything that the function can reach is as it was (``watch``).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from compat._compile.capture import Capturing, NotReplayable, ValueNeeded, single
from compat._compile.replay import Replay
from compat._core.transforms.grad_mode import mode
from compat.nn.modules.module import Module
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor, sync
from funcgrad import runtime, trees
from funcgrad.core.caching import Cache, Group
from funcgrad.core.errors import explained

__all__ = ["Compiled", "OptimizedModule", "compile"]

#: How many kinds of calls are captured, and how often a kind is tried.
KINDS, TRIES = 8, 5
_CALLS = Group("calls of compiled functions", 512)
_TRIES = Group("calls of compiled functions, counted", 8192)


class Compiled:
    """A function whose calls are captured and replayed.

    Args:
        function: the function.
        fullgraph: whether a call that cannot be replayed is an error.
    """

    def __init__(self, function: Callable[..., Any], fullgraph: bool):
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.fullgraph = fullgraph
        self._kinds: Cache[tuple, list[Any]] = Cache(_CALLS)
        self._tries: Cache[tuple, int] = Cache(_TRIES)
        self._lock = threading.Lock()
        #: Why the last call that was captured cannot be replayed; None if it can.
        self.reason: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if runtime.capturing() or runtime.settings.limit == 1:
            return self.function(*args, **kwargs)
        leaves, shape = _flat(args, kwargs)
        key = (shape, *_kind(leaves))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        for found in self._kinds.get(key) or self._kinds.again(key) or ():
            if found.holds(tensors):
                return found(tensors)
        return self._capture(key, args, kwargs, tensors, [x for x in leaves if not isinstance(x, Tensor)])

    def _capture(self, key: tuple, args: tuple, kwargs: dict, tensors: list[Tensor], others: list[Any]) -> Any:
        tries = self._tries[key] = (self._tries.get(key) or self._tries.again(key) or 0) + 1
        # The first call creates state for later ones: an optimizer's state, lazily created parameters.
        if (tries == 1 and not self.fullgraph) or tries > TRIES:
            return self.function(*args, **kwargs)
        capturing = Capturing(self.function, args, kwargs, tensors, others)
        try:
            made = Replay(capturing.run())
        except ValueNeeded as why:
            self.reason = str(why)
            if self.fullgraph:
                name = getattr(self.function, "__qualname__", repr(self.function))
                message = (
                    f"compile(fullgraph=True): {name} cannot be one program: {why}. Choose between tensors with "
                    "torch.where, or compile without fullgraph."
                )
                raise explained(RuntimeError(message), "fullgraph") from None
            return capturing.result
        except NotReplayable as why:
            self.reason = str(why)
            return capturing.result
        with self._lock:
            kinds = self._kinds.get(key) or self._kinds.again(key)
            if kinds is None:
                kinds = self._kinds[key] = []
            kinds.insert(0, made)
            if len(kinds) > KINDS:
                del kinds[KINDS:]
            else:
                self._tries[key] = 1
        self.reason = None
        return capturing.result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"


def _flat(args: tuple, kwargs: dict) -> tuple[Sequence[Any], Any]:
    """The arguments one by one, and how they hang together."""
    if not kwargs and all(a.__class__ is Tensor for a in args):
        return args, len(args)
    return trees.flatten((args, kwargs), is_leaf=single)


def _kind(leaves: Sequence[Any]) -> list[Any]:
    """The key that distinguishes calls that may do different things."""
    key: list[Any] = [mode.grad, mode.inference, mode.autocast]
    owners: list[int] = []
    for x in leaves:
        if isinstance(x, Tensor):
            if x._view is not None:
                sync(x)
            key += (x._layout, x._rg, x._node is None, x._offset)
            owners.append(id(x._storage))
        else:
            key += (type(x), x if isinstance(x, bool | int | float | str) else id(x))
    if len(set(owners)) < len(owners):
        key += [owners.index(one) for one in owners]
    return key


class OptimizedModule(Module):
    """A module whose calls are compiled; everything else is the module's.

    Attributes:
        _orig_mod: the module.
    """

    __module__ = "compat._dynamo.eval_frame"

    def __init__(self, module: Module, fullgraph: bool, compiled: Any = None):
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = Compiled(module, fullgraph) if compiled is None else compiled

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's ``forward``."""
        return self.__dict__["_compiled"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(super().__getattr__("_orig_mod"), name)

    def train(self, mode: bool = True) -> OptimizedModule:
        """Sets the module's mode; returns this one."""
        super().train(mode)
        return self


@function("torch.compile")
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A function, a module or a whole training step, without its Python.

    A call is captured, and further calls are replayed as one compiled program: the forward and the backward pass, the
    optimizer's step, random numbers, what is written to parameters and buffers. It is captured anew when what it
    depends on has changed: sizes and dtypes, ``training``, ``requires_grad``, attributes and globals that it can see,
    settings of an optimizer (learning rates and other numbers are inputs). Where a call does what cannot be replayed
    (it asks a tensor for its value, returns a tensor with a graph still to be used, keeps results elsewhere), it runs
    deferred, as without ``compile``. So compile the step rather than the model::

        @torch.compile
        def step(x, y):
            optimizer.zero_grad()
            loss = loss_function(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

    What Python does besides, such as printing, happens when a call is captured only.

    Args:
        model: the function or module; left out, this is a decorator.
        fullgraph: it is an error if a call asks for a tensor's value.
        disable: give ``model`` back as it is.
        backend: a function from an ``fx.GraphModule`` of the call and its tensors to what runs it. Every name means
            XLA.
        options: for such a function.
        dynamic, mode: accepted; everything is compiled for the sizes at hand.

    Raises:
        TypeError: if ``model`` cannot be called.
        RuntimeError: from the call, with ``fullgraph``, naming the line that asks for a value.

    Example:
        >>> @torch.compile
        ... def double(x):
        ...     return x * 2
        >>> [double(torch.tensor(n)).item() for n in range(4)]
        [0, 2, 4, 6]
    """
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise TypeError(f"compile(): argument 'model' must be callable, not {type(model).__name__}")
    if disable:
        return model
    if isinstance(model, OptimizedModule | Compiled):
        return model
    if callable(backend):
        made = import_module("compat._dynamo.backends").ByBackend(model, backend, fullgraph, options)
        return OptimizedModule(model, fullgraph, made) if isinstance(model, Module) else made
    return OptimizedModule(model, fullgraph) if isinstance(model, Module) else Compiled(model, fullgraph)
