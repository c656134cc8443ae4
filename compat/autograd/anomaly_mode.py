"""Looking for gradients that are not numbers: ``torch.autograd.set_detect_anomaly``."""

from __future__ import annotations

import warnings
from typing import Any

from compat.grad_mode import mode

_SLOW = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
)


class set_detect_anomaly:
    """Whether backward checks what each node gives for what is not a number; as a context manager, within it only.

    Args:
        mode: whether it does.
        check_nan: whether not-a-number is an anomaly.

    Example:
        >>> import compat as torch
        >>> x = torch.tensor([-1.0], requires_grad=True)
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     (torch.sqrt(x) * 0).sum().backward()
        Traceback (most recent call last):
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = _set(mode and check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _set(self.before)


class detect_anomaly(set_detect_anomaly):
    """``set_detect_anomaly(True)`` as a context manager, with a warning that it is slow."""

    def __init__(self, check_nan: bool = True):
        warnings.warn(_SLOW, stacklevel=2)
        super().__init__(True, check_nan)


def _set(value: bool) -> bool:
    before, mode.check_nan = mode.check_nan, bool(value)
    return before


def is_anomaly_enabled() -> bool:
    """Whether anomalies are looked for."""
    return mode.check_nan


def check(node: Any, results: Any) -> None:
    """Raises if a node gave values that are not numbers.

    Raises:
        RuntimeError: naming the node.
    """
    for i, grad in enumerate(results):
        if grad is not None and bool((grad != grad).any()):
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
