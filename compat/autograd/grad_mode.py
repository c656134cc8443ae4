"""``torch.autograd.grad_mode``: context managers for recording and for the backward pass."""

from __future__ import annotations

from typing import Any

from compat._core.transforms.grad_mode import F, _Guard, enable_grad, inference_mode, no_grad, set_grad_enabled
from compat._core.transforms.grad_mode import mode as _mode
from compat._core.types.errors import wrong_argument

__all__ = [
    "_unsafe_preserve_version_counter",
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class set_multithreading_enabled(_Guard):
    """Sets whether backward may use several threads; it always uses one. Also a context manager and decorator."""

    enabled = True

    def __init__(self, mode: bool):
        self.before = set_multithreading_enabled.enabled
        self.mode = bool(mode)
        set_multithreading_enabled.enabled = self.mode

    def again(self) -> _Guard:
        return set_multithreading_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        set_multithreading_enabled.enabled = self.before


class enforce_grad_layout_policy(_Guard):
    """Sets whether gradients of leaves get the leaf's strides; also a context manager and decorator.

    Otherwise a gradient without other references becomes the leaf's ``grad`` with its own strides.

    Args:
        enable: whether gradients get the leaf's strides.

    Example:
        >>> import compat as torch
        >>> x = torch.zeros(2, 3).t().requires_grad_()
        >>> with torch.autograd.enforce_grad_layout_policy(False):
        ...     (x * torch.ones(3, 2)).sum().backward()
        >>> x.stride(), x.grad.stride()
        ((1, 3), (2, 1))
    """

    def __init__(self, enable: bool = True):
        if not isinstance(enable, bool):
            raise wrong_argument("set_grad_layout_enforcement_enabled", "enabled", 1, "bool", enable)
        self.before = _mode.lays_out
        self.mode = _mode.lays_out = enable

    def __call__(self, function: F) -> F:
        _mode.lays_out = self.before
        return super().__call__(function)

    def again(self) -> _Guard:
        return enforce_grad_layout_policy(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _mode.lays_out = self.before


def is_multithreading_enabled() -> bool:
    """Whether backward may use several threads."""
    return set_multithreading_enabled.enabled


class _unsafe_preserve_version_counter:
    """Context in which in-place operations on given tensors do not increment their versions.

    Args:
        tensors: a tensor, or several.
    """

    def __init__(self, tensors: Any):
        self.tensors = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
        self.versions = tuple(t._version for t in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        for t, version in zip(self.tensors, self.versions):
            t._counter_.version = version
