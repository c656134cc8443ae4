"""``custom_op``: an operation out of a Python function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import compat.library._registration as _registration
from compat.library._infer_schema import infer_schema
from compat.library._operation import EXPLICIT, KEYS
from compat.library._registration import Library, operation_of

_made: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """An operation that ``custom_op`` made from a function; a call of it is a call of the operation.

    Attributes:
        _qualname: ``library::name``.
        _opoverload: the operation, as in ``torch.ops``.
    """

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Sequence[Any]):
        self._namespace, self._name, self._schema = namespace, name, schema
        self._qualname = f"{namespace}::{name}"
        self._init_fn, self._module = fn, inspect.getmodule(fn)
        before = _made.pop(self._qualname, None)
        if before is not None:
            before._lib._destroy()
        self._lib: Library = Library(namespace, "FRAGMENT")
        self._lib.define(name + schema, tags=tags)
        self._opoverload = operation_of(self._qualname)
        self._opoverload.owner = self
        _made[self._qualname] = self

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Gives it a kernel for some devices; a decorator without ``fn``.

        Raises:
            ValueError: if neither a tensor nor a device determines the device.
        """
        arguments = self._opoverload._schema.arguments
        if device_types is not None and not any(a.type.startswith("Tensor") or a.name == "device" for a in arguments):
            raise ValueError("Functions without tensor inputs are required to have a `device: torch.device` argument")
        return _registration.register_kernel(self, device_types, fn, lib=self._lib)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Gives it a kernel for tensors without values."""
        _registration.register_fake(self, fn, lib=self._lib)
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Gives it its gradients; see ``torch.library.register_autograd``."""
        _registration.register_autograd(self, backward, setup_context=setup_context, lib=self._lib)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Gives it its rule for ``vmap``; a decorator without ``func``."""
        return _registration.register_vmap(self, func, lib=self._lib)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Context in which the kernel for a device is enabled; otherwise the one for all devices runs."""
        key, kernels = KEYS.get(device_type, device_type), self._opoverload.kernels
        kept = kernels.get(key)
        if not enabled:
            kernels.pop(key, None)
        try:
            yield
        finally:
            if kept is not None:
                kernels[key] = kept


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Sequence[Any] | None = None,
) -> Any:
    """Makes a custom operation of a function, which is opaque to tracing; a decorator without ``fn``.

    Args:
        name: ``library::name``.
        fn: the implementation; its parameters and results are annotated, unless ``schema`` is given.
        mutates_args: the names of the tensors that it mutates; "unknown" for all.
        device_types: the devices of ``fn``; None for all.
        schema: its schema.
        tags: stored.

    Raises:
        ValueError: for a name without a library, annotations that schemas do not have, and a ``mutates_args`` that is
            another string.
        NotImplementedError: for tensors that are given by name.

    Example:
        >>> @torch.library.custom_op("docs_op::shifted", mutates_args=())
        ... def shifted(x: torch.Tensor, by: int = 1) -> torch.Tensor:
        ...     return x + by
        >>> shifted(torch.zeros(1)), torch.ops.docs_op.shifted(torch.zeros(1), 3)
        (tensor([1.]), tensor([3.]))
    """

    def made(f: Callable[..., Any]) -> CustomOpDef:
        if isinstance(mutates_args, str) and mutates_args != "unknown":
            raise ValueError(
                "mutates_args must either be a sequence of the names of the arguments that are mutated or the string "
                "'unknown'. "
            )
        wanted = infer_schema(f, mutates_args=mutates_args) if schema is None else schema
        namespace, own = name.split("::")
        found = CustomOpDef(namespace, own, wanted, f, tags or ())
        declared = found._opoverload._schema
        written = {a.name for a in declared.arguments if a.is_write}
        if mutates_args != "unknown" and written != set(mutates_args):
            found._lib._destroy()
            raise ValueError(
                f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={wanted}. The schema "
                f"suggests that the op mutates {written or '{}'}which is different from what was provided to us in "
                "`mutates_args`. Please make these consistent."
            )
        named = [a for a in declared.arguments if a.kwarg_only and a.type.startswith("Tensor")]
        if named:
            found._lib._destroy()
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {own}{wanted}"
            )
        if device_types is None:
            found._lib.impl(found._opoverload, f, EXPLICIT)
        else:
            found.register_kernel(device_types, f)
        return found

    return made if fn is None else made(fn)


__all__ = ["CustomOpDef", "custom_op"]
