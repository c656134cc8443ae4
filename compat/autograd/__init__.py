"""``torch.autograd``: the backward graph and its engine."""

from typing import Any as _Any

from compat.autograd import (
    _engine_queries,
    _tensor_hooks,
    anomaly_mode,
    forward_ad,
    function,
    functional,
    grad_mode,
    graph,
    variable,
)
from compat._core.autograd import engine, node, saved_variable
from compat.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from compat.autograd._backward import backward, grad
from compat.autograd.function import Function
from compat.autograd.gradcheck import gradcheck, gradgradcheck
from compat.autograd._engine_queries import _profiler_enabled, kineto_available
from compat._core.autograd.saved_variable import SavedTensor
from compat.autograd.variable import Variable
from compat._core.types.errors import no_attribute as _no_attribute
from compat.autograd.grad_mode import (
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = [
    "Function", "SavedTensor", "Variable", "_profiler_enabled", "_unsafe_preserve_version_counter", "anomaly_mode",
    "backward", "detect_anomaly", "enable_grad",
    "enforce_grad_layout_policy", "forward_ad", "function", "functional", "grad", "grad_mode",
    "gradcheck", "gradgradcheck", "graph",
    "inference_mode", "is_multithreading_enabled", "kineto_available", "no_grad", "set_detect_anomaly",
    "set_grad_enabled", "set_multithreading_enabled", "variable",
]  # fmt: skip


def _is_checkpoint_valid() -> bool:
    """Whether reentrant checkpoints can run their backward pass, which here they always can."""
    return True


def __getattr__(name: str) -> _Any:
    if name == "DeviceType":
        from compat.profiler import DeviceType

        return DeviceType
    if name not in ("profiler", "profiler_util"):
        raise _no_attribute(__name__, name)
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
