"""``torch.utils.checkpoint``: recompute a function in the backward pass instead of storing its saved tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import enable_grad, is_grad_enabled, mode, no_grad
from compat._core.types.errors import warn
from compat.amp.autocast_mode import (
    autocast,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)
from compat.autograd._backward import backward as _backward
from compat.autograd.function import Function
from compat.autograd.graph import saved_tensors_hooks
from compat.random import default_generator
from compat.utils._checkpoint_debug import Log, report
from compat.utils._checkpoint_parts import (
    DefaultDeviceType,
    GraphExecGroup,
    SavedArguments,
    check_backward_validity,
    detach_variable,
    get_device_states,
    set_device_states,
)
from compat.utils._checkpoint_selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    _CachedTorchDispatchMode,
    _CachingTorchDispatchMode,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
    "GraphExecGroup", "SelectiveCheckpointContext", "_CachedTorchDispatchMode", "_CachingTorchDispatchMode",
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
    "detach_variable", "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip

_TIP = (
    "\n\nTip: To see a more detailed error message, either pass `debug=True` to\n"
    "`torch.utils.checkpoint.checkpoint(...)` or wrap the code block\n"
    "with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\n"
    "enable checkpoint\u2011debug mode globally.\n"
)
_UNPACKED = (
    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
    "ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with details on your "
    "use case."
)


class CheckpointError(RuntimeError):
    """The recomputation of a function differs from its first run."""


class _StopRecomputation(Exception):
    """Ends a recomputation when all saved tensors have been recomputed."""


def noop_context_fn() -> tuple[AbstractContextManager, AbstractContextManager]:
    """Two contexts without effect, for the first run and for the recomputation."""
    return nullcontext(), nullcontext()


_early_stop: bool | None = None
_debug_enabled: bool | None = None


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Context that sets whether checkpoints list their operations in errors.

    Args:
        enabled: whether to list them; None for the argument of each checkpoint.
    """
    global _debug_enabled
    before, _debug_enabled = _debug_enabled, enabled
    try:
        yield
    finally:
        _debug_enabled = before


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Context that sets whether checkpoints stop recomputing once all saved tensors are available.

    Args:
        enable: whether to stop early.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with set_checkpoint_early_stop(False):
        ...     out = checkpoint(lambda x: x.exp().log(), x, use_reentrant=False)
        >>> out.sum().backward()
    """
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


class _SavedContext:
    """The context of a computation, restored for recomputing: ``autocast``, and the state of generators.

    Args:
        random: whether to save the random state.
    """

    def __init__(self, random: bool):
        self.state = default_generator.get_state() if random else None
        self.casting: dict[str, Any] = {
            "dtype": get_autocast_dtype("cpu"),
            "enabled": is_autocast_enabled("cpu"),
            "cache_enabled": is_autocast_cache_enabled(),
        }

    @contextmanager
    def restored(self) -> Iterator[None]:
        with autocast("cpu", **self.casting):
            if self.state is None:
                yield
                return
            with default_generator._engine.fork():
                default_generator.set_state(self.state)
                yield


class _Placeholder:
    """What a node stores instead of a tensor: the index and the metadata of the tensor."""

    __slots__ = ("number", "size", "dtype")

    def __init__(self, number: int, t: Tensor):
        self.number = number
        self.size, self.dtype = t.shape, t.dtype

    def describe(self, size: Any, dtype: Any) -> str:
        return f"{{'shape': {size}, 'dtype': {dtype}, 'device': device(type='cpu')}}"


class _Frame:
    """One call of a checkpointed function.

    Args:
        run: calls the function.
        context: the context of the recomputation.
        saved_context: the settings and random states of the first run.
        check: whether recomputed tensors are compared with the metadata of the saved ones.
        early_stop: whether the recomputation ends once all saved tensors are available.
    """

    def __init__(
        self, run: Callable[[], Any], context: Any, saved_context: _SavedContext, check: bool, early_stop: bool
    ):
        self.run = run
        self.context = context
        self.saved_context = saved_context
        self.check = check
        self.early_stop = early_stop
        self.placeholders: list[_Placeholder] = []
        #: Recomputed values by backward pass; each is removed when it is read.
        self.found: dict[int, dict[int, Tensor]] = {}
        #: Whether the first run has ended; a backward pass inside it recomputes the tensors saved so far.
        self.complete = False

    def pack(self, t: Tensor) -> _Placeholder:
        """Records that a tensor was saved."""
        placeholder = _Placeholder(len(self.placeholders), t)
        self.placeholders.append(placeholder)
        return placeholder

    def unpack(self, stored: _Placeholder) -> Tensor:
        """The recomputed tensor.

        Raises:
            CheckpointError: if it is read twice in this backward pass, or the recomputation differs.
        """
        if mode.task is None:  # outside a backward pass each access recomputes
            return self._recompute()[stored.number]
        found = self.found.get(mode.task.number)
        if found is None:
            found = self.found[mode.task.number] = self._recompute()
        # Each node unpacks once, so the value can be removed.
        if stored.number not in found:
            raise CheckpointError(_UNPACKED)
        return found.pop(stored.number)

    def _recompute(self) -> dict[int, Tensor]:
        found: list[Tensor] = []

        def restored(t: Tensor) -> Tensor:
            stored = t.detach() if t.requires_grad else t
            if len(found) == len(self.placeholders):
                if not self.complete:
                    return stored
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
                    "original forward pass." + _TIP
                )
            found.append(stored)
            if self.early_stop and len(found) == len(self.placeholders):
                raise _StopRecomputation
            return stored

        with self.saved_context.restored(), self.context, enable_grad(), saved_tensors_hooks(restored, lambda t: t):
            with suppress(_StopRecomputation):
                self.run()
        self._compare(found)
        return dict(enumerate(found))

    def _compare(self, found: Sequence[Tensor]) -> None:
        if len(found) != len(self.placeholders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.placeholders)}\n"
                f"Number of tensors saved during recomputation: {len(found)}.{_TIP}"
            )
        if not self.check:
            return
        wrong = [
            f"tensor at position {i}:\nsaved metadata: {p.describe(p.size, p.dtype)}\n"
            f"recomputed metadata: {p.describe(t.shape, t.dtype)}\n"
            for i, (p, t) in enumerate(zip(self.placeholders, found))
            if p.size != t.shape or p.dtype is not t.dtype
        ]
        if wrong:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{''.join(wrong)}.{_TIP}"
            )


class _DebugFrame(_Frame):
    """A call whose errors list the function's operations.

    Attributes:
        log: the operations of the first run.
    """

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.log = Log()

    def unpack(self, stored: _Placeholder) -> Tensor:
        self.context = Log()
        try:
            return super().unpack(stored)
        except CheckpointError as error:
            raise CheckpointError(report(self.log, self.context)) from error


class CheckpointFunction(Function):
    """Reentrant checkpointing: the backward pass recomputes the function and runs a nested backward pass."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        """Calls the function without recording operations."""
        tensors = [a for a in args if isinstance(a, Tensor)]
        if not any(t.requires_grad for t in tensors):
            warn("None of the inputs have requires_grad=True. Gradients will be None")
        ctx.run, ctx.saved_context = run, _SavedContext(preserve)
        ctx.args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.where = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*tensors)
        with no_grad():
            return run(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Recomputes the function, recording operations, and runs backward through this graph.

        Raises:
            RuntimeError: if not all gradients are requested, since the nested pass accumulates into all leaves.
        """
        if mode.task is not None and mode.task.wanted is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        args = list(ctx.args)
        for placeholder, t in zip(ctx.where, ctx.saved_tensors):
            args[placeholder] = t.detach().requires_grad_(t.requires_grad)
        with ctx.saved_context.restored(), enable_grad():
            results = ctx.run(*args)
        results = results if isinstance(results, (tuple, list)) else (results,)
        pairs = [(r, g) for r, g in zip(results, grads) if isinstance(r, Tensor) and r.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        _backward([r for r, _ in pairs], [g for _, g in pairs])
        return None, None, *[a.grad if isinstance(a, Tensor) else None for a in args]


_IMPLICIT = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
    "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
    "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)
_IMPLICIT_SEQUENTIAL = (
    "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version "
    "2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is recommended, but if you "
    "need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
    "the differences between the two variants."
)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls a function without storing its saved tensors, and calls it again in the backward pass.

    Args:
        function: the function.
        args: the positional arguments of the function.
        use_reentrant: True for reentrant checkpointing, which first runs the function without recording operations, and
            supports ``backward`` but not ``grad``.
        context_fn: a function that returns the contexts of the first run and of the recomputation.
        determinism_check: ``"none"`` to not compare the recomputation with the first run.
        debug: whether errors list the operations of both runs, with their call sites.
        early_stop: whether the recomputation ends once all saved tensors are available.
        kwargs: the keyword arguments of the function, and ``preserve_rng_state=False`` to draw other random numbers in
            the recomputation.

    Raises:
        ValueError: for unknown keywords with ``use_reentrant``, another ``determinism_check``, or ``debug`` with a
            ``context_fn``.
        CheckpointError: from the backward pass, if the recomputation saves other tensors.
        RuntimeError: from the backward pass, if an argument was changed in place.

    Example:
        >>> from compat.utils.checkpoint import checkpoint
        >>> x = torch.ones(2, requires_grad=True)
        >>> checkpoint(lambda x: x.exp().log(), x, use_reentrant=False).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """
    if use_reentrant is None:
        warn(_IMPLICIT)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    debug = debug if _debug_enabled is None else _debug_enabled
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    first, second = context_fn()
    if not is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    check = determinism_check == "default"
    early_stop = early_stop if _early_stop is None else _early_stop
    kind = _DebugFrame if debug else _Frame
    stored = SavedArguments(args)
    frame = kind(lambda: function(*stored.restored(), **kwargs), second, _SavedContext(preserve), check, early_stop)
    with frame.log if isinstance(frame, _DebugFrame) else first, saved_tensors_hooks(frame.pack, frame.unpack):
        result = function(*args, **kwargs)
    frame.complete = True
    return result


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Calls functions in sequence, in segments that are checkpointed except for the last.

    Args:
        functions: the functions, or a ``Sequential``.
        segments: the number of segments.
        input: the argument of the first function.
        use_reentrant, preserve_rng_state: as for ``checkpoint``.

    Raises:
        ValueError: for other keywords.
    """
    if use_reentrant is None:
        warn(_IMPLICIT_SEQUENTIAL)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children() if hasattr(functions, "children") else functions)

    def part(begin: int, end: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for f in functions[begin:end]:
                x = f(x)
            return x

        return run

    size, last = len(functions) // segments, 0
    for begin in range(0, size * (segments - 1), size):
        last = begin + size
        input = checkpoint(part(begin, last), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(last, len(functions))(input)
