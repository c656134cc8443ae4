"""``torch.autograd.forward_ad``: forward mode by dual tensors."""

from __future__ import annotations

from typing import Any

from compat._core.autograd.forward_ad import (
    Duals,
    UnpackedDualTensor,
    _is_fwd_grad_enabled,
    _set_fwd_grad_enabled,
    current_level,
    make_dual,
    unpack_dual,
)
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import _Guard
from funcgrad.core.tracing import running

__all__ = [
    "UnpackedDualTensor",
    "_is_fwd_grad_enabled",
    "_set_fwd_grad_enabled",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


def enter_dual_level() -> int:
    """Enters a forward-mode level, in which tensors may have tangents; returns its number.

    Raises:
        RuntimeError: inside another level.
    """
    if level_stack.state.duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    duals = Duals()
    duals.running.enter_context(running(duals))
    level_stack.state.duals = duals
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Exits the forward-mode level: its tensors lose their tangents.

    Raises:
        RuntimeError: if no level, or another level than ``level``, is entered.
    """
    if level is None:
        level = current_level()
    if level != current_level():
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    duals = level_stack.state.duals
    if duals is None:
        raise RuntimeError("Dual level must be a positive number.")
    duals.running.close()
    # Its tracers remain valid as their primals.
    duals.open, duals.alive = False, True
    level_stack.state.duals = None


class dual_level(_Guard):
    """A forward-mode level, as a context manager and a decorator.

    Example:
        >>> import compat as torch
        >>> from compat.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
        ...     forward_ad.unpack_dual(x * x)
        UnpackedDualTensor(primal=tensor(4.), tangent=tensor(4.))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def __getattr__(name: str) -> Any:
    if name != "_current_level":  # not constant
        raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute '{name}'")
    return current_level()
