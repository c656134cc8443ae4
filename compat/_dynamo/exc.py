"""``torch._dynamo.exc``: compilation errors."""

from __future__ import annotations

__all__ = [
    "BackendCompilerFailed",
    "InvalidBackend",
    "TorchDynamoException",
    "TorchRuntimeError",
    "Unsupported",
    "UserError",
]


class TorchDynamoException(RuntimeError):
    """Base of compilation errors."""


class TorchRuntimeError(TorchDynamoException):
    """A call raised while it was compiled."""


class InvalidBackend(TorchDynamoException):
    """An unknown backend name."""

    def __init__(self, name: str):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class BackendCompilerFailed(TorchDynamoException):
    """An error of a backend."""


class Unsupported(TorchDynamoException):
    """A call cannot be compiled."""


class UserError(Unsupported):
    """A call cannot be compiled because of the program."""
