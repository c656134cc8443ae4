"""``torch.autograd.anomaly_mode``: detection of NaN gradients."""

from __future__ import annotations

from compat._core.autograd.saved_variable import HookStack
from compat._core.transforms.grad_mode import mode as _mode
from compat._core.types.errors import warn, wrong_argument

__all__ = ["detect_anomaly", "set_detect_anomaly"]

_SLOW = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
)


class set_detect_anomaly:
    """Sets whether backward checks each node's gradients for NaN; also a context manager.

    An error in backward is preceded by a warning with the stack trace of the forward operation.

    Args:
        mode: whether to detect anomalies.
        check_nan: whether NaN is an anomaly.

    Example:
        >>> import compat as torch, warnings
        >>> x = torch.tensor([-1.0], requires_grad=True)
        >>> with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     (torch.sqrt(x) * 0).sum().backward()
        Traceback (most recent call last):
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        set_anomaly_enabled(*self.before)


class detect_anomaly(set_detect_anomaly):
    """``set_detect_anomaly(True)`` as a context manager, which warns that it is slow."""

    def __init__(self, check_nan: bool = True):
        warn(_SLOW)
        super().__init__(True, check_nan)


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Enables or disables anomaly detection.

    Raises:
        TypeError: if an argument is not a bool.
    """
    for position, (name, value) in enumerate((("enabled", enabled), ("check_nan", check_nan)), 1):
        if not isinstance(value, bool):
            raise wrong_argument("set_anomaly_enabled", name, position, "bool", value)
    HookStack.used += enabled - _mode.anomaly
    _mode.anomaly, _mode.check_nan = enabled, check_nan


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is enabled."""
    return _mode.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether NaN is an anomaly."""
    return _mode.check_nan
