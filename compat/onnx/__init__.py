"""``torch.onnx``: models as ONNX files, built by the package ``onnx``.

A model is called once with example arguments, and again at other sizes if some are dynamic; its operators are converted
to ONNX's. Python values, control flow and static sizes are those of the example.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from compat.onnx import errors
from compat.onnx._export import export, is_in_onnx_export
from compat.onnx._program import ONNXProgram
from compat.onnx.errors import OnnxExporterError

__all__ = [
    "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "errors",
    "export", "is_in_onnx_export", "is_onnxrt_backend_supported", "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]  # fmt: skip


class TrainingMode(enum.Enum):
    """The mode of the exported model: evaluation, the model's current mode, or training."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """The treatment of operators without an ONNX translation; ignored, as they raise an error."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers of dtypes."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


#: The registered symbolic functions, which only TorchScript's exporter would call.
_symbolic: dict[tuple[str, int], Callable[..., Any]] = {}


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Stores a function that converts an operator for TorchScript's exporter. ``export`` does not call it: an unknown
    operator raises an error, unless ``custom_translation_table`` has it.

    Raises:
        ValueError: for a name that is not ``library::operator``.
    """
    if symbolic_name.count("::") != 1:
        raise ValueError(f"Failed to register operator {symbolic_name}. The symbolic name must match 'domain::name'")
    _symbolic[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Removes the function registered by ``register_custom_op_symbolic``."""
    _symbolic.pop((symbolic_name, opset_version), None)


def is_onnxrt_backend_supported() -> bool:
    """Whether ``torch.compile`` has the onnxruntime backend: False."""
    return False
