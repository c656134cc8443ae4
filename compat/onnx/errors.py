"""``torch.onnx.errors``: errors of exports."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A warning of an export."""


class OnnxExporterError(RuntimeError):
    """Raised for a model that cannot be exported."""

    __module__ = "torch.onnx"


class UnsupportedOperatorError(OnnxExporterError):
    """Raised for an operator without an ONNX translation."""

    __module__ = "torch.onnx.errors"
