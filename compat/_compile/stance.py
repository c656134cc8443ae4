"""Stances, which change how compiled functions run: ``torch.compiler.set_stance``."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

_STANCES = (
    "default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile",
)  # fmt: skip


class Stance:
    """How compiled functions run.

    Attributes:
        name: the stance.
        eager: whether each call runs as without ``compile``.
    """

    def __init__(self) -> None:
        self.set("default")

    def set(self, name: str) -> None:
        """Changes it."""
        self.name = name
        self.eager = name == "force_eager"

    def runs_eagerly(self, known: bool) -> bool:
        """Whether a call without a program runs as without ``compile``.

        Args:
            known: whether such a call was made before, so that its capture is no recompilation.

        Raises:
            RuntimeError: if recompiling is to fail.
        """
        if known:
            return False
        if self.name == "fail_on_recompile":
            raise RuntimeError("Detected recompile when torch.compile stance is 'fail_on_recompile'")
        return self.name == "eager_on_recompile"


#: The current stance.
current = Stance()


class Compiling(threading.local):
    """Whether this thread runs the Python code of a compiled function: ``torch.compiler.is_compiling()``."""

    now = False

    def call(self, now: bool, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a function inside (``now``) or outside of a compiled one."""
        before, self.now = self.now, now
        try:
            return function(*args, **kwargs)
        finally:
            self.now = before


compiling = Compiling()


class set_stance:
    """Sets how compiled functions run from now on, or inside a ``with`` block or a decorated function.

    Args:
        stance: ``"default"``; ``"force_eager"``, which runs them as without ``compile``; ``"eager_on_recompile"``,
            which does so for a call without a program; ``"fail_on_recompile"``, which raises an error then; or
            ``"eager_then_compile"``, which here is the default, as first calls are never compiled.
        skip_guard_eval_unsafe, force_backend: accepted; calls are always checked, and every backend is XLA.

    Raises:
        RuntimeError: for another stance.

    Example:
        >>> import compat as torch
        >>> @torch.compile
        ... def double(x):
        ...     return x * 2
        >>> with torch.compiler.set_stance("force_eager"):
        ...     double(torch.ones(1))
        tensor([2.])
    """

    __module__ = "compat.compiler"

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None):
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}")
        self.stance = stance
        self.prev = current.name
        current.set(stance)

    def __enter__(self) -> None:
        current.set(self.stance)

    def __exit__(self, *exc: object) -> None:
        current.set(self.prev)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        current.set(self.prev)  # it holds for the time of its calls only

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return call
