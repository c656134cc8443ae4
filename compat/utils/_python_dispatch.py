"""``torch.utils._python_dispatch``: modes that see every operation on tensors, below the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from compat.ops.watching import state, unwatched, watched

__all__ = ["TorchDispatchMode"]


class TorchDispatchMode:
    """Within it, its ``__torch_dispatch__`` is called for every operation, and gives its result.

    Operations are those that have nodes of their own, and those without a derivative; not those that make tensors of
    nothing, and not ``detach``.

    Example:
        >>> import compat as torch
        >>> class Names(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     y = torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)).relu()
        aten.t.default
        aten.mm.default
        aten.relu.default
    """

    def __init__(self, _dispatch_key: Any = None):
        self._entered: list[ExitStack] = []

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        stack = ExitStack()
        stack.enter_context(watched())
        self.__dict__.setdefault("_entered", []).append(stack)  # whose __init__ may not have been called
        state.modes.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        state.modes.pop()
        self._entered.pop().close()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it is a part of the library itself."""
        return False


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode; None if there is none."""
    return state.modes[-1] if state.modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """All modes, the innermost last."""
    return list(state.modes)


@contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """Within it no mode sees anything."""
    modes = list(state.modes)
    with unwatched():
        yield modes
