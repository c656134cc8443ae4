"""``torch.compile``: replays functions, modules and whole training steps without running their Python code.

The first call runs normally, deferred. The next one is captured (``capture``): all its operations are recorded before
any of them runs. If its effects can be described completely (otherwise ``capture.NotReplayable`` gives the reason),
later calls are replayed (``replay``) as one compiled program, as long as the guards hold (``guards``). A function whose
results are differentiated later, such as a model alone, is replayed as two operations (``backward``).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from compat._compile.backend_names import registered
from compat._compile.backward import NotReplayable
from compat._compile.breaks import handling, refuse
from compat._compile.capture import Capturing, ValueNeeded, single
from compat._compile.replay import replay_of
from compat._compile.stance import compiling
from compat._compile.stance import current as now
from compat._core.transforms.grad_mode import mode
from compat.nn.modules.module import Module
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor, sync
from funcgrad import runtime, trees
from funcgrad.core.caching import Cache, Group
from funcgrad.core.errors import explained

__all__ = ["Compiled", "OptimizedModule", "compile"]

#: The maximum number of captured call signatures, and of attempts per signature.
KINDS, TRIES = 8, 5
_CALLS = Group("calls of compiled functions", 512)
_TRIES = Group("calls of compiled functions, counted", 8192)


class Compiled:
    """A function whose calls are captured and replayed.

    Args:
        function: the function.
        fullgraph: whether a call that cannot be replayed raises.
    """

    def __init__(self, function: Callable[..., Any], fullgraph: bool):
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.fullgraph = fullgraph
        self._kinds: Cache[tuple, list[Any]] = Cache(_CALLS)
        self._tries: Cache[tuple, int] = Cache(_TRIES)
        self._lock = threading.Lock()
        #: Why the last captured call cannot be replayed; None if it can.
        self.reason: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if now.eager:
            return compiling.call(False, self.function, *args, **kwargs)
        if runtime.capturing() or runtime.settings.limit == 1:
            return self._uncaptured(args, kwargs)
        leaves, shape = _flat(args, kwargs)
        key = (shape, *_kind(leaves))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        for found in self._kinds.get(key) or self._kinds.again(key) or ():
            if found.holds(tensors):
                return found(tensors, lambda: self._uncaptured(args, kwargs))
        return self._capture(key, args, kwargs, tensors, [x for x in leaves if not isinstance(x, Tensor)])

    def _uncaptured(self, args: tuple, kwargs: dict) -> Any:
        return compiling.call(True, self.function, *args, **kwargs)

    def _capture(self, key: tuple, args: tuple, kwargs: dict, tensors: list[Tensor], others: list[Any]) -> Any:
        before = self._tries.get(key) or self._tries.again(key) or 0
        if now.runs_eagerly(known=before > 0):
            return compiling.call(False, self.function, *args, **kwargs)
        tries = self._tries[key] = before + 1
        # The first call creates lazy state: an optimizer's state, lazily initialized parameters.
        if (tries == 1 and not self.fullgraph) or tries > TRIES:
            return self._uncaptured(args, kwargs)
        capturing = Capturing(self.function, args, kwargs, tensors, others)
        try:
            with handling(refuse) if self.fullgraph else nullcontext():
                made = replay_of(compiling.call(True, capturing.run))
        except ValueNeeded as why:
            self.reason = str(why)
            if self.fullgraph and not capturing.capture.within:
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
    """The flattened arguments, and their structure."""
    if not kwargs and all(a.__class__ is Tensor for a in args):
        return args, len(args)
    return trees.flatten((args, kwargs), is_leaf=single)


def _kind(leaves: Sequence[Any]) -> list[Any]:
    """The key that distinguishes calls that may do different things."""
    key: list[Any] = [mode.grad, mode.inference, mode.autocast]
    owners: list[int] = []
    for x in leaves:
        if isinstance(x, Tensor):
            if x._view_ is not None:
                sync(x)
            key += (x._layout_, x._rg_, x._node_ is None, x._offset_)
            owners.append(id(x._storage_))
        else:
            key += (type(x), x if isinstance(x, (bool, int, float, str)) else id(x))
    if len(set(owners)) < len(owners):
        key += [owners.index(one) for one in owners]
    return key


class OptimizedModule(Module):
    """A module whose calls are compiled; everything else is delegated to the module.

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
        """Sets the module's training mode; returns this one."""
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
    """Compiles a function, a module or a whole training step.

    A call is captured, and further calls are replayed as one compiled program: the forward and the backward pass, the
    optimizer's step, random numbers, and writes to parameters and buffers. It is captured again when its guards fail:
    sizes and dtypes, ``training``, ``requires_grad``, reachable attributes and globals, settings of an optimizer
    (learning rates and other numbers are inputs). A call that cannot be replayed (it reads a tensor's value, stores
    results elsewhere) runs deferred, as without ``compile``. A function whose results are differentiated later, a model
    alone in training, becomes two operations, its forward and its backward pass; its results have one node,
    ``CompiledFunctionBackward``. Compile the whole step where you can, as that leaves no Python at all::

        @torch.compile
        def step(x, y):
            optimizer.zero_grad()
            loss = loss_function(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

    Other effects of Python code, such as printing, happen only when a call is captured.

    Args:
        model: the function or module; without it, a decorator.
        fullgraph: whether a call that reads a tensor's value raises, unless it does so in a custom operation.
        disable: whether to return ``model`` unchanged.
        backend: a function that maps an ``fx.GraphModule`` and its example inputs to a callable, or
            the name of one that ``torch._dynamo.register_backend`` got. PyTorch's own names mean XLA.
        options: options for such a function.
        dynamic, mode: ignored; each size is compiled separately.

    Raises:
        TypeError: if ``model`` is not callable.
        InvalidBackend: for an unknown name of a backend.
        RuntimeError: from the call, with ``fullgraph``, naming the line that reads a value.

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
    if isinstance(model, (OptimizedModule, Compiled)):
        return model
    if isinstance(backend, str):
        backend = registered(backend)
    if callable(backend):
        made = import_module("compat._dynamo.backends").ByBackend(model, backend, fullgraph, options)
        return OptimizedModule(model, fullgraph, made) if isinstance(model, Module) else made
    return OptimizedModule(model, fullgraph) if isinstance(model, Module) else Compiled(model, fullgraph)
