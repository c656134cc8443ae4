"""``Library``, and the functions that add to the operations of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import compat.library._operation as operations
from compat._core.dispatch.overloads import OpOverload
from compat._core.types.device import device
from compat.library._operation import KEYS, META, Operation, find

_RESERVED = ("prim",)
#: The libraries of which there may be only one ``DEF``.
_defined: set[str] = set()
#: The libraries to which ``define``, ``impl`` and others add, kept alive with their additions.
_kept: dict[str, Library] = {}


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """A kernel that falls through to the next one.

    Raises:
        NotImplementedError: if it is called.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """A library of operations, to declare some or to give kernels to those of another one.

    Args:
        ns: its name.
        kind: "DEF" for a new library, "FRAGMENT" for more of one, "IMPL" for kernels alone.
        dispatch_key: the default dispatch key of ``impl``.

    Raises:
        ValueError: for another kind, and for names that are taken.

    Example:
        >>> library = torch.library.Library("docs_lib", "DEF")
        >>> library.define("twice(Tensor x) -> Tensor")
        'twice'
        >>> library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
        >>> torch.ops.docs_lib.twice(torch.ones(2))
        tensor([2., 2.])
    """

    __module__ = "compat.library"

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: " + kind)
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF":
            if ns in _defined:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                    "definitions in a single TORCH_LIBRARY block."
                )
            _defined.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._declared: list[Operation] = []
        self._undo: list[Callable[[], Any]] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declares an operation by its schema; returns its name.

        Raises:
            RuntimeError: for an invalid or declared schema, or an "IMPL" library.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError("Cannot define an operator in a library of kind IMPL")
        made = operations.declare(self.ns, schema, tags if isinstance(tags, Sequence) else (tags,))
        self._declared.append(made)
        return made._opname

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Gives an operation a kernel.

        Args:
            op_name: its name in this library, or the operation itself.
            fn: the kernel; it takes the operation's arguments.
            dispatch_key: one of: "CPU", "Meta", "Autograd", "CompositeImplicitAutograd" (whose operations are
                differentiated one by one), "CompositeExplicitAutograd" (for every device).
            with_keyset: ignored; kernels get no set of keys.
            allow_override: ignored; the newest kernel is used.

        Raises:
            TypeError: for a kernel that is not callable.
            RuntimeError: for an unknown operation.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        operation = self._operation(op_name)
        key = dispatch_key or self.dispatch_key
        key = KEYS.get(key, key)
        if fn is fallthrough_kernel:
            return
        before = operation.kernels.get(key)
        operation.kernels[key] = fn
        self._undo.append(lambda: _restore(operation, key, before))

    def _operation(self, op_name: Any) -> Operation:
        if isinstance(op_name, Operation):
            return op_name
        if isinstance(op_name, OpOverload):
            raise RuntimeError(f"impl: {op_name.name()} is no operation of a library, and takes no other kernels")
        name = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        return find(name)

    def _destroy(self) -> None:
        """Reverts all its registrations."""
        for undo in reversed(self._undo):
            undo()
        for operation in self._declared:
            operations.forget(operation)
        self._undo.clear()
        self._declared.clear()
        if self.kind == "DEF":
            _defined.discard(self.ns)


def _restore(operation: Operation, key: str, before: Callable[..., Any] | None) -> None:
    if before is None:
        operation.kernels.pop(key, None)
    else:
        operation.kernels[key] = before


def _check_place(kind: str) -> None:
    """Whether a kernel may be for something: a kind of device, or a key of PyTorch's dispatcher.

    Raises:
        RuntimeError: if not.
    """
    if kind.islower() and kind != "default":
        device(kind)  # which raises


def _library(qualname: str, lib: Library | None) -> Library:
    name = qualname.partition("::")[0]
    if lib is not None:
        return lib
    if name not in _kept:
        _kept[name] = Library(name, "FRAGMENT")
    return _kept[name]


def operation_of(op: Any) -> Operation:
    """The operation of a name, an overload, or a result of ``custom_op``.

    Raises:
        ValueError: for anything else.
    """
    if isinstance(op, str):
        if "::" not in op:
            raise ValueError(f"expected the name of an operator as 'namespace::name', got {op!r}")
        return find(op)
    found = getattr(op, "_opoverload", op)
    if not isinstance(found, Operation):
        raise ValueError(f"expected an operator of a library, a custom op or a name, got {type(op)}")
    return found


def define(qualname: Any, schema: Any, alias_analysis: str = "", *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Declares an operation.

    Args:
        qualname: ``library::name``; or a ``Library``, for the deprecated form, a decorator of a kernel.
        schema: its arguments and results, as ``(Tensor x) -> Tensor``; in the deprecated form with the name.
        alias_analysis: an argument of the deprecated form.

    Raises:
        ValueError: for a name without a library.
        RuntimeError: for an invalid schema, or one that is declared already.

    Example:
        >>> torch.library.define("docs_def::half", "(Tensor x) -> Tensor")
        >>> @torch.library.impl("docs_def::half", "cpu")
        ... def half(x):
        ...     return x / 2
        >>> torch.ops.docs_def.half(torch.ones(1))
        tensor([0.5000])
    """
    if isinstance(qualname, Library):
        return _defined_by_kernel(qualname, schema, alias_analysis)
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    name = qualname.partition("::")[2]
    if not name:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the '
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    if not re.fullmatch(r"\(.*\)\s*->\s*.*", schema, re.DOTALL):
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got '
            f'"{schema}"'
        )
    _library(qualname, lib).define(name + schema, "", tags=tags)
    return None


def _defined_by_kernel(library: Library, schema: str, alias_analysis: str) -> Callable[..., Any]:
    """The deprecated form of ``define``: the function that it decorates is the kernel for all devices."""

    def given(f: Callable[..., Any]) -> Callable[..., Any]:
        library.impl(library.define(schema, alias_analysis), f)
        return f

    return given


def impl(
    qualname: Any, types: str | Sequence[str] = "default", func: Callable[..., Any] | None = None, *, lib: Any = None
) -> Any:
    """Gives an operation a kernel; a decorator without ``func``.

    Args:
        qualname: ``library::name``; or a ``Library`` and, as ``types``, the name there, for the deprecated form.
        types: the devices that it is for: "cpu", "meta", "default" for every one.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func if isinstance(func, str) else ""

        def given(f: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, f, key)
            return f

        return given

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        for kind in (types,) if isinstance(types, str) else types:
            _check_place(kind)
            _library(qualname, lib).impl(qualname, f, kind)
        return f

    return register if func is None else register(func)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Gives an operation a kernel for devices, or, for None, for all; a decorator without ``func``."""
    kinds = ("default",) if device_types is None else (device_types,) if isinstance(device_types, str) else device_types

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        operation = operation_of(op)
        for kind in kinds:
            _check_place(kind)
            _library(operation.name(), lib).impl(operation, f, kind)
        return f

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Gives an operation a kernel for tensors without values, which are those of the meta device; a decorator without
    ``func``. An operation that is named and not declared yet gets it at its declaration."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(op, str) and "::" in op and not operations.is_declared(op):
            operations.early_fakes[op] = f
            return f
        operation = operation_of(op)
        _library(operation.name(), lib).impl(operation, f, META)
        return f

    return register if func is None else register(func)


impl_abstract = register_fake


class FakeImplCtx:
    """The context of a meta kernel; here sizes are always numbers."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A data-dependent size.

        Raises:
            NotImplementedError: always, as a tensor without values has none.
        """
        raise NotImplementedError(
            "The size of the result follows from values, which tensors on the meta device do not have"
        )

    create_unbacked_symint = new_dynamic_size


def get_ctx() -> FakeImplCtx:
    """The context in which a meta kernel creates data-dependent sizes."""
    return FakeImplCtx()


def _check_positional(function: str, operation: Operation) -> None:
    """Whether no tensor is given by name.

    Raises:
        NotImplementedError: if one is.
    """
    schema = operation._schema
    if any(a.kwarg_only and a.type.startswith("Tensor") for a in schema.arguments):
        raise NotImplementedError(
            f"{function} with kwarg-only Tensor args. In the original definition of the op, please make your tensors "
            f"not kwarg-only. Got: {schema}"
        )


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Gives an operation its gradients.

    Args:
        backward: from a context and the gradients of the results to those of the arguments.
        setup_context: called after the operation with a context to save in, the arguments and the results, as
            ``ctx, inputs, output``.

    Raises:
        RuntimeError: for an operation that writes into its arguments or returns views.
        NotImplementedError: for tensors that are given by name.
    """
    operation = operation_of(op)
    _check_positional("register_autograd", operation)
    schema = operation._schema
    if schema.is_mutable or any("(" in r.text for r in schema.returns) or not schema.returns:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {operation} with schema {schema}. Please "
            "create a functional operator and register an autograd formula for that."
        )
    before = operation.formula
    operation.formula = (setup_context, backward)
    _library(operation.name(), lib)._undo.append(lambda: setattr(operation, "formula", before))


def register_torch_dispatch(
    op: Any, torch_dispatch_class: type, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Registers the rule of a ``TorchDispatchMode`` for an operation: ``func(mode, op, types, args, kwargs)`` instead
    of the mode's ``__torch_dispatch__``; a decorator without ``func``."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        operation = operation_of(op)
        operation.rules[torch_dispatch_class] = f
        _library(operation.name(), lib)._undo.append(lambda: operation.rules.pop(torch_dispatch_class, None))
        return f

    return register if func is None else register(func)


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A ``Library`` whose operations and kernels are taken back at the end."""
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Gives an operation its rule for ``vmap``: from ``info``, ``in_dims`` and the arguments to results and where their
    batch elements are; a decorator without ``func``."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        operation = operation_of(op)
        _check_positional("register_vmap", operation)
        before = operation.mapped
        operation.mapped = f
        _library(operation.name(), lib)._undo.append(lambda: setattr(operation, "mapped", before))
        return f

    return register if func is None else register(func)


__all__ = [
    "Library",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "operation_of",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]
