"""``torch._dynamo.backends.registry``: the names of backends."""

from compat._compile.backend_names import list_backends, lookup_backend, register_backend

__all__ = ["list_backends", "lookup_backend", "register_backend"]
