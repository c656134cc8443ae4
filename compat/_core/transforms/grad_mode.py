"""Grad mode and inference mode: ``no_grad``, ``enable_grad``, ``set_grad_enabled``, ``inference_mode``; and the other
state of a thread that operations check."""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from compat._core.types.errors import warn

F = TypeVar("F", bound=Callable[..., Any])

#: The number of the next recorded node: backward runs later nodes first.
next_sequence: Callable[[], int] = itertools.count().__next__


class _Mode(threading.local):
    #: Whether operations are recorded; None in inference mode, which has separate plans.
    grad: bool | None = True
    inference = False
    #: Whether operations propagate tangents.
    forward = True
    #: The result of ``is_grad_enabled`` in inference mode, where it has no other effect.
    told = False
    #: Whether anomaly mode is on, and whether it checks gradients for NaN.
    anomaly = False
    check_nan = True
    #: The node whose backward runs, and its backward pass.
    node: Any = None
    task: Any = None
    #: The profiler's factory of contexts: called with the name and operands of each operation and node.
    observer: Callable[[str, Any], Any] | None = None
    #: The value of ``grad`` around the innermost ``__torch_dispatch__``, inside which nothing is recorded.
    above: bool | None = True
    #: Whether gradients of leaves get the leaf's memory order, instead of keeping theirs.
    lays_out = True
    #: The number of dispatch modes of this thread; with any, every operation is dispatched separately.
    watched = 0
    #: The number of traces that record operators in this thread, which must see the steps of every node.
    traced = 0
    #: The dtype of autocast by device type; None if it is off.
    autocast: tuple[tuple[str, Any], ...] | None = None
    #: The clock of storages at the entry of the innermost differentiating transform: older storages are captured.
    since = 0
    #: The same for the outermost one: younger tensors are in its graph only.
    outset = float("inf")
    #: The number of nested backward passes in this thread.
    depth = 0


mode = _Mode()


def is_grad_enabled() -> bool:
    """Whether operations are recorded for backward in this thread."""
    return mode.told if mode.inference else bool(mode.grad)


def _set(enabled: bool | None) -> bool:
    """Sets whether operations are recorded; returns the previous setting."""
    before = is_grad_enabled()
    if mode.inference:
        mode.told = bool(enabled)
    else:
        mode.grad = bool(enabled)
    return before


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside ``inference_mode``."""
    return mode.inference


class _Guard:
    """A context manager that is also a decorator of functions and generator functions.

    Attributes:
        enabled: the grad mode inside it; None for a guard that changes more than that.
    """

    enabled: bool | None = None

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def again(self) -> _Guard:
        """A new guard with the same settings, for one call of a decorated function."""
        return type(self)()

    def clone(self) -> _Guard:
        """A new guard with the same settings."""
        return self.again()

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly "
                "decorate the `__init__` method and nothing else.",
                FutureWarning,
            )
            made: Any = functools.wraps(function, updated=())(lambda *a, **k: self._within(function, a, k))
            return made
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        enabled = self.enabled

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if enabled is None or mode.inference:
                with self.again():
                    return function(*args, **kwargs)
            before = mode.grad
            try:  # only assignments before and in ``finally``, so that an interrupt cannot leave the mode changed
                mode.grad = enabled
                return function(*args, **kwargs)
            finally:
                mode.grad = before

        return guarded  # type: ignore[return-value]

    def _within(self, function: Any, args: Any, kwargs: Any) -> Any:
        with self.again():
            return function(*args, **kwargs)

    def _generator(self, function: Any) -> Any:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Generator:
            # The mode applies while the generator runs, not while its consumer does.
            generator = function(*args, **kwargs)
            step, sent = generator.send, None
            while True:
                try:
                    with self.again():
                        produced = step(sent)
                except StopIteration as stop:
                    return stop.value
                try:
                    step, sent = generator.send, (yield produced)
                except GeneratorExit:
                    with self.again():
                        generator.close()
                    raise
                except BaseException as error:
                    step, sent = generator.throw, error

        return guarded


def _restore(self: Any, *exc: object) -> None:
    # No call before the assignment, so that an interrupt cannot leave the mode changed.
    if mode.inference:
        mode.told = self.before
    else:
        mode.grad = self.before


class _Enabled(_Guard):
    """A guard that sets ``enabled``; with a function as argument, the decorated function."""

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __enter__(self) -> None:
        self.before = _set(self.enabled)

    __exit__ = _restore


class no_grad(_Enabled):
    """Context in which operations are not recorded, and their results do not require grad; also a decorator.

    Example:
        >>> import compat as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    __module__ = "compat.autograd.grad_mode"

    enabled = False


class enable_grad(_Enabled):
    """Context in which operations are recorded, also inside ``no_grad``; also a decorator."""

    __module__ = "compat.autograd.grad_mode"

    enabled = True


class set_grad_enabled(_Guard):
    """Sets whether operations are recorded; as a context manager or decorator, inside it only.

    Example:
        >>> import compat as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    __module__ = "compat.autograd.grad_mode"

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.before = _set(mode)
        self.mode = mode

    def __call__(self, function: F) -> F:
        _set(self.before)
        return super().__call__(function)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def again(self) -> _Guard:
        return set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        _set(self.mode)

    __exit__ = _restore


class inference_mode(_Guard):
    """As ``no_grad``; tensors made inside it can never be part of a recorded computation. Also a decorator.

    Args:
        mode: False disables it inside an outer one.
    """

    __module__ = "compat.autograd.grad_mode"

    mode: bool

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if isinstance(mode, bool):
            self.mode = mode
            return self
        self.mode = True
        return self(mode)

    def again(self) -> _Guard:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self.before = mode.grad, mode.inference, mode.told, mode.forward
        mode.inference, mode.told = self.mode, False
        mode.grad, mode.forward = None if self.mode else True, not self.mode

    def __exit__(self, *exc: object) -> None:
        mode.grad, mode.inference, mode.told, mode.forward = self.before
