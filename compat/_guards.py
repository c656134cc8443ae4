"""``torch._guards``, as far as programs use it: which ``FakeTensorMode`` is active.

Example:
    >>> from compat._guards import active_fake_mode
    >>> from compat._subclasses import FakeTensorMode
    >>> with FakeTensorMode() as mode:
    ...     active_fake_mode() is mode
    True
    >>> active_fake_mode()
"""

from __future__ import annotations

from typing import Any

from compat._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from compat.utils._python_dispatch import _get_current_dispatch_mode_stack
from compat.utils._pytree import tree_leaves


class TracingContext:
    """The state of a compilation by PyTorch's own compiler, which compat has not: there never is one."""

    @staticmethod
    def try_get() -> None:
        """The present context: None."""

    @staticmethod
    def get() -> TracingContext:
        """The present context.

        Raises:
            RuntimeError: since there is none.
        """
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost active ``FakeTensorMode``."""
    active = reversed(_get_current_dispatch_mode_stack())
    return next((mode for mode in active if isinstance(mode, FakeTensorMode)), None)


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The active ``FakeTensorMode``, or else that of the fake tensors in ``inputs``.

    Raises:
        AssertionError: if there are several.
    """
    found = [mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode)]
    found += [x.fake_mode for x in tree_leaves(inputs) if isinstance(x, FakeTensor)]
    for other in found:
        if other is not found[0]:
            raise AssertionError(f"fake mode ({found[0]}) doesn't match mode ({other})")
    return found[0] if found else None
