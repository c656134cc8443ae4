"""Errors of fake tensors."""

from __future__ import annotations

from typing import Any

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensorDeviceMismatchError",
    "MetadataMismatchError", "UnsupportedFakeTensorException", "UnsupportedMutationAliasingException",
    "UnsupportedOperatorException",
]  # fmt: skip


class _OfOperation(RuntimeError):
    """The error of an operation; its text is the operation's name.

    Attributes:
        func: the operation.
    """

    def __init__(self, func: Any):
        super().__init__(func)
        self.func = func


class DataDependentOutputException(_OfOperation):
    """Raised for a number that depends on the values of a fake tensor."""


class DynamicOutputShapeException(_OfOperation):
    """Raised for a result whose size depends on the values of a fake tensor."""


class UnsupportedOperatorException(_OfOperation):
    """Raised for an operation without a kernel for fake tensors."""


class UnsupportedFakeTensorException(RuntimeError):
    """Raised for a tensor that has no fake tensor."""


class UnsupportedMutationAliasingException(RuntimeError):
    """Raised for an operation that writes into aliased operands."""


class MetadataMismatchError(RuntimeError):
    """Raised if the metadata of a fake and a real result differ."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """Raised for fake tensors on several devices."""


for _name in __all__:
    globals()[_name].__module__ = "torch._subclasses.fake_tensor"
