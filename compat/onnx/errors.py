"""``torch.onnx.errors``: errors of exports."""

from __future__ import annotations

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A warning of an export."""


class OnnxExporterError(RuntimeError):
    """A model cannot be written."""

    __module__ = "torch.onnx"


class UnsupportedOperatorError(OnnxExporterError):
    """An operator of a model has no translation to ONNX."""

    __module__ = "torch.onnx.errors"
