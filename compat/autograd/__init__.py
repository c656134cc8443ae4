"""``torch.autograd``: the backward graph and what runs it."""

from compat.autograd import engine, function, grad_mode, graph, node, saved
from compat.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from compat.autograd.backward import backward, grad
from compat.autograd.function import Function
from compat.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from compat.tensor import Tensor as Variable

__all__ = [
    "Function", "Variable", "backward", "detect_anomaly", "enable_grad", "function", "grad", "grad_mode", "graph",
    "inference_mode", "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip
