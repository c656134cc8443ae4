"""``torch._dynamo.exc``: errors of compiling."""

from __future__ import annotations

__all__ = ["BackendCompilerFailed", "InvalidBackend", "TorchDynamoException", "Unsupported", "UserError"]


class TorchDynamoException(RuntimeError):
    """An error of compiling."""


class InvalidBackend(TorchDynamoException):
    """There is no backend of a name."""

    def __init__(self, name: str):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised."""


class Unsupported(TorchDynamoException):
    """A call cannot be compiled."""


class UserError(Unsupported):
    """A call cannot be compiled for what the program does."""
